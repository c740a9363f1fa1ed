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

func newMaxPool(c *schedule.Context, op *plan.MaxPool, in, out plan.Tensor) tiles.Step {
	if op.Planes > 1 {
		return newPlanePool(c, op, in, out)
	}
	m := &maxPool{rowPool: newRowPool(c, op.Window, in, out), flip: op.Flip}
	kernel, do := "maximum of rows", m.floats
	if in.DType == bcnn.Bits {
		m.values = bits.Words(in.Shape.C)
		kernel, do = "OR of rows", m.bits
	}
	if in.DType == bcnn.Uint8 {
		do = m.bytes
	}
	m.runs(c)
	pixel := 2 + c.Set.Cost.Value*float64(min(m.KH, m.inShape.H))*float64(min(m.KW, m.inShape.W))*float64(m.values)
	m.chunk = max(1, int(schedule.MaxTile/pixel))
	return &MaxPool{Range: c.Rows(kernel, out.Shape.H, pixel*float64(out.Shape.Pixels()), do), maxPool: m}
}

// MaxPool is a step that computes maxima.
type MaxPool struct {
	*tiles.Range
	*maxPool
}

// Reads returns the input rows of the windows of some output rows.
func (m *MaxPool) Reads(y0, y1 int) (from, to int) {
	from, _ = m.taps(y0)
	last, rows := m.taps(y1 - 1)
	return from, last + rows
}

// Span returns how many input rows n output rows read at most.
func (m *MaxPool) Span(n int) int { return (n-1)*m.StrideH + m.KH }

// Of computes output rows of an image of float32 values from rows of its input, which are in s.Made,
// from row first on.
func (m *MaxPool) Of(s *tiles.Scratch, first, image, y0, y1 int) {
	maxima(m.maxPool, s, m.out.F32, s.Made, image, image*m.inShape.H+first, y0, y1, m.set.MaxPool)
}

// InPlace reports whether the outputs of a pool of float32 values may lie where its input
// does, at its start, for a thread that computes them in order: no output is behind the first
// of its taps. Those of a pixel are read before it is written, and a part of it that is
// computed twice, because vectors overlap, is the maximum of itself and of its taps.
func InPlace(op *plan.MaxPool, in, out plan.Tensor) bool {
	if in.DType != bcnn.Float32 {
		return false
	}
	first := func(at, stride, pad int) int { return max(at*stride-pad, 0) }
	for y := range out.Shape.H {
		for x := range out.Shape.W {
			if first(y, op.StrideH, op.Pad.Top)*in.Shape.W+first(x, op.StrideW, op.Pad.Left) < y*out.Shape.W+x {
				return false
			}
		}
	}
	return true
}

type maxPool struct {
	rowPool
	flip []uint64
}

// rowPool computes rows of a pool.
type rowPool struct {
	bcnn.Window
	set               *kern.Set
	in, out           *bcnn.Tensor
	inShape, outShape bcnn.Shape
	values            int       // words or floats of a pixel
	cols              []poolRun // of an output row
	chunk             int       // pixels at a time
}

func newRowPool(c *schedule.Context, w bcnn.Window, in, out plan.Tensor) rowPool {
	return rowPool{Window: w, set: c.Set, in: c.In, out: c.Out, inShape: in.Shape, outShape: out.Shape, values: in.Shape.C}
}

// poolRun is a run of pixels of an output row with the same taps inside the
// image.
type poolRun struct {
	x, pixels int
	left      int // first column of the first window, inside the image
	// taps are those of as many rows as a window can have inside the image, each
	// of which has so many; fewer rows have the first of them.
	taps    []int
	rowTaps int
}

// runs divides an output row.
func (m *rowPool) runs(c *schedule.Context) {
	rows := min(m.KH, m.inShape.H)
	taps := make(map[int][]int) // by columns inside the image
	for x := 0; x < m.outShape.W && !c.Ended(); {
		left := x*m.StrideW - m.Pad.Left
		from, to := num.Inside(left, m.KW, 1, m.inShape.W)
		r := poolRun{x: x, pixels: 1, left: left + from, rowTaps: to - from}
		for x++; x < m.outShape.W; x++ {
			next := x*m.StrideW - m.Pad.Left
			if f, t := num.Inside(next, m.KW, 1, m.inShape.W); f != from || t != to || from > 0 {
				break // windows that begin outside do not move by the stride
			}
			r.pixels++
		}
		if taps[r.rowTaps] == nil {
			if !c.Reserve(num.Product(rows, r.rowTaps, 8)) {
				return // the plan is too large
			}
			all := make([]int, 0, rows*r.rowTaps)
			for ky := range rows {
				for kx := range r.rowTaps {
					all = append(all, (ky*m.inShape.W+kx)*m.values)
				}
			}
			taps[r.rowTaps] = all
		}
		r.taps = taps[r.rowTaps]
		m.cols = append(m.cols, r)
	}
}

// each calls do for the runs of an output row whose windows have so many rows
// inside the image: which of them it is, output pixels from x on, and the first column
// of the first window. What is to be done with them is in s.Pool.
func (m *rowPool) each(s *tiles.Scratch, rows int, do func(run, x, left int)) {
	for i := range m.cols {
		r := &m.cols[i]
		for p := 0; p < r.pixels; p += m.chunk {
			if m.chunk < m.outShape.W && s.Ended() {
				return
			}
			s.Pool = kern.Pool{
				Taps: r.taps[:rows*r.rowTaps], Values: m.values,
				Step: m.StrideW * m.values, DstStep: m.values, Pixels: min(m.chunk, r.pixels-p),
			}
			do(i, r.x+p, r.left+p*m.StrideW)
		}
	}
	s.Pool = kern.Pool{}
}

// taps returns the first row of a window inside the image, and their number.
func (m *rowPool) taps(y int) (first, rows int) {
	top := y*m.StrideH - m.Pad.Top
	ky0, ky1 := num.Inside(top, m.KH, 1, m.inShape.H)
	return top + ky0, ky1 - ky0
}

func (m *maxPool) bits(s *tiles.Scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		first, rows := m.taps(y)
		dst := m.out.Words[(image*m.outShape.H+y)*m.outShape.W*m.values:][:m.outShape.W*m.values]
		src := m.in.Words[(image*m.inShape.H+first)*m.inShape.W*m.values:]
		m.each(s, rows, func(_, x, left int) { m.set.OrPool(dst[x*m.values:], src[left*m.values:], &s.Pool) })
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
func (m *maxPool) floats(s *tiles.Scratch, image, y0, y1 int) {
	maxima(m, s, m.out.F32, m.in.F32, image, 0, y0, y1, m.set.MaxPool)
}

func (m *maxPool) bytes(s *tiles.Scratch, image, y0, y1 int) {
	maxima(m, s, m.out.U8, m.in.U8, image, 0, y0, y1, m.set.MaxPoolBytes)
}

// maxima computes output rows of an image, of rows of which the input lacks the first ones.
func maxima[T uint8 | float32](
	m *maxPool, s *tiles.Scratch, out, in []T, image, lacks, y0, y1 int, pool func(dst, src []T, p *kern.Pool),
) {
	for y := y0; y < y1; y++ {
		first, rows := m.taps(y)
		dst := out[(image*m.outShape.H+y)*m.outShape.W*m.values:]
		src := in[(image*m.inShape.H+first-lacks)*m.inShape.W*m.values:]
		m.each(s, rows, func(_, x, left int) { pool(dst[x*m.values:], src[left*m.values:], &s.Pool) })
	}
}
