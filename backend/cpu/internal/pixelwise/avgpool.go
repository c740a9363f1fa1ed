package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func newAvgPool(c *schedule.Context, op *bcnn.AvgPoolStep, in, out bcnn.PlanTensor) (tiles.Step, tiles.Size) {
	a := &avgPool{rowPool: newRowPool(c, op.Window, in, out)}
	if op.CountPadding {
		a.count = op.KH * op.KW
	}
	pixel := 2 + c.Set.Cost.Value*float64(min(a.KH, a.inShape.H))*float64(min(a.KW, a.inShape.W))*float64(a.values)
	a.chunk = max(1, int(schedule.MaxTile/pixel))
	kernel, do := "mean of rows", a.floats
	if in.DType == bcnn.Bits {
		a.values = bits.Words(in.Shape.C)
		kernel, do = "mean of bits", a.bits
	}
	a.runs(c)
	return c.Rows(kernel, out.Shape.H, pixel*float64(out.Shape.Pixels()), do), tiles.Size{}
}

type avgPool struct {
	rowPool
	count int // of the taps; 0 for those inside the image
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

// bits adds up ±1.
func (a *avgPool) bits(s *tiles.Scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := a.taps(y)
		dst := a.out.F32[(image*a.outShape.H+y)*a.outShape.W*a.inShape.C:]
		src := a.in.Words[(image*a.inShape.H+first)*a.inShape.W*a.values:]
		a.each(s, rows, func(x, left int) {
			sums := dst[x*a.inShape.C:][:s.Pool.Pixels*a.inShape.C]
			a.set.SumSigns(sums, src[left*a.values:], a.inShape.C, &s.Pool)
			a.divide(sums, len(s.Pool.Taps))
		})
	}
}
