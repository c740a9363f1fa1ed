package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Sums, means, maxima and minima over dimensions of a value.

// reduceValue imports the reductions of values.
func (im *importer) reduceValue(n *pb.Node, v *build.Value) (build.Operand, error) {
	switch n.OpType {
	case "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum":
		y, err := im.reduceOver(n, n.OpType, v)
		return build.Operand{Value: y}, err
	case "ReduceL1", "ReduceL2", "ReduceSumSquare":
		return im.distance(n, v)
	}
	return build.Operand{}, fmt.Errorf("%w on anything but constants", errUnsupported)
}

// reduceOver is reduced over the dimensions that the node names.
func (im *importer) reduceOver(n *pb.Node, op string, v *build.Value) (*build.Value, error) {
	keep, err := n.Int("keepdims", 1)
	if err != nil {
		return nil, err
	}
	axes, _, err := im.axes(n, 1, len(v.View))
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 {
		return nil, errors.New("without axes it would join the batch")
	}
	slices.Sort(axes)
	y, err := im.reduced(n, op, v, axes)
	if err == nil && keep == 0 {
		y = y.With(n)
		y.View = edit(y.View, axes, false, nil)
	}
	return y, err
}

// reduced is a sum, a mean, a maximum or a minimum of a value over dimensions that run over
// heights and widths, of images or of the windows that a Reshape has made of them, and over
// channels or groups of them. The dimensions stay, as 1.
func (im *importer) reduced(n *pb.Node, op string, v *build.Value, axes []int) (*build.Value, error) {
	over := map[string]func(*pb.Node, *build.Value, bcnn.Window) (*build.Value, error){
		"ReduceMax": im.maximum, "ReduceMin": im.minimum, "ReduceSum": im.sum,
		"ReduceMean": func(n *pb.Node, v *build.Value, win bcnn.Window) (*build.Value, error) {
			return im.mean(n, v, bcnn.AvgPool{Window: win})
		},
	}[op]
	v, err := im.settledValue(v)
	if err != nil {
		return nil, err
	}
	size := map[view.Axis]int{view.H: 1, view.W: 1, view.C: 1}
	for _, a := range axes {
		for _, atom := range v.View[a] {
			if size[atom.Axis] == 0 {
				return nil, fmt.Errorf("%s over dimension %d, which is not a height, a width or the channels, is not supported", op, a)
			}
			size[atom.Axis] *= atom.Size
		}
	}
	// What is joined must be the inner part of its axis: windows side by side.
	kept, seen := im.build.Inner(v.View, view.C, func(i int) bool { return !slices.Contains(axes, i) })
	out := make(view.View, len(v.View))
	for i, d := range v.View {
		if slices.Contains(axes, i) {
			for _, atom := range d {
				if atom.Axis != view.C && atom.Stride*atom.Size > size[atom.Axis] {
					return nil, errors.New("the values that it joins are not windows of an image")
				}
			}
			continue
		}
		for _, atom := range seen[i] {
			if k := size[atom.Axis]; atom.Axis != view.C && k > 0 {
				atom.Stride /= k
			}
			out[i] = append(out[i], atom)
		}
	}
	y := v
	if win := tiles(size[view.H], size[view.W]); size[view.C] == 1 || win.KH > 1 || win.KW > 1 {
		if y, err = over(n, v, win); err != nil {
			return nil, err
		}
	}
	if size[view.C] > 1 {
		if y, err = im.overChannels(n, op, y, kept); err != nil {
			return nil, err
		}
	}
	y = y.With(n)
	y.View = out
	return y, nil
}

// mostMembers is how many channels of a group the largest or the smallest is taken of.
const mostMembers = 64

// overChannels joins the channels that agree in the atoms that are kept. A sum is a
// convolution with ones, a mean one that is divided by their number.
func (im *importer) overChannels(n *pb.Node, op string, v *build.Value, kept []view.Atom) (*build.Value, error) {
	groups := view.Product(kept)
	size := v.Shape.C / groups
	extreme := op == "ReduceMax" || op == "ReduceMin"
	if extreme && groups == 1 {
		return im.extreme(n, op, v)
	}
	if extreme && size > mostMembers {
		return nil, fmt.Errorf("%s over groups of more than %d channels is not supported", op, mostMembers)
	}
	if groups > 1 {
		order, err := im.grouped(v.Shape.C, groups, kept)
		switch {
		case err != nil:
			return nil, err
		case extreme:
			return im.pairwise(n, op, v, order, groups)
		case !slices.IsSorted(order):
			v = im.build.Emit(n, "/groups", bcnn.Channels{Index: order}, v.Shape, v)
		}
	}
	ones, err := im.ones(v.Shape.C)
	if err != nil {
		return nil, err
	}
	suffix := ""
	if op == "ReduceMean" {
		suffix = "/sum"
	}
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: groups}
	y := im.build.Emit(n, suffix, bcnn.Conv2D{Window: tiles(1, 1), Out: groups, Groups: groups, Weights: ones}, shape, v)
	if op == "ReduceMean" {
		divided, err := im.quotient(y, []float32{float32(size)})
		if err != nil {
			return nil, err
		}
		y = im.build.Emit(n, "", divided, shape, y)
	}
	return y, nil
}

// grouped lists channels by the groups that atoms of them tell apart.
func (im *importer) grouped(channels, groups int, kept []view.Atom) ([]int32, error) {
	const perChannel, perGroup = 8, 8 // of the lists
	if err := im.budget.Charge(int64(channels)*int64(perChannel+4*len(kept)) + perGroup*int64(groups)); err != nil {
		return nil, err
	}
	order, filled := make([]int32, channels), make([]int, groups)
	for c := range channels {
		g := 0
		for _, a := range kept {
			g = g*a.Size + c/a.Stride%a.Size
		}
		order[g*(channels/groups)+filled[g]] = int32(c)
		filled[g]++
	}
	return order, nil
}

// pairwise is the largest or the smallest of the channels of each group.
func (im *importer) pairwise(n *pb.Node, op string, v *build.Value, order []int32, groups int) (*build.Value, error) {
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: groups}
	var y *build.Value
	size := len(order) / groups
	for k := range size {
		index, err := budget.List(im.budget, groups, func(g int) int32 { return order[g*size+k] })
		if err != nil {
			return nil, err
		}
		x := im.build.Emit(n, "/channels", bcnn.Channels{Index: index}, shape, v)
		switch {
		case y == nil:
			y = x
		case op == "ReduceMax":
			y = im.build.Emit(n, "", bcnn.Max{}, shape, y, x)
		default:
			y = im.build.Emit(n, "", bcnn.Min{}, shape, y, x)
		}
	}
	return y, nil
}

// extreme is the largest or the smallest value of the channels.
func (im *importer) extreme(n *pb.Node, op string, v *build.Value) (*build.Value, error) {
	negate := bcnn.Affine{Scale: []float32{-1}}
	smallest := op == "ReduceMin"
	if smallest {
		v = im.build.Emit(n, "/negative", negate, v.Shape, v)
	}
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: 1}
	y := im.build.Emit(n, "", bcnn.TopK{K: 1, Values: true}, shape, v)
	if smallest {
		y = im.build.Emit(n, "/minimum", negate, y.Shape, y)
	}
	return y, nil
}
