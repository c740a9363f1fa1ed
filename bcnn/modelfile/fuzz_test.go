package modelfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var digits = regexp.MustCompile(`"sha256" *: *"([0-9a-f]{64})"`)

// seal puts the right checksum into a file that has a place for one, so that
// altered files get past it.
func seal(b []byte) {
	if len(b) < 8 {
		return
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(len(b)-8) {
		return
	}
	m := digits.FindSubmatchIndex(b[:8+n])
	if m == nil {
		return
	}
	place := b[m[2]:m[3]]
	copy(place, unsealed)
	sum := sha256.Sum256(b)
	hex.Encode(place, sum[:])
}

// FuzzRead reads arbitrary files, as they are and with a right checksum. A
// file that is accepted must survive writing and reading.
func FuzzRead(f *testing.F) {
	f.Add(encode(f, small()))
	for _, n := range networks() {
		if b := encode(f, n); len(b) < 8000 {
			f.Add(b)
		}
	}
	for _, n := range packable() {
		if b := encodeAs(f, n, true); len(b) < 8000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func() {
			n, err := Read(t.Context(), b, Options{})
			if err != nil {
				require.Nil(t, n)
				return
			}
			written, err := Encode(n)
			require.NoError(t, err)
			back, err := Read(t.Context(), written, Options{})
			require.NoError(t, err)
			// Compared as files: NaN-free, and Equal tells empty from nil slices.
			again, err := Encode(back)
			require.NoError(t, err)
			require.True(t, bytes.Equal(written, again))
		}
		check()
		b = bytes.Clone(b)
		seal(b)
		check()
	})
}
