package cpu

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func (c *compiler) avgPool(op *bcnn.AvgPoolStep, in, out bcnn.PlanTensor) (step, scratchSize) {
	a := &avgPool{rowPool: c.rowPool(op.Window, in, out)}
	if op.CountPadding {
		a.count = op.KH * op.KW
	}
	pixel := 2 + c.set.Cost.Value*float64(min(a.KH, a.inShape.H))*float64(min(a.KW, a.inShape.W))*float64(a.values)
	a.chunk = max(1, int(maxTile/pixel))
	if in.DType == bcnn.Bits {
		a.one, a.minus = slices.Repeat([]float32{1}, a.values), slices.Repeat([]float32{-1}, a.values)
		step := c.rows("mean of bits", out.Shape.H, 2*pixel*float64(out.Shape.Pixels()), a.bits)
		return step, scratchSize{floats: a.values}
	}
	a.runs(c)
	return c.rows("mean of rows", out.Shape.H, pixel*float64(out.Shape.Pixels()), a.floats), scratchSize{}
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

func (a *avgPool) floats(s *scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := a.taps(y)
		dst := a.out.F32[(image*a.outShape.H+y)*a.outShape.W*a.values:]
		src := a.in.F32[(image*a.inShape.H+first)*a.inShape.W*a.values:]
		a.each(s, rows, func(x, left int) {
			sums := dst[x*a.values:][:s.pool.Pixels*a.values]
			a.set.SumPool(sums, src[left*a.values:], &s.pool)
			a.divide(sums, len(s.pool.Taps))
		})
	}
}

// bits adds up ±1 as float32, which is exact.
func (a *avgPool) bits(s *scratch, image, y0, y1 int) {
	words, row := bits.Words(a.values), s.floats[:a.values]
	for y := y0; y < y1; y++ {
		first, rows := a.taps(y)
		for x := range a.outShape.W {
			if a.chunk < a.outShape.W && s.ended() {
				return
			}
			left := x*a.StrideW - a.Pad.Left
			from, to := inside(left, a.KW, 1, a.inShape.W)
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
