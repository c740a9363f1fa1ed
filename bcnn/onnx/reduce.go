package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Sums, means, maxima and minima over dimensions of a value.

// reduceValue imports the reductions of values.
func (im *importer) reduceValue(n *pb.Node, v *build.Value) build.Operand {
	switch n.OpType {
	case "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum":
		return build.Operand{Value: im.reduceOver(n, n.OpType, v)}
	case "ReduceL1", "ReduceL2", "ReduceSumSquare":
		return im.distance(n, v)
	}
	panic(try.Errorf("%w on computed tensors, only on constants", errUnsupported))
}

// reduceOver is reduced over the axes of the node, with its attribute keepdims.
func (im *importer) reduceOver(n *pb.Node, op string, v *build.Value) *build.Value {
	keep := n.Bit("keepdims", 1)
	axes, _ := im.axes(n, 1, len(v.View))
	if len(axes) == 0 {
		try.Failf("without axes it would join the batch too: give the axes (dim in PyTorch) without the first dimension")
	}
	slices.Sort(axes)
	y := im.reduced(n, op, v, axes)
	if keep == 0 {
		y = y.With(n)
		y.View = edit(y.View, axes, false, nil)
	}
	return y
}

// reduced is ReduceSum, ReduceMean, ReduceMax or ReduceMin of a value. The axes may run over
// heights and widths, of images or of the windows that a Reshape has made of them, and over
// channels or groups of them. They stay as dimensions of 1.
func (im *importer) reduced(n *pb.Node, op string, v *build.Value, axes []int) *build.Value {
	over := map[string]func(*pb.Node, *build.Value, bcnn.Window) *build.Value{
		"ReduceMax": im.maximum, "ReduceMin": im.minimum, "ReduceSum": im.sum,
		"ReduceMean": func(n *pb.Node, v *build.Value, win bcnn.Window) *build.Value {
			return im.mean(n, v, bcnn.AvgPool{Window: win})
		},
	}[op]
	v = im.settledValue(v)
	size := map[view.Axis]int{view.H: 1, view.W: 1, view.C: 1}
	for _, a := range axes {
		for _, atom := range v.View[a] {
			if size[atom.Axis] == 0 {
				try.Failf("%s over dimension %d is not supported, since it is not the height, the width or the channels of an image", op, a)
			}
			size[atom.Axis] *= atom.Size
		}
	}
	// The axes must be the inner part of rows and columns, so that they are windows side by side.
	kept, seen := im.build.Inner(v.View, view.C, func(i int) bool { return !slices.Contains(axes, i) })
	out := make(view.View, len(v.View))
	for i, d := range v.View {
		if slices.Contains(axes, i) {
			for _, atom := range d {
				if atom.Axis != view.C && atom.Stride*atom.Size > size[atom.Axis] {
					try.Failf("the values that it reduces to one are not windows of adjacent pixels")
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
		y = over(n, v, win)
	}
	if size[view.C] > 1 {
		y = im.overChannels(n, op, y, kept)
	}
	y = y.With(n)
	y.View = out
	return y
}

// mostMembers is the size of the largest group of channels whose maximum or minimum is taken.
const mostMembers = 64

// overChannels reduces all channels that agree in the atoms kept to one. A sum is a 1×1 convolution
// with ones, a mean a sum that is divided.
func (im *importer) overChannels(n *pb.Node, op string, v *build.Value, kept []view.Atom) *build.Value {
	groups := view.Product(kept)
	size := v.Shape.C / groups
	extreme := op == "ReduceMax" || op == "ReduceMin"
	if extreme && groups == 1 {
		return im.extreme(n, op, v)
	}
	if extreme && size > mostMembers {
		try.Failf("%s over groups of more than %d channels is not supported", op, mostMembers)
	}
	if groups > 1 {
		order := im.grouped(v.Shape.C, groups, kept)
		switch {
		case extreme:
			return im.pairwise(n, op, v, order, groups)
		case !slices.IsSorted(order):
			v = im.build.Emit(n, "/groups", bcnn.Channels{Index: order}, v.Shape, v)
		}
	}
	ones := im.ones(v.Shape.C)
	suffix := ""
	if op == "ReduceMean" {
		suffix = "/sum"
	}
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: groups}
	y := im.build.Emit(n, suffix, bcnn.Conv2D{Window: tiles(1, 1), Out: groups, Groups: groups, Weights: ones}, shape, v)
	if op == "ReduceMean" {
		divided := im.quotient(y, []float32{float32(size)})
		y = im.build.Emit(n, "", divided, shape, y)
	}
	return y
}

// grouped returns the channels in order of their groups. The atoms kept number the groups; all
// groups have the same size.
func (im *importer) grouped(channels, groups int, kept []view.Atom) []int32 {
	const perChannel, perGroup = 8, 8 // of the lists
	try.Check(im.budget.Charge(int64(channels)*int64(perChannel+4*len(kept)) + perGroup*int64(groups)))
	order, filled := make([]int32, channels), make([]int, groups)
	for c := range channels {
		g := 0
		for _, a := range kept {
			g = g*a.Size + c/a.Stride%a.Size
		}
		order[g*(channels/groups)+filled[g]] = int32(c)
		filled[g]++
	}
	return order
}

// pairwise is the maximum or minimum of each group of channels, taken one channel of every group at
// a time.
func (im *importer) pairwise(n *pb.Node, op string, v *build.Value, order []int32, groups int) *build.Value {
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: groups}
	var y *build.Value
	size := len(order) / groups
	for k := range size {
		index := try.Value(budget.List(im.budget, groups, func(g int) int32 { return order[g*size+k] }))
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
	return y
}

// extreme is the maximum or minimum over all channels.
func (im *importer) extreme(n *pb.Node, op string, v *build.Value) *build.Value {
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
	return y
}
