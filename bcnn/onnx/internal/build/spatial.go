package build

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Pixels emits a Pixels layer. With blocks the result is seen as NCHW.
func (b *Builder) Pixels(n *pb.Node, suffix string, v *Value, op bcnn.Pixels) *Value {
	try.Check(v.CheckReal())
	blocks := max(op.BlockH, 1) * max(op.BlockW, 1)
	shape := bcnn.Shape{H: len(op.Rows), W: len(op.Cols), C: v.Shape.C / blocks}
	try.Check(b.CheckShape(shape))
	try.Check(b.budget.Charge(8 * int64(len(op.Rows)+len(op.Cols))))
	out := b.Emit(n, suffix, op, shape, v)
	out.View = slices.Clone(v.View)
	if blocks > 1 {
		out.View = view.NCHW(shape)
		return out
	}
	for i := range out.View {
		switch v.AxisOf(i) {
		case view.H:
			out.View[i] = view.All(view.H, shape.H)
		case view.W:
			out.View[i] = view.All(view.W, shape.W)
		}
	}
	return out
}

// PartOf returns the axis, rows or columns, of which dimension dim is a part. ok is false if dim is
// all of an axis, or something else.
func (b *Builder) PartOf(v *Value, dim int) (x view.Axis, ok bool) {
	for x, size := range map[view.Axis]int{view.H: v.Shape.H, view.W: v.Shape.W} {
		if d := v.View[dim]; len(d) > 0 && view.Only(d, x) && view.Product(d) < size {
			return x, true
		}
	}
	return 0, false
}

// PickPart is Pick for a dimension that is a part of the rows or columns of an image.
func (b *Builder) PickPart(n *pb.Node, v *Value, dim int, x view.Axis, positions []int) *Value {
	v = b.Movable(v)
	rest, seen := b.Inner(v.View, x, func(i int) bool { return i != dim })
	size := [2]int{v.Shape.H, v.Shape.W}
	along := int(x - view.H)
	if view.Product(rest)*view.Product(v.View[dim]) != size[along] || len(positions) == 0 {
		try.Failf("dimension %d of its input must run over windows of the image (stored as %v, height×width×channels)", dim, v.Shape)
	}
	flat := func(a view.Atom) int { return a.Stride }
	group := b.Offsets(rest, flat)
	of := b.Offsets(v.View[dim], flat)
	size[along] = len(group) * len(positions)
	try.Check(b.CheckShape(bcnn.Shape{H: size[0], W: size[1], C: v.Shape.C}))
	var list [2][]int32
	for i := range list {
		list[i] = b.Span(0, 1, size[i])
	}
	for i := range list[along] {
		list[along][i] = int32(of[positions[i/len(group)]] + group[i%len(group)])
	}
	out := b.Pixels(n, "", v, bcnn.Pixels{Rows: list[0], Cols: list[1]})
	out.View = seen
	if out.View[dim] = nil; len(positions) > 1 {
		out.View[dim] = []view.Atom{{Axis: x, Stride: len(group), Size: len(positions)}}
	}
	return out
}

// Pad returns an image with pixels of one value around it.
func (b *Builder) Pad(n *pb.Node, v *Value, p bcnn.Padding, fill float32) *Value {
	around := func(before, size, after int) []int32 {
		list := make([]int32, before+size+after)
		for i := range list {
			if list[i] = -1; i >= before && i < before+size {
				list[i] = int32(i - before)
			}
		}
		return list
	}
	try.Check(b.CheckShape(bcnn.Shape{H: p.Top + v.Shape.H + p.Bottom, W: p.Left + v.Shape.W + p.Right, C: v.Shape.C}))
	return b.Pixels(n, "", v, bcnn.Pixels{
		Rows: around(p.Top, v.Shape.H, p.Bottom), Cols: around(p.Left, v.Shape.W, p.Right), Fill: fill,
	})
}

// Resample emits a Resample of a settled image.
func (b *Builder) Resample(n *pb.Node, v *Value, op bcnn.Resample) *Value {
	shape := bcnn.Shape{H: len(op.Rows.Index) / op.Rows.N, W: len(op.Cols.Index) / op.Cols.N, C: v.Shape.C}
	try.Check(b.CheckShape(shape))
	out := b.Emit(n, "", op, shape, v)
	out.View = view.View{view.Batch, v.View[1], view.All(view.H, shape.H), view.All(view.W, shape.W)}
	return out
}

// TopK returns the largest values along dimension dim, which must run over the channels, or their
// channel indices, as INT64. A softmax over the channels is left out if only indices are asked for.
func (b *Builder) TopK(n *pb.Node, suffix string, v *Value, dim int, op bcnn.TopK) *Value {
	if v.Layer >= 0 && b.Net.Layers[v.Layer].Op == bcnn.Op(bcnn.Softmax{}) {
		if d := v.View[dim]; !view.Only(d, view.C) || view.Product(d) != v.Shape.C {
			try.Failf("the largest values of a softmax over other dimensions than the channels are not supported")
		}
		if op.Values {
			try.Failf("the largest values of a softmax are not supported, only their indices: export TopK of the logits")
		}
		v = v.With(v.Node)
		v.Layer = b.Net.Layers[v.Layer].Inputs[0]
	}
	v = b.channelled(v, dim, n)
	v = b.InChannelOrder(n, v)
	v = b.Settle(v)
	if op.K < 1 || op.K > v.Shape.C {
		try.Failf("the %d largest of %d values do not exist", op.K, v.Shape.C)
	}
	shape := v.Shape
	shape.C = op.K
	out := b.Emit(n, suffix, op, shape, v)
	out.View = slices.Clone(v.View)
	if out.View[dim] = view.All(view.C, op.K); !op.Values {
		out.Type = pb.Int64
	}
	return out
}
