package build

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// stack joins images along their rows (dimension 2) or columns (3). No layer does that, so it joins
// them as channels, spreads these over blocks of pixels, and picks the pixels that the images have.
func (b *Builder) stack(n *pb.Node, values []*Value, dim int) *Value {
	parts := make([]*Value, len(values))
	most, total := 0, 0
	for i, v := range values {
		p := b.Settle(v)
		try.Check(p.CheckReal())
		try.Check(p.CheckImage())
		p = b.InChannelOrder(n, p)
		parts[i] = p
		most, total = max(most, p.Size(dim)), total+p.Size(dim)
	}
	first := parts[0]
	sides := [2]int{first.Shape.H, first.Shape.W}
	for _, p := range parts {
		other := [2]int{p.Shape.H, p.Shape.W}
		if other[3-dim] != sides[3-dim] || p.Shape.C != first.Shape.C {
			try.Failf("tensors of %v and %v (height×width×channels) cannot be joined", first.Shape, p.Shape)
		}
	}
	positions := b.indices(total)
	// picked picks rows or columns along dim, and all of them along the other axis.
	picked := func(v *Value, suffix string, list []int32, block int) *Value {
		op := bcnn.Pixels{Rows: list, BlockH: block, BlockW: 1}
		all := b.Span(0, 1, sides[3-dim])
		if op.Cols = all; dim == 3 {
			op = bcnn.Pixels{Rows: all, Cols: list, BlockH: 1, BlockW: block}
		}
		return b.Pixels(n, suffix, v, op)
	}
	at := 0
	for i, p := range parts {
		size := p.Size(dim)
		for k := range size {
			positions[at+k] = int32(k*len(parts) + i)
		}
		at += size
		if size == most {
			continue
		}
		list := b.indices(most)
		for k := range list { // repeats the last one, which adds no new values
			list[k] = int32(min(k, size-1))
		}
		parts[i] = picked(p, "/part", list, 1)
	}
	sides[dim-2] = most
	shape := bcnn.Shape{H: sides[0], W: sides[1], C: first.Shape.C * len(parts)}
	try.Check(b.CheckShape(shape))
	joined := b.Emit(n, "/parts", bcnn.Concat{}, shape, parts...)
	joined.View = view.NCHW(shape)
	return picked(joined, "", positions, len(parts))
}

// joinLines joins values along dimension dim if that runs over pixels, as the lists of boxes of
// feature maps of several sizes do: it joins the vectors of all of their values, in which this
// dimension comes first.
func (b *Builder) joinLines(n *pb.Node, values []*Value, dim int) *Value {
	lines := make([]*Value, len(values))
	var dims []int // of the result, dim first
	for i, v := range values {
		v := b.Settle(v)
		if !view.IsBatch(v.View[0]) || dim >= len(v.View) {
			try.Failf("the first dimension of its inputs must be the batch, and all must have as many dimensions")
		}
		line := v.With(n)
		line.View = slices.Insert(slices.Delete(slices.Clone(v.View), dim, dim+1), 1, v.View[dim])
		size := make([]int, len(v.View)-1)
		for d := range size {
			size[d] = line.Size(d + 1)
		}
		if i == 0 {
			dims = slices.Clone(size)
		} else if len(size) != len(dims) || !slices.Equal(size[1:], dims[1:]) {
			try.Failf("tensors of dimensions %v and %v (without the batch, the joined one first) cannot be joined", size, dims)
		} else {
			dims[0] += size[0]
		}
		line.View = try.Value(line.View.Reshape([]int{v.Shape.Values()}))
		lines[i] = b.InChannelOrder(n, b.Flatten(line, n))
	}
	y := b.Concat(n, lines, 1)
	out := y.With(n)
	first := try.Value(y.View.Reshape(dims))
	out.View = slices.Insert(slices.Delete(slices.Clone(first), 1, 2), dim, first[1])
	return out
}
