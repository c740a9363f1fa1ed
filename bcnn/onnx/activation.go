package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// clipNode imports Clip, with limits in attributes or inputs.
func (im *importer) clipNode(n *pb.Node) (build.Operand, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	typ := r.Type()
	limit := func(name string, input int, fallback float64) (float64, error) {
		f, err := n.Float(name, float32(fallback))
		if err != nil {
			return 0, err
		}
		t, err := im.constant(n, input)
		switch {
		case err != nil:
			return 0, err
		case t == nil:
			return float64(f), nil
		case t.Len() != 1:
			return 0, errors.New("a limit is not a single value")
		}
		return t.At(0), nil
	}
	lo, err := limit("min", 1, math.Inf(-1))
	if err != nil {
		return build.Operand{}, err
	}
	hi, err := limit("max", 2, math.Inf(1))
	if err != nil {
		return build.Operand{}, err
	}
	clamp := func(args []*eval.Tensor) (*eval.Tensor, error) {
		t, err := args[0], error(nil)
		if !math.IsInf(lo, 0) {
			t, err = im.eval.Binary("Max")([]*eval.Tensor{t, eval.Scalar(typ, lo)})
		}
		if err == nil && !math.IsInf(hi, 0) {
			t, err = im.eval.Binary("Min")([]*eval.Tensor{t, eval.Scalar(typ, hi)})
		}
		return t, err
	}
	if r, ok, err := im.build.Pointwise(n, []build.Operand{r}, clamp); ok || err != nil {
		return r, err
	}
	return im.build.Clip(n, r.Value, lo, hi)
}

// hardSigmoid is Clip(alpha·x + beta, 0, 1).
func (im *importer) hardSigmoid(n *pb.Node) (build.Operand, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	alpha, err := n.Float("alpha", 0.2)
	if err != nil {
		return build.Operand{}, err
	}
	beta, err := n.Float("beta", 0.5)
	if err != nil {
		return build.Operand{}, err
	}
	v = im.build.Emit(n, "", bcnn.Affine{Scale: []float32{alpha}, Bias: []float32{beta}}, v.Shape, v)
	return im.build.Clip(n, v, 0, 1)
}

func (im *importer) softmax(n *pb.Node) (build.Operand, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	fallback := int64(-1)
	if im.model.Opset < 13 {
		fallback = 1
	}
	a, err := n.Int("axis", fallback)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(v.View))
	if err != nil {
		return build.Operand{}, err
	}
	axes := []int{axis}
	if im.model.Opset < 13 { // the tensor counts as a matrix, whose rows are all dimensions from axis on
		for k := axis + 1; k < len(v.View); k++ {
			axes = append(axes, k)
		}
	}
	var d []view.Atom
	for _, k := range axes {
		d = append(d, v.View[k]...)
	}
	op := bcnn.Softmax{Log: n.OpType == "LogSoftmax"}
	if inside, err := im.continues(n); err != nil {
		return build.Operand{}, err
	} else if inside && !op.Log {
		return im.shares(n, v, axes)
	}
	size, channels := view.Product(d), view.Only(d, view.C)
	switch {
	case view.IsBatch(v.View[axis]):
	case size == v.Shape.Values() && slices.ContainsFunc(v.View, func(d []view.Atom) bool { return view.Product(d) == size && !view.IsBatch(d) }): // a vector
		dims := dimensions(v)
		if v, err = im.build.Vector(v, n); err != nil {
			return build.Operand{}, err
		}
		y := im.build.Emit(n, "", op, v.Shape, v)
		y.View, err = v.View.Reshape(dims[1:])
		return build.Operand{Value: y}, err
	case channels && size == v.Shape.C:
		return im.emit(n, "", op, v), nil
	case !op.Log && (channels || size == v.Shape.Values()): // groups, as of the classes of boxes, or whole images
		return im.shares(n, v, axes)
	}
	return build.Operand{}, fmt.Errorf("it runs over %d of %d values: only the softmax of a vector or of all channels is supported",
		size, v.Shape.Values())
}
