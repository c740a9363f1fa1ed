package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Operators that pick and join the channels of values.

// batchSize stands for the number of images of a batch, which a slice up to the
// largest integers takes as a whole.
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

// sliceValue takes dims[i] positions of each dimension of a value: channels, rows,
// columns.
func (im *importer) sliceValue(n *pb.Node, v *build.Value, starts, steps, dims []int) (build.Operand, error) {
	v, err := im.build.Settle(v)
	if err != nil {
		return build.Operand{}, err
	}
	out := v.With(n)
	win, moved := tiles(1, 1), bcnn.Pixels{}
	thinned := true // every so many rows and columns from the first one on
	for i, whole := range dimensions(v) {
		start, step, size := starts[i], steps[i], dims[i]
		if start == 0 && step == 1 && size == whole {
			continue
		}
		if size == 0 {
			return build.Operand{}, errors.New("nothing is left")
		}
		if view.IsBatch(v.View[i]) {
			return build.Operand{}, errors.New("it would take some images of the batch")
		}
		x := v.AxisOf(i)
		if x != view.H && x != view.W {
			positions, err := budget.List(im.budget, size, func(k int) int { return start + k*step })
			if err != nil {
				return build.Operand{}, err
			}
			if out, err = im.build.Pick(n, "", out, i, positions); err != nil {
				return build.Operand{}, err
			}
			continue
		}
		list, err := budget.List(im.budget, size, func(k int) int32 { return int32(start + k*step) })
		if err != nil {
			return build.Operand{}, err
		}
		thinned = thinned && start == 0 && step > 0 && size == (whole-1)/step+1
		if x == view.H {
			moved.Rows, win.StrideH = list, step
		} else {
			moved.Cols, win.StrideW = list, step
		}
	}
	if thinned && win != tiles(1, 1) { // a pool of one value each, past which thresholds move
		out, err = im.thin(n, out, win)
	} else {
		out, err = im.picked(n, out, moved)
	}
	return build.Operand{Value: out}, err
}

// thin takes a pixel of each window, which has one.
func (im *importer) thin(n *pb.Node, v *build.Value, win bcnn.Window) (*build.Value, error) {
	if err := v.CheckReal(); err != nil {
		return nil, err
	}
	thin, err := im.maximum(n, v, win)
	if err != nil {
		return nil, err
	}
	thin.View = slices.Clone(v.View)
	for i := range thin.View {
		switch v.AxisOf(i) {
		case view.H:
			thin.View[i] = view.Whole(view.H, thin.Shape.H)
		case view.W:
			thin.View[i] = view.Whole(view.W, thin.Shape.W)
		}
	}
	return thin, nil
}

// pick takes positions of a dimension that runs over rows, columns or channels.
func (im *importer) pick(n *pb.Node, v *build.Value, dim int, axis view.Axis, positions []int) (*build.Value, error) {
	if x, part := im.build.PartOf(v, dim); part {
		return im.build.PickPart(n, v, dim, x, positions)
	}
	if axis != view.H && axis != view.W {
		return im.build.Pick(n, "", v, dim, positions)
	}
	if len(positions) == 0 {
		return nil, errors.New("nothing is left")
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
func (im *importer) concatValues(n *pb.Node) (build.Operand, error) {
	if err := im.budget.Charge(8 * int64(len(n.Inputs))); err != nil {
		return build.Operand{}, err
	}
	operands := make([]build.Operand, len(n.Inputs))
	values := make([]*build.Value, len(n.Inputs))
	var like *build.Value // of whose height and width the constants are
	for i := range values {
		var err error
		if operands[i], err = im.operand(n, i); err != nil {
			return build.Operand{}, err
		}
		if values[i] = operands[i].Value; like == nil {
			like = values[i]
		}
	}
	a, err := n.Int("axis", 1)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(like.View))
	if err != nil {
		return build.Operand{}, err
	}
	for i, r := range operands {
		if r.Constant == nil {
			continue
		}
		if like, err = im.build.Whole(n, like, axis); err != nil {
			return build.Operand{}, err
		}
		if values[i], err = im.build.Constant(n, r.Constant, like, axis); err != nil {
			return build.Operand{}, err
		}
	}
	out, err := im.build.Concat(n, values, axis)
	return build.Operand{Value: out}, err
}

// gatherChannels imports Gather of a value, with constant indices.
func (im *importer) gatherChannels(n *pb.Node, v *build.Value) (build.Operand, error) {
	indices, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	if im.lines[n.Input(0)] {
		return im.gatherLine(n, v, indices)
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(v.View))
	if err != nil {
		return build.Operand{}, err
	}
	positions, err := im.positions(v, indices, axis)
	if err != nil {
		return build.Operand{}, err
	}
	if out, ok, err := im.gatherWindows(n, v, axis, indices.Dims, positions); ok || err != nil {
		return build.Operand{Value: out}, err
	}
	if v, err = im.build.Settle(v); err != nil {
		return build.Operand{}, err
	}
	out := v.With(n)
	if len(v.View[axis]) > 0 || len(positions) != 1 { // else it is the only one
		out, err = im.pick(n, v, axis, v.AxisOf(axis), positions)
	}
	if err == nil {
		out, err = split(out, axis, indices.Dims)
	}
	return build.Operand{Value: out}, err
}

// split takes a dimension of a value apart into others.
func split(v *build.Value, dim int, dims []int) (*build.Value, error) {
	parts, err := view.View{view.Batch, v.View[dim]}.Reshape(dims)
	if err == nil && len(v.View)-1+len(dims) > pb.MaxRank {
		err = fmt.Errorf("more than %d dimensions", pb.MaxRank)
	}
	if err != nil {
		return nil, err
	}
	out := v.With(v.Node)
	out.View = slices.Concat(v.View[:dim], parts[1:], v.View[dim+1:])
	return out, nil
}

// gatherLine imports Gather of a tensor whose batch of 1 has been joined with the others, by
// indices of several dimensions with which it comes back: as_strided of PyTorch, of what
// another order in memory has made of channels.
func (im *importer) gatherLine(n *pb.Node, v *build.Value, indices *eval.Tensor) (build.Operand, error) {
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	if _, err := axisIndex(a, 1); err != nil || len(v.View) != 2 || indices.Len() == 0 {
		return build.Operand{}, fmt.Errorf("indices of dimensions %v on axis %d", indices.Dims, a)
	}
	positions, err := im.positions(v, indices.Redim([]int{indices.Len()}), 1)
	if err != nil {
		return build.Operand{}, err
	}
	if v, err = im.build.Pick(n, "", v, 1, positions); err != nil {
		return build.Operand{}, err
	}
	v = v.With(n)
	if d := indices.Dims; len(d) > 1 && d[0] == 1 {
		v.View, err = v.View.Reshape(d[1:])
	} else {
		im.lines[n.Outputs[0]] = true
	}
	return build.Operand{Value: v}, err
}

// positions returns indices of a dimension of a value, which is not the batch.
func (im *importer) positions(v *build.Value, indices *eval.Tensor, axis int) ([]int, error) {
	list, err := indices.Integers()
	if err != nil {
		return nil, err
	}
	if view.IsBatch(v.View[axis]) {
		return nil, errors.New("it would take some images of the batch")
	}
	var wrong error
	positions, err := budget.List(im.budget, len(list), func(i int) int {
		if wrong != nil {
			return 0
		}
		p, err := axisIndex(list[i], v.Size(axis))
		if err != nil {
			wrong = fmt.Errorf("index %d of %d", list[i], v.Size(axis))
		}
		return p
	})
	if err == nil {
		err = wrong
	}
	return positions, err
}
