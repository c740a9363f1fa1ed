package onnx

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// clipNode imports Clip, with limits in attributes or inputs.
func (im *importer) clipNode(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	typ := r.Type()
	limit := func(name string, input int, fallback float64) float64 {
		f := n.Float(name, float32(fallback))
		t := im.constant(n, input)
		switch {
		case t == nil:
			return float64(f)
		case t.Len() != 1:
			try.Failf("min and max must be single numbers")
		}
		return t.At(0)
	}
	lo := limit("min", 1, math.Inf(-1))
	hi := limit("max", 2, math.Inf(1))
	clamp := func(args []*eval.Tensor) *eval.Tensor {
		t := args[0]
		if !math.IsInf(lo, 0) {
			t = im.eval.Binary("Max")([]*eval.Tensor{t, eval.Scalar(typ, lo)})
		}
		if !math.IsInf(hi, 0) {
			t = im.eval.Binary("Min")([]*eval.Tensor{t, eval.Scalar(typ, hi)})
		}
		return t
	}
	if r, ok := im.build.Pointwise(n, []build.Operand{r}, clamp); ok {
		return r
	}
	return im.build.Clip(n, r.Value, lo, hi)
}

// hardSigmoid imports HardSigmoid, Clip(alpha·x + beta, 0, 1).
func (im *importer) hardSigmoid(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	alpha := n.Float("alpha", 0.2)
	beta := n.Float("beta", 0.5)
	v = im.build.Emit(n, "", bcnn.Affine{Scale: []float32{alpha}, Bias: []float32{beta}}, v.Shape, v)
	return im.build.Clip(n, v, 0, 1)
}

// beyond returns a where x is above t (op "Greater") or below it ("Less"), and b elsewhere.
func (im *importer) beyond(n *pb.Node, x *build.Value, op string, t float32, a, b build.Operand) build.Operand {
	c := im.comparison(n, x, eval.Scalar(pb.Float, float64(t)), eval.BinaryOps[op])
	return im.choose(n, []build.Operand{c, a, b})
}

// thresholdedRelu imports ThresholdedRelu: x where x > alpha, else 0.
func (im *importer) thresholdedRelu(n *pb.Node) build.Operand {
	v, none := im.settled(n, 0), build.Operand{Constant: eval.Scalar(pb.Float, 0)}
	return im.beyond(n, v, "Greater", n.Float("alpha", 1), build.Operand{Value: v}, none)
}

// shrink imports Shrink: x + bias where x < −lambd, x − bias where x > lambd, else 0.
func (im *importer) shrink(n *pb.Node) build.Operand {
	v, none := im.settled(n, 0), build.Operand{Constant: eval.Scalar(pb.Float, 0)}
	bias, lambd := float64(n.Float("bias", 0)), n.Float("lambd", 0.5)
	moved := func(by float64) build.Operand { return im.withConstant(n, "Add", v, eval.Scalar(pb.Float, by), false) }
	return im.beyond(n, v, "Less", -lambd, moved(bias), im.beyond(n, v, "Greater", lambd, moved(-bias), none))
}

func (im *importer) softmax(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	fallback := int64(-1)
	if im.model.Opset < 13 {
		fallback = 1
	}
	a := n.Int("axis", fallback)
	axis := axisIndex(a, len(v.View))
	axes := []int{axis}
	if im.model.Opset < 13 { // the tensor is a matrix whose rows are all dimensions from axis on
		for k := axis + 1; k < len(v.View); k++ {
			axes = append(axes, k)
		}
	}
	var d []view.Atom
	for _, k := range axes {
		d = append(d, v.View[k]...)
	}
	op := bcnn.Softmax{Log: n.OpType == "LogSoftmax"}
	if inside := im.continues(n); inside && !op.Log {
		return im.shares(n, v, axes)
	}
	size, channels := view.Product(d), view.Only(d, view.C)
	switch {
	case view.IsBatch(v.View[axis]):
	case size == v.Shape.Values() && slices.ContainsFunc(v.View, func(d []view.Atom) bool { return view.Product(d) == size && !view.IsBatch(d) }): // a vector
		dims := dimensions(v)
		v = im.build.Vector(v, n)
		y := im.build.Emit(n, "", op, v.Shape, v)
		y.View = try.Value(v.View.Reshape(dims[1:]))
		return build.Operand{Value: y}
	case channels && size == v.Shape.C:
		return im.emit(n, "", op, v)
	case !op.Log && (channels || size == v.Shape.Values()): // groups, as of the classes of boxes, or whole images
		return im.shares(n, v, axes)
	case len(axes) == 1 && (len(v.View) == 3 || len(v.View) == 4): // which become the channels
		at := []int{-1}
		if len(v.View) == 4 {
			at = nil
		}
		for k := 1; k < len(v.View); k++ {
			if k != axis {
				at = append(at, k)
			}
		}
		return im.emit(n, "", op, im.build.Arrange(n, v, axis, at[0], at[1]))
	}
	panic(try.Errorf("its axis covers %d of the %d values of an image: only the softmax of a vector or of all channels is supported",
		size, v.Shape.Values()))
}
