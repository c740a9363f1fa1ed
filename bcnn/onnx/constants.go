package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Operators that exist on constants only: they compute shapes, and weights.

func (im *importer) constantNode(n *pb.Node) (build.Operand, error) {
	if len(n.Attrs) != 1 {
		return build.Operand{}, fmt.Errorf("%d attributes, want 1", len(n.Attrs))
	}
	a := n.Attrs[0]
	var t *eval.Tensor
	var err error
	switch a.Name {
	case "value":
		if a.T == nil {
			return build.Operand{}, errors.New("it holds no tensor")
		}
		t, err = im.eval.Tensor(a.T)
	case "value_float":
		t = eval.Scalar(pb.Float, float64(a.F))
	case "value_int":
		t = eval.Sizes([]int64{a.I}, nil).Redim([]int{})
	case "value_floats":
		if t, err = im.eval.NewTensor(pb.Float, []int{len(a.Fs)}); err == nil {
			copy(t.F32, a.Fs)
		}
	case "value_ints":
		if t, err = im.eval.NewTensor(pb.Int64, []int{len(a.Is)}); err == nil {
			copy(t.I64, a.Is)
		}
	default:
		err = fmt.Errorf("attribute %s is not supported", text.Quote(a.Name))
	}
	return build.Operand{Constant: t}, err
}

// shapeInput returns the dimensions in an input. One that depends on the batch size
// becomes 1: what is filled with one value broadcasts as well.
func (im *importer) shapeInput(n *pb.Node, i int) ([]int, error) {
	t, err := im.required(n, i)
	if err != nil {
		return nil, err
	}
	if len(t.Dims) != 1 || t.I64 == nil || t.Len() > pb.MaxRank {
		return nil, fmt.Errorf("input %d is a tensor of %v %v, want a list of at most %d integers", i, t.Type, t.Dims, pb.MaxRank)
	}
	dims := make([]int, t.Len())
	for i, d := range t.I64 {
		if d < 0 || d > pb.MaxSize {
			return nil, fmt.Errorf("shape %v", t.I64)
		}
		dims[i] = int(d)
		if t.Batch != nil && t.Batch[i] {
			dims[i] = 1
		}
	}
	return dims, nil
}

func (im *importer) constantOfShape(n *pb.Node) (build.Operand, error) {
	dims, err := im.shapeInput(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	fill := eval.Scalar(pb.Float, 0)
	if a, err := n.Attr("value", pb.AttrTensor); err != nil {
		return build.Operand{}, err
	} else if a != nil {
		if a.T == nil {
			return build.Operand{}, errors.New("it holds no tensor")
		}
		if fill, err = im.eval.Tensor(a.T); err != nil {
			return build.Operand{}, err
		}
		if fill.Len() != 1 {
			return build.Operand{}, errors.New("its value is not a single one")
		}
	}
	t, err := im.eval.Expand(fill.Redim([]int{}), dims)
	return build.Operand{Constant: t}, err
}

func (im *importer) expand(n *pb.Node) (build.Operand, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	dims, err := im.shapeInput(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	if r.Value != nil {
		return im.expandValue(n, r.Value, dims)
	}
	t := r.Constant
	out, err := im.eval.Expand(t, dims)
	return build.Operand{Constant: out}, err
}

// concat joins constants, or the channels of values.
func (im *importer) concat(n *pb.Node) (build.Operand, error) {
	for i := range n.Inputs {
		if r, err := im.operand(n, i); err != nil {
			return build.Operand{}, err
		} else if r.Value != nil {
			return im.concatValues(n)
		}
	}
	var parts []*eval.Tensor
	for i := range n.Inputs {
		t, err := im.required(n, i)
		if err != nil {
			return build.Operand{}, err
		}
		parts = append(parts, t)
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	if len(parts) == 0 || len(parts[0].Dims) == 0 {
		return build.Operand{}, errors.New("nothing to join")
	}
	axis, err := axisIndex(a, len(parts[0].Dims))
	if err != nil {
		return build.Operand{}, err
	}
	out, err := im.eval.Concat(parts, axis)
	return build.Operand{Constant: out}, err
}

// gather takes the entries of a list from a dimension of a constant, or channels of a
// value.
func (im *importer) gather(n *pb.Node) (build.Operand, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if r.Value != nil {
		return im.gatherChannels(n, r.Value)
	}
	t := r.Constant
	indices, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(t.Dims))
	if err != nil {
		return build.Operand{}, err
	}
	out, err := im.eval.Gather(t, indices, axis)
	return build.Operand{Constant: out}, err
}

func (im *importer) rangeNode(n *pb.Node) (build.Operand, error) {
	var bounds [3]*eval.Tensor
	for i := range bounds {
		var err error
		if bounds[i], err = im.required(n, i); err != nil {
			return build.Operand{}, err
		}
	}
	out, err := im.eval.Range(bounds[0], bounds[1], bounds[2])
	return build.Operand{Constant: out}, err
}

// size is the number of values of a constant.
func (im *importer) size(n *pb.Node) (build.Operand, error) {
	t, err := im.required(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	return build.Operand{Constant: eval.Scalar(pb.Int64, float64(t.Len()))}, nil
}

// reduce imports ReduceMean and its like on constants, and on values where a pool does
// the same.
func (im *importer) reduce(n *pb.Node) (build.Operand, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if r.Value != nil {
		return im.reduceValue(n, r.Value)
	}
	t := r.Constant
	keep, err := n.Int("keepdims", 1)
	if err != nil {
		return build.Operand{}, err
	}
	noop, err := n.Int("noop_with_empty_axes", 0)
	if err != nil {
		return build.Operand{}, err
	}
	axes, _, err := im.axes(n, 1, len(t.Dims))
	if err != nil {
		return build.Operand{}, err
	}
	if len(axes) == 0 && noop == 0 {
		for i := range t.Dims {
			axes = append(axes, i)
		}
	}
	out, err := im.eval.Reduce(n.OpType, t, axes)
	if err == nil && keep == 0 {
		slices.Sort(axes)
		out = out.Redim(edit(out.Dims, axes, false, 1))
	}
	return build.Operand{Constant: out}, err
}

// castLike converts to the type of another tensor.
func (im *importer) castLike(n *pb.Node) (build.Operand, error) {
	operands, err := im.operands(n, 2)
	if err != nil {
		return build.Operand{}, err
	}
	typ := operands[1].Type()
	if of, ok := im.types[n.Inputs[1]]; ok && operands[0].Constant != nil { // folded in the type of the file
		typ = of
	}
	return im.cast(n, operands[0], typ)
}
