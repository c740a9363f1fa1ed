package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Operators that pick and join channels, rows and columns of values.

// batchSize stands in for the size of the batch dimension. A slice whose end is a huge integer
// takes all of it.
const batchSize = pb.MaxSize

// dimensions returns the sizes of the dimensions of a value.
func dimensions(v *build.Value) []int {
	dims := make([]int, len(v.View))
	for i, d := range v.View {
		if dims[i] = batchSize; !view.IsBatch(d) {
			dims[i] = v.Size(i)
		}
	}
	return dims
}

// sliceValue takes, of every dimension i of a value, dims[i] positions from starts[i] on, steps[i]
// apart: channels, rows or columns.
func (im *importer) sliceValue(n *pb.Node, v *build.Value, starts, steps, dims []int) build.Operand {
	v = im.build.Settle(v)
	out := v.With(n)
	win, moved := tiles(1, 1), bcnn.Pixels{}
	thinned := true // all pixels at the starts of windows from the first one on
	for i, whole := range dimensions(v) {
		start, step, size := starts[i], steps[i], dims[i]
		if start == 0 && step == 1 && size == whole {
			continue
		}
		if size == 0 {
			try.Failf("the result would be empty: nothing is left of the tensor")
		}
		if view.IsBatch(v.View[i]) {
			try.Failf("it would select some images of the batch, but all of them must be processed alike")
		}
		x := v.AxisOf(i)
		if x != view.H && x != view.W {
			positions := try.Value(budget.List(im.budget, size, func(k int) int { return start + k*step }))
			out = im.build.Pick(n, "", out, i, positions)
			continue
		}
		list := try.Value(budget.List(im.budget, size, func(k int) int32 { return int32(start + k*step) }))
		thinned = thinned && start == 0 && step > 0 && size == (whole-1)/step+1
		if x == view.H {
			moved.Rows, win.StrideH = list, step
		} else {
			moved.Cols, win.StrideW = list, step
		}
	}
	if thinned && win != tiles(1, 1) { // a pool of one value each: thresholds move past a pool
		out = im.thin(n, out, win)
	} else {
		out = im.picked(n, out, moved)
	}
	return build.Operand{Value: out}
}

// thin takes the one pixel that each window has.
func (im *importer) thin(n *pb.Node, v *build.Value, win bcnn.Window) *build.Value {
	try.Check(v.CheckReal())
	thin := im.maximum(n, v, win)
	thin.View = slices.Clone(v.View)
	for i := range thin.View {
		switch v.AxisOf(i) {
		case view.H:
			thin.View[i] = view.All(view.H, thin.Shape.H)
		case view.W:
			thin.View[i] = view.All(view.W, thin.Shape.W)
		}
	}
	return thin
}

// pick takes the given positions of a dimension that runs over rows, columns or channels.
func (im *importer) pick(n *pb.Node, v *build.Value, dim int, axis view.Axis, positions []int) *build.Value {
	if x, part := im.build.PartOf(v, dim); part {
		return im.build.PickPart(n, v, dim, x, positions)
	}
	if axis != view.H && axis != view.W {
		return im.build.Pick(n, "", v, dim, positions)
	}
	if len(positions) == 0 {
		try.Failf("the result would be empty: nothing is left of the tensor")
	}
	list := make([]int32, len(positions))
	for i, p := range positions {
		list[i] = int32(p)
	}
	op := bcnn.Pixels{Rows: list}
	if axis == view.W {
		op = bcnn.Pixels{Cols: list}
	}
	return im.picked(n, v, op)
}

// concatValues imports Concat of values.
func (im *importer) concatValues(n *pb.Node) build.Operand {
	try.Check(im.budget.Charge(8 * int64(len(n.Inputs))))
	operands := make([]build.Operand, len(n.Inputs))
	values := make([]*build.Value, len(n.Inputs))
	var like *build.Value // has the height and width of the constants
	for i := range values {
		operands[i] = im.operand(n, i)
		if values[i] = operands[i].Value; like == nil {
			like = values[i]
		}
	}
	a := n.Int("axis", 1)
	axis := axisIndex(a, len(like.View))
	for i, r := range operands {
		if r.Constant == nil {
			continue
		}
		like = im.build.Whole(n, like, axis)
		values[i] = im.build.Constant(n, r.Constant, like, axis)
	}
	return build.Operand{Value: im.build.Concat(n, values, axis)}
}

// gatherChannels imports Gather from a value, with constant indices.
func (im *importer) gatherChannels(n *pb.Node, v *build.Value) build.Operand {
	indices := im.required(n, 1)
	if im.lines[n.Input(0)] != nil {
		return im.gatherLine(n, v, indices)
	}
	a := n.Int("axis", 0)
	axis := axisIndex(a, len(v.View))
	positions := im.positions(v, indices, axis)
	if out, ok := im.gatherWindows(n, v, axis, indices.Dims, positions); ok {
		return build.Operand{Value: out}
	}
	v = im.build.Settle(v)
	out := v.With(n)
	if len(v.View[axis]) > 0 || len(positions) != 1 { // otherwise it is the only position
		out = im.pick(n, v, axis, v.AxisOf(axis), positions)
	}
	return build.Operand{Value: split(out, axis, indices.Dims)}
}

// split replaces dimension dim of a value by dimensions dims.
func split(v *build.Value, dim int, dims []int) *build.Value {
	parts := try.Value(view.View{view.Batch, v.View[dim]}.Reshape(dims))
	if len(v.View)-1+len(dims) > pb.MaxRank {
		try.Failf("the result would have more than %d dimensions", pb.MaxRank)
	}
	out := v.With(v.Node)
	out.View = slices.Concat(v.View[:dim], parts[1:], v.View[dim+1:])
	return out
}

// gatherLine imports Gather from a tensor of one dimension that a Reshape has joined with a batch
// of 1 (see importer.lines). Indices of several dimensions whose first is 1 bring the batch back.
// PyTorch exports as_strided so, with which it views channels in another order in memory.
func (im *importer) gatherLine(n *pb.Node, v *build.Value, indices *eval.Tensor) build.Operand {
	a := n.Int("axis", 0)
	if axisIndex(a, 1); len(v.View) != 2 || indices.Len() == 0 {
		try.Failf("indices of shape %v on axis %d are not supported for a flattened tensor: want at least one index, on axis 0", indices.Dims, a)
	}
	positions := im.positions(v, indices.Redim([]int{indices.Len()}), 1)
	v = im.build.Pick(n, "", v, 1, positions)
	v = v.With(n)
	if d := indices.Dims; len(d) > 1 && d[0] == 1 {
		v.View = try.Value(v.View.Reshape(d[1:]))
	} else {
		im.lines[n.Outputs[0]] = rolled(v)
	}
	return build.Operand{Value: v}
}

// positions returns the indices into a dimension of a value, with negative ones counted from the
// end. The dimension must not be the batch.
func (im *importer) positions(v *build.Value, indices *eval.Tensor, axis int) []int {
	list := try.Value(indices.Integers())
	if view.IsBatch(v.View[axis]) {
		try.Failf("it would select some images of the batch, but all of them must be processed alike")
	}
	return try.Value(budget.List(im.budget, len(list), func(i int) int { return eval.Position(list[i], v.Size(axis)) }))
}
