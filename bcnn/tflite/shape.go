package tflite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// integers returns the numbers of a constant input, at most maxIntegers.
func (im *importer) integers(o *schema.Operator, i int) ([]int64, error) {
	c, err := im.required(o, i)
	if err != nil {
		return nil, err
	}
	return c.integers()
}

// reshape is RESHAPE, SQUEEZE or EXPAND_DIMS to the dimensions that the file gives the
// output.
func (im *importer) reshape(o *schema.Operator) (*value, error) {
	v, err := im.value(o, 0)
	if err != nil {
		return nil, err
	}
	t, err := im.model.Tensor(o.Outputs[0])
	if err != nil {
		return nil, err
	}
	s, err := im.shape(t.Dims)
	if err != nil {
		return nil, err
	}
	if v.typ == schema.Int32 {
		s.C *= wordBits
		if v.shape.C%wordBits != 0 {
			return nil, errors.New("its input is packed bits")
		}
	}
	return im.reshaped(o, v, s)
}

// reshaped gives a value another shape.
func (im *importer) reshaped(o *schema.Operator, v *value, s bcnn.Shape) (*value, error) {
	out := *v
	switch {
	case s == v.shape:
		return &out, nil
	case s.Values() != v.shape.Values():
		return nil, fmt.Errorf("%v has other values than %v", s, v.shape)
	}
	if s.Pixels() == 1 {
		y, err := im.emit(o, "", bcnn.Flatten{}, s, v)
		if err != nil {
			return nil, err
		}
		out.layer, out.shape = y.layer, y.shape
		return &out, nil
	}
	// The values in a row are those of one block of pixels.
	y, err := im.emit(o, "/flat", bcnn.Flatten{}, bcnn.Shape{H: 1, W: 1, C: s.Values()}, v)
	if err != nil {
		return nil, err
	}
	op, err := im.pixels(bcnn.Pixels{BlockH: s.H, BlockW: s.W}, 0, s.H, 0, s.W, s)
	if err != nil {
		return nil, err
	}
	if y, err = im.emit(o, "", op, s, y); err != nil {
		return nil, err
	}
	out.layer, out.shape = y.layer, y.shape
	return &out, nil
}

// transpose is TRANSPOSE that moves no value: of dimensions of 1.
func (im *importer) transpose(o *schema.Operator) (*value, error) {
	v, err := im.moved(o, 0)
	if err != nil {
		return nil, err
	}
	perm, err := im.integers(o, 1)
	if err != nil {
		return nil, err
	}
	if len(perm) != v.rank {
		return nil, fmt.Errorf("a permutation of %d of %d dimensions", len(perm), v.rank)
	}
	image := [...]int{im.batch, v.shape.H, v.shape.W, v.shape.C}
	before := image[len(image)-v.rank:]
	last := int64(-1)
	after := make([]int, len(perm))
	for i, p := range perm {
		if p < 0 || p >= int64(len(perm)) || slices.Contains(perm[:i], p) {
			return nil, fmt.Errorf("dimensions %v", perm)
		}
		if after[i] = before[p]; after[i] == 1 {
			continue
		}
		if p < last {
			return nil, fmt.Errorf("a transposition of %v by %v is not supported", before, perm)
		}
		last = p
	}
	s, err := im.shape(after)
	if err != nil {
		return nil, err
	}
	return im.reshaped(o, v, s)
}

// concat is CONCATENATION of channels, rows or columns.
func (im *importer) concat(o *schema.Operator) (*value, error) {
	first, err := im.value(o, 0)
	if err != nil {
		return nil, err
	}
	d, err := dim(int64(o.Options.Int32(0, 0)), first.rank)
	if err != nil {
		return nil, err
	}
	if d == dimBatch {
		return nil, errors.New("a concatenation of batches is not supported")
	}
	if err := im.budget.Charge(tensorUnits * int64(len(o.Inputs))); err != nil {
		return nil, err
	}
	list := make([]*value, len(o.Inputs))
	shape := first.shape
	shape.C = 0
	for i := range list {
		v, err := im.value(o, i)
		switch {
		case err != nil:
			return nil, err
		case v.typ != first.typ:
			return nil, fmt.Errorf("inputs of %v and %v are not supported", first.typ, v.typ)
		case v.typ == schema.Int8 && (v.scale != first.scale || v.zero != first.zero):
			err = errors.New("8-bit inputs of several scales or zero points")
		case v.typ == schema.Int8:
			v, err = im.centred(o, v)
		case v.typ != schema.Int32:
			err = v.checkReal()
		case d == dimC && shape.C%wordBits != 0:
			err = errors.New("packed bits of channels that do not fill their words")
		}
		if err != nil {
			return nil, err
		}
		for _, other := range []int{dimH, dimW, dimC} {
			if other != d && v.size(other) != first.size(other) {
				return nil, fmt.Errorf("inputs of %v and %v are not supported", first.shape, v.shape)
			}
		}
		shape.C += v.shape.C
		list[i] = v
	}
	act := int(o.Options.Uint8(1, 0))
	if first.typ != schema.Float32 && act != actNone {
		return nil, fmt.Errorf("an activation of %v is not supported", first.typ)
	}
	if len(list) == 1 {
		y := *first
		return im.activated(o, &y, act)
	}
	var y *value
	if d == dimC {
		y, err = im.emit(o, "", bcnn.Concat{}, shape, list...)
	} else {
		y, err = im.stack(o, list, d)
	}
	if err != nil {
		return nil, err
	}
	y.moves(list[0])
	return im.activated(o, y, act)
}

// stack joins images along their rows or columns: as channels, which then are spread over
// blocks of pixels, of which those are picked that there were.
func (im *importer) stack(o *schema.Operator, parts []*value, d int) (*value, error) {
	most, total := 0, 0
	for _, v := range parts {
		most, total = max(most, v.size(d)), total+v.size(d)
	}
	shape := parts[0].shape
	// picked are rows or columns in dimension d, and all in the other one.
	picked := func(v *value, suffix string, n, block int, at func(i int) int) (*value, error) {
		list, err := budget.List(im.budget, n, func(i int) int32 { return int32(at(i)) })
		if err != nil {
			return nil, err
		}
		all, err := budget.List(im.budget, parts[0].size(dimH+dimW-d), func(i int) int32 { return int32(i) })
		if err != nil {
			return nil, err
		}
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
			var err error // the last one again, so that signs stay such
			if even[i], err = picked(v, "/part", most, 1, func(k int) int { return min(k, size-1) }); err != nil {
				return nil, err
			}
		}
	}
	joined := shape
	if joined.C *= len(parts); d == dimH {
		joined.H = most
	} else {
		joined.W = most
	}
	y, err := im.emit(o, "/parts", bcnn.Concat{}, joined, even...)
	if err != nil {
		return nil, err
	}
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
func (im *importer) pick(o *schema.Operator, suffix string, v *value, from, step, n int) (*value, error) {
	if err := im.budget.Charge(8 * int64(n)); err != nil {
		return nil, err
	}
	index := make([]int32, n)
	for i := range index {
		index[i] = int32(from + i*step)
	}
	shape := v.shape
	shape.C = n
	y, err := im.emit(o, suffix, bcnn.Channels{Index: index}, shape, v)
	if err != nil {
		return nil, err
	}
	return y.moves(v), nil
}

// split is SPLIT or SPLIT_V of channels.
func (im *importer) split(o *schema.Operator) ([]operand, error) {
	data, axis := 1, 0
	if o.Name == "SPLIT_V" {
		data, axis = 0, 2
	}
	v, err := im.moved(o, data)
	if err != nil {
		return nil, err
	}
	axes, err := im.axes(o, axis, v.rank)
	if err != nil {
		return nil, err
	}
	n := len(o.Outputs)
	if len(axes) != 1 || axes[0] != dimC {
		return nil, errors.New("a split of what is not channels is not supported")
	}
	if err := im.budget.Charge(tensorUnits * int64(n)); err != nil {
		return nil, err
	}
	sizes := make([]int64, n)
	if o.Name == "SPLIT_V" {
		if sizes, err = im.integers(o, 1); err != nil {
			return nil, err
		}
	} else {
		for i := range sizes {
			sizes[i] = int64(v.shape.C / n)
		}
	}
	rest := int64(v.shape.C)
	for _, s := range sizes {
		if s < 1 || s > rest {
			return nil, fmt.Errorf("parts of %v of %d channels", sizes[:min(len(sizes), maxIntegers)], v.shape.C)
		}
		rest -= s
	}
	if rest != 0 || len(sizes) != n {
		return nil, fmt.Errorf("%d parts of %d channels", n, v.shape.C)
	}
	out := make([]operand, n)
	from := 0
	for i, s := range sizes {
		if im.read[o.Outputs[i]] {
			part, err := im.pick(o, fmt.Sprintf("/%d", i), v, from, 1, int(s))
			if err != nil {
				return nil, err
			}
			out[i] = operand{value: part}
		}
		from += int(s)
	}
	return out, nil
}

// slice is SLICE or STRIDED_SLICE: of channels, or of every so many rows and columns.
func (im *importer) slice(o *schema.Operator) (*value, error) {
	v, err := im.value(o, 0)
	switch {
	case err != nil:
	case v.typ == schema.Int8:
		v, err = im.centred(o, v)
	default:
		err = v.checkReal()
	}
	if err != nil {
		return nil, err
	}
	var lists [3][]int64
	n := 2
	if o.Name == "STRIDED_SLICE" {
		n = 3
	}
	for i := range n {
		if lists[i], err = im.integers(o, 1+i); err != nil {
			return nil, err
		}
		if len(lists[i]) != v.rank {
			return nil, fmt.Errorf("%d positions for %d dimensions", len(lists[i]), v.rank)
		}
	}
	masks := o.Options
	if n == 3 && (masks.Int32(2, 0) != 0 || masks.Int32(3, 0) != 0 || masks.Int32(4, 0) != 0) {
		return nil, errors.New("an ellipsis, or dimensions that come or go, are not supported")
	}
	out := v
	thin := bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}
	for i := range v.rank {
		d, err := dim(int64(i), v.rank)
		if err != nil {
			return nil, err
		}
		size := int64(v.size(d))
		if d == dimBatch {
			size = int64(im.batch)
		}
		from, to, step := lists[0][i], int64(0), int64(1)
		if n == 2 {
			if to = from + lists[1][i]; lists[1][i] == -1 {
				to = size
			}
		} else {
			to, step = lists[1][i], lists[2][i]
			if step < 1 || step > size {
				return nil, fmt.Errorf("a step of %d", step)
			}
			bound := func(at int64, mask int32, open int64) int64 {
				switch {
				case mask>>i&1 != 0:
					return open
				case at < 0:
					at += size
				}
				return min(max(at, 0), size)
			}
			from, to = bound(from, masks.Int32(0, 0), 0), bound(to, masks.Int32(1, 0), size)
		}
		if from < 0 || to > size || from >= to {
			return nil, fmt.Errorf("positions %d to %d of %d", from, to, size)
		}
		positions := (to - from + step - 1) / step
		thinned := from == 0 && positions == (size+step-1)/step
		switch {
		case positions == size:
		case d == dimH && thinned:
			thin.StrideH = int(step)
		case d == dimW && thinned:
			thin.StrideW = int(step)
		case d == dimC:
			if out, err = im.pick(o, "", out, int(from), int(step), int(positions)); err != nil {
				return nil, err
			}
		case d == dimBatch:
			return nil, errors.New("it would take some images of the batch")
		default:
			list, err := budget.List(im.budget, int(positions), func(i int) int32 { return int32(from + int64(i)*step) })
			if err != nil {
				return nil, err
			}
			op, shape, suffix := bcnn.Pixels{Rows: list}, out.shape, "/rows"
			if shape.H = len(list); d == dimW {
				op, suffix = bcnn.Pixels{Cols: list}, "/columns"
				shape.H, shape.W = out.shape.H, len(list)
			}
			if op, err = im.pixels(op, 0, shape.H, 0, shape.W, shape); err != nil {
				return nil, err
			}
			y, err := im.emit(o, suffix, op, shape, out)
			if err != nil {
				return nil, err
			}
			out = y.moves(out)
		}
	}
	if thin.StrideH > 1 || thin.StrideW > 1 {
		y, err := im.emit(o, "/thin", bcnn.MaxPool{Window: thin}, thin.Output(out.shape, out.shape.C), out)
		if err != nil {
			return nil, err
		}
		out = y.moves(out)
	}
	same := *out
	return &same, nil
}
