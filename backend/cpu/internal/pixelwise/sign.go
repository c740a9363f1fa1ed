package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// signWords bounds the words in which bits of pixels are collected before they are
// counted.
const signWords = 512

// sign compiles thresholds.
func sign(c *schedule.Context, op *plan.Sign, shape bcnn.Shape) (tiles.Step, tiles.Size) {
	set, src, dst := c.Set, c.In, c.Out
	words, pitch := bits.Words(shape.C), c.InPitch
	planes := max(op.Planes, 1)
	flip := op.Threshold.Flip
	flipped := func(out []uint64) {
		for ; flip != nil && len(out) > 0; out = out[words:] {
			for i, v := range flip {
				out[i] ^= v
			}
		}
	}
	work := 2*float64(shape.Pixels()) + c.Set.Cost.Value*float64(len(op.Threshold.F32)*shape.Pixels())
	if planes == 1 {
		do := func(_ *tiles.Scratch, image, from, to int) {
			first, pixels := image*shape.Pixels()+from, to-from
			out := dst.Words[first*words:][:pixels*words]
			set.ThresholdFloat(out, words, src.F32[first*pitch:], pitch, op.Threshold.F32, pixels)
			flipped(out)
		}
		return c.Pixels("threshold and pack", shape.Pixels(), work, do), tiles.Size{}
	}
	row := shape.W * words
	if planes == 2 && set.ThresholdPlanes != nil && shape.C%8 == 0 {
		do := func(_ *tiles.Scratch, image, from, to int) {
			for y := from; y < to; y++ {
				out := dst.Words[(image*shape.H+y)*planes*row:][:planes*row]
				set.ThresholdPlanes(out, words, row, src.F32[(image*shape.H+y)*shape.W*shape.C:], shape.C, op.Threshold.F32, shape.W)
				flipped(out)
			}
		}
		return c.Rows("count three thresholds and pack", shape.H, work, do), tiles.Size{}
	}
	chunk := min(max(1, signWords/words), shape.W)
	do := func(s *tiles.Scratch, image, from, to int) {
		for y := from; y < to; y++ {
			out := dst.Words[(image*shape.H+y)*planes*row:][:planes*row]
			clear(out)
			for x := 0; x < shape.W; x += chunk {
				n := min(chunk, shape.W-x)
				values := src.F32[((image*shape.H+y)*shape.W+x)*shape.C:]
				reached := s.Words[:n*words]
				for k := range 1<<planes - 1 {
					set.ThresholdFloat(reached, words, values, shape.C, op.Threshold.F32[k*shape.C:][:shape.C], n)
					// Bit j is set where an odd number of every 2^j-th threshold is reached.
					for j := 0; (k+1)>>j<<j == k+1 && j < planes; j++ {
						plane := out[j*row+x*words:][:n*words]
						for i, v := range reached {
							plane[i] ^= v
						}
					}
				}
			}
			flipped(out)
		}
	}
	return c.Rows("count thresholds and pack", shape.H, work, do), tiles.Size{Words: chunk * words}
}
