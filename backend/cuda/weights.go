//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// half returns 32-bit word k of a row of 64-bit words.
func half(row []uint64, k int) uint32 { return uint32(row[k/2] >> (k % 2 * 32)) }

// padTo lengthens a slice with a value.
func padTo[T any](s []T, n int, with T) []T {
	padded := make([]T, n)
	for i := copy(padded, s); i < n; i++ {
		padded[i] = with
	}
	return padded
}

// convGeometry are the sizes by which weights are laid out.
type convGeometry struct {
	taps, in, out int // taps of the window; channels of a group, all outputs
	perGroup      int // outputs of a group
	blocks        int // of lanes channels, those that have any
	words         int // 32-bit words of a tap
}

// blockWeights orders packed weights as [block][tap][word/vector][lane][word%vector].
func (c convGeometry) blockWeights(weights []uint64, vector int) []uint32 {
	stride := bits.Words(c.in)
	out := make([]uint32, c.blocks*c.taps*c.words*lanes)
	for o := range c.out {
		for t := range c.taps {
			row := weights[(o*c.taps+t)*stride:][:stride]
			for k := range c.words {
				at := ((o/lanes*c.taps+t)*c.words + k/vector*vector) * lanes
				out[at+o%lanes*vector+k%vector] = half(row, k)
			}
		}
	}
	return out
}

// mixedWords is how many 32-bit words of a pixel the channels of a group touch
// at the most.
func mixedWords(in, groups int) int {
	words := 0
	for g := range groups {
		words = max(words, (g*in%32+in+31)/32)
	}
	return words
}

// mixedWeights orders packed weights as [block][tap][word][lane], where word 0 is
// the first word of the pixel that the group touches, with the bits in the places
// that they have in the pixel; and the masks [block][word][lane] of those places.
func (c convGeometry) mixedWeights(weights []uint64) (out, masks []uint32) {
	stride := bits.Words(c.in)
	out = make([]uint32, c.blocks*c.taps*c.words*lanes)
	masks = make([]uint32, c.blocks*c.words*lanes)
	for o := range c.out {
		shift := o / c.perGroup * c.in % 32
		for i := range c.in {
			k, bit := (shift+i)/32, uint32(1)<<((shift+i)%32)
			masks[(o/lanes*c.words+k)*lanes+o%lanes] |= bit
			for t := range c.taps {
				if bits.At(weights[(o*c.taps+t)*stride:], i) > 0 {
					out[((o/lanes*c.taps+t)*c.words+k)*lanes+o%lanes] |= bit
				}
			}
		}
	}
	return out, masks
}

// signWeights unpacks weights as [block][tap][channel][lane], ±1.
func (c convGeometry) signWeights(weights []uint64) []int32 {
	stride := bits.Words(c.in)
	out := make([]int32, c.blocks*c.taps*c.in*lanes)
	for o := range c.out {
		for t := range c.taps {
			row := weights[(o*c.taps+t)*stride:][:stride]
			for i := range c.in {
				out[((o/lanes*c.taps+t)*c.in+i)*lanes+o%lanes] = int32(bits.At(row, i))
			}
		}
	}
	return out
}

// byteWeights unpacks weights to signed bytes, four channels to a word, as
// [block][tap][channel/4][lane]: ±1, and 0 where there is no channel. sums is the
// sum of the weights of each output.
func (c convGeometry) byteWeights(weights []uint64) (out []uint32, sums []int32) {
	stride, words := bits.Words(c.in), ceilDiv(c.in, 4)
	out = make([]uint32, c.blocks*c.taps*words*lanes)
	sums = make([]int32, c.out)
	for o := range c.out {
		for t := range c.taps {
			row := weights[(o*c.taps+t)*stride:][:stride]
			for i := range c.in {
				w := bits.At(row, i)
				sums[o] += int32(w)
				out[((o/lanes*c.taps+t)*words+i/4)*lanes+o%lanes] |= uint32(uint8(w)) << (i % 4 * 8)
			}
		}
	}
	return out, sums
}

// floatWeights orders weights as [block][tap][channel][lane].
func (c convGeometry) floatWeights(weights []float32) []float32 {
	out := make([]float32, c.blocks*c.taps*c.in*lanes)
	for o := range c.out {
		for i, w := range weights[o*c.taps*c.in:][:c.taps*c.in] {
			out[(o/lanes*c.taps*c.in+i)*lanes+o%lanes] = w
		}
	}
	return out
}

// patchWeights packs the bits of an output's weights without gaps between taps:
// [output][word].
func (c convGeometry) patchWeights(weights []uint64) []uint32 {
	stride := bits.Words(c.in)
	row := make([]uint64, bits.Words(c.taps*c.in))
	patchWords := (c.taps*c.in + 31) / 32
	out := make([]uint32, 0, c.out*patchWords)
	for o := range c.out {
		clear(row)
		for t := range c.taps {
			bits.Append(row, t*c.in, weights[(o*c.taps+t)*stride:][:stride], c.in)
		}
		for k := range patchWords {
			out = append(out, half(row, k))
		}
	}
	return out
}

// rowWeights are rows of 64-bit words as they are: [row][word]. Nothing of nothing.
func rowWeights(weights []uint64) []uint32 {
	if weights == nil {
		return nil
	}
	out := make([]uint32, 2*len(weights))
	for i := range out {
		out[i] = half(weights, i)
	}
	return out
}

// blockCorrection lays the corrections out for blocks of lanes, and returns the
// classes of rows and columns.
func blockCorrection(b *bcnn.Border, outputs, stride int) (rows, cols, correction []int32) {
	if b == nil {
		return nil, nil, nil
	}
	for _, class := range b.Row {
		rows = append(rows, int32(class))
	}
	for _, class := range b.Col {
		cols = append(cols, int32(class))
	}
	correction = make([]int32, b.Rows*b.Cols*stride)
	for class := range b.Rows * b.Cols {
		copy(correction[class*stride:], b.Correction[class*outputs:][:outputs])
	}
	return rows, cols, correction
}

// thresholdsI32 and thresholdsF32 pad with a threshold that is never reached.
func thresholdsI32(t *bcnn.Threshold, n int) []int32 {
	if t == nil {
		return nil
	}
	return padTo(t.I32, n, math.MaxInt32)
}

func thresholdsF32(t *bcnn.Threshold, n int) []float32 {
	if t == nil {
		return nil
	}
	return padTo(t.F32, n, float32(math.Inf(1)))
}
