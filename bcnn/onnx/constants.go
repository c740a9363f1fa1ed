package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Operators on constants, which compute shapes and weights. Some also take values.

func (im *importer) constantNode(n *pb.Node) build.Operand {
	a := n.OnlyAttr()
	var t *eval.Tensor
	switch a.Name {
	case "value":
		if a.T == nil {
			try.Failf("its attribute value holds no tensor")
		}
		t = try.Value(im.eval.Tensor(a.T))
	case "value_float":
		t = eval.Scalar(pb.Float, float64(a.F))
	case "value_int":
		t = eval.Sizes([]int64{a.I}, nil).Redim([]int{})
	case "value_floats":
		t = im.eval.NewTensor(pb.Float, []int{len(a.Fs)})
		copy(t.F32, a.Fs)
	case "value_ints":
		t = im.eval.NewTensor(pb.Int64, []int{len(a.Is)})
		copy(t.I64, a.Is)
	default:
		try.Failf("attribute %s is not supported, want value, value_float, value_floats, value_int or value_ints", text.Quote(a.Name))
	}
	return build.Operand{Constant: t}
}

// shapeInput returns the dimensions in input i. A size that is the batch size becomes 1, since what
// is filled with one value broadcasts; a multiple of the batch size is an error.
func (im *importer) shapeInput(n *pb.Node, i int) []int {
	t := im.required(n, i)
	if len(t.Dims) != 1 || t.I64 == nil || t.Len() > pb.MaxRank {
		try.Failf("input %d is %v of shape %v, want a list of at most %d integers", i, t.Type, t.Dims, pb.MaxRank)
	}
	dims := make([]int, t.Len())
	for i, d := range t.I64 {
		if d < 0 || d > pb.MaxSize {
			try.Failf("shape %v has a size that is negative or too large", t.I64)
		}
		dims[i] = int(d)
		if t.Marked(i) {
			if d > 1 {
				try.Failf("shape %v has a multiple of the batch size, which is not supported: export the model for a fixed batch size", t.I64)
			}
			dims[i] = 1
		}
	}
	return dims
}

func (im *importer) constantOfShape(n *pb.Node) build.Operand {
	dims := im.shapeInput(n, 0)
	fill := eval.Scalar(pb.Float, 0)
	if a := try.Value(n.Attr("value", pb.AttrTensor)); a != nil {
		if a.T == nil {
			try.Failf("its attribute value holds no tensor")
		}
		fill = try.Value(im.eval.Tensor(a.T))
		if fill.Len() != 1 {
			try.Failf("its attribute value must hold a single number")
		}
	}
	return build.Operand{Constant: im.eval.Expand(fill.Redim([]int{}), dims)}
}

func (im *importer) expand(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	dims := im.shapeInput(n, 1)
	if r.Value != nil {
		return im.expandValue(n, r.Value, dims)
	}
	t := r.Constant
	return build.Operand{Constant: im.eval.Expand(t, dims)}
}

// concat joins constants, or values and constants: see concatValues.
func (im *importer) concat(n *pb.Node) build.Operand {
	for i := range n.Inputs {
		if r := im.operand(n, i); r.Value != nil {
			return im.concatValues(n)
		}
	}
	var parts []*eval.Tensor
	for i := range n.Inputs {
		t := im.required(n, i)
		parts = append(parts, t)
	}
	a := n.Int("axis", 0)
	if len(parts) == 0 || len(parts[0].Dims) == 0 {
		try.Failf("there is nothing to concatenate: it has no inputs, or the first one has no dimensions")
	}
	axis := axisIndex(a, len(parts[0].Dims))
	return build.Operand{Constant: im.eval.Concat(parts, axis)}
}

// gather takes the positions that a list names from a dimension of a constant, or of a value: see
// gatherChannels.
func (im *importer) gather(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	if r.Value != nil {
		return im.gatherChannels(n, r.Value)
	}
	t := r.Constant
	a := n.Int("axis", 0)
	axis := axisIndex(a, len(t.Dims))
	if index := im.operand(n, 1).Value; index != nil && index.IsStep() && len(t.Dims) == 1 {
		return im.gatherSteps(n, t, index)
	}
	indices := im.required(n, 1)
	return build.Operand{Constant: im.eval.Gather(t, indices, axis)}
}

func (im *importer) rangeNode(n *pb.Node) build.Operand {
	var bounds [3]*eval.Tensor
	for i := range bounds {
		bounds[i] = im.required(n, i)
	}
	return build.Operand{Constant: im.eval.Range(bounds[0], bounds[1], bounds[2])}
}

// size imports Size, the number of values.
func (im *importer) size(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	if r.Value != nil {
		return build.Operand{Constant: im.eval.SizedProduct(eval.Sizes(sizes(r)), false)}
	}
	t := r.Constant
	return build.Operand{Constant: eval.Scalar(pb.Int64, float64(t.Len()))}
}

// reduce imports the reductions, such as ReduceMean. reduceValue imports them for values.
func (im *importer) reduce(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	if r.Value != nil {
		return im.reduceValue(n, r.Value)
	}
	t := r.Constant
	keep := n.Bit("keepdims", 1)
	noop := n.Bit("noop_with_empty_axes", 0)
	axes, _ := im.axes(n, 1, len(t.Dims))
	if len(axes) == 0 && noop == 0 {
		for i := range t.Dims {
			axes = append(axes, i)
		}
	}
	out := im.eval.Reduce(n.OpType, t, axes)
	if keep == 0 {
		slices.Sort(axes)
		out = out.Redim(edit(out.Dims, axes, false, 1))
	}
	return build.Operand{Constant: out}
}

// castLike converts to the type of another tensor.
func (im *importer) castLike(n *pb.Node) build.Operand {
	operands := im.operands(n, 2)
	return im.castTo(n, operands[0])
}
