//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"fmt"
	"strings"
	"unicode"
)

// arrange gives devices their IDs: numbers in the order in which they were found, each piece of
// hardware one. Where several drivers have the same, the best one has the number, and the others come
// last, by the names of their platforms.
func arrange(found []*device) []*device {
	var numbered, named []*device
	at := make(map[string]int) // places, in numbered
	for _, d := range found {
		i, known := at[d.place]
		switch {
		case d.place == "" || !known:
			at[d.place] = len(numbered)
			numbered = append(numbered, d)
		case d.merit > numbered[i].merit:
			numbered[i], d = d, numbered[i]
			fallthrough
		default:
			named = append(named, d)
		}
	}
	for i, d := range numbered {
		d.info.ID = fmt.Sprintf("opencl:%d", i)
	}
	taken := make(map[string]bool)
	for _, d := range named {
		id := "opencl:" + slug(d.platform)
		for n := 2; taken[id]; n++ {
			id = fmt.Sprintf("opencl:%s-%d", slug(d.platform), n)
		}
		taken[id] = true
		d.info.ID = id
		of := numbered[at[d.place]]
		of.info.Detail += fmt.Sprintf(", also as %s by another driver", id)
		d.info.Detail += ", the same device as " + of.info.ID
	}
	return append(numbered, named...)
}

// slug is a name in small letters and digits, with hyphens in place of all else.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return "other"
	}
	return strings.Join(words, "-")
}
