package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

func newAvgPool(c *schedule.Context, op *plan.AvgPool, in, out plan.Tensor) (tiles.Step, tiles.Size) {
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
	for i := range a.cols {
		if in.DType == bcnn.Bits || !c.Reserve(num.Product(len(a.cols[i].taps), 16)) {
			break // the plan is too large
		}
		var runs []kern.FloatRun
		for _, t := range a.cols[i].taps {
			runs = append(runs, kern.FloatRun{Src: t})
		}
		a.means = append(a.means, runs)
	}
	return c.Rows(kernel, out.Shape.H, pixel*float64(out.Shape.Pixels()), do), tiles.Size{}
}

type avgPool struct {
	rowPool
	count int               // of the taps; 0 for those inside the image
	means [][]kern.FloatRun // the taps of each run of pixels
}

// divisor returns what the sum of so many taps inside the image is divided by, and its
// reciprocal.
func (a *avgPool) divisor(inside int) (taps, y float32) {
	if a.count > 0 {
		inside = a.count
	}
	return float32(inside), 1 / float32(inside)
}

func (a *avgPool) floats(s *tiles.Scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := a.taps(y)
		dst := a.out.F32[(image*a.outShape.H+y)*a.outShape.W*a.values:]
		src := a.in.F32[(image*a.inShape.H+first)*a.inShape.W*a.values:]
		a.each(s, rows, func(run, x, left int) {
			n := len(s.Pool.Taps)
			s.Patches.Pixels, s.Patches.Step, s.Patches.Runs = s.Pool.Pixels, s.Pool.Step, a.means[run][:n]
			s.Patches.Slide, s.Patches.Stride = 0, 1
			if a.StrideW == 1 {
				s.Patches.Slide = a.cols[run].rowTaps
			}
			taps, y := a.divisor(n)
			a.set.Mean(dst[x*a.values:], src[left*a.values:], &s.Patches, a.values, taps, y)
		})
	}
	s.Patches.Runs = nil
}

// bits adds up ±1.
func (a *avgPool) bits(s *tiles.Scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := a.taps(y)
		dst := a.out.F32[(image*a.outShape.H+y)*a.outShape.W*a.inShape.C:]
		src := a.in.Words[(image*a.inShape.H+first)*a.inShape.W*a.values:]
		a.each(s, rows, func(_, x, left int) {
			sums := dst[x*a.inShape.C:][:s.Pool.Pixels*a.inShape.C]
			taps, y := a.divisor(len(s.Pool.Taps))
			a.set.MeanSigns(sums, src[left*a.values:], a.inShape.C, &s.Pool, taps, y)
		})
	}
}
