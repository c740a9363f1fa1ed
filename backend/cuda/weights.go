//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/layout"
	"github.com/bitcnn/bitcnn/internal/num"
)

// half returns 32-bit word k of a row of 64-bit words.
func half(row []uint64, k int) uint32 { return layout.Half(row, k) }

func padTo[T any](s []T, n int, with T) []T { return layout.PadTo(s, n, with) }

// rowWeights are rows of 64-bit words as they are: [row][word]. Nothing of nothing.
func rowWeights(weights []uint64) []uint32 { return layout.Rows(weights) }

// convGeometry are the sizes by which weights are laid out.
type convGeometry struct {
	taps, in, out int // taps of the window; channels of a group, all outputs
	perGroup      int // outputs of a group
	blocks        int // of lanes channels, those that have any
	words         int // 32-bit words of a tap
}

func (c convGeometry) sizes() layout.Sizes {
	return layout.Sizes{Taps: c.taps, In: c.in, Out: c.out, PerGroup: c.perGroup, Words: c.words, Lanes: lanes, Blocks: c.blocks}
}

// blockWeights orders packed weights as [block][tap][word/vector][lane][word%vector].
func (c convGeometry) blockWeights(weights []uint64, vector int) []uint32 {
	return c.sizes().Bits(weights, vector)
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
	stride, words := bits.Words(c.in), num.CeilDiv(c.in, 4)
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

// blockCorrection lays the corrections out for blocks of lanes, and returns the
// classes of rows and columns.
func blockCorrection(b *bcnn.Border, outputs, stride int) (rows, cols, correction []int32) {
	if b == nil {
		return nil, nil, nil
	}
	return layout.Corrections(b.Row, b.Col, b.Correction, outputs, stride)
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
