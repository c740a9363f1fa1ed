// Package pixelwise compiles the steps that are no convolutions: those whose outputs
// are made of one pixel of each input, or of a window that is pooled.
package pixelwise

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Compile compiles an operation that is no convolution. It has passed the check of
// the plan.
func Compile(c *schedule.Context, op bcnn.StepOp, in, out bcnn.PlanTensor) (tiles.Step, tiles.Size) {
	switch op := op.(type) {
	case *bcnn.BinarizeStep:
		return newBinarize(c, op, in.Shape, out.Shape)
	case *bcnn.MaxPoolStep:
		return newMaxPool(c, op, in, out), tiles.Size{}
	case *bcnn.AvgPoolStep:
		return newAvgPool(c, op, in, out)
	case *bcnn.AffineStep:
		return affine(c, op, in)
	case *bcnn.SignStep:
		return sign(c, op, in.Shape)
	case *bcnn.QuantizeStep:
		return quantize(c, op, in.Shape), tiles.Size{}
	case *bcnn.AddStep:
		return add(c, op, in.Shape), tiles.Size{}
	case *bcnn.MulStep:
		return mul(c, in.Shape), tiles.Size{}
	case *bcnn.ConcatStep:
		return concat(c, out), tiles.Size{}
	case *bcnn.ChannelsStep:
		return channels(c, op, in), tiles.Size{}
	case *bcnn.FlattenStep:
		return flatten(c, in), tiles.Size{}
	}
	return nil, tiles.Size{} // the check has refused it
}

func add(c *schedule.Context, op *bcnn.AddStep, shape bcnn.Shape) tiles.Step {
	set, a, b, dst := c.Set, c.In, c.Others[0], c.Out
	// Slopes are repeated over a few pixels of few channels.
	pixels := max(1, min(affineValues/shape.C, shape.Pixels()))
	act := activation.Of(op.Activation)
	rest := activation.RestOf(op.Activation)
	act.Slope = repeated(act.Slope, pixels)
	if act.Slope == nil { // the same for all values
		pixels = shape.Pixels()
	}
	do := func(_ *tiles.Scratch, image, from, to int) {
		end := image*shape.Pixels() + to
		for p := image*shape.Pixels() + from; p < end; p += pixels {
			from, to := p*shape.C, min(p+pixels, end)*shape.C
			set.Add(dst.F32[from:to], a.F32[from:to], b.F32[from:to], act)
			rest.Do(dst.F32[from:to], 0, to-from, 1)
		}
	}
	return c.Pixels("add", shape.Pixels(), c.Set.Cost.Value*float64(shape.Values()), do)
}

func flatten(c *schedule.Context, in bcnn.PlanTensor) tiles.Step {
	src, dst, shape := c.In, c.Out, in.Shape
	pixels, words, total := shape.Pixels(), bits.Words(shape.C), bits.Words(shape.Values())
	// The pixels of a block fill whole words, so that no two tiles write to the
	// same one.
	do := func(_ *tiles.Scratch, image, from, to int) {
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
	return c.Items("copy", "block", num.CeilDiv(pixels, bits.WordBits), c.Set.Cost.Value*float64(in.Shape.Elements(in.DType)), do)
}

// affine compiles an affine step. A bit has one of two results in each channel.
func affine(c *schedule.Context, op *bcnn.AffineStep, in bcnn.PlanTensor) (tiles.Step, tiles.Size) {
	set, src, dst, shape := c.Set, c.In, c.Out, in.Shape
	end := kern.End{Scale: op.Scale, Shift: op.Shift, Activation: activation.Of(op.Activation)}
	rest := activation.RestOf(op.Activation)
	words := bits.Words(shape.C)
	work := c.Set.Cost.Value * float64(shape.Values())
	if in.DType == bcnn.Bits {
		value := func(x float32) []float32 {
			v := slices.Repeat([]float32{x}, shape.C)
			set.ScaleFloat(v, shape.C, v, shape.C, shape.C, 1, end)
			rest.Do(v, shape.C, shape.C, 1)
			return v
		}
		one, zero := value(1), value(-1)
		pixels := 1
		if shape.C%bits.WordBits == 0 { // the bits of several pixels are dense
			pixels = max(1, min(affineValues/shape.C, shape.Pixels()))
			one, zero = repeated(one, pixels), repeated(zero, pixels)
		}
		do := func(_ *tiles.Scratch, image, from, to int) {
			end := image*shape.Pixels() + to
			for p := image*shape.Pixels() + from; p < end; p += pixels {
				n := min(pixels, end-p)
				set.Choose(dst.F32[p*shape.C:][:n*shape.C], src.Words[p*words:][:n*words], one, zero)
			}
		}
		return c.Pixels("choose one of two values", shape.Pixels(), work, do), tiles.Size{}
	}
	// Few channels are too little for a call: scale and shift are repeated.
	pixels := max(1, min(affineValues/shape.C, shape.W))
	end.Scale, end.Shift, end.Slope = repeated(end.Scale, pixels), repeated(end.Shift, pixels), repeated(end.Slope, pixels)
	do := func(s *tiles.Scratch, image, from, to int) {
		last := image*shape.Pixels() + to
		for p := image*shape.Pixels() + from; p < last; p += pixels {
			n := min(pixels, last-p) * shape.C
			var values []float32
			if in.DType == bcnn.Float32 {
				values = src.F32[p*shape.C:][:n]
			} else {
				values = s.Floats[:n]
				set.Floats(values, src.U8[p*shape.C:][:n])
			}
			set.ScaleFloat(dst.F32[p*shape.C:], n, values, n, n, 1, end)
			rest.Do(dst.F32[p*shape.C:], n, n, 1)
		}
	}
	return c.Pixels("scale", shape.Pixels(), work, do), tiles.Size{Floats: pixels * shape.C}
}

// affineValues is the number of values that are scaled at a time, if a pixel has
// no more.
const affineValues = 2048

// repeated returns a row of values n times; nil stays nil.
func repeated(values []float32, n int) []float32 {
	if values == nil {
		return nil
	}
	return slices.Repeat(values, n)
}
