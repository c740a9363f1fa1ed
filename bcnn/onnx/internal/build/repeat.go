package build

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Repeating values along dimensions of 1, and constants as values.

// indices allocates n indices for a layer.
func (b *Builder) indices(n int) []int32 {
	try.Check(b.budget.Charge(8 * int64(n)))
	return make([]int32, n)
}

// Span returns start, start + step, …: n positions.
func (b *Builder) Span(start, step, n int) []int32 {
	return try.Value(budget.List(b.budget, n, func(i int) int32 { return int32(start + i*step) }))
}

// Repeat repeats a value to the shape and the view of like. Each dimension of v is that of like,
// or 1, or one channel per group (see RepeatGroups).
func (b *Builder) Repeat(n *pb.Node, v, like *Value) *Value {
	if v := b.RepeatGroups(n, v, like); v != nil {
		return b.Repeat(n, v, like)
	}
	fits := len(v.View) == len(like.View)
	for i := 0; fits && i < len(v.View); i++ {
		fits = len(v.View[i]) == 0 || slices.Equal(v.View[i], like.View[i])
	}
	s, to := v.Shape, like.Shape
	if !fits || s.C != to.C && s.C != 1 || s.H != to.H && s.H != 1 || s.W != to.W && s.W != 1 {
		try.Failf("%v cannot be broadcast to %v (height×width×channels)", s, to)
	}
	if s.C != to.C {
		index := b.indices(to.C)
		v = b.Emit(n, "/channels", bcnn.Channels{Index: index}, bcnn.Shape{H: s.H, W: s.W, C: to.C}, v)
	}
	if s.H != to.H || s.W != to.W {
		step := [2]int{1, 1}
		if s.H == 1 {
			step[0] = 0
		}
		if s.W == 1 {
			step[1] = 0
		}
		rows := b.Span(0, step[0], to.H)
		cols := b.Span(0, step[1], to.W)
		v = b.Pixels(n, "/pixels", v, bcnn.Pixels{Rows: rows, Cols: cols})
	}
	out := v.With(n)
	out.View = like.View
	return out
}

// Repeated is Repeat for values whose dimensions may have to be put in another order in memory first: the
// last one along the channels, as for patches of an image that a LayerNormalization reads. It returns
// both values.
func (b *Builder) Repeated(n *pb.Node, small, large *Value) (repeated, like *Value, err error) {
	repeated, err = try.Do(func() *Value { return b.Repeat(n, small, large) })
	rank := len(large.View)
	if err == nil || rank < 3 || rank > 4 || len(small.View) != rank || !view.IsBatch(small.View[0]) || !view.IsBatch(large.View[0]) {
		return repeated, large, err
	}
	try.Check(b.budget.Charge(0)) // which may be the cause
	rows := -1
	if rank == 4 {
		rows = 1
	}
	arranged, failed := try.Do(func() *Value {
		small, like = b.Arrange(n, small, rank-1, rows, rank-2), b.Arrange(n, large, rank-1, rows, rank-2)
		return b.Repeat(n, small, like)
	})
	if failed != nil {
		return nil, large, err
	}
	return arranged, like, nil
}

// RepeatGroups repeats a value that has one channel for each group of like's channels to all channels of
// like. It returns nil if v is not such a value.
func (b *Builder) RepeatGroups(n *pb.Node, v, like *Value) *Value {
	if len(v.View) != len(like.View) || v.Shape.C == like.Shape.C || v.Shape.C == 1 {
		return nil
	}
	out, pairs, ok := groupsOf(v.View, like.View)
	size := 1
	for _, p := range pairs {
		size *= p.from.Size
	}
	if !ok || size != v.Shape.C {
		return nil
	}
	index := b.indices(like.Shape.C)
	try.Check(b.budget.Charge(8 * int64(len(index)*len(pairs))))
	for c := range index {
		for _, p := range pairs {
			index[c] += int32(c / p.to.Stride % p.to.Size * p.from.Stride)
		}
	}
	y := b.Emit(n, "/channels", bcnn.Channels{Index: index}, bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: like.Shape.C}, v)
	y.View = out
	return y
}

// atomPair is the atoms of channels in two views of one dimension.
type atomPair struct{ from, to view.Atom }

// groupsOf returns the view of a value that is repeated to another one, and the atoms of its channels
// beside theirs; ok is false if it is no value of groups of the channels.
func groupsOf(v, like view.View) (out view.View, pairs []atomPair, ok bool) {
	out = slices.Clone(v)
	for i, d := range v {
		whole := like[i]
		if view.IsBatch(d) || len(d) == 0 || slices.Equal(d, whole) && !slices.ContainsFunc(d, func(a view.Atom) bool { return a.Axis == view.C }) {
			if len(d) == 0 && view.Only(whole, view.C) {
				out[i] = whole
			}
			continue
		}
		if len(d) != len(whole) {
			return nil, nil, false
		}
		for k, a := range d {
			if w := whole[k]; a.Axis != w.Axis || a.Size != w.Size || a.Axis != view.C && a != w {
				return nil, nil, false
			}
			if a.Axis == view.C {
				pairs = append(pairs, atomPair{a, whole[k]})
			}
		}
		out[i] = whole
	}
	return out, pairs, true
}

// FirstPixel returns the first pixel of a value, as a value that can be repeated over its pixels.
func (b *Builder) FirstPixel(n *pb.Node, v *Value) *Value {
	if v.Shape.Pixels() == 1 {
		return v
	}
	out := b.Pixels(n, "/pixel", v, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}})
	out = out.With(n)
	out.View = slices.Clone(v.View)
	for i, d := range out.View {
		if !view.IsBatch(d) && !view.Only(d, view.C) {
			out.View[i] = nil
		}
	}
	return out
}

// inMemory returns the first values numbers of a constant in the memory order of an image of the
// given shape. seen is the view of the dimensions of the constant. zeros reports whether all are 0.
func (b *Builder) inMemory(t *eval.Tensor, seen view.View, shape bcnn.Shape, values int) (list []float32, zeros bool) {
	list, zeros = b.NewFloats(values), true
	for i := range list {
		const work = 16 // for the place of one number
		try.Check(b.budget.Charge(work * int64(len(t.Dims)+1)))
		at := map[view.Axis]int{view.H: i / shape.C / shape.W, view.W: i / shape.C % shape.W, view.C: i % shape.C}
		from := 0
		for k, size := range t.Dims {
			pos := 0
			if size != 1 {
				for _, a := range seen[k] {
					pos = pos*a.Size + at[a.Axis]/a.Stride%a.Size
				}
			}
			from = from*size + pos
		}
		x := t.At(from)
		if x-x != 0 {
			try.Failf("the constant holds %v, want finite numbers", x)
		}
		list[i] = float32(x)
		zeros = zeros && x == 0
	}
	return list, zeros
}

// Constant returns a constant, which may hold infinities, as a value with the height, width and view of like. It has the
// channels of like or, if dim ≥ 0, as many as the constant has positions along dimension dim.
func (b *Builder) Constant(n *pb.Node, t *eval.Tensor, like *Value, dim int) *Value {
	if half, ok := b.Halved(t); ok {
		return b.Twice(n, b.Constant(n, half, like, dim))
	}
	shape, seen := like.Shape, slices.Clone(like.View)
	lead := len(seen) - len(t.Dims)
	if lead < 0 || t.Type != pb.Float {
		try.Failf("a constant of %v and shape %v does not fit a FLOAT tensor of %v (height×width×channels)", t.Type, t.Dims, like.Shape)
	}
	if dim >= 0 {
		if dim < lead {
			try.Failf("a constant of shape %v does not have enough dimensions", t.Dims)
		}
		shape.C = t.Dims[dim-lead]
		seen[dim] = view.All(view.C, shape.C)
	}
	if shape.C < 1 {
		try.Failf("a constant is empty")
	}
	try.Check(b.CheckShape(shape))
	across := make([]bool, len(t.Dims)) // the batch and pixels: it seldom varies along them
	for i, size := range t.Dims {
		d := seen[lead+i]
		across[i] = view.IsBatch(d) || !view.Only(d, view.C)
		if !view.IsBatch(d) && size != 1 && size != view.Product(d) {
			try.Failf("a constant of shape %v does not fit the shape of the computed tensor", t.Dims)
		}
	}
	given := t.Dims
	t = b.eval.Collapse(t, across)
	pixels := false
	for i, size := range t.Dims {
		if size != 1 && view.IsBatch(seen[lead+i]) {
			try.Failf("a constant of shape %v would differ between the images of the batch", given)
		}
		pixels = pixels || size != 1 && across[i]
	}
	values := shape.C
	if pixels {
		values = shape.Values()
	}
	list, zeros := b.inMemory(t, seen[lead:], shape, values)
	// A layer needs an input: take like, but pick zeros instead of its channels.
	from := like
	if pixels && like.Shape.Pixels() > 1 {
		from = b.Pixels(n, "/pixel", like, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}})
	}
	none := b.indices(values)
	for i := range none {
		none[i] = -1
	}
	out := b.Emit(n, "/zeros", bcnn.Channels{Index: none}, bcnn.Shape{H: from.Shape.H, W: from.Shape.W, C: values}, from)
	if !zeros {
		out = b.Emit(n, "/constant", bcnn.Affine{Bias: list}, out.Shape, out)
	}
	if pixels && shape.Pixels() > 1 {
		rows := b.Span(0, 1, shape.H)
		cols := b.Span(0, 1, shape.W)
		out = b.Pixels(n, "/image", out, bcnn.Pixels{Rows: rows, Cols: cols, BlockH: shape.H, BlockW: shape.W})
	}
	out.View = seen
	return out
}
