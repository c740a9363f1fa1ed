package onnx

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// compare imports the comparisons, And, Or and Xor.
func (im *importer) compare(n *pb.Node) build.Operand {
	operands := im.operands(n, 2)
	checkRanks(operands...)
	if r, ok := im.build.Pointwise(n, operands, im.eval.Binary(n.OpType)); ok {
		return r
	}
	f := eval.BinaryOps[n.OpType]
	v, t := operands[0].Value, operands[1].Constant
	if v == nil {
		v, t = operands[1].Value, operands[0].Constant
		g := f
		f = func(x, y float64) float64 { return g(y, x) }
	}
	if n.OpType == "And" || n.OpType == "Or" || n.OpType == "Xor" {
		return im.build.Logical(n, n.OpType, operands)
	}
	// Two values are compared as x − y with 0: the difference of two float32 numbers is 0 only if
	// they are equal.
	if v == nil || t == nil {
		r := im.operate(n, "Sub", operands[0], operands[1])
		v, t, f = r.Value, eval.Scalar(pb.Float, 0), eval.BinaryOps[n.OpType]
	}
	if v.Type.Quantised() && t.Type == v.Type && !v.IsStep() && !im.build.Bytes(v.Layer) {
		v, t = im.build.Integers(n, v), im.eval.Cast(pb.Float)([]*eval.Tensor{t})
	}
	if v.Func == nil && (v.Type == pb.Int64 || v.Type == pb.Int32) && t.Type == v.Type {
		v, t = im.channelIndices(n, v, t)
	}
	t = im.build.Narrowed(v, t)
	v = im.repeatAlong(n, v, t)
	if v.Type == pb.Float && !v.Hole {
		if pixels := im.build.VariesOverPixels(v, t); pixels {
			r := im.compute(n, "Sub", build.Operand{Value: v}, build.Operand{Constant: t})
			v, t = r.Value, eval.Scalar(pb.Float, 0)
		}
	}
	return im.comparison(n, v, t, f)
}

// mostNumber is the magnitude up to which float32 has all integers.
const mostNumber = 1 << 24

// channelIndices converts channel indices, as of ArgMax, and the integers that they are compared with to
// FLOAT. It fails for integers that may be rounded.
func (im *importer) channelIndices(n *pb.Node, v *build.Value, t *eval.Tensor) (*build.Value, *eval.Tensor) {
	large := false
	try.Check(im.budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			large = large || math.Abs(t.At(i)) > mostNumber
		}
	}))
	if large || t.HasBatch() {
		try.Failf("channel indices, as of ArgMax, can be compared only with integers up to 2²⁴")
	}
	t = im.eval.Cast(pb.Float)([]*eval.Tensor{t})
	v = v.With(n)
	v.Type = pb.Float
	return v, t
}

// comparison returns f(v, t) as a step of v at t. f gives 0 or 1 and depends only on which of its
// operands is larger.
func (im *importer) comparison(n *pb.Node, v *build.Value, t *eval.Tensor, f func(x, y float64) float64) build.Operand {
	return im.build.Threshold(n, v, t, eval.Scalar(pb.Bool, f(-1, 0)), eval.Scalar(pb.Bool, f(0, 0)), eval.Scalar(pb.Bool, f(1, 0)))
}

// unaryNode imports the operators of one operand without parameters: Sign, Round, Not, Relu, ….
func (im *importer) unaryNode(n *pb.Node) build.Operand {
	operands := im.operands(n, 1)
	r := im.unary(n, operands)
	if n.OpType == "Neg" && r.Type().Real() {
		return r.Negative(operands[0])
	}
	return r
}

func (im *importer) unary(n *pb.Node, operands []build.Operand) build.Operand {
	if r, ok := im.build.Pointwise(n, operands, im.eval.Unary(n.OpType)); ok {
		return r
	}
	v := operands[0].Value
	try.Check(v.CheckReal())
	switch n.OpType {
	case "Sign":
		return im.build.Threshold(n, v, eval.Scalar(v.Type, 0), eval.Scalar(v.Type, -1), eval.Scalar(v.Type, 0), eval.Scalar(v.Type, 1))
	case "Relu":
		return im.build.Clip(n, v, 0, math.Inf(1))
	case "Abs":
		v = im.build.Settle(v)
		return build.Operand{Value: im.build.Emit(n, "", bcnn.PReLU{Slope: []float32{-1}}, v.Shape, v)}
	case "Erf", "Exp", "Sigmoid", "Tanh":
		return im.function(n, v)
	case "Neg":
		v = im.build.Settle(v)
		return build.Operand{Value: im.build.Emit(n, "", bcnn.Affine{Scale: []float32{-1}}, v.Shape, v)}
	case "Reciprocal", "Sqrt":
		v = im.build.Settle(v)
		if n.OpType == "Sqrt" {
			return build.Operand{Value: im.sqrt(n, v)}
		}
		return build.Operand{Value: im.reciprocal(n, v)}
	case "Ceil", "Floor", "Round":
		f := eval.UnaryOps[n.OpType]
		return im.build.Round(n, v, v.Type, build.Rounding{
			Channels: 1, Level: func(_ int, x float32) float64 { return f(float64(x)) },
			Scaled:    func(v *build.Value) *build.Value { return v },
			Direction: map[string]build.Direction{"Floor": build.Down, "Round": build.Nearest, "Ceil": build.Up}[n.OpType],
		})
	}
	panic(try.Errorf("%w on computed tensors, only on constants", errUnsupported))
}

func (im *importer) castNode(n *pb.Node) build.Operand {
	return im.castTo(n, im.operand(n, 0))
}

// castTo is cast for a node, which rounds values to FLOAT16 and BFLOAT16 unless they are of that type.
func (im *importer) castTo(n *pb.Node, r build.Operand) build.Operand {
	typ := im.target
	from, known := im.types[n.Input(0)] // of a real type other than FLOAT
	half := typ == pb.Float16 || typ == pb.BFloat16
	r = im.cast(n, r, typ)
	if half && r.Value != nil && !r.Value.Hole && !(known && from == typ) {
		return im.build.Halves(n, r.Value, typ)
	}
	return r
}

// cast converts an operand to a type. Values of real types are FLOAT whichever real type is asked
// for; bytes become FLOAT exactly.
func (im *importer) cast(n *pb.Node, r build.Operand, typ pb.DataType) build.Operand {
	if r.Value != nil {
		typ = computedIn(typ)
		r = im.build.Levels(r)
	}
	if r, ok := im.build.Pointwise(n, []build.Operand{r}, im.eval.Cast(typ)); ok {
		return r
	}
	v := r.Value
	if out, ok := v.Convert(n, typ); ok {
		return build.Operand{Value: out}
	}
	number := v.Type == pb.Int64 || v.Type == pb.Int32 // a channel index
	if typ != v.Type && (typ != pb.Float || !v.Type.Quantised()) && !(number && (typ == pb.Int32 || typ == pb.Int64 || typ == pb.Float)) {
		try.Failf("Cast of a computed tensor from %v to %v is not supported", v.Type, typ)
	}
	out := v.With(n)
	out.Type = typ
	return build.Operand{Value: out}
}

// identity imports Identity and Dropout, which does nothing at inference.
func (im *importer) identity(n *pb.Node) build.Operand {
	if n.OpType == "Dropout" {
		training := im.constant(n, 2)
		if training != nil && (training.Len() != 1 || training.At(0) != 0) {
			try.Failf("it is in training mode: export the model in eval mode")
		}
	}
	return im.operand(n, 0)
}
