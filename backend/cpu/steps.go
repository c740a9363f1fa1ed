package cpu

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
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
	case *bcnn.AvgPoolStep:
		return c.avgPool(op, in, out)
	case *bcnn.AffineStep:
		return c.affine(op, in)
	case *bcnn.SignStep:
		return c.sign(op, in.Shape), scratchSize{}
	case *bcnn.AddStep:
		return c.add(op, in.Shape), scratchSize{}
	case *bcnn.MulStep:
		return c.mul(in.Shape), scratchSize{}
	case *bcnn.ConcatStep:
		return c.concat(out), scratchSize{}
	case *bcnn.ChannelsStep:
		return c.channels(op, in), scratchSize{}
	case *bcnn.FlattenStep:
		return c.flatten(in), scratchSize{}
	}
	return nil, scratchSize{} // the check has refused it
}

// rangeStep is a step that computes the rows, or the pixels, of an image
// independently. A tile is a number of them.
type rangeStep struct {
	size, tile int
	do         func(s *scratch, image, from, to int)
}

func (r *rangeStep) perImage() int { return num.CeilDiv(r.size, r.tile) }

func (r *rangeStep) tiles(n int) int { return n * r.perImage() }

func (r *rangeStep) run(tile int, s *scratch) {
	image, from := tile/r.perImage(), tile%r.perImage()*r.tile
	r.do(s, image, from, min(from+r.tile, r.size))
}

func (c *compiler) sign(op *bcnn.SignStep, shape bcnn.Shape) step {
	set, src, dst := c.set, c.in, c.out
	words := bits.Words(shape.C)
	do := func(_ *scratch, image, from, to int) {
		first, pixels := image*shape.Pixels()+from, to-from
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
	work := 2*float64(shape.Pixels()) + c.set.Cost.Value*float64(shape.Values())
	return c.pixels("threshold and pack", shape.Pixels(), work, do)
}

func (c *compiler) add(op *bcnn.AddStep, shape bcnn.Shape) step {
	set, a, b, dst := c.set, c.in, c.others[0], c.out
	// Slopes are repeated over a few pixels of few channels.
	pixels := max(1, min(affineValues/shape.C, shape.Pixels()))
	activation := newActivation(op.Activation).repeated(pixels)
	if activation.slope == nil { // the same for all values
		pixels = shape.Pixels()
	}
	do := func(_ *scratch, image, from, to int) {
		end := image*shape.Pixels() + to
		for p := image*shape.Pixels() + from; p < end; p += pixels {
			from, to := p*shape.C, min(p+pixels, end)*shape.C
			set.Add(dst.F32[from:to], a.F32[from:to], b.F32[from:to], activation.relu)
			activation.rest(set, dst.F32[from:to], 0)
		}
	}
	return c.pixels("add", shape.Pixels(), c.set.Cost.Value*float64(shape.Values()), do)
}

func (c *compiler) flatten(in bcnn.PlanTensor) step {
	src, dst, shape := c.in, c.out, in.Shape
	pixels, words, total := shape.Pixels(), bits.Words(shape.C), bits.Words(shape.Values())
	// The pixels of a block fill whole words, so that no two tiles write to the
	// same one.
	do := func(_ *scratch, image, from, to int) {
		from, to = from*bits.WordBits, min(to*bits.WordBits, pixels)
		switch {
		case in.DType == bcnn.Float32:
			first := image * pixels
			copy(dst.F32[(first+from)*shape.C:(first+to)*shape.C], src.F32[(first+from)*shape.C:])
		case shape.C%bits.WordBits == 0 || pixels == 1:
			first := image * pixels
			copy(dst.Words[(first+from)*words:(first+to)*words], src.Words[(first+from)*words:])
		default:
			out := dst.Words[image*total:][from*shape.C/bits.WordBits : bits.Words(to*shape.C)]
			clear(out)
			bits.Join(out, 0, src.Words[(image*pixels+from)*words:], to-from, shape.C)
		}
	}
	return c.items("copy", "block", num.CeilDiv(pixels, bits.WordBits), c.set.Cost.Value*float64(in.Shape.Elements(in.DType)), do)
}

// affine compiles an affine step. A bit has one of two results in each channel.
func (c *compiler) affine(op *bcnn.AffineStep, in bcnn.PlanTensor) (step, scratchSize) {
	set, src, dst, shape := c.set, c.in, c.out, in.Shape
	activation := newActivation(op.Activation)
	words := bits.Words(shape.C)
	work := c.set.Cost.Value * float64(shape.Values())
	if in.DType == bcnn.Bits {
		value := func(x float32) []float32 {
			v := make([]float32, shape.C)
			for i := range v {
				v[i] = x
			}
			set.ScaleFloat(v, v, op.Scale, op.Shift, activation.relu)
			activation.rest(set, v, 0)
			return v
		}
		one, zero := value(1), value(-1)
		do := func(_ *scratch, image, from, to int) {
			for p := image*shape.Pixels() + from; p < image*shape.Pixels()+to; p++ {
				set.Choose(dst.F32[p*shape.C:][:shape.C], src.Words[p*words:][:words], one, zero)
			}
		}
		return c.pixels("choose one of two values", shape.Pixels(), work, do), scratchSize{}
	}
	// Few channels are too little for a call: scale and shift are repeated.
	pixels := max(1, min(affineValues/shape.C, shape.W))
	scale, shift := repeated(op.Scale, pixels), repeated(op.Shift, pixels)
	activation = activation.repeated(pixels)
	do := func(s *scratch, image, from, to int) {
		end := image*shape.Pixels() + to
		for p := image*shape.Pixels() + from; p < end; p += pixels {
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
			out := dst.F32[p*shape.C:][:n]
			set.ScaleFloat(out, values, scale, shift, activation.relu)
			activation.rest(set, out, 0)
		}
	}
	return c.pixels("scale", shape.Pixels(), work, do), scratchSize{floats: pixels * shape.C}
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
