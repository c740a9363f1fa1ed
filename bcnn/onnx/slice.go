package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Slice, Split, Expand and Tile.

// slice imports Slice, with bounds in attributes or inputs.
func (im *importer) slice(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	sizes := sizesOf(r)
	bounds := func(name string, input int) []int64 {
		if list := n.Ints(name); list != nil {
			return list
		}
		c := im.constant(n, input)
		if c == nil {
			return nil
		}
		return try.Value(c.Integers())
	}
	begins := bounds("starts", 1)
	ends := bounds("ends", 2)
	given := bounds("steps", 4)
	axes, ok := im.axes(n, 3, len(sizes))
	if !ok {
		for i := range min(len(begins), len(sizes)) {
			axes = append(axes, i)
		}
	}
	if len(begins) != len(ends) || len(axes) != len(begins) || given != nil && len(given) != len(begins) {
		try.Failf("it has %d starts, %d ends, %d steps and %d axes, want as many of each", len(begins), len(ends), len(given), len(axes))
	}
	starts, steps, dims := make([]int, len(sizes)), make([]int, len(sizes)), slices.Clone(sizes)
	for i := range steps {
		steps[i] = 1
	}
	for i, axis := range axes {
		step := int64(1)
		if given != nil {
			step = given[i]
		}
		if step == 0 {
			try.Failf("a step must not be 0")
		}
		starts[axis], steps[axis], dims[axis] = stretch(begins[i], ends[i], step, int64(sizes[axis]))
	}
	if r.Value != nil {
		return im.sliceValue(n, r.Value, starts, steps, dims)
	}
	return build.Operand{Constant: im.eval.Slice(r.Constant, starts, steps, dims)}
}

// stretch returns the start, the step and the number of positions of a slice of a dimension. Bounds
// below 0 count from the end. Bounds outside the dimension are limited to it.
func stretch(begin, end, step, size int64) (start, move, n int) {
	least, most := int64(0), size // of bounds
	if step < 0 {
		least, most = -1, size-1
	}
	bound := func(v int64) int64 {
		if v < 0 {
			v += size
		}
		return max(least, min(v, most))
	}
	begin, end = bound(begin), bound(end)
	// A step beyond the dimension takes one position, however large it is.
	step = max(-pb.MaxSize, min(step, pb.MaxSize))
	count := (end - begin + step - 1) / step
	if step < 0 {
		count = (begin - end - step - 1) / -step
	}
	if count < 1 {
		return 0, 1, 0
	}
	return int(begin), int(step), int(count)
}

// alongAxis returns the first input of a node, its dimensions, and the attribute axis as one of
// them.
func (im *importer) alongAxis(n *pb.Node) (r build.Operand, dims []int, axis int) {
	r = im.operand(n, 0)
	a := n.Int("axis", 0)
	dims = sizesOf(r)
	axis = axisIndex(a, len(dims))
	return r, dims, axis
}

// split imports Split: one part of a constant or a value for each output.
func (im *importer) split(n *pb.Node) build.Operand {
	r, dims, axis := im.alongAxis(n)
	sizes := n.Ints("split")
	if sizes == nil {
		c := im.constant(n, 1)
		if c != nil {
			sizes = try.Value(c.Integers())
		}
	}
	if sizes == nil { // equal parts; the last may be smaller
		rest, parts := int64(dims[axis]), int64(len(n.Outputs))
		each := (rest + parts - 1) / parts
		for range parts {
			sizes = append(sizes, max(0, min(each, rest)))
			rest -= each
		}
	}
	if parts := n.Int("num_outputs", int64(len(n.Outputs))); parts != int64(len(n.Outputs)) {
		try.Failf("num_outputs is %d, but it has %d outputs", parts, len(n.Outputs))
	}
	if len(sizes) != len(n.Outputs) {
		try.Failf("it has %d parts for %d outputs", len(sizes), len(n.Outputs))
	}
	parts := im.splitOperand(n, r, axis, sizes)
	for i, part := range parts[1:] {
		im.env[n.Outputs[i+1]] = part
	}
	return parts[0]
}

// sizesOf returns the dimensions of an operand.
func sizesOf(r build.Operand) []int {
	if r.Constant != nil {
		return r.Constant.Dims
	}
	return dimensions(r.Value)
}

// splitOperand splits an operand along an axis into parts of the given sizes, which must add up.
func (im *importer) splitOperand(n *pb.Node, r build.Operand, axis int, sizes []int64) []build.Operand {
	dims := sizesOf(r)
	starts, steps := make([]int, len(dims)), slices.Repeat([]int{1}, len(dims))
	var parts []build.Operand
	for _, size := range sizes {
		if size < 0 || size > int64(dims[axis]-starts[axis]) {
			try.Failf("parts %v do not add up to a dimension of %d", sizes[:min(len(sizes), pb.MaxRank)], dims[axis])
		}
		try.Check(im.budget.Charge(partUnits))
		lengths := slices.Clone(dims)
		lengths[axis] = int(size)
		var part build.Operand
		if r.Value != nil {
			part = im.sliceValue(n, r.Value, starts, steps, lengths)
		} else {
			part.Constant = im.eval.Slice(r.Constant, starts, steps, lengths)
		}
		starts[axis] += int(size)
		parts = append(parts, part)
	}
	if starts[axis] != dims[axis] || len(parts) == 0 {
		try.Failf("parts %v do not add up to a dimension of %d", sizes[:min(len(sizes), pb.MaxRank)], dims[axis])
	}
	return parts
}

func (im *importer) tile(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	repeats := im.shapeInput(n, 1)
	if r.Value != nil {
		return im.tileValue(n, r.Value, repeats)
	}
	t := r.Constant
	if len(repeats) != len(t.Dims) {
		try.Failf("it has %d repeats for %d dimensions, want one for each", len(repeats), len(t.Dims))
	}
	return build.Operand{Constant: im.eval.Tile(t, repeats)}
}

// expandValue repeats a value along dimensions of 1 to the given sizes. A size of 1 leaves a
// dimension as it is.
func (im *importer) expandValue(n *pb.Node, v *build.Value, sizes []int) build.Operand {
	v = im.settledValue(v)
	for len(sizes) > 0 && len(sizes) > len(v.View) && sizes[0] == 1 {
		sizes = sizes[1:]
	}
	if len(sizes) > len(v.View) {
		try.Failf("a shape of %d dimensions is not supported, since its input has only %d: put an Unsqueeze in front", len(sizes), len(v.View))
	}
	lead, small := len(v.View)-len(sizes), v
	for k, size := range sizes {
		i := lead + k
		if size == 1 || view.IsBatch(v.View[i]) || view.Product(v.View[i]) == size {
			continue
		}
		if len(v.View[i]) != 0 || size < 1 {
			try.Failf("dimension %d has size %d, which cannot be expanded to %d", i, view.Product(v.View[i]), size)
		}
		v = im.stretched(n, v, i, size)
	}
	if v != small {
		im.repeated[v.Layer] = repetition{small, v.View}
	}
	return build.Operand{Value: v.With(n)}
}

// tileValue imports Tile of a value: of channels, or of dimensions of 1.
func (im *importer) tileValue(n *pb.Node, v *build.Value, repeats []int) build.Operand {
	v = im.settledValue(v)
	if len(repeats) != len(v.View) {
		try.Failf("it has %d repeats for %d dimensions, want one for each", len(repeats), len(v.View))
	}
	for i, k := range repeats {
		switch {
		case k == 1:
		case k < 1 || view.IsBatch(v.View[i]):
			try.Failf("repeats %v are not supported: want 1 for the batch, and at least 1 for the rest", repeats)
		case len(v.View[i]) == 0:
			v = im.stretched(n, v, i, k)
		default:
			size := v.Size(i)
			v = im.copied(n, v, i, size, k, func(p int) int { return p % size })
		}
	}
	return build.Operand{Value: v.With(n)}
}

// settledValue is settled for any value.
func (im *importer) settledValue(v *build.Value) *build.Value {
	try.Check(v.CheckReal())
	return im.build.Settle(v)
}

// repeatAlong repeats a value along dimensions of 1 along which the constant beside it varies: a value
// may be compared with the thresholds of several levels at once.
func (im *importer) repeatAlong(n *pb.Node, v *build.Value, t *eval.Tensor) *build.Value {
	lead := len(v.View) - len(t.Dims)
	for i, size := range t.Dims {
		if lead < 0 || size <= 1 || len(v.View[lead+i]) > 0 || v.Size(lead+i) == size {
			continue
		}
		try.Check(v.CheckReal())
		v = im.build.Moved(v, func(v *build.Value) *build.Value { return im.stretched(n, v, lead+i, size) })
	}
	return v
}

// copied returns size·times channels: channel p of the result is channel of(p) of v. Dimension dim
// runs over them.
func (im *importer) copied(n *pb.Node, v *build.Value, dim, size, times int, of func(p int) int) *build.Value {
	count := try.Value(eval.Count([]int{size, times}))
	positions := try.Value(budget.List(im.budget, count, of))
	return im.build.Pick(n, "", v, dim, positions)
}

// stretched repeats a value size times along dimension dim, which is 1. The value is an image, a
// single number, or has one dimension over all channels.
func (im *importer) stretched(n *pb.Node, v *build.Value, dim, size int) *build.Value {
	if v.CheckImage() == nil {
		like := v.With(n)
		like.View = append(view.View{}, v.View...)
		switch dim {
		case 1:
			like.Shape.C, like.View[dim] = size, view.All(view.C, size)
		case 2:
			like.Shape.H, like.View[dim] = size, view.All(view.H, size)
		case 3:
			like.Shape.W, like.View[dim] = size, view.All(view.W, size)
		}
		try.Check(im.build.CheckShape(like.Shape))
		return im.build.Repeat(n, v, like)
	}
	if v.Shape.Values() == 1 {
		like := v.With(n)
		like.Shape.C, like.View = size, slices.Clone(v.View)
		like.View[dim] = view.All(view.C, size)
		try.Check(im.build.CheckShape(like.Shape))
		return im.build.Repeat(n, v, like)
	}
	for i, d := range v.View {
		if len(d) == 0 || !view.Only(d, view.C) || view.Product(d) != v.Shape.C {
			continue
		}
		channels := v.Shape.C
		out := im.copied(n, v, i, channels, size, func(p int) int { return p / size })
		out.View[i] = []view.Atom{{Axis: view.C, Stride: size, Size: channels}}
		out.View[dim] = []view.Atom{{Axis: view.C, Stride: 1, Size: size}}
		return out
	}
	panic(try.Errorf("dimension %d cannot be repeated (stored as %v, height×width×channels)", dim, v.Shape))
}
