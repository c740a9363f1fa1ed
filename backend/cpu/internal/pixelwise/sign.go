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

// mostTogether bounds the channels of pixels that are taken together.
const mostTogether = 2048

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
	return signPlanes(c, op, shape, work, flipped)
}

// signPlanes is sign of several planes. The kernel that counts three thresholds takes multiples of 8
// channels: those of some pixels together, whose bits are divided afterwards.
func signPlanes(c *schedule.Context, op *plan.Sign, shape bcnn.Shape, work float64, flipped func([]uint64)) (tiles.Step, tiles.Size) {
	set, src, dst := c.Set, c.In, c.Out
	words, planes := bits.Words(shape.C), op.Planes
	row := shape.W * words
	some := 1 // pixels whose channels a kernel can take together
	for some*shape.C%8 > 0 {
		some *= 2
	}
	together := 0 // pixels of a row that it takes
	if planes == 2 && set.ThresholdPlanes != nil && (some == 1 || some*shape.C <= mostTogether) {
		together = shape.W / some * some
	}
	t, dense := op.Threshold.F32, 0 // of pixels together, and the words that have to be divided
	if some > 1 && together > 0 {
		t, dense = nil, bits.Words(some*shape.C)
		for list := op.Threshold.F32; len(list) > 0; list = list[shape.C:] {
			t = append(t, repeated(list[:shape.C], some)...)
		}
	}
	chunk := min(max(1, signWords/words), shape.W)
	do := func(s *tiles.Scratch, image, from, to int) {
		for y := from; y < to; y++ {
			out := dst.Words[(image*shape.H+y)*planes*row:][:planes*row]
			values := src.F32[(image*shape.H+y)*shape.W*shape.C:][:shape.W*shape.C]
			switch n := together / some; {
			case n > 0 && dense == 0:
				set.ThresholdPlanes(out, words, row, values, shape.C, t, n)
			case n > 0:
				set.ThresholdPlanes(s.Words, dense, n*dense, values, some*shape.C, t, n)
				for j := range planes {
					for i := range n {
						bits.Split(out[j*row+i*some*words:], s.Words[(j*n+i)*dense:][:dense], some*shape.C, shape.C)
					}
				}
			}
			for x := together; x < shape.W; x += chunk {
				n := min(chunk, shape.W-x)
				reached := s.Words[:n*words]
				for j := range planes {
					clear(out[j*row+x*words:][:n*words])
				}
				for k := range 1<<planes - 1 {
					set.ThresholdFloat(reached, words, values[x*shape.C:], shape.C, op.Threshold.F32[k*shape.C:][:shape.C], n)
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
	kernel, need := "count thresholds and pack", 0
	if together > 0 {
		kernel, need = "count three thresholds and pack", planes*together/some*dense
	}
	if together < shape.W {
		need = max(need, chunk*words)
	}
	return c.Rows(kernel, shape.H, work, do), tiles.Size{Words: need}
}
