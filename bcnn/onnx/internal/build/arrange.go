package build

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// Arranged returns a value as an image with the given dimensions of it as channels, rows and
// columns; −1 stands for one of size 1.
func (b *Builder) Arranged(n *pb.Node, v *Value, channels, rows, cols int) *Value {
	seen := make(view.View, len(v.View))
	seen[0] = view.Batch
	size := [3]int{1, 1, 1}
	for i, d := range []int{rows, cols, channels} {
		if d >= 0 {
			size[i] = v.Size(d)
			seen[d] = view.Whole([]view.Axis{view.H, view.W, view.C}[i], size[i])
		}
	}
	return b.rearranged(n, v, bcnn.Shape{H: size[0], W: size[1], C: size[2]}, seen)
}

// rearranged puts the values of v in the order of an image of the given shape that has the view
// seen: it lines them up, reorders them, and spreads them over the pixels. It fails, and sets
// Refused, unless Rearranges is set.
func (b *Builder) rearranged(n *pb.Node, v *Value, shape bcnn.Shape, seen view.View) *Value {
	if !b.Rearranges {
		b.Refused = true
		try.Failf("its values are in an order that would need a transposition")
	}
	v = b.Settle(v)
	v = b.Movable(v)
	try.Check(v.CheckReal())
	try.Check(b.CheckShape(shape))
	total := 1
	for i, d := range v.View[1:] {
		if view.Product(d) != view.Product(seen[i+1]) {
			try.Failf("%d positions for %d", view.Product(seen[i+1]), view.Product(d))
		}
		total *= view.Product(d)
	}
	if total != v.Shape.Values() || total != shape.Values() {
		try.Failf("its dimensions do not run over all of its values")
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
	out := b.Flattened(v, n)
	if !slices.IsSorted(index) {
		out = b.Emit(n, "/order", bcnn.Channels{Index: index}, bcnn.Shape{H: 1, W: 1, C: total}, out)
	}
	if shape.Pixels() > 1 {
		rows := b.span(0, 1, shape.H)
		cols := b.span(0, 1, shape.W)
		out = b.Pixels(n, "/image", out, bcnn.Pixels{Rows: rows, Cols: cols, BlockH: shape.H, BlockW: shape.W})
	}
	out = out.With(n)
	out.View = seen
	return out
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
