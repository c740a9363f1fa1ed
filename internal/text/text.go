// Package text makes what others wrote safe to print: file names, labels, names
// of layers, errors of drivers.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape returns s with everything that does not print written out as in Go
// source: \n, \x1b, \u0085, \u202e. So a terminal does nothing but show it, and
// shows it in one line and in its order. Bytes that are not UTF-8 become \x and
// two digits. Spaces other than U+0020, and characters that join or direct
// others, count as not printing.
func Escape(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		s = s[size:]
	}
	return b.String()
}

func printable(s string) bool {
	for i, r := range s {
		if !strconv.IsPrint(r) {
			return false
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
	}
	return true
}

// EscapeJSON returns JSON with everything in its strings that does not print
// written as \u and four digits: the same value, harmless to a terminal.
func EscapeJSON(json []byte) []byte {
	if printable(string(json)) {
		return json
	}
	b := make([]byte, 0, len(json)+16)
	for _, r := range string(json) {
		switch {
		case strconv.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff: // as two halves
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
