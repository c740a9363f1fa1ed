//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

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
	lanes, blocks int // blocks that have channels
	words         int // 32-bit words of a tap
}

// blockWeights orders packed weights as [block][tap][word][lane].
func (c convGeometry) blockWeights(weights []uint64) []uint32 {
	stride := bits.Words(c.in)
	out := make([]uint32, c.blocks*c.taps*c.words*c.lanes)
	for o := range c.out {
		for t := range c.taps {
			row := weights[(o*c.taps+t)*stride:][:stride]
			for k := range c.words {
				out[((o/c.lanes*c.taps+t)*c.words+k)*c.lanes+o%c.lanes] = half(row, k)
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
	out = make([]uint32, c.blocks*c.taps*c.words*c.lanes)
	masks = make([]uint32, c.blocks*c.words*c.lanes)
	for o := range c.out {
		shift := o / c.perGroup * c.in % 32
		for i := range c.in {
			k, bit := (shift+i)/32, uint32(1)<<((shift+i)%32)
			masks[(o/c.lanes*c.words+k)*c.lanes+o%c.lanes] |= bit
			for t := range c.taps {
				if bits.At(weights[(o*c.taps+t)*stride:], i) > 0 {
					out[((o/c.lanes*c.taps+t)*c.words+k)*c.lanes+o%c.lanes] |= bit
				}
			}
		}
	}
	return out, masks
}

// signWeights unpacks weights as [block][tap][channel][lane]: 0 for +1, all ones
// for −1. counts says how many weights of each output are −1.
func (c convGeometry) signWeights(weights []uint64) (out, counts []int32) {
	stride := bits.Words(c.in)
	out = make([]int32, c.blocks*c.taps*c.in*c.lanes)
	counts = make([]int32, c.out)
	for o := range c.out {
		for t := range c.taps {
			row := weights[(o*c.taps+t)*stride:][:stride]
			for i := range c.in {
				if bits.At(row, i) < 0 {
					out[((o/c.lanes*c.taps+t)*c.in+i)*c.lanes+o%c.lanes] = -1
					counts[o]++
				}
			}
		}
	}
	return out, counts
}

// floatWeights orders weights as [block][tap][channel][lane].
func (c convGeometry) floatWeights(weights []float32) []float32 {
	out := make([]float32, c.blocks*c.taps*c.in*c.lanes)
	for o := range c.out {
		for i, w := range weights[o*c.taps*c.in:][:c.taps*c.in] {
			out[(o/c.lanes*c.taps*c.in+i)*c.lanes+o%c.lanes] = w
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

// rowWeights are the rows of a dense layer as they are: [output][word].
func rowWeights(weights []uint64) []uint32 {
	out := make([]uint32, 2*len(weights))
	for i := range out {
		out[i] = half(weights, i)
	}
	return out
}

// columnWeights is the transpose: [word][output].
func columnWeights(weights []uint64, outputs int) []uint32 {
	words := 2 * len(weights) / outputs
	out := make([]uint32, 2*len(weights))
	for o := range outputs {
		for k := range words {
			out[k*outputs+o] = half(weights[o*words/2:], k)
		}
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

// flipWords splits a mask into 32-bit words.
func flipWords(mask []uint64) []uint32 {
	if mask == nil {
		return nil
	}
	return rowWeights(mask)
}
