package pixelwise

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

func newAvgPool(c *schedule.Context, op *bcnn.AvgPoolStep, in, out bcnn.PlanTensor) (tiles.Step, tiles.Size) {
	a := &avgPool{rowPool: newRowPool(c, op.Window, in, out)}
	if op.CountPadding {
		a.count = op.KH * op.KW
	}
	pixel := 2 + c.Set.Cost.Value*float64(min(a.KH, a.inShape.H))*float64(min(a.KW, a.inShape.W))*float64(a.values)
	a.chunk = max(1, int(schedule.MaxTile/pixel))
	if in.DType == bcnn.Bits {
		a.one, a.minus = slices.Repeat([]float32{1}, a.values), slices.Repeat([]float32{-1}, a.values)
		step := c.Rows("mean of bits", out.Shape.H, 2*pixel*float64(out.Shape.Pixels()), a.bits)
		return step, tiles.Size{Floats: a.values}
	}
	a.runs(c)
	return c.Rows("mean of rows", out.Shape.H, pixel*float64(out.Shape.Pixels()), a.floats), tiles.Size{}
}

type avgPool struct {
	rowPool
	count      int       // of the taps; 0 for those inside the image
	one, minus []float32 // values of bits, one for each channel
}

// divide makes means of the sums of so many taps.
func (a *avgPool) divide(sums []float32, taps int) {
	if a.count > 0 {
		taps = a.count
	}
	a.set.Divide(sums, float32(taps), 1/float32(taps))
}

func (a *avgPool) floats(s *tiles.Scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := a.taps(y)
		dst := a.out.F32[(image*a.outShape.H+y)*a.outShape.W*a.values:]
		src := a.in.F32[(image*a.inShape.H+first)*a.inShape.W*a.values:]
		a.each(s, rows, func(x, left int) {
			sums := dst[x*a.values:][:s.Pool.Pixels*a.values]
			a.set.SumPool(sums, src[left*a.values:], &s.Pool)
			a.divide(sums, len(s.Pool.Taps))
		})
	}
}

// bits adds up ±1 as float32, which is exact.
func (a *avgPool) bits(s *tiles.Scratch, image, y0, y1 int) {
	words, row := bits.Words(a.values), s.Floats[:a.values]
	for y := y0; y < y1; y++ {
		first, rows := a.taps(y)
		for x := range a.outShape.W {
			if a.chunk < a.outShape.W && s.Ended() {
				return
			}
			left := x*a.StrideW - a.Pad.Left
			from, to := num.Inside(left, a.KW, 1, a.inShape.W)
			sums := a.out.F32[((image*a.outShape.H+y)*a.outShape.W+x)*a.values:][:a.values]
			clear(sums)
			for ky := range rows {
				pixel := (image*a.inShape.H+first+ky)*a.inShape.W + left
				for kx := from; kx < to; kx++ {
					a.set.Choose(row, a.in.Words[(pixel+kx)*words:][:words], a.one, a.minus)
					a.set.Add(sums, sums, row, false)
				}
			}
			a.divide(sums, rows*(to-from))
		}
	}
}
