package text

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how many bytes of a text Quote shows: as many as the name of a
// layer may have.
const maxQuoted = 256

// Quote quotes what others wrote for an error: as strconv.Quote does, but what
// is too long to be a name is shortened, so that a file of megabytes does not
// make an error of megabytes.
func Quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	cut := maxQuoted
	for cut > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
