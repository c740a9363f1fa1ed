package build

import (
	"cmp"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Layers that pick, join and combine values.

// channelled settles a value whose dimension dim must run over all of its channels. If dim runs
// over all values it makes a vector.
func (b *Builder) channelled(v *Value, dim int, n *pb.Node) *Value {
	v = b.Settle(v)
	try.Check(v.CheckReal())
	if !view.IsBatch(v.View[dim]) && view.Product(v.View[dim]) == v.Shape.Values() {
		v = b.Flatten(v, n)
	}
	if d := v.View[dim]; !view.Only(d, view.C) || view.Product(d) != v.Shape.C {
		try.Failf("dimension %d of its input must be the channels (stored as %v, height×width×channels)", dim, v.Shape)
	}
	return v
}

// Whole is channelled: constants get the form of the value that it returns.
func (b *Builder) Whole(n *pb.Node, v *Value, dim int) *Value {
	v = b.Settle(v)
	return b.channelled(v, dim, n)
}

// Pick returns a value with the given positions of dimension dim, which must run over channels, over
// groups of them, or over all pixels, and with zeros where a position is −1.
func (b *Builder) Pick(n *pb.Node, suffix string, v *Value, dim int, positions []int) *Value {
	if view.Product(v.View[dim]) == v.Shape.Pixels() && !slices.ContainsFunc(v.View[dim], func(a view.Atom) bool { return a.Axis == view.N || a.Axis == view.C }) {
		v = b.Settle(v)
		try.Check(v.CheckReal())
		v = b.Flatten(v, n)
	}
	if d := v.View[dim]; len(d) > 0 && view.Only(d, view.C) && view.Product(d) < v.Shape.C && v.Shape.Values() > view.Product(d) {
		return b.pickGroups(n, suffix, v, dim, positions)
	}
	v = b.channelled(v, dim, n)
	if len(positions) == 0 {
		try.Failf("the result would have no channels")
	}
	order := b.Channels(v, v.View[dim])
	try.Check(b.budget.Charge(4 * int64(len(positions))))
	index := make([]int32, len(positions))
	same := len(positions) == v.Shape.C
	try.Check(b.budget.Loop(len(index), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p := positions[i]
			if p >= 0 && order != nil {
				p = order[p]
			}
			index[i] = int32(p)
			same = same && p == i
		}
	}))
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: len(index)}
	try.Check(b.CheckShape(shape))
	out := v.With(n)
	if !same {
		out = b.Emit(n, suffix, bcnn.Channels{Index: index}, shape, v)
	}
	out.View = slices.Clone(v.View)
	out.View[dim] = view.All(view.C, len(index))
	return out
}

// pickGroups is Pick for a dimension that runs over a part of the atoms of the channels.
func (b *Builder) pickGroups(n *pb.Node, suffix string, v *Value, dim int, positions []int) *Value {
	v = b.Settle(v)
	try.Check(v.CheckReal())
	rest, seen := b.Inner(v.View, view.C, func(i int) bool { return i != dim })
	if size := view.Product(rest) * view.Product(v.View[dim]); size != v.Shape.C || len(positions) == 0 {
		try.Failf("dimension %d of its input must be the channels, or groups of them (stored as %v, height×width×channels)", dim, v.Shape)
	}
	group := b.Offsets(rest, view.ChannelStride)
	of := b.Offsets(v.View[dim], view.ChannelStride)
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: len(group) * len(positions)}
	try.Check(b.CheckShape(shape))
	index := b.indices(shape.C)
	for i := range index {
		index[i] = -1
		if p := positions[i/len(group)]; p >= 0 {
			index[i] = int32(of[p] + group[i%len(group)])
		}
	}
	y := v.With(n)
	if !slices.IsSorted(index) || len(index) != v.Shape.C || index[0] < 0 {
		y = b.Emit(n, suffix, bcnn.Channels{Index: index}, shape, v)
	}
	y.View = seen
	if y.View[dim] = nil; len(positions) > 1 {
		y.View[dim] = []view.Atom{{Axis: view.C, Stride: len(group), Size: len(positions)}}
	}
	return y
}

// Inner returns the atoms of an axis that belong to the dimensions for which of holds, the
// outermost first, and the view of a value whose axis has only these atoms.
func (b *Builder) Inner(v view.View, axis view.Axis, of func(dim int) bool) (atoms []view.Atom, seen view.View) {
	for i, d := range v {
		if of(i) {
			for _, a := range d {
				if a.Axis == axis {
					atoms = append(atoms, a)
				}
			}
		}
	}
	slices.SortFunc(atoms, func(x, y view.Atom) int { return cmp.Compare(y.Stride, x.Stride) })
	to, stride := map[int]int{}, 1
	for _, a := range slices.Backward(atoms) {
		to[a.Stride] = stride
		stride *= a.Size
	}
	seen = make(view.View, len(v))
	for i, d := range v {
		seen[i] = slices.Clone(d)
		for k, a := range seen[i] {
			if of(i) && a.Axis == axis {
				seen[i][k].Stride = to[a.Stride]
			}
		}
		seen[i] = view.Merge(seen[i])
	}
	return atoms, seen
}

// InChannelOrder puts the channels of a value in the order in which its dimension over them runs, if that
// is not their order in memory.
func (b *Builder) InChannelOrder(n *pb.Node, v *Value) *Value {
	for i, d := range v.View {
		if len(d) < 2 || !view.Only(d, view.C) || view.Product(d) != v.Shape.C {
			continue
		}
		all := try.Value(budget.List(b.budget, v.Shape.C, func(c int) int { return c }))
		return b.Pick(n, "/order", v, i, all)
	}
	return v
}

// Concat joins values along dimension dim, which runs over channels, over the rows or columns of
// images, or over lists of pixels.
func (b *Builder) Concat(n *pb.Node, values []*Value, dim int) *Value {
	try.Check(b.budget.Charge(64 * int64(len(values))))
	if v := values[0]; dim >= 2 && len(values) > 1 && v.CheckImage() == nil && v.Shape.Values() > 1 {
		return b.stack(n, values, dim)
	}
	if slices.ContainsFunc(values, func(v *Value) bool { return dim > 0 && max(dim+1, 3) <= len(v.View) && !view.Only(v.View[dim], view.C) }) {
		return b.joinLines(n, values, dim)
	}
	values = b.alike(n, values, dim)
	if len(values) > 1 && slices.ContainsFunc(values, func(v *Value) bool {
		return dim < len(v.View) && view.Only(v.View[dim], view.C) && view.Product(v.View[dim]) < min(v.Shape.C, v.Shape.Values())
	}) {
		return b.concatGroups(n, values, dim)
	}
	parts := make([]*Value, len(values))
	for i, v := range values {
		if len(v.View) != len(values[0].View) {
			try.Failf("the tensors have different numbers of dimensions")
		}
		p := b.channelled(v, dim, n)
		p = b.InChannelOrder(n, p)
		parts[i] = p
	}
	return b.joinChannels(n, parts, dim)
}

// joinChannels joins values along dimension dim, which is their channels.
func (b *Builder) joinChannels(n *pb.Node, parts []*Value, dim int) *Value {
	first := parts[0]
	shape := bcnn.Shape{H: first.Shape.H, W: first.Shape.W}
	for _, p := range parts {
		for d := range p.View {
			if d != dim && !slices.Equal(p.View[d], first.View[d]) {
				try.Failf("the tensors must have the same height and width, and no different Reshape or Transpose before them")
			}
		}
		if p.Shape.H != shape.H || p.Shape.W != shape.W {
			try.Failf("tensors of %v and %v (height×width×channels) cannot be joined", first.Shape, p.Shape)
		}
		shape.C += p.Shape.C
		try.Check(b.CheckShape(shape))
	}
	if len(parts) == 1 {
		return parts[0].With(n)
	}
	out := b.Emit(n, "", bcnn.Concat{}, shape, parts...)
	out.View = slices.Clone(first.View)
	out.View[dim] = view.All(view.C, shape.C)
	return out
}

// alike returns values in the same order in memory, for a concatenation along the channels: that of
// the image with the most pixels among them. Values with other dimensions stay as they are.
func (b *Builder) alike(n *pb.Node, values []*Value, dim int) []*Value {
	var image *Value // with the most pixels
	for _, v := range values {
		d := v.View[min(dim, len(v.View)-1)]
		if view.Only(d, view.C) && view.Product(d) == v.Shape.C && (image == nil || v.Shape.Pixels() > image.Shape.Pixels()) {
			image = v
		}
	}
	if image == nil || image.Shape.Pixels() == 1 {
		return values
	}
	out := slices.Clone(values)
	for i, v := range values {
		same, fits := true, len(v.View) == len(image.View)
		for d := 1; d < len(image.View) && fits; d++ {
			if d != dim {
				same = same && slices.Equal(v.View[d], image.View[d])
				fits = v.Size(d) == image.Size(d)
			}
		}
		if same || !fits {
			continue
		}
		shape := bcnn.Shape{H: image.Shape.H, W: image.Shape.W, C: v.Size(dim)}
		seen := slices.Clone(image.View)
		seen[dim] = view.All(view.C, shape.C)
		out[i] = b.rearranged(n, v, shape, seen)
	}
	return out
}

// concatGroups joins values along a dimension that runs over groups of channels, or is 1.
func (b *Builder) concatGroups(n *pb.Node, values []*Value, dim int) *Value {
	parts := make([]*Value, len(values))
	shape := bcnn.Shape{}
	group, size := 0, 0
	for i, v := range values {
		if len(v.View) != len(values[0].View) || view.IsBatch(v.View[dim]) {
			try.Failf("the tensors have different numbers of dimensions")
		}
		k := view.Product(v.View[dim])
		all := try.Value(budget.List(b.budget, k, func(i int) int { return i }))
		p := b.pickGroups(n, "/groups", v, dim, all)
		if i == 0 {
			shape, group = bcnn.Shape{H: p.Shape.H, W: p.Shape.W}, p.Shape.C/k
		}
		size += k
		shape.C += p.Shape.C
		same := p.Shape.H == shape.H && p.Shape.W == shape.W && p.Shape.C == group*k
		for d := range p.View {
			same = same && (d == dim || i == 0 || slices.Equal(p.View[d], parts[0].View[d]))
		}
		if !same {
			try.Failf("the tensors must have the same dimensions but for the axis, and no different Reshape or Transpose before them")
		}
		parts[i] = p
	}
	try.Check(b.CheckShape(shape))
	out := b.Emit(n, "", bcnn.Concat{}, shape, parts...)
	out.View = slices.Clone(out.View)
	out.View[dim] = []view.Atom{{Axis: view.C, Stride: group, Size: size}}
	return out
}

// Align settles two values. If they have different views it puts the channels of both in order and,
// if their dimensions are the same, the second value in the memory order of the first.
func (b *Builder) Align(n *pb.Node, x, y *Value) (*Value, *Value) {
	x = b.Settle(x)
	if y = b.Settle(y); x.View.Equal(y.View) {
		return x, y
	}
	x = b.InChannelOrder(n, x)
	y = b.InChannelOrder(n, y)
	if x.View.Equal(y.View) || len(x.View) != len(y.View) || !view.IsBatch(x.View[0]) {
		return x, y
	}
	for i, d := range x.View[1:] {
		if view.Product(d) != view.Product(y.View[i+1]) { // one of them may be repeated
			return x, y
		}
	}
	y = b.rearranged(n, y, x.Shape, x.View)
	return x, y
}

var pairNames = map[string]string{"mul": "product", "min": "minimum", "max": "maximum", "mask": "choice"}

// pairOps combine truth values that are ±1. The product is −Xor: see Logical.
var pairOps = map[string]bcnn.Op{"And": bcnn.Min{}, "Or": bcnn.Max{}, "Xor": bcnn.Mul{}}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Mask keeps the values of x where those of m are not 0. Either may be the one that is repeated.
func (b *Builder) Mask(n *pb.Node, x, m *Value) *Value {
	x, m = b.Align(n, x, m)
	if x.Shape.Values() < m.Shape.Values() { // the layer repeats its second input only
		repeated, err := try.Do(func() *Value { return b.Repeat(n, x, m) })
		if err != nil {
			try.Failf("the choice of tensors of %v by a condition of %v (height×width×channels) is not supported: "+
				"the tensors must have the dimensions of the condition, or 1 for some of them", x.Shape, m.Shape)
		}
		x = repeated
	}
	return b.Pair(n, bcnn.Mask{}, x, m)
}

// Pair combines two values by a layer that repeats its second input along dimensions of 1. Either
// of x and y may be the one that is repeated.
func (b *Builder) Pair(n *pb.Node, op bcnn.Op, x, y *Value) *Value {
	x, y = b.Align(n, x, y)
	if x.Shape.Values() < y.Shape.Values() {
		x, y = y, x
	}
	fits := len(x.View) == len(y.View)
	for i := 0; fits && i < len(y.View); i++ {
		fits = len(y.View[i]) == 0 || slices.Equal(y.View[i], x.View[i])
	}
	pixels := y.Shape.H == x.Shape.H && y.Shape.W == x.Shape.W || y.Shape.Pixels() == 1
	if !fits || !pixels || y.Shape.C != x.Shape.C && y.Shape.C != 1 {
		repeated, like, err := b.Repeated(n, y, x)
		if err != nil {
			try.Failf("the %s of tensors of %v and %v (height×width×channels) is not supported: "+
				"the second must have the dimensions of the first, or 1 for some of them", pairNames[op.Kind()], x.Shape, y.Shape)
		}
		x, y = like, repeated
	}
	return b.Emit(n, "", op, x.Shape, x, y)
}
