package onnx

import (
	"math"
	"slices"

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
		if !same {
			try.Failf("a computed tensor must have one zero point for all channels")
		}
		l.zero = eval.Scalar(l.zero.Type, l.zero.At(0))
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
	if !v.IsRounded() || v.Type == pb.Float {
		try.Failf("a computed input is supported only behind QuantizeLinear")
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

// quantizeLinear imports QuantizeLinear: x/scale, rounded, plus zero, limited to INT8 or UINT8.
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
	lo, hi := 0.0, float64(math.MaxUint8)
	switch typ {
	case pb.Uint8:
	case pb.Int8:
		lo, hi = math.MinInt8, math.MaxInt8
	default:
		try.Failf("quantisation to %v is not supported, want UINT8 or INT8", typ)
	}
	if v := l.x.Value; v != nil {
		v, scales := im.divisors(n, v, l.scale)
		zero := 0.0
		if l.zero != nil {
			zero = l.zero.At(0)
		}
		return im.build.Round(n, v, typ, len(scales), func(c int, x float32) float64 {
			return max(lo, min(math.RoundToEven(float64(x/scales[c]))+zero, hi))
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
