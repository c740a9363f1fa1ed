package cpu

import (
	"slices"

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
		return c.affine(op, in)
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

func (r *rowStep) perImage() int { return ceilDiv(r.height, r.tileRows) }

func (r *rowStep) tiles(n int) int { return n * r.perImage() }

func (r *rowStep) run(tile int, s *scratch) {
	image, y := tile/r.perImage(), tile%r.perImage()*r.tileRows
	r.do(s, image, y, min(y+r.tileRows, r.height))
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
	return c.rows("threshold and pack", shape.H, c.set.Cost.Value*float64(shape.Values()), row)
}

func (c *compiler) add(op *bcnn.AddStep, shape bcnn.Shape) step {
	set, a, b, dst := c.set, c.in, c.other, c.out
	rowLen := shape.W * shape.C
	row := func(_ *scratch, image, y0, y1 int) {
		from, to := (image*shape.H+y0)*rowLen, (image*shape.H+y1)*rowLen
		set.Add(dst.F32[from:to], a.F32[from:to], b.F32[from:to], op.ReLU)
	}
	return c.rows("add", shape.H, c.set.Cost.Value*float64(shape.Values()), row)
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
			joinPixels(out, 0, src.Words[image*shape.Pixels()*words:], shape.Pixels(), shape.C)
		}
	}
	return c.rows("copy", 1, 0, image)
}

// affine compiles an affine step. A bit has one of two results in each channel.
func (c *compiler) affine(op *bcnn.AffineStep, in bcnn.PlanTensor) (step, scratchSize) {
	set, src, dst, shape := c.set, c.in, c.out, in.Shape
	words := bits.Words(shape.C)
	work := c.set.Cost.Value * float64(shape.Values())
	if in.DType == bcnn.Bits {
		value := func(x float32) []float32 {
			v := make([]float32, shape.C)
			for i := range v {
				v[i] = x
			}
			set.ScaleFloat(v, v, op.Scale, op.Shift, op.ReLU)
			return v
		}
		one, zero := value(1), value(-1)
		row := func(_ *scratch, image, y0, y1 int) {
			for p := (image*shape.H + y0) * shape.W; p < (image*shape.H+y1)*shape.W; p++ {
				set.Choose(dst.F32[p*shape.C:][:shape.C], src.Words[p*words:][:words], one, zero)
			}
		}
		return c.rows("choose one of two values", shape.H, work, row), scratchSize{}
	}
	// Few channels are too little for a call: scale and shift are repeated.
	pixels := max(1, min(affineValues/shape.C, shape.W))
	scale, shift := repeated(op.Scale, pixels), repeated(op.Shift, pixels)
	row := func(s *scratch, image, y0, y1 int) {
		end := (image*shape.H + y1) * shape.W
		for p := (image*shape.H + y0) * shape.W; p < end; p += pixels {
			n := min(pixels, end-p) * shape.C
			var values []float32
			if in.DType == bcnn.Float32 {
				values = src.F32[p*shape.C:][:n]
			} else {
				values = s.floats[:n]
				for i, v := range src.U8[p*shape.C:][:n] {
					values[i] = float32(v)
				}
			}
			set.ScaleFloat(dst.F32[p*shape.C:][:n], values, scale, shift, op.ReLU)
		}
	}
	return c.rows("scale", shape.H, work, row), scratchSize{floats: pixels * shape.C}
}

// affineValues is the number of values that are scaled at a time, if a pixel has
// no more.
const affineValues = 512

// repeated returns a row of values n times; nil stays nil.
func repeated(values []float32, n int) []float32 {
	if values == nil {
		return nil
	}
	return slices.Repeat(values, n)
}
