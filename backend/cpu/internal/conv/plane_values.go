package conv

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// maxExact bounds what is added to the values of planes, so that float32 holds their sums.
const maxExact = 1 << 23

// valuesOnly reports whether a convolution only makes float32 values of planes: it has a
// weight of +1 for each channel.
func valuesOnly(op *plan.Conv, in, out plan.Tensor) bool {
	switch {
	case in.DType != bcnn.Bits || op.InPlanes < 2 || op.Threshold != nil || op.Pool != nil || op.Dense:
		return false
	case op.Groups != in.Shape.C || op.Out != in.Shape.C || op.KH*op.KW > 1 || op.Image(in.Shape) != out.Shape:
		return false
	case op.Pad != (bcnn.Padding{}) || op.StrideH*op.StrideW > 1:
		return false
	}
	if b := op.Border; b != nil {
		if b.Rows*b.Cols > 1 || slices.Max(b.Correction) > maxExact || slices.Min(b.Correction) < -maxExact {
			return false
		}
	}
	return !slices.ContainsFunc(op.Bits, func(w uint64) bool { return w&1 == 0 })
}

// repeats returns how often channels repeat until they end where a word does.
func repeats(channels int) int {
	n := 1
	for n*channels%bits.WordBits > 0 {
		n *= 2
	}
	return n
}

// newPlaneValues compiles such a convolution: each plane chooses one of two values for each
// channel, which are added up. All of them are integers that float32 holds.
func newPlaneValues(c *schedule.Context, op *plan.Conv, in, out plan.Tensor) (tiles.Step, tiles.Size) {
	set, src, dst, shape := c.Set, c.In, c.Out, out.Shape
	planes, words, values := op.InPlanes, bits.Words(shape.C), shape.W*shape.C
	repeat := repeats(shape.C)
	one, zero := make([][]float32, planes), make([][]float32, planes)
	for j := range planes {
		one[j], zero[j] = make([]float32, shape.C), make([]float32, shape.C)
		for o := range shape.C {
			var add int32
			if op.Border != nil && j == 0 {
				add = op.Border.Correction[o]
			}
			one[j][o], zero[j][o] = float32(add+1<<j), float32(add-1<<j)
		}
		one[j], zero[j] = slices.Repeat(one[j], repeat), slices.Repeat(zero[j], repeat)
	}
	end, rest := activation.End(op), activation.RestOf(c.Set, op.Activation)
	size := tiles.Size{Words: bits.Words(values), Floats: values}
	do := func(s *tiles.Scratch, image, y0, y1 int) {
		for y := y0; y < y1; y++ {
			row := dst.F32[(image*shape.H+y)*values:][:values]
			for j := range planes {
				plane := src.Words[((image*shape.H+y)*planes+j)*shape.W*words:][:shape.W*words]
				if shape.C%bits.WordBits > 0 {
					dense := s.Words[:bits.Words(values)]
					clear(dense)
					bits.Join(dense, 0, plane, shape.W, shape.C)
					plane = dense
				}
				if j == 0 {
					set.Choose(row, plane, one[j], zero[j])
					continue
				}
				set.Choose(s.Floats[:values], plane, one[j], zero[j])
				set.Add(row, row, s.Floats[:values], activation.Of(plan.Activation{}))
			}
			if !end.None() {
				set.ScaleFloat(row, shape.C, row, shape.C, shape.C, shape.W, end)
			}
			rest.Do(row, 0, values, 1)
		}
	}
	work := c.Set.Cost.Value * float64(planes*shape.Values())
	return c.Rows("values of planes", shape.H, work, do), size
}
