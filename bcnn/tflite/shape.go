package tflite

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
)

// integers returns the numbers of a constant input, at most maxIntegers.
func (im *importer) integers(o *schema.Operator, i int) []int64 {
	c := im.required(o, i)
	return c.integers()
}

// reshape is RESHAPE, SQUEEZE or EXPAND_DIMS to the dimensions that the file gives the
// output, or that are computed.
func (im *importer) reshape(o *schema.Operator) *value {
	v := checked(im.operand(o, 0), 0)
	try.Check(v.checkBounded())
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	im.reshapes(o, t)
	dims, batch := im.newDims(o, t, v)
	switch {
	case v.blocks.some():
		return im.reshapedBlocks(v, dims)
	case v.layout != nil || im.moves(o, dims):
		return im.reshapedTo(o, v, dims, batch)
	}
	s := try.Value(im.shape(dims))
	if v.typ == schema.Int32 {
		s.C *= wordBits
		if v.shape.C%wordBits != 0 {
			try.Failf("packed bits are supported only if their channels fill whole words of 32 bits")
		}
	}
	out := im.reshaped(o, v, s)
	out.rank = len(dims)
	return out
}

// moves reports whether what reads a tensor only moves its values on, or takes dimensions that no
// image has, so that they need not be moved now.
func (im *importer) moves(o *schema.Operator, dims []int) bool {
	if im.batch != 1 || len(dims) == 0 {
		return false
	}
	reader := im.reader[o.Outputs[0]]
	return len(dims) > 4 || dims[0] != 1 || reader != nil && reader.Name == "TRANSPOSE"
}

// newDims returns the dimensions of the output of RESHAPE, SQUEEZE or EXPAND_DIMS, and which of them
// a dynamic batch is in.
func (im *importer) newDims(o *schema.Operator, t *schema.Tensor, v *value) (dims []int, batch int) {
	if !open(t) {
		return t.Dims, 0
	}
	dims = slices.Clone(t.Dims)
	var list []int64
	if o.Name == "RESHAPE" {
		list = im.integers(o, 1)
	} else {
		try.Failf("the file leaves dimensions of its output open")
	}
	if len(list) != len(dims) {
		try.Failf("its output has %d dimensions in the file, but it is given %d", len(dims), len(list))
	}
	rest, unknown := num.Product(im.dims(v)...), -1
	for i, d := range list {
		switch {
		case d == -1 && unknown < 0:
			unknown = i
			continue
		case d < 1 || d > schema.MaxSize:
			try.Failf("its output cannot have shape %v", list)
		}
		dims[i] = int(d)
		rest /= dims[i]
	}
	if unknown >= 0 {
		dims[unknown] = rest
	}
	if num.Product(dims...) != num.Product(im.dims(v)...) {
		try.Failf("shape %v does not have as many values as its input, %v", dims, im.dims(v))
	}
	return dims, slices.Index(t.Dynamic, true)
}

// reshapedBlocks adds or removes a dimension of size 1 between the images of blocks and their columns.
func (im *importer) reshapedBlocks(v *value, dims []int) *value {
	out := *v
	out.rank = len(dims)
	if out.rank != 3 && out.rank != 4 || v.shape.H != 1 || !slices.Equal(out.blocks.dims(im.batch, v.shape, out.rank)[1:], dims[1:]) {
		v.undivided()
	}
	return &out
}

// reshaped gives a value another shape.
func (im *importer) reshaped(o *schema.Operator, v *value, s bcnn.Shape) *value {
	out := *v
	switch {
	case s == v.shape:
		return &out
	case s.Values() != v.shape.Values():
		try.Failf("shape %v does not have as many values as its input, %v", s, v.shape)
	}
	if s.Pixels() == 1 {
		y := im.emit(o, "", bcnn.Flatten{}, s, v)
		out.layer, out.shape = y.layer, y.shape
		return &out
	}
	// The values in a row are those of one block of pixels.
	y := im.emit(o, "/flat", bcnn.Flatten{}, bcnn.Shape{H: 1, W: 1, C: s.Values()}, v)
	op := im.pixels(bcnn.Pixels{BlockH: s.H, BlockW: s.W}, 0, s.H, 0, s.W, s)
	y = im.emit(o, "", op, s, y)
	out.layer, out.shape = y.layer, y.shape
	return &out
}

// transpose is TRANSPOSE.
func (im *importer) transpose(o *schema.Operator) *value {
	v := checked(im.operand(o, 0), 0).undivided()
	try.Check(v.checkBounded())
	perm := im.integers(o, 1)
	if len(perm) != v.rank {
		try.Failf("a permutation of %d dimensions for an input of %d dimensions", len(perm), v.rank)
	}
	before := im.dims(v)
	last, ordered := int64(-1), true
	after := make([]int, len(perm))
	for i, p := range perm {
		if p < 0 || p >= int64(len(perm)) || slices.Contains(perm[:i], p) {
			try.Failf("the permutation %v must have each dimension once", perm)
		}
		if after[i] = before[p]; after[i] != 1 {
			ordered, last = ordered && p > last, p
		}
	}
	if !ordered || v.layout != nil || perm[0] != 0 && im.dynamic {
		return im.permuted(o, v, perm)
	}
	if v.typ != schema.Int8 {
		try.Check(v.checkReal())
	}
	s := try.Value(im.shape(after))
	return im.reshaped(o, v, s)
}

// concat is CONCATENATION of channels, rows or columns.
func (im *importer) concat(o *schema.Operator) *value {
	first := im.value(o, 0)
	d := dim(int64(o.Options.Int32(0, 0)), first.rank)
	if d == dimBatch {
		try.Failf("a concatenation along the batch is not supported")
	}
	try.Check(im.budget.Charge(tensorUnits * int64(len(o.Inputs))))
	list := make([]*value, len(o.Inputs))
	shape := first.shape
	shape.C = 0
	for i := range list {
		v := im.value(o, i)
		switch {
		case v.typ != first.typ:
			try.Failf("inputs of different types, %v and %v, are not supported", first.typ, v.typ)
		case v.typ == schema.Int8 && (v.scale != first.scale || v.zero != first.zero):
			try.Failf("8-bit inputs with different scales or zero points are not supported")
		case v.typ == schema.Int8:
			v = im.centred(o, v)
		case v.typ != schema.Int32:
			try.Check(v.checkReal())
		case d == dimC && shape.C%wordBits != 0:
			try.Failf("packed bits are supported only if the channels of all inputs but the last fill whole words of 32 bits")
		}
		for _, other := range []int{dimH, dimW, dimC} {
			if other != d && v.size(other) != first.size(other) {
				try.Failf("inputs of %v and %v cannot be concatenated: only the size along the axis may differ", first.shape, v.shape)
			}
		}
		shape.C += v.shape.C
		list[i] = v
	}
	act := int(o.Options.Uint8(1, 0))
	if first.typ != schema.Float32 && act != actNone {
		try.Failf("a fused activation is supported only on FLOAT32, not on %v", first.typ)
	}
	if len(list) == 1 {
		y := *first
		return im.activated(o, &y, act)
	}
	var y *value
	if d == dimC {
		y = im.emit(o, "", bcnn.Concat{}, shape, list...)
	} else {
		y = im.stack(o, list, d)
	}
	y.moves(list[0])
	return im.activated(o, y, act)
}

// stack joins images along their rows or columns: as channels, which then are spread over
// blocks of pixels, of which those are picked that there were.
func (im *importer) stack(o *schema.Operator, parts []*value, d int) *value {
	most, total := 0, 0
	for _, v := range parts {
		most, total = max(most, v.size(d)), total+v.size(d)
	}
	shape := parts[0].shape
	// picked are rows or columns in dimension d, and all in the other one.
	picked := func(v *value, suffix string, n, block int, at func(i int) int) *value {
		list := try.Value(budget.List(im.budget, n, func(i int) int32 { return int32(at(i)) }))
		all := try.Value(budget.List(im.budget, parts[0].size(dimH+dimW-d), func(i int) int32 { return int32(i) }))
		op, shape := bcnn.Pixels{Rows: list, Cols: all, BlockH: block, BlockW: 1}, shape
		if shape.H = n; d == dimW {
			op = bcnn.Pixels{Rows: all, Cols: list, BlockH: 1, BlockW: block}
			shape.H, shape.W = len(all), n
		}
		return im.emit(o, suffix, op, shape, v)
	}
	even := slices.Clone(parts)
	for i, v := range parts {
		if size := v.size(d); size < most {
			// The last one again, so that signs stay such.
			even[i] = picked(v, "/part", most, 1, func(k int) int { return min(k, size-1) })
		}
	}
	joined := shape
	if joined.C *= len(parts); d == dimH {
		joined.H = most
	} else {
		joined.W = most
	}
	y := im.emit(o, "/parts", bcnn.Concat{}, joined, even...)
	part, at := 0, 0 // of position i, where that part begins
	return picked(y, "", total, len(parts), func(i int) int {
		for i-at >= parts[part].size(d) {
			at += parts[part].size(d)
			part++
		}
		return (i-at)*len(parts) + part
	})
}

// pick emits the channels from from to from + n − 1 of a value.
func (im *importer) pick(o *schema.Operator, suffix string, v *value, from, step, n int) *value {
	try.Check(im.budget.Charge(8 * int64(n)))
	index := make([]int32, n)
	for i := range index {
		index[i] = int32(from + i*step)
	}
	shape := v.shape
	shape.C = n
	y := im.emit(o, suffix, bcnn.Channels{Index: index}, shape, v)
	return y.moves(v)
}

// split is SPLIT or SPLIT_V of channels.
func (im *importer) split(o *schema.Operator) []operand {
	data, axis := 1, 0
	if o.Name == "SPLIT_V" {
		data, axis = 0, 2
	}
	v := im.moved(o, data)
	axes := im.axes(o, axis, v.rank)
	n := len(o.Outputs)
	if said := o.Options.Int32(0, 0); said != 0 && int(said) != n {
		try.Failf("it has %d outputs, but num_splits = %d", n, said)
	}
	if len(axes) != 1 || axes[0] != dimC {
		try.Failf("a split is supported only along the channels")
	}
	try.Check(im.budget.Charge(tensorUnits * int64(n)))
	sizes := make([]int64, n)
	if o.Name == "SPLIT_V" {
		sizes = im.integers(o, 1)
	} else {
		for i := range sizes {
			sizes[i] = int64(v.shape.C / n)
		}
	}
	rest := int64(v.shape.C)
	for _, s := range sizes {
		if s < 1 || s > rest {
			try.Failf("a split into sizes %v does not fit %d channels", sizes[:min(len(sizes), maxIntegers)], v.shape.C)
		}
		rest -= s
	}
	if rest != 0 || len(sizes) != n {
		try.Failf("a split into %d outputs does not cover %d channels exactly", n, v.shape.C)
	}
	out := make([]operand, n)
	from := 0
	for i, s := range sizes {
		if im.read[o.Outputs[i]] {
			part := im.pick(o, fmt.Sprintf("/%d", i), v, from, 1, int(s))
			out[i] = operand{value: part}
		}
		from += int(s)
	}
	return out
}

// span are the positions that a slice takes of a dimension.
type span struct {
	from, step int64
	count      int64
	size       int64 // of the dimension
}

// thins reports whether it takes every so many positions from the first one on.
func (s span) thins() bool { return s.from == 0 && s.count == (s.size+s.step-1)/s.step }

// slice is SLICE or STRIDED_SLICE: of channels, or of every so many rows and columns.
func (im *importer) slice(o *schema.Operator) *value {
	v := im.value(o, 0)
	if v.typ == schema.Int8 {
		v = im.centred(o, v)
	} else {
		try.Check(v.checkReal())
	}
	out := v
	thin := bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}
	for i, s := range im.spans(o, v) {
		switch d := dim(int64(i), v.rank); {
		case s.count == s.size:
		case d == dimH && s.thins():
			thin.StrideH = int(s.step)
		case d == dimW && s.thins():
			thin.StrideW = int(s.step)
		case d == dimC:
			out = im.pick(o, "", out, int(s.from), int(s.step), int(s.count))
		case d == dimBatch:
			try.Failf("a slice of the batch is not supported")
		default:
			out = im.lines(o, out, d, s)
		}
	}
	if thin.StrideH > 1 || thin.StrideW > 1 {
		y := im.emit(o, "/thin", bcnn.MaxPool{Window: thin}, thin.Output(out.shape, out.shape.C), out)
		out = y.moves(out)
	}
	same := *out
	return &same
}

// lines takes rows or columns of an image.
func (im *importer) lines(o *schema.Operator, v *value, d int, s span) *value {
	list := try.Value(budget.List(im.budget, int(s.count), func(i int) int32 { return int32(s.from + int64(i)*s.step) }))
	op, shape, suffix := bcnn.Pixels{Rows: list}, v.shape, "/rows"
	if shape.H = len(list); d == dimW {
		op, suffix = bcnn.Pixels{Cols: list}, "/columns"
		shape.H, shape.W = v.shape.H, len(list)
	}
	y := im.emit(o, suffix, im.pixels(op, 0, shape.H, 0, shape.W, shape), shape, v)
	return y.moves(v)
}

// spans reads what a slice takes of each dimension.
func (im *importer) spans(o *schema.Operator, v *value) []span {
	lists := [3][]int64{}
	strided := o.Name == "STRIDED_SLICE"
	for i := range lists {
		if i == 2 && !strided {
			break
		}
		if lists[i] = im.integers(o, 1+i); len(lists[i]) != v.rank {
			try.Failf("a list of %d positions for %d dimensions, want one for each", len(lists[i]), v.rank)
		}
	}
	masks := o.Options
	if strided && (masks.Int32(2, 0) != 0 || masks.Int32(3, 0) != 0 || masks.Int32(4, 0) != 0) {
		try.Failf("ellipsis_mask, new_axis_mask and shrink_axis_mask are not supported")
	}
	spans := make([]span, v.rank)
	for i := range spans {
		d := dim(int64(i), v.rank)
		s := span{from: lists[0][i], step: 1, size: int64(v.size(d))}
		if d == dimBatch {
			s.size = int64(im.batch)
		}
		to := s.from + lists[1][i]
		switch {
		case strided:
			if s.step = lists[2][i]; s.step < 1 || s.step > s.size {
				try.Failf("a step of %d is not supported, want 1 up to the size of the dimension", s.step)
			}
			bound := func(at int64, mask int32, open int64) int64 {
				switch {
				case mask>>i&1 != 0:
					return open
				case at < 0:
					at += s.size
				}
				return min(max(at, 0), s.size)
			}
			s.from, to = bound(lists[0][i], masks.Int32(0, 0), 0), bound(lists[1][i], masks.Int32(1, 0), s.size)
		case lists[1][i] == -1:
			to = s.size
		}
		if s.from < 0 || to > s.size || s.from >= to {
			try.Failf("positions %d to %d are not a slice of a dimension of %d", s.from, to, s.size)
		}
		s.count = (to - s.from + s.step - 1) / s.step
		spans[i] = s
	}
	return spans
}
