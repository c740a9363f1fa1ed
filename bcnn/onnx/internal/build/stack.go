package build

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// stack joins images along their rows (dimension 2) or columns (3): as channels, which
// then are spread over blocks of pixels, of which those are picked that there were.
func (b *Builder) stack(n *pb.Node, values []*Value, dim int) (*Value, error) {
	parts := make([]*Value, len(values))
	most, total := 0, 0
	for i, v := range values {
		p, err := b.Settle(v)
		if err == nil {
			err = p.CheckReal()
		}
		if err == nil {
			err = p.CheckImage()
		}
		if err == nil {
			p, err = b.Ordered(n, p)
		}
		if err != nil {
			return nil, err
		}
		parts[i] = p
		most, total = max(most, p.Size(dim)), total+p.Size(dim)
	}
	first := parts[0]
	sides := [2]int{first.Shape.H, first.Shape.W}
	for _, p := range parts {
		other := [2]int{p.Shape.H, p.Shape.W}
		if other[3-dim] != sides[3-dim] || p.Shape.C != first.Shape.C {
			return nil, fmt.Errorf("%v and %v in memory cannot be joined", first.Shape, p.Shape)
		}
	}
	positions, err := b.indices(total)
	if err != nil {
		return nil, err
	}
	// picked are rows or columns in the dimension, and all in the other one.
	picked := func(v *Value, suffix string, list []int32, block int) (*Value, error) {
		op := bcnn.Pixels{Rows: list, BlockH: block, BlockW: 1}
		all, err := b.span(0, 1, sides[3-dim])
		if op.Cols = all; dim == 3 {
			op = bcnn.Pixels{Rows: all, Cols: list, BlockH: 1, BlockW: block}
		}
		if err != nil {
			return nil, err
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
		list, err := b.indices(most)
		if err != nil {
			return nil, err
		}
		for k := range list { // the last one again, so that levels stay such
			list[k] = int32(min(k, size-1))
		}
		if parts[i], err = picked(p, "/part", list, 1); err != nil {
			return nil, err
		}
	}
	sides[dim-2] = most
	shape := bcnn.Shape{H: sides[0], W: sides[1], C: first.Shape.C * len(parts)}
	if err := b.CheckShape(shape); err != nil {
		return nil, err
	}
	joined := b.Emit(n, "/parts", bcnn.Concat{}, shape, parts...)
	joined.View = view.NCHW(shape)
	return picked(joined, "", positions, len(parts))
}

// joinLines joins values along dimension 1 where it runs over pixels, as the boxes of feature
// maps of several sizes are listed: all of their values are lined up.
func (b *Builder) joinLines(n *pb.Node, values []*Value) (*Value, error) {
	lines := make([]*Value, len(values))
	var dims []int // of the result
	for i, v := range values {
		v, err := b.Settle(v)
		if err != nil {
			return nil, err
		}
		size := make([]int, len(v.View)-1)
		for d := range size {
			size[d] = v.Size(d + 1)
		}
		if i == 0 {
			dims = slices.Clone(size)
		} else if len(size) != len(dims) || !slices.Equal(size[1:], dims[1:]) {
			return nil, fmt.Errorf("dimensions %v and %v cannot be joined", size, dims)
		} else {
			dims[0] += size[0]
		}
		if !view.IsBatch(v.View[0]) {
			return nil, errors.New("its first dimension is not the batch")
		}
		line := v.With(n)
		if line.View, err = v.View.Reshape([]int{v.Shape.Values()}); err != nil {
			return nil, err
		}
		if lines[i], err = b.Ordered(n, b.Flattened(line, n)); err != nil {
			return nil, err
		}
	}
	y, err := b.Concat(n, lines, 1)
	if err != nil {
		return nil, err
	}
	out := y.With(n)
	out.View, err = y.View.Reshape(dims)
	return out, err
}
