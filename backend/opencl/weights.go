//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/layout"
)

// convGeometry are the sizes by which weights are laid out.
type convGeometry struct {
	taps, in, out int // taps of the window; channels of a group, all outputs
	perGroup      int // outputs of a group
	lanes, blocks int // blocks that have channels
	words         int // 32-bit words of a tap
}

func (c convGeometry) layout() layout.Sizes {
	return layout.Sizes{Taps: c.taps, In: c.in, Out: c.out, PerGroup: c.perGroup, Words: c.words, Lanes: c.lanes, Blocks: c.blocks}
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

// columnWeights is the transpose: [word][output].
func columnWeights(weights []uint64, outputs int) []uint32 {
	words := 2 * len(weights) / outputs
	out := make([]uint32, 2*len(weights))
	for o := range outputs {
		for k := range words {
			out[k*outputs+o] = layout.Half(weights[o*words/2:], k)
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
	return layout.Corrections(b.Row, b.Col, b.Correction, outputs, stride)
}

// thresholdsI32 and thresholdsF32 pad with a threshold that is never reached.
func thresholdsI32(t *bcnn.Threshold, n int) []int32 {
	if t == nil {
		return nil
	}
	return layout.PadTo(t.I32, n, math.MaxInt32)
}

func thresholdsF32(t *bcnn.Threshold, n int) []float32 {
	if t == nil {
		return nil
	}
	return layout.PadTo(t.F32, n, float32(math.Inf(1)))
}
