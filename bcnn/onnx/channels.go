package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
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

// sliceValue takes dims[i] positions of each dimension of a value: channels, or every
// so many rows and columns from the first one on.
func (im *importer) sliceValue(n *pb.Node, v *build.Value, starts, steps, dims []int) (build.Operand, error) {
	v, err := im.build.SettleSigns(v)
	if err != nil {
		return build.Operand{}, err
	}
	if v.Pad != nil {
		return build.Operand{}, v.Pad.Error()
	}
	out := v.With(n)
	win := tiles(1, 1)
	for i, whole := range dimensions(v) {
		start, step, size := starts[i], steps[i], dims[i]
		if start == 0 && step == 1 && size == whole {
			continue
		}
		if size == 0 {
			return build.Operand{}, errors.New("nothing is left")
		}
		thinned := start == 0 && step > 0 && size == (whole-1)/step+1
		switch x := v.AxisOf(i); {
		case view.IsBatch(v.View[i]):
			return build.Operand{}, errors.New("it would take some images of the batch")
		case x == view.H && thinned:
			win.StrideH = step
		case x == view.W && thinned:
			win.StrideW = step
		case x == view.H || x == view.W:
			return build.Operand{}, errors.New("parts of an image are not supported, only every so many rows and columns from the first one on")
		default:
			if err := im.budget.Charge(16 * int64(size)); err != nil {
				return build.Operand{}, err
			}
			positions := make([]int, size)
			for k := range positions {
				positions[k] = start + k*step
			}
			if out, err = im.build.Pick(n, "", out, i, positions); err != nil {
				return build.Operand{}, err
			}
		}
	}
	if win == tiles(1, 1) {
		return build.Operand{Value: out}, nil
	}
	if err := out.CheckReal(); err != nil {
		return build.Operand{}, err
	}
	thin, err := im.maximum(n, out, win) // of one value each
	if err != nil {
		return build.Operand{}, err
	}
	thin.View = append(view.View{}, out.View...)
	for i := range thin.View {
		switch v.AxisOf(i) {
		case view.H:
			thin.View[i] = view.Whole(view.H, thin.Shape.H)
		case view.W:
			thin.View[i] = view.Whole(view.W, thin.Shape.W)
		}
	}
	return build.Operand{Value: thin}, nil
}

// concatValues imports Concat of values.
func (im *importer) concatValues(n *pb.Node) (build.Operand, error) {
	if err := im.budget.Charge(8 * int64(len(n.Inputs))); err != nil {
		return build.Operand{}, err
	}
	values := make([]*build.Value, len(n.Inputs))
	for i := range values {
		var err error
		if values[i], err = im.value(n, i); err != nil {
			return build.Operand{}, err
		}
	}
	a, err := n.Int("axis", 1)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(values[0].View))
	if err != nil {
		return build.Operand{}, err
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
	if len(indices.Dims) > 1 {
		return build.Operand{}, fmt.Errorf("indices of dimensions %v, want a list", indices.Dims)
	}
	list, err := indices.Integers()
	if err != nil {
		return build.Operand{}, err
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(v.View))
	if err != nil {
		return build.Operand{}, err
	}
	if view.IsBatch(v.View[axis]) {
		return build.Operand{}, errors.New("it would take some images of the batch")
	}
	if err := im.budget.Charge(16 * int64(len(list))); err != nil {
		return build.Operand{}, err
	}
	positions := make([]int, len(list))
	for i, k := range list {
		if positions[i], err = axisIndex(k, v.Size(axis)); err != nil {
			return build.Operand{}, fmt.Errorf("index %d of %d", k, v.Size(axis))
		}
	}
	out, err := im.build.Pick(n, "", v, axis, positions)
	if err == nil && len(indices.Dims) == 0 {
		out.View = edit(out.View, []int{axis}, false, nil)
	}
	return build.Operand{Value: out}, err
}
