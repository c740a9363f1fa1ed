// Package pixelwise compiles the steps that are no convolutions: those whose outputs
// are made of one pixel of each input, of a window that is pooled, or of pixels anywhere.
package pixelwise

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Compile compiles an operation that is no convolution. It has passed the check of
// the plan.
func Compile(c *schedule.Context, op plan.Op, in, out plan.Tensor) (tiles.Step, tiles.Size) {
	switch op := op.(type) {
	case *plan.Binarize:
		return newBinarize(c, op, in.Shape, out.Shape)
	case *plan.MaxPool:
		return newMaxPool(c, op, in, out), tiles.Size{}
	case *plan.AvgPool:
		return newAvgPool(c, op, in, out)
	case *plan.Affine:
		return affine(c, op, in)
	case *plan.Table:
		return table(c, op, in.Shape, out.DType), tiles.Size{}
	case *plan.Sign:
		return sign(c, op, in.Shape)
	case *plan.Quantize:
		return quantize(c, op, in.Shape, out.DType)
	case *plan.Add:
		return add(c, op, in.Shape), tiles.Size{}
	case *plan.Pair:
		return pair(c, op.Kind, in.Shape), tiles.Size{}
	case *plan.Concat:
		return concat(c, in, out), tiles.Size{}
	case *plan.Channels:
		return channels(c, op, in)
	case *plan.Pixels:
		return pixels(c, op, in, out), tiles.Size{}
	case *plan.Resample:
		return resample(c, op, in.Shape, out.Shape), tiles.Size{}
	case *plan.TopK:
		return topK(c, op, in.Shape), tiles.Size{}
	case *plan.Flatten:
		return flatten(c, in), tiles.Size{}
	case *plan.MatMul:
		return matMul(c, in, out.Shape.C)
	case *plan.Transpose:
		return transpose(c, in), tiles.Size{}
	}
	return nil, tiles.Size{} // the check has refused it
}

func add(c *schedule.Context, op *plan.Add, shape bcnn.Shape) tiles.Step {
	set, a, b, dst := c.Set, c.In, c.Others[0], c.Out
	// Slopes are repeated over a few pixels of few channels.
	pixels := max(1, min(addValues/shape.C, shape.Pixels()))
	act := activation.Of(op.Activation)
	rest := activation.RestOf(c.Set, op.Activation)
	act.Slope = repeated(act.Slope, pixels)
	if act.Slope == nil && rest.None() { // the same for all values, in one pass
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

func flatten(c *schedule.Context, in plan.Tensor) tiles.Step {
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
func affine(c *schedule.Context, op *plan.Affine, in plan.Tensor) (tiles.Step, tiles.Size) {
	set, src, dst, shape := c.Set, c.In, c.Out, in.Shape
	end := kern.End{Scale: op.Scale, Shift: op.Shift, Activation: activation.Of(op.Activation)}
	rest := activation.RestOf(c.Set, op.Activation)
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
		repeat := max(1, min(affineValues/shape.C, shape.Pixels()))
		pixels, need := 1, tiles.Size{} // at a time
		switch {
		case shape.C%bits.WordBits == 0: // the bits of pixels are dense
			pixels = shape.Pixels()
		case shape.C < bits.WordBits:
			pixels, need.Words = repeat, bits.Words(repeat*shape.C)
		default:
			repeat = 1
		}
		one, zero = repeated(one, repeat), repeated(zero, repeat)
		do := func(s *tiles.Scratch, image, from, to int) {
			end := image*shape.Pixels() + to
			for p := image*shape.Pixels() + from; p < end; p += pixels {
				n := min(pixels, end-p)
				in := src.Words[p*words:][:n*words]
				if need.Words > 0 {
					dense := s.Words[:bits.Words(n*shape.C)]
					clear(dense)
					bits.Join(dense, 0, in, n, shape.C)
					in = dense
				}
				set.Choose(dst.F32[p*shape.C:][:n*shape.C], in, one, zero)
			}
		}
		return c.Pixels("choose one of two values", shape.Pixels(), work, do), need
	}
	if in.DType == bcnn.Uint8 && kern.BytePeriod%shape.C == 0 {
		pixels := 2 * kern.BytePeriod / shape.C
		if end.Scale == nil { // a byte times 1, plus 0, is the same
			end.Scale, end.Shift = slices.Repeat([]float32{1}, shape.C), make([]float32, shape.C)
		}
		end.Scale, end.Shift, end.Slope = repeated(end.Scale, pixels), repeated(end.Shift, pixels), repeated(end.Slope, pixels)
		do := func(_ *tiles.Scratch, image, from, to int) {
			from, to = (image*shape.Pixels()+from)*shape.C, (image*shape.Pixels()+to)*shape.C
			set.ScaleBytes(dst.F32[from:to], src.U8[from:to], end)
			rest.Do(dst.F32[from:to], 0, to-from, 1)
		}
		return c.Pixels("scale", shape.Pixels(), work, do), tiles.Size{}
	}
	// Few channels are too little for a row: scale and shift are repeated.
	pixels := max(1, min(affineValues/shape.C, shape.W))
	row := pixels * shape.C
	end.Scale, end.Shift, end.Slope = repeated(end.Scale, pixels), repeated(end.Shift, pixels), repeated(end.Slope, pixels)
	if in.DType == bcnn.Float32 {
		most := shape.Pixels() // rows at a time
		if !rest.None() {
			most = max(1, addValues/row)
		}
		do := func(_ *tiles.Scratch, image, from, to int) {
			from, to = (image*shape.Pixels()+from)*shape.C, (image*shape.Pixels()+to)*shape.C
			out, values := dst.F32[from:to], src.F32[from:to]
			if end.None() && !rest.None() {
				rest.From(out, values)
				return
			}
			for len(out) > 0 {
				n, rows := len(out), 1
				if n >= row {
					n, rows = row, min(most, n/row)
				}
				set.ScaleFloat(out, n, values, n, n, rows, end)
				rest.Do(out, 0, n*rows, 1)
				out, values = out[n*rows:], values[n*rows:]
			}
		}
		return c.Pixels("scale", shape.Pixels(), work, do), tiles.Size{}
	}
	do := func(s *tiles.Scratch, image, from, to int) {
		last := image*shape.Pixels() + to
		for p := image*shape.Pixels() + from; p < last; p += pixels {
			n := min(pixels, last-p) * shape.C
			set.Floats(s.Floats[:n], src.U8[p*shape.C:][:n])
			set.ScaleFloat(dst.F32[p*shape.C:], n, s.Floats, n, n, 1, end)
			rest.Do(dst.F32[p*shape.C:], n, n, 1)
		}
	}
	return c.Pixels("scale", shape.Pixels(), work, do), tiles.Size{Floats: row}
}

// affineValues is the number of values that are scaled at a time, if a pixel has
// no more.
const affineValues = 512

// addValues is that of the values of a call that adds, or that a function follows.
const addValues = 2048

// repeated returns a row of values n times; nil stays nil.
func repeated(values []float32, n int) []float32 {
	if values == nil {
		return nil
	}
	return slices.Repeat(values, n)
}
