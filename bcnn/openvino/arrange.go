package openvino

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Any tensor can be put in any order: its values lined up as channels, those in another order,
// and what they are pixels of made of them. Where a view says that nothing has to move, no layer
// is made.

// vectorView is the view of dimensions on a vector that has their values in order.
func vectorView(dims []int) view.View {
	values := 1
	for _, d := range dims {
		values *= d
	}
	return try.Value(view.Vector(values).Reshape(dims))
}

// plain returns a value as a vector that has the values of its dimensions in order.
func (im *importer) plain(n *node, v *value) *value {
	return im.lined(n, v, slices.Concat(v.view[1:]...), vectorView(v.dims()))
}

// flat returns a value with its pixels lined up as channels, in the order of memory.
func (im *importer) flat(n *node, v *value) *value {
	if v.shape.Pixels() == 1 {
		return v
	}
	shape := bcnn.Shape{H: 1, W: 1, C: v.shape.Values()}
	return im.emit(n, "/flatten", bcnn.Flatten{}, shape, v.view.Flatten(v.shape), v)
}

// lined returns a value as a vector whose values come in the order of some atoms, which are all of
// the value's.
func (im *importer) lined(n *node, v *value, atoms []view.Atom, seen view.View) *value {
	size := v.shape.Values()
	order := view.View{view.Batch, atoms}
	stride := view.FlatStride(v.shape)
	if order.InOrder(size, stride) {
		return im.flat(n, v).with(seen)
	}
	index := im.offsets(atoms, stride)
	flat := im.flat(n, v)
	return im.emit(n, "/order", bcnn.Channels{Index: index}, flat.shape, seen, flat)
}

// offsets returns the places of all positions of atoms.
func (im *importer) offsets(atoms []view.Atom, stride func(view.Atom) int) []int32 {
	size := view.Product(atoms)
	try.Check(im.budget.Charge(32 * int64(size+len(atoms))))
	at := view.Offsets(atoms, stride)
	return try.Value(budget.List(im.budget, size, func(i int) int32 { return int32(at[i]) }))
}

// grouped returns the atoms of some dimensions.
func (v *value) grouped(dims []int) (atoms []view.Atom) {
	for _, d := range dims {
		atoms = append(atoms, v.view[d]...)
	}
	return atoms
}

// image returns a value as images whose channels, rows and columns run over groups of its
// dimensions, which are all behind the batch.
func (im *importer) image(n *node, v *value, channels, rows, cols []int) *value {
	seen := make(view.View, len(v.view))
	seen[0] = view.Batch
	size := func(dims []int, axis view.Axis) int {
		stride := 1
		for _, d := range slices.Backward(dims) {
			if s := v.size(d); s > 1 {
				seen[d] = []view.Atom{{Axis: axis, Stride: stride, Size: s}}
				stride *= s
			}
		}
		return stride
	}
	shape := bcnn.Shape{C: size(channels, view.C), H: size(rows, view.H), W: size(cols, view.W)}
	if v.view.Equal(seen) && v.shape == shape {
		return v
	}
	im.checkShape(shape)
	if inner := v.grouped(channels); v.shape == shape && view.Only(inner, view.C) &&
		slices.Equal(view.Merge(v.grouped(rows)), view.All(view.H, shape.H)) &&
		slices.Equal(view.Merge(v.grouped(cols)), view.All(view.W, shape.W)) {
		// Only the channels are in another order.
		if slices.Equal(view.Merge(inner), view.All(view.C, shape.C)) {
			return v.with(seen)
		}
		index := im.offsets(inner, view.ChannelStride)
		return im.emit(n, "/order", bcnn.Channels{Index: index}, shape, seen, v)
	}
	v = im.lined(n, v, slices.Concat(v.grouped(rows), v.grouped(cols), v.grouped(channels)), seen)
	if shape.Pixels() == 1 {
		return v
	}
	each := func(i int) int32 { return int32(i) }
	op := bcnn.Pixels{
		Rows: try.Value(budget.List(im.budget, shape.H, each)), Cols: try.Value(budget.List(im.budget, shape.W, each)),
		BlockH: shape.H, BlockW: shape.W,
	}
	return im.emit(n, "/image", op, shape, seen, v)
}

// nchw returns a value of batch, channels, height and width as images.
func (im *importer) nchw(n *node, v *value) *value {
	if len(v.view) != 4 {
		try.Failf("its input has %d dimensions, want 4: batch, channels, height and width", len(v.view))
	}
	return im.image(n, v, []int{1}, []int{2}, []int{3})
}

// alike returns two values whose dimensions are equal in one order.
func (im *importer) alike(n *node, a, b *value) (*value, *value) {
	if a.shape == b.shape && a.view.Equal(b.view) {
		return a, b
	}
	return im.plain(n, a), im.plain(n, b)
}

// perChannel returns a constant that is broadcast to a value as one number, or as one for each
// channel in memory. Where it varies over pixels, the value becomes a vector.
func (im *importer) perChannel(n *node, v *value, c *constant) (*value, []float32) {
	c.checkReal()
	if c.len() == 1 && len(c.dims) <= len(v.view) {
		return v, c.floats
	}
	dims := im.broadcastDims(v, c.dims)
	for i, d := range dims {
		if d > 1 && !view.Only(v.view[i], view.C) {
			v = im.flat(n, v)
			break
		}
	}
	list := im.newFloats(v.shape.C)
	try.Check(im.budget.Charge(int64(v.shape.C) * int64(4*len(dims)+countAtoms(v.view))))
	for ch := range list {
		at := 0
		for i, d := range dims {
			if at *= d; d > 1 {
				at += view.Position(v.view[i], ch)
			}
		}
		list[ch] = c.floats[at]
	}
	return v, list
}

func countAtoms(v view.View) int {
	n := 0
	for _, d := range v {
		n += len(d)
	}
	return n
}

// broadcastDims returns the dimensions of a constant as many as a value has. Each is 1 or that of
// the value.
func (im *importer) broadcastDims(v *value, dims []int) []int {
	if missing := len(v.view) - len(dims); missing >= 0 {
		out := slices.Concat(slices.Repeat([]int{1}, missing), dims)
		if out[0] == 1 && !slices.ContainsFunc(v.indices(), func(i int) bool { return out[i] != 1 && out[i] != v.size(i) }) {
			return out
		}
	}
	panic(try.Errorf("a constant of shape %v is not broadcast to batches of %v", dims, v.dims()))
}

// indices are those of the dimensions behind the batch.
func (v *value) indices() []int {
	list := make([]int, len(v.view)-1)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

// drop removes layers that no output depends on, such as those of which only the shape was read.
func (im *importer) drop() {
	used := make([]bool, len(im.net.Layers))
	for _, i := range im.net.Outputs {
		used[i] = true
	}
	for i, l := range slices.Backward(im.net.Layers) {
		for _, k := range l.Inputs {
			if used[i] && k >= 0 {
				used[k] = true
			}
		}
	}
	at := make([]int, len(used))
	kept := im.net.Layers[:0]
	for i, l := range im.net.Layers {
		if !used[i] {
			continue
		}
		at[i] = len(kept)
		for k, from := range l.Inputs {
			if from >= 0 {
				l.Inputs[k] = at[from]
			}
		}
		kept = append(kept, l)
	}
	im.net.Layers = kept
	for k, i := range im.net.Outputs {
		im.net.Outputs[k] = at[i]
	}
	if len(im.net.Outputs) == 1 && im.net.Outputs[0] == len(kept)-1 {
		im.net.Outputs = nil // as most networks have it
	}
}
