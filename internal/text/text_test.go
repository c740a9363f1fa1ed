package text

import (
	"encoding/json"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		`plain "quoted" C:\dir 'x'`:     `plain "quoted" C:\dir 'x'`,
		"Größe 車 🚗":                     "Größe 車 🚗",
		"a\nb\tc\rd":                    `a\nb\tc\rd`,
		"\x1b]0;title\a":                `\x1b]0;title\a`,
		"\x00\x7f":                      `\x00\x7f`,
		"\u009b2J":                      `\u009b2J`,
		"car\u202egpj.exe\u2066\u200d":  `car\u202egpj.exe\u2066\u200d`,
		"a\u00a0b\u2028c":               `a\u00a0b\u2028c`,
		"\xff\xfe ok \xc3":              `\xff\xfe ok \xc3`,
		"\ufffd is a character":         "\ufffd is a character",
		"\ufffd and \xff":               "\ufffd and " + `\xff`,
		"\U000e0001\ue000":              `\U000e0001\ue000`,
		"e\u0301":                       "e\u0301",
		"\ufeff":                        `\ufeff`,
		"\xed\xa0\x80 half a surrogate": `\xed\xa0\x80 half a surrogate`,
	} {
		require.Equal(t, want, Escape(in))
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[2J\xff\u202e\ufffd")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		require.True(t, utf8.ValidString(e))
		for _, r := range e {
			require.True(t, strconv.IsPrint(r), "%q", e)
		}
		require.Equal(t, e, Escape(e))
	})
}

// What is escaped means what it meant.
func FuzzEscapeJSON(f *testing.F) {
	f.Add("a\x1b[2J\u202e\u009b\U000e0001\U0010ffff\xff", "\\u202e")
	f.Fuzz(func(t *testing.T, a, b string) {
		plain, err := json.Marshal([]string{a, b})
		require.NoError(t, err)
		escaped := EscapeJSON(plain)
		for _, r := range string(escaped) {
			require.True(t, strconv.IsPrint(r), "%q", escaped)
		}
		var want, got []string
		require.NoError(t, json.Unmarshal(plain, &want))
		require.NoError(t, json.Unmarshal(escaped, &got))
		require.Equal(t, want, got)
	})
}
