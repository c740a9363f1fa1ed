//go:build (arm || arm64) && !purego

package sets

import (
	"encoding/binary"
	"io/fs"
	"strconv"
)

// capability reports whether Linux sets a bit of one of the words with which it tells a
// program what the processor can do. Other systems have no such file.
func capability(root fs.FS, word, bit uint64) bool {
	const size = strconv.IntSize / 8
	value := func(b []byte) uint64 {
		if size == 4 {
			return uint64(binary.LittleEndian.Uint32(b))
		}
		return binary.LittleEndian.Uint64(b)
	}
	words, _ := fs.ReadFile(root, "proc/self/auxv")
	for ; len(words) >= 2*size; words = words[2*size:] {
		if value(words) == word {
			return value(words[size:])>>bit&1 != 0
		}
	}
	return false
}
