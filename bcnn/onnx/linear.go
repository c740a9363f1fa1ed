package onnx

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// linear are the operands of QuantizeLinear and DequantizeLinear. scale and zero are one number, or
// one for each position of an axis.
type linear struct {
	x           build.Operand
	scale, zero *eval.Tensor // zero may be nil
}

func (im *importer) linear(n *pb.Node) (l linear) {
	l.x = im.operand(n, 0)
	l.scale = im.required(n, 1)
	l.zero = im.constant(n, 2)
	a := n.Int("axis", 1) // which does not matter for one number
	if block := n.Int("block_size", 0); block != 0 {
		try.Failf("block_size is not supported: want one scale, or one for each channel")
	}
	dims := slices.Repeat([]int{1}, rankOf(l.x)) // dimensions that scales are broadcast to
	if l.x.Constant != nil {
		dims = l.x.Constant.Dims
	}
	along := func(t *eval.Tensor) *eval.Tensor {
		if t == nil {
			return nil
		}
		if t.Len() == 1 {
			return t.Redim([]int{})
		}
		axis := axisIndex(a, len(dims))
		if l.x.Constant == nil && axis == 0 {
			try.Failf("its axis is the batch: want one scale for all images")
		}
		if len(t.Dims) != 1 || l.x.Constant != nil && t.Dims[0] != dims[axis] {
			try.Failf("a scale or zero point has shape %v, want one number, or a list with one for each position of the axis (%v)", t.Dims, dims)
		}
		shape := slices.Repeat([]int{1}, len(dims))
		shape[axis] = t.Dims[0]
		return t.Redim(shape)
	}
	if l.zero != nil && l.zero.Len() > 1 && l.x.Constant == nil {
		same := true
		try.Check(im.budget.Loop(l.zero.Len(), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				same = same && l.zero.At(i) == l.zero.At(0)
			}
		}))
		if same {
			l.zero = eval.Scalar(l.zero.Type, l.zero.At(0))
		}
	}
	l.scale = along(l.scale)
	l.zero = along(l.zero)
	return l
}

// computed applies binary operators in turn, each to the result so far and a constant of with. It
// leaves out operators whose constant is nil.
func (im *importer) computed(t *eval.Tensor, ops []string, with ...*eval.Tensor) *eval.Tensor {
	for i, op := range ops {
		if with[i] == nil {
			continue
		}
		t = im.eval.Binary(op)([]*eval.Tensor{t, with[i]})
	}
	return t
}

// dequantizeLinear imports DequantizeLinear, (x − zero)·scale: of weights that are stored as
// integers, and of values behind QuantizeLinear.
func (im *importer) dequantizeLinear(n *pb.Node) build.Operand {
	l := im.linear(n)
	requireFloat(n, "output_dtype")
	of := func(args []*eval.Tensor) *eval.Tensor {
		toFloat := im.eval.Cast(l.scale.Type)
		zero := l.zero
		if zero != nil {
			zero = toFloat([]*eval.Tensor{zero})
		}
		return im.computed(toFloat(args), []string{"Sub", "Mul"}, zero, l.scale)
	}
	l.x = im.build.Levels(l.x)
	if r, ok := im.build.Pointwise(n, []build.Operand{l.x}, of); ok {
		return r
	}
	v := l.x.Value
	if !v.Type.Quantised() {
		try.Failf("a computed input is supported only behind QuantizeLinear")
	}
	if !v.IsRounded() || l.zero != nil && l.zero.Len() > 1 {
		r := build.Operand{Value: im.build.Integers(n, v)}
		switch {
		case l.zero == nil:
		case l.zero.Len() == 1 && v.Type.Bits() <= 8:
			r.Value = im.build.Lowered(n, r.Value, v.Type, l.zero.At(0))
		default:
			r = im.withConstant(n, "Sub", r.Value, im.eval.Cast(pb.Float)([]*eval.Tensor{l.zero}), false)
			// Limits that change nothing keep difference and product apart: together they would be
			// rounded once, to something that is not 0 at the zero point.
			const most = 1 << 17
			r.Value = im.build.Emit(n, "/limits", bcnn.Clip{Min: -most, Max: most}, r.Value.Shape, r.Value)
		}
		return im.withConstant(n, "Mul", r.Value, l.scale, false)
	}
	out := v.With(n)
	if l.zero != nil {
		out = v.Shifted(n, -l.zero.At(0))
	}
	out.Type = pb.Float
	if l.scale.Len() > 1 {
		out = im.build.Settle(out)
		return im.withConstant(n, "Mul", out, l.scale, false)
	}
	scaled, ok := out.Scaled(n, l.scale.At(0))
	if !ok {
		try.Failf("scale %v is not supported: it must be above 0 and finite", l.scale.At(0))
	}
	return build.Operand{Value: scaled}
}

// requireFloat fails if an attribute that names a type names another one than FLOAT. 0 is the type of
// the scale.
func requireFloat(n *pb.Node, attribute string) {
	if typ := pb.DataType(n.Int(attribute, 0)); typ != 0 && typ != pb.Float {
		try.Failf("%s is %v, which is not supported, want FLOAT", attribute, typ)
	}
}

// dividing returns a function that emits a value over scales, one or one per channel.
func (im *importer) dividing(n *pb.Node, scales []float32) func(v *build.Value) *build.Value {
	return func(v *build.Value) *build.Value {
		if len(scales) == 1 && scales[0] == 1 {
			return v
		}
		return im.build.Emit(n, "/quotient", im.quotient(v, scales), v.Shape, v)
	}
}

// quantizeLinear imports QuantizeLinear: x/scale, rounded, plus zero, limited to integers of 2 to 16 bits.
func (im *importer) quantizeLinear(n *pb.Node) build.Operand {
	l := im.linear(n)
	typ := pb.DataType(n.Int("output_dtype", 0))
	switch {
	case l.zero != nil && typ != 0 && typ != l.zero.Type:
		try.Failf("output_dtype is %v, but the zero point is %v", typ, l.zero.Type)
	case l.zero != nil:
		typ = l.zero.Type
	case typ == 0:
		typ = pb.Uint8
	}
	requireFloat(n, "precision")
	if !typ.Quantised() {
		try.Failf("quantisation to %v is not supported, want integers of 2 to 16 bits", typ)
	}
	least, most := typ.Limits()
	lo, hi := float64(least), float64(most)
	if v := l.x.Value; v != nil {
		var zeros []float32
		if l.zero != nil {
			if l.zero.Len() > 1 {
				v = im.build.Settle(v)
			}
			v, zeros = im.build.Broadcast(v, im.eval.Cast(pb.Float)([]*eval.Tensor{l.zero}), n)
		}
		v, scales := im.divisors(n, v, l.scale)
		zero := func(c int) float64 { return 0 }
		if len(zeros) > 0 {
			zero = func(c int) float64 { return float64(zeros[c%len(zeros)]) }
		}
		return im.build.Round(n, v, typ, build.Rounding{
			Channels: max(len(scales), len(zeros)),
			Level: func(c int, x float32) float64 {
				return max(lo, min(math.RoundToEven(float64(x/scales[c%len(scales)]))+zero(c), hi))
			},
			Scaled: im.dividing(n, scales), Zeros: zeros,
		})
	}
	y := im.computed(l.x.Constant, []string{"Div"}, l.scale)
	y = im.eval.Unary("Round")([]*eval.Tensor{y})
	if l.zero != nil {
		l.zero = im.eval.Cast(y.Type)([]*eval.Tensor{l.zero})
	}
	y = im.computed(y, []string{"Add", "Max", "Min"}, l.zero, eval.Scalar(l.scale.Type, lo), eval.Scalar(l.scale.Type, hi))
	return build.Operand{Constant: im.eval.Cast(typ)([]*eval.Tensor{y})}
}
