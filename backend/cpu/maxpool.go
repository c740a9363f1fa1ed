package cpu

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func (c *compiler) maxPool(op *bcnn.MaxPoolStep, in, out bcnn.PlanTensor) step {
	m := &maxPool{Window: op.Window.Undilated(), set: c.set, flip: op.Flip, in: c.in, out: c.out, values: in.Shape.C}
	m.inShape, m.outShape = in.Shape, out.Shape
	kernel, do := "maximum of rows", m.floats
	if in.DType == bcnn.Bits {
		m.values = bits.Words(in.Shape.C)
		kernel, do = "OR of rows", m.bits
	}
	m.runs(out.Shape.W)
	return c.rows(kernel, out.Shape.H, float64(out.Shape.Pixels())*(2+c.set.Cost.Value*float64(m.KH*m.KW*m.values)), do)
}

type maxPool struct {
	bcnn.Window
	set               *kern.Set
	flip              []uint64
	in, out           *bcnn.Tensor
	inShape, outShape bcnn.Shape
	values            int       // words or floats of a pixel
	cols              []poolRun // of an output row
}

// poolRun is a run of pixels of an output row with the same taps inside the
// image.
type poolRun struct {
	x, pixels int
	left      int // first column of the first window, inside the image
	// pools has, for every number of rows of a window inside the image, what the
	// kernel needs to know.
	pools []kern.Pool
}

// runs divides an output row.
func (m *maxPool) runs(width int) {
	for x := 0; x < width; {
		left := x*m.StrideW - m.Pad.Left
		from, to := inside(left, m.KW, 1, m.inShape.W)
		r := poolRun{x: x, pixels: 1, left: left + from}
		for x++; x < width; x++ {
			next := x*m.StrideW - m.Pad.Left
			if f, t := inside(next, m.KW, 1, m.inShape.W); f != from || t != to || from > 0 {
				break // windows that begin outside do not move by the stride
			}
			r.pixels++
		}
		var taps []int
		for ky := range m.KH {
			for kx := range to - from {
				taps = append(taps, (ky*m.inShape.W+kx)*m.values)
			}
		}
		for rows := range m.KH + 1 {
			r.pools = append(r.pools, kern.Pool{
				Taps: taps[:rows*(to-from)], Values: m.values,
				Step: m.StrideW * m.values, DstStep: m.values, Pixels: r.pixels,
			})
		}
		m.cols = append(m.cols, r)
	}
}

// taps returns the first row of a window inside the image, and their number.
func (m *maxPool) taps(y int) (first, rows int) {
	top := y*m.StrideH - m.Pad.Top
	ky0, ky1 := inside(top, m.KH, 1, m.inShape.H)
	return top + ky0, ky1 - ky0
}

func (m *maxPool) bits(_ *scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := m.taps(y)
		dst := m.out.Words[(image*m.outShape.H+y)*m.outShape.W*m.values:][:m.outShape.W*m.values]
		src := m.in.Words[(image*m.inShape.H+first)*m.inShape.W*m.values:]
		for i := range m.cols {
			r := &m.cols[i]
			m.set.OrPool(dst[r.x*m.values:], src[r.left*m.values:], &r.pools[rows])
		}
		if m.flip != nil {
			for ; len(dst) > 0; dst = dst[m.values:] {
				for i, v := range m.flip {
					dst[i] ^= v
				}
			}
		}
	}
}

// floats keeps the first of equal values in the order (ky, kx), as the contract
// says: only the sign of a zero can tell.
func (m *maxPool) floats(_ *scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := m.taps(y)
		dst := m.out.F32[(image*m.outShape.H+y)*m.outShape.W*m.values:]
		src := m.in.F32[(image*m.inShape.H+first)*m.inShape.W*m.values:]
		for i := range m.cols {
			r := &m.cols[i]
			m.set.MaxPool(dst[r.x*m.values:], src[r.left*m.values:], &r.pools[rows])
		}
	}
}
