package openvino

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Parts of tensors: Split and its kin, which have several outputs, and Crop.

// part returns size values of a dimension, from begin on.
func (im *importer) part(n *node, v *value, axis, begin, size int) *value {
	if begin < 0 || size < 1 || begin > v.size(axis)-size {
		try.Failf("it takes %d values from number %d on of dimension %d, which has %d", size, begin, axis, v.size(axis))
	}
	if size == v.size(axis) {
		return v
	}
	list := func(size, begin int) []int32 {
		return try.Value(budget.List(im.budget, size, func(i int) int32 { return int32(begin + i) }))
	}
	if axis >= 2 && len(v.view) == 4 {
		v = im.nchw(n, v)
		shape := v.shape
		op := bcnn.Pixels{Rows: list(shape.H, 0), Cols: list(shape.W, 0)}
		if axis == 2 {
			shape.H, op.Rows = size, list(size, begin)
		} else {
			shape.W, op.Cols = size, list(size, begin)
		}
		return im.emit(n, "", op, shape, view.NCHW(shape), v)
	}
	dims := v.dims()
	v = im.joinable(n, v, axis)
	rest := 1 // what is behind the axis in a vector
	if v.shape.Pixels() == 1 && v.shape.C != dims[axis-1] {
		rest = v.shape.C / dims[axis-1]
	}
	shape := v.shape
	shape.C = size * rest
	dims[axis-1] = size
	seen := slices.Clone(v.view)
	if rest > 1 {
		seen = vectorView(dims)
	} else {
		seen[axis] = view.All(view.C, size)
	}
	return im.emit(n, "", bcnn.Channels{Index: list(shape.C, begin*rest)}, shape, seen, v)
}

// split imports Split and VariadicSplit of IR 10 and 11, and Split and Slice of the old versions.
func split(im *importer, n *node) operand {
	v := im.value(n, 0)
	var axis int
	var sizes []int64
	if im.graph.old() {
		axis = n.integer("axis", "1", 1, maxDims)
		n.ignore("num_split")
	} else {
		list := im.constant(n, 1).integers(false)
		if len(list) != 1 || len(im.constant(n, 1).dims) > 1 {
			try.Failf("its axis is %v, want one number", list)
		}
		if axis = int(list[0]); axis < 0 {
			axis += len(v.view)
		}
	}
	if axis < 1 || axis >= len(v.view) {
		try.Failf("its axis is dimension %d of %d, which is the batch or none", axis, len(v.view))
	}
	whole := int64(v.size(axis))
	switch {
	case im.graph.old():
		for _, p := range n.outputs {
			if len(p.dims) != len(v.view) {
				try.Failf("an output has shape %v, its input %v behind the batch", p.dims, v.dims())
			}
			sizes = append(sizes, int64(p.dims[axis]))
		}
	case n.typ == "Split":
		count := n.integer("num_splits", "", 1, maxPorts)
		if whole%int64(count) != 0 {
			try.Failf("%d parts do not divide a dimension of %d", count, whole)
		}
		sizes = slices.Repeat([]int64{whole / int64(count)}, count)
	default:
		sizes = slices.Clone(im.constant(n, 2).list())
		if k := slices.Index(sizes, -1); k >= 0 {
			sizes[k] = whole
			for i, s := range sizes {
				if i != k {
					sizes[k] -= s
				}
			}
		}
	}
	if len(sizes) != len(n.outputs) || len(sizes) == 0 {
		try.Failf("it has %d outputs, but makes %d parts", len(n.outputs), len(sizes))
	}
	var first operand
	begin := 0
	for k, size := range sizes {
		try.Check(im.budget.Charge(64))
		o := operand{v: im.part(n, v, axis, begin, int(min(max(size, 0), maxValues)))}
		if begin += int(size); k == 0 {
			first = o
			continue
		}
		im.checkDims(n.layer, k, o)
		im.more[source{n.index, k}] = o
	}
	if int64(begin) != whole {
		try.Failf("its parts have %d values of a dimension of %d", begin, whole)
	}
	return first
}

// list returns integers of one dimension.
func (c *constant) list() []int64 {
	if c.ints == nil || len(c.dims) != 1 || c.open || len(c.ints) > maxPorts {
		try.Failf("a tensor of %s of shape %v is no list of at most %d integers", c.typ, c.dims, maxPorts)
	}
	return c.ints
}

// crop imports Crop, whose axes are cut by offsets and sizes, by the sizes of a second input, or by how
// much goes at both ends.
func crop(im *importer, n *node) operand {
	v := im.value(n, 0)
	axes := n.numbers("axis", 0, len(v.view)-1)
	begins, ends, sizes := n.numbers("crop_begin", 0, maxValues), n.numbers("crop_end", 0, maxValues), n.numbers("dim", 1, maxValues)
	offsets := n.numbers("offset", 0, maxValues)
	var like []int
	if len(n.from) > 1 {
		like = append([]int{im.batch}, im.any(n, 1).dims()...)
	}
	for i, axis := range axes {
		size, begin := im.size(v, axis), 0
		switch {
		case len(begins) == len(axes) && len(ends) == len(axes):
			begin, size = begins[i], size-begins[i]-ends[i]
		case len(offsets) == len(axes) && len(like) == len(v.view):
			begin, size = offsets[i], like[axis]
		case len(offsets) == len(axes) && len(sizes) == len(axes):
			begin, size = offsets[i], sizes[i]
		default:
			try.Failf("its axes %v have neither crop_begin and crop_end nor offset and dim, or a second input", axes)
		}
		if axis == 0 {
			if begin != 0 || size != im.batch {
				try.Failf("it crops the batch, which is not supported")
			}
			continue
		}
		v = im.part(n, v, axis, begin, size)
	}
	return operand{v: v}
}

// permuted returns a value seen as parts of its dimensions in another order, and then as dims.
func (im *importer) permuted(n *node, v *value, parts, order, dims []int) operand {
	v = im.seenAs(n, v, append([]int{im.batch}, parts...))
	seen := view.View{view.Batch}
	for _, d := range order {
		seen = append(seen, v.view[d])
	}
	return operand{v: im.seenAs(n, v.with(seen), append([]int{im.batch}, dims...))}
}

// shuffle imports ShuffleChannels.
func shuffle(im *importer, n *node) operand {
	v := im.value(n, 0)
	axis, groups := n.integer("axis", "1", -maxDims, maxDims), n.integer("group", "1", 1, maxOut)
	if axis < 0 {
		axis += len(v.view)
	}
	if axis != 1 || len(v.view) != 4 || v.size(1)%groups != 0 {
		try.Failf("it shuffles dimension %d of %v in %d groups, want the channels of images, which groups divide", axis, v.dims(), groups)
	}
	c, h, w := v.size(1), v.size(2), v.size(3)
	return im.permuted(n, v, []int{groups, c / groups, h * w}, []int{2, 1, 3}, []int{c, h, w})
}
