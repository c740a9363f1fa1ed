package cpu

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// step compiles an operation that has passed the check.
func (c *compiler) step(op bcnn.StepOp, in, out bcnn.PlanTensor) (step, scratchSize) {
	switch op := op.(type) {
	case *bcnn.ConvStep:
		// A dense layer with a pool, which is an odd 1×1 one, is a convolution.
		if op.Dense && in.DType == bcnn.Bits && op.Pool == nil && op.Border == nil {
			return c.dense(op, in)
		}
		return c.conv(op, in, out)
	case *bcnn.BinarizeStep:
		return c.binarize(op, in.Shape, out.Shape)
	case *bcnn.MaxPoolStep:
		return c.maxPool(op, in, out), scratchSize{}
	case *bcnn.AffineStep:
		return c.affine(op, in), scratchSize{floats: in.Shape.C}
	case *bcnn.SignStep:
		return c.sign(op, in.Shape), scratchSize{}
	case *bcnn.AddStep:
		return c.add(op, in.Shape), scratchSize{}
	case *bcnn.FlattenStep:
		return c.flatten(in), scratchSize{}
	}
	return nil, scratchSize{} // the check has refused it
}

// rowStep is a step that computes rows of an image independently. A tile is a
// number of rows.
type rowStep struct {
	height, tileRows int
	do               func(s *scratch, image, y0, y1 int)
}

// rows splits an image of the given height, which takes so many nanoseconds.
func (c *compiler) rows(height int, work float64, do func(s *scratch, image, y0, y1 int)) *rowStep {
	return &rowStep{height: height, tileRows: ceilDiv(height, c.split(work)), do: do}
}

func (r *rowStep) perImage() int { return ceilDiv(r.height, r.tileRows) }

func (r *rowStep) tiles(n int) int { return n * r.perImage() }

func (r *rowStep) run(tile int, s *scratch) {
	image, y := tile/r.perImage(), tile%r.perImage()*r.tileRows
	r.do(s, image, y, min(y+r.tileRows, r.height))
}

func (c *compiler) maxPool(op *bcnn.MaxPoolStep, in, out bcnn.PlanTensor) step {
	m := &maxPool{Window: op.Window.Undilated(), set: c.set, flip: op.Flip, in: c.in, out: c.out, values: in.Shape.C}
	m.inShape, m.outShape = in.Shape, out.Shape
	do := m.floats
	if in.DType == bcnn.Bits {
		m.values = bits.Words(in.Shape.C)
		do = m.bits
	}
	return c.rows(out.Shape.H, float64(out.Shape.Pixels()*m.KH*m.KW)*(3+float64(m.values)), do)
}

type maxPool struct {
	bcnn.Window
	set               *kern.Set
	flip              []uint64
	in, out           *bcnn.Tensor
	inShape, outShape bcnn.Shape
	values            int // words or floats of a pixel
}

func (m *maxPool) bits(_ *scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		top := y*m.StrideH - m.Pad.Top
		ky0, ky1 := inside(top, m.KH, 1, m.inShape.H)
		for x := range m.outShape.W {
			left := x*m.StrideW - m.Pad.Left
			kx0, kx1 := inside(left, m.KW, 1, m.inShape.W)
			dst := m.out.Words[((image*m.outShape.H+y)*m.outShape.W+x)*m.values:][:m.values]
			clear(dst)
			for ky := ky0; ky < ky1; ky++ {
				for kx := kx0; kx < kx1; kx++ {
					m.set.Or(dst, m.in.Words[((image*m.inShape.H+top+ky)*m.inShape.W+left+kx)*m.values:][:m.values])
				}
			}
			for i, v := range m.flip {
				dst[i] ^= v
			}
		}
	}
}

// floats keeps the first of equal values in the order (ky, kx), as the contract
// says: only the sign of a zero can tell.
func (m *maxPool) floats(_ *scratch, image, y0, y1 int) {
	for y := y0; y < y1; y++ {
		top := y*m.StrideH - m.Pad.Top
		ky0, ky1 := inside(top, m.KH, 1, m.inShape.H)
		for x := range m.outShape.W {
			left := x*m.StrideW - m.Pad.Left
			kx0, kx1 := inside(left, m.KW, 1, m.inShape.W)
			dst := m.out.F32[((image*m.outShape.H+y)*m.outShape.W+x)*m.values:][:m.values]
			for ky := ky0; ky < ky1; ky++ {
				for kx := kx0; kx < kx1; kx++ {
					src := m.in.F32[((image*m.inShape.H+top+ky)*m.inShape.W+left+kx)*m.values:][:m.values]
					if ky == ky0 && kx == kx0 {
						copy(dst, src)
						continue
					}
					for i, v := range src {
						if v > dst[i] {
							dst[i] = v
						}
					}
				}
			}
		}
	}
}

func (c *compiler) affine(op *bcnn.AffineStep, in bcnn.PlanTensor) step {
	set, src, dst, shape := c.set, c.in, c.out, in.Shape
	words := bits.Words(shape.C)
	row := func(s *scratch, image, y0, y1 int) {
		for p := (image*shape.H + y0) * shape.W; p < (image*shape.H+y1)*shape.W; p++ {
			var values []float32
			switch in.DType {
			case bcnn.Float32:
				values = src.F32[p*shape.C:][:shape.C]
			case bcnn.Uint8:
				values = s.floats[:shape.C]
				for i, v := range src.U8[p*shape.C:][:shape.C] {
					values[i] = float32(v)
				}
			case bcnn.Bits:
				values = s.floats[:shape.C]
				bits.Unpack(values, src.Words[p*words:][:words], shape.C)
			}
			set.ScaleFloat(dst.F32[p*shape.C:][:shape.C], values, op.Scale, op.Shift, op.ReLU)
		}
	}
	return c.rows(shape.H, 4*float64(shape.Values()), row)
}

func (c *compiler) sign(op *bcnn.SignStep, shape bcnn.Shape) step {
	set, src, dst := c.set, c.in, c.out
	words := bits.Words(shape.C)
	row := func(_ *scratch, image, y0, y1 int) {
		first, pixels := (image*shape.H+y0)*shape.W, (y1-y0)*shape.W
		out := dst.Words[first*words:][:pixels*words]
		set.ThresholdFloat(out, words, src.F32[first*shape.C:], shape.C, op.Threshold.F32, pixels)
		if op.Threshold.Flip != nil {
			for ; len(out) > 0; out = out[words:] {
				for i, v := range op.Threshold.Flip {
					out[i] ^= v
				}
			}
		}
	}
	return c.rows(shape.H, 1.5*float64(shape.Values()), row)
}

func (c *compiler) add(op *bcnn.AddStep, shape bcnn.Shape) step {
	a, b, dst := c.in, c.other, c.out
	rowLen := shape.W * shape.C
	row := func(_ *scratch, image, y0, y1 int) {
		from, to := (image*shape.H+y0)*rowLen, (image*shape.H+y1)*rowLen
		x, y, out := a.F32[from:to], b.F32[from:to], dst.F32[from:to]
		for i, v := range x {
			v += y[i]
			if op.ReLU && !(v > 0) {
				v = 0
			}
			out[i] = v
		}
	}
	return c.rows(shape.H, float64(shape.Values()), row)
}

func (c *compiler) flatten(in bcnn.PlanTensor) step {
	src, dst, shape := c.in, c.out, in.Shape
	words, total := bits.Words(shape.C), bits.Words(shape.Values())
	image := func(_ *scratch, image, _, _ int) {
		n := shape.Values()
		switch {
		case in.DType == bcnn.Float32:
			copy(dst.F32[image*n:][:n], src.F32[image*n:])
		case shape.C%bits.WordBits == 0 || shape.Pixels() == 1:
			copy(dst.Words[image*total:][:total], src.Words[image*total:])
		default:
			out := dst.Words[image*total:][:total]
			clear(out)
			for p := range shape.Pixels() {
				copyBits(out, p*shape.C, src.Words[(image*shape.Pixels()+p)*words:][:words], 0, shape.C)
			}
		}
	}
	return c.rows(1, math.Inf(1), image)
}
