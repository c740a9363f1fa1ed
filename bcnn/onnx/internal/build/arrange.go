package build

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Arrange returns a value as an image with the given dimensions of it as channels, rows and
// columns; −1 stands for one of size 1.
func (b *Builder) Arrange(n *pb.Node, v *Value, channels, rows, cols int) *Value {
	seen := make(view.View, len(v.View))
	seen[0] = view.Batch
	size := [3]int{1, 1, 1}
	for i, d := range []int{rows, cols, channels} {
		if d >= 0 {
			size[i] = v.Size(d)
			seen[d] = view.All([]view.Axis{view.H, view.W, view.C}[i], size[i])
		}
	}
	shape := bcnn.Shape{H: size[0], W: size[1], C: size[2]}
	if v.Shape == shape && v.View.Equal(seen) {
		return v
	}
	return b.rearranged(n, v, shape, seen)
}

// rearranged puts the values of v in the order of an image of the given shape that has the view
// seen: it lines them up, reorders them, and spreads them over the pixels. It fails, and sets
// Refused, unless Rearranges is set.
func (b *Builder) rearranged(n *pb.Node, v *Value, shape bcnn.Shape, seen view.View) *Value {
	if !b.Rearranges {
		b.Refused = true
		try.Failf("a Reshape or Transpose before it has left the values in an order that this operator cannot use")
	}
	v = b.Settle(v)
	v = b.Movable(v)
	try.Check(v.CheckReal())
	try.Check(b.CheckShape(shape))
	total := 1
	for i, d := range v.View[1:] {
		if view.Product(d) != view.Product(seen[i+1]) {
			try.Failf("dimensions of %d and %d positions do not match", view.Product(seen[i+1]), view.Product(d))
		}
		total *= view.Product(d)
	}
	if total != v.Shape.Values() || total != shape.Values() {
		try.Failf("its values cannot be reordered, since its dimensions do not cover all of them")
	}
	if out := b.turned(n, v, shape, seen); out != nil {
		return out
	}
	index := b.indices(total)
	// The places in memory of all positions, before and after.
	const lists = 4 * 8
	try.Check(b.budget.Charge(lists * int64(total)))
	from, to := []int{0}, []int{0}
	for i, d := range v.View[1:] {
		from = combined(from, view.Offsets(d, view.FlatStride(v.Shape)))
		to = combined(to, view.Offsets(seen[i+1], view.FlatStride(shape)))
	}
	for i := range index {
		index[to[i]] = int32(from[i])
	}
	out := b.Flatten(v, n)
	if !slices.IsSorted(index) {
		out = b.Emit(n, "/order", bcnn.Channels{Index: index}, bcnn.Shape{H: 1, W: 1, C: total}, out)
	}
	if shape.Pixels() > 1 {
		rows := b.Span(0, 1, shape.H)
		cols := b.Span(0, 1, shape.W)
		out = b.Pixels(n, "/image", out, bcnn.Pixels{Rows: rows, Cols: cols, BlockH: shape.H, BlockW: shape.W})
	}
	out = out.With(n)
	out.View = seen
	return out
}

// turned is rearranged for what attention does between its products: columns and channels swap,
// channels become rows and columns of their own, as those of heads, or rows become channels again.
// It returns nil for anything else.
func (b *Builder) turned(n *pb.Node, v *Value, shape bcnn.Shape, seen view.View) *Value {
	from := v.Shape
	is := func(of func(a view.Atom) []view.Atom) bool {
		return v.View[1:].Equal(seen.Each(of)[1:])
	}
	switch {
	case shape == (bcnn.Shape{H: from.H, W: from.C, C: from.W}) && is(swapped):
		out := b.Emit(n, "/turned", bcnn.Transpose{}, shape, v)
		out.View = seen
		return out
	case from.H == 1 && shape.W == from.W && from.C == shape.H*shape.C && is(func(a view.Atom) []view.Atom {
		if a.Axis == view.H { // row h is channels h·C to (h+1)·C − 1
			return []view.Atom{{Axis: view.C, Stride: a.Stride * shape.C, Size: a.Size}}
		}
		return []view.Atom{a}
	}):
		out := b.Pixels(n, "/heads", v, bcnn.Pixels{Rows: b.Span(0, 1, shape.H), Cols: b.Span(0, 1, shape.W), BlockH: shape.H, BlockW: 1})
		out.View = seen
		return out
	case shape.H == 1 && shape.W == from.W && shape.C == from.H*from.C && from.H <= mostHeads && is(func(a view.Atom) []view.Atom {
		if a.Axis != view.C {
			return []view.Atom{a}
		}
		return slices.Concat(view.All(view.H, from.H), view.All(view.C, from.C))
	}):
		parts := make([]*Value, from.H)
		for h := range parts {
			parts[h] = b.Pixels(n, "/head", v, bcnn.Pixels{Rows: []int32{int32(h)}, Cols: b.Span(0, 1, shape.W)})
		}
		out := b.Emit(n, "/heads", bcnn.Concat{}, shape, parts...)
		out.View = seen
		return out
	}
	return nil
}

// mostHeads is the largest number of rows that become channels by a layer for each of them.
const mostHeads = 64

// swapped exchanges columns and channels.
func swapped(a view.Atom) []view.Atom {
	switch a.Axis {
	case view.W:
		a.Axis = view.C
	case view.C:
		a.Axis = view.W
	}
	return []view.Atom{a}
}

// combined returns all sums of one number of a and one of b, those of a[0] first.
func combined(a, b []int) []int {
	out := make([]int, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}
