package main

import (
	"fmt"
	"strings"
)

// token is a word, a number, a string or one character of PTX. Words hold letters,
// digits and . _ $ % and ::, so an opcode with its modifiers is one.
type token struct {
	text string
	line int
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._$%", c) >= 0
}

// lex splits PTX into tokens; comments are left out.
func lex(text string) ([]token, error) {
	var tokens []token
	line := 1
	for i := 0; i < len(text); {
		start := i
		switch c := text[i]; {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				return nil, fmt.Errorf("line %d: a comment does not end", line)
			}
			line += strings.Count(text[i:i+2+n], "\n")
			i += n + 4
		case c == '"':
			n := strings.IndexAny(text[i+1:], "\"\n")
			if n < 0 || text[i+1+n] == '\n' {
				return nil, fmt.Errorf("line %d: a string does not end", line)
			}
			i += n + 2
			tokens = append(tokens, token{text[start:i], line})
		case isWord(c):
			for i < len(text) && (isWord(text[i]) || strings.HasPrefix(text[i:], "::")) {
				if text[i] == ':' {
					i++
				}
				i++
			}
			tokens = append(tokens, token{text[start:i], line})
		case strings.IndexByte("{}[](),;:@!+-<>|", c) >= 0:
			i++
			tokens = append(tokens, token{text[start:i], line})
		default:
			return nil, fmt.Errorf("line %d: %q is not PTX", line, c)
		}
	}
	return tokens, nil
}
