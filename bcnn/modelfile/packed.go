package modelfile

import (
	"encoding/binary"
	"math"
	"math/bits"

	ieee "github.com/bitcnn/bitcnn/internal/f32"
)

// What takes less bytes than in memory: bits of channels that there are, and numbers that have no
// more bits than those of 16.

// packedVersion is the first version of the format with them, and with lines of thresholds.
const packedVersion = 11

// Roles of tensors of lines.
const (
	lineEnds   = "line_ends"
	lineBounds = "line_bounds"
	lineShifts = "line_shifts"
)

// newTypes are the data types that came with packedVersion.
var newTypes = map[string]bool{f64: true, f16: true, bf16: true, u8: true}

// rowBytes is how many bytes of each row of words have a bit that is 1, at least one of the last
// word, so that the number of words can be told.
func rowBytes(list []uint64, words int) int {
	var used uint64
	for i := words - 1; i < len(list); i += words {
		used |= list[i]
	}
	return 8*(words-1) + max(1, (bits.Len64(used)+7)/8)
}

// packedBits returns so many bytes of each row of words.
func packedBits(list []uint64, words, bytes int) []uint8 {
	out := make([]uint8, 0, len(list)/words*bytes)
	var row []byte
	for ; len(list) > 0; list = list[words:] {
		row = row[:0]
		for _, w := range list[:words] {
			row = binary.LittleEndian.AppendUint64(row, w)
		}
		out = append(out, row[:bytes]...)
	}
	return out
}

// wordsOfBytes is the number of words of a row of so many bytes.
func wordsOfBytes(bytes int64) int64 { return (bytes + 7) / 8 }

// unpackedBits is the inverse of packedBits.
func unpackedBits(list []uint8, bytes int) []uint64 {
	words := int(wordsOfBytes(int64(bytes)))
	out := make([]uint64, len(list)/bytes*words)
	for i, b := range list {
		row, at := i/bytes, i%bytes
		out[row*words+at/8] |= uint64(b) << (8 * (at % 8))
	}
	return out
}

// narrowed returns numbers of 16 bits that are those of a list, and their type; ok is false if there
// are none.
func narrowed(list []float32) (dtype string, out []uint16, ok bool) {
	for _, t := range []struct {
		dtype string
		to    func(float32) uint16
		from  func(uint16) float32
	}{{f16, ieee.ToHalf, ieee.FromHalf}, {bf16, toBrain, fromBrain}} {
		out = make([]uint16, len(list))
		ok = true
		for i, v := range list {
			out[i] = t.to(v)
			if math.Float32bits(t.from(out[i])) != math.Float32bits(v) {
				ok = false
				break
			}
		}
		if ok {
			return t.dtype, out, true
		}
	}
	return "", nil, false
}

func toBrain(v float32) uint16 { return uint16(math.Float32bits(v) >> 16) }

func fromBrain(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
