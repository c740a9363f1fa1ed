package tflite

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Whole numbers that are computed of others: shapes. Where a file takes any number of images, one of
// them is computed here, so that the dimension of the batch is 1.

// shapeOf is SHAPE.
func (im *importer) shapeOf(o *schema.Operator) []operand {
	r := im.operand(o, 0)
	var dims []int
	if r.constant != nil {
		dims = r.constant.dims
	} else {
		dims = im.dims(checked(r, 0))
	}
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if said := schema.Type(o.Options.Uint8(0, 0)); said != t.Type {
		try.Failf("its output has type %v in the file, but out_type = %v", t.Type, said)
	}
	list := make([]int64, len(dims))
	for i, d := range dims {
		list[i] = int64(d)
	}
	return []operand{{constant: im.wholes(o, []int{len(list)}, list)}}
}

// wholes makes a constant of whole numbers, which must be those of the type that the file says.
func (im *importer) wholes(o *schema.Operator, dims []int, list []int64) *constant {
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	switch {
	case t.Type != schema.Int32 && t.Type != schema.Int64:
		try.Failf("its output has type %v in the file, want INT32 or INT64", t.Type)
	case len(list) > maxIntegers:
		try.Failf("a list of %d integers is too long, at most %d are supported", len(list), maxIntegers)
	}
	if !slices.Equal(dims, t.Dims) {
		try.Failf("its output has shape %v in the file, but its inputs give %v", t.Dims, dims)
	}
	for _, n := range list {
		if t.Type == schema.Int32 && n != int64(int32(n)) || n > math.MaxInt32 || n < math.MinInt32 {
			try.Failf("%d is too large for a size or a position", n)
		}
	}
	return &constant{dims: dims, whole: list}
}

// wholeFolders are the operators on constants of which the output is INT32 or INT64.
var wholeFolders map[string]func(*importer, *schema.Operator) *constant

func init() {
	binary := func(f func(x, y int64) int64) func(*importer, *schema.Operator) *constant {
		return func(im *importer, o *schema.Operator) *constant { return im.wholeBinary(o, f) }
	}
	wholeFolders = map[string]func(*importer, *schema.Operator) *constant{
		"ADD":           binary(func(x, y int64) int64 { return x + y }),
		"CAST":          (*importer).wholeSame,
		"CONCATENATION": (*importer).wholeConcat,
		"EXPAND_DIMS":   (*importer).wholeReshape,
		"GATHER":        (*importer).wholeGather,
		"MAXIMUM":       binary(func(x, y int64) int64 { return max(x, y) }),
		"MINIMUM":       binary(func(x, y int64) int64 { return min(x, y) }),
		"MUL":           binary(func(x, y int64) int64 { return x * y }),
		"PACK":          (*importer).wholePack,
		"REDUCE_PROD":   (*importer).wholeProduct,
		"RESHAPE":       (*importer).wholeReshape,
		"SQUEEZE":       (*importer).wholeReshape,
		"STRIDED_SLICE": (*importer).wholeSlice,
		"SUB":           binary(func(x, y int64) int64 { return x - y }),
	}
}

// wholeBinary is an operator on two lists of whole numbers, of which one may be a number.
func (im *importer) wholeBinary(o *schema.Operator, f func(x, y int64) int64) *constant {
	if len(o.Inputs) != 2 {
		try.Failf("it has %d inputs, want 2", len(o.Inputs))
	}
	if o.Name != "MAXIMUM" && o.Name != "MINIMUM" && o.Options.Uint8(0, actNone) != actNone {
		try.Failf("a fused activation is not supported on integers")
	}
	x, y := im.required(o, 0), im.required(o, 1)
	a, b := x.integers(), y.integers()
	dims := broadcast(x.dims, y.dims)
	n := max(len(a), len(b))
	if len(dims) > 1 || len(a) == 0 || len(b) == 0 || n%len(a) != 0 || n%len(b) != 0 {
		try.Failf("integers of shapes %v and %v cannot be combined", x.dims, y.dims)
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = f(a[i%len(a)], b[i%len(b)])
	}
	return im.wholes(o, dims, list)
}

func (im *importer) wholeSame(o *schema.Operator) *constant {
	x := im.required(o, 0)
	return im.wholes(o, x.dims, x.integers())
}

func (im *importer) wholeConcat(o *schema.Operator) *constant {
	var list []int64
	for i := range o.Inputs {
		x := im.required(o, i)
		if len(x.dims) != 1 {
			try.Failf("integers of shape %v cannot be concatenated", x.dims)
		}
		if list = append(list, x.integers()...); len(list) > maxIntegers {
			break
		}
	}
	if axis := o.Options.Int32(0, 0); axis != 0 && axis != -1 {
		try.Failf("there is no dimension %d, its inputs have 1 dimension", axis)
	}
	return im.wholes(o, []int{len(list)}, list)
}

// wholePack is PACK of numbers.
func (im *importer) wholePack(o *schema.Operator) *constant {
	if n := o.Options.Int32(0, 0); int(n) != len(o.Inputs) || n > maxIntegers {
		try.Failf("it has %d inputs, but values_count = %d, of which at most %d are supported", len(o.Inputs), n, maxIntegers)
	}
	list := make([]int64, len(o.Inputs))
	for i := range list {
		x := im.required(o, i)
		of := x.integers()
		if len(x.dims) != 0 || len(of) != 1 {
			try.Failf("integers of shape %v cannot be packed, only numbers", x.dims)
		}
		list[i] = of[0]
	}
	if axis := o.Options.Int32(1, 0); axis != 0 && axis != -1 {
		try.Failf("there is no dimension %d, its output has 1 dimension", axis)
	}
	return im.wholes(o, []int{len(list)}, list)
}

func (im *importer) wholeGather(o *schema.Operator) *constant {
	x, at := im.required(o, 0), im.required(o, 1)
	list, index := x.integers(), at.integers()
	if axis := o.Options.Int32(0, 0); axis != 0 && axis != -1 || len(x.dims) != 1 || len(at.dims) > 1 {
		try.Failf("integers of shape %v along dimension %d are not supported, only a list", x.dims, axis)
	}
	out := make([]int64, len(index))
	for i, k := range index {
		if k < 0 || k >= int64(len(list)) {
			try.Failf("there is no integer %d of %d", k, len(list))
		}
		out[i] = list[k]
	}
	return im.wholes(o, at.dims, out)
}

func (im *importer) wholeProduct(o *schema.Operator) *constant {
	x := im.required(o, 0)
	axes := im.integers(o, 1)
	if len(x.dims) != 1 || len(axes) != 1 || axes[0] != 0 && axes[0] != -1 {
		try.Failf("a product of integers of shape %v over dimensions %v is not supported, only of a list", x.dims, axes)
	}
	product := int64(1)
	for _, n := range x.integers() {
		if product *= n; product != int64(int32(product)) {
			break
		}
	}
	dims := []int{}
	if o.Options.Uint8(0, 0) != 0 {
		dims = []int{1}
	}
	return im.wholes(o, dims, []int64{product})
}

// wholeReshape is RESHAPE, SQUEEZE or EXPAND_DIMS of a list of one number, or to a list.
func (im *importer) wholeReshape(o *schema.Operator) *constant {
	x := im.required(o, 0)
	list := x.integers()
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if t.Values() != len(list) || len(t.Dims) > 1 {
		try.Failf("%d integers cannot be reshaped to %v", len(list), t.Dims)
	}
	im.reshapes(o, t)
	return im.wholes(o, t.Dims, list)
}

// wholeSlice is STRIDED_SLICE of a list.
func (im *importer) wholeSlice(o *schema.Operator) *constant {
	x := im.required(o, 0)
	list := x.integers()
	var at [3]int64
	for i := range at {
		of := im.integers(o, 1+i)
		if len(x.dims) != 1 || len(of) != 1 {
			try.Failf("a slice of integers of shape %v is not supported, only of a list", x.dims)
		}
		at[i] = of[0]
	}
	masks, n := o.Options, int64(len(list))
	bound := func(k int, mask int32, open int64) int64 {
		v := at[k]
		switch {
		case mask&1 != 0:
			return open
		case v < 0:
			v += n
		}
		return min(max(v, 0), n)
	}
	from, to := bound(0, masks.Int32(0, 0), 0), bound(1, masks.Int32(1, 0), n)
	if masks.Int32(4, 0)&1 != 0 { // one of them, as a number
		if at[0] < 0 {
			at[0] += n
		}
		if masks.Int32(0, 0)&1 != 0 {
			at[0] = 0
		}
		if at[0] < 0 || at[0] >= n {
			try.Failf("there is no integer %d of %d", at[0], n)
		}
		return im.wholes(o, []int{}, slices.Clone(list[at[0]:][:1]))
	}
	if at[2] < 1 || from >= to {
		try.Failf("positions %d to %d, %d apart, are no slice of %d integers", from, to, at[2], n)
	}
	var out []int64
	for i := from; i < to; i += at[2] {
		out = append(out, list[i])
	}
	return im.wholes(o, []int{len(out)}, out)
}

// foldFill is FILL or BROADCAST_TO: a number, or several, repeated to a shape.
func (im *importer) foldFill(o *schema.Operator) *constant {
	shape, of := 0, 1
	if o.Name == "BROADCAST_TO" {
		shape, of = 1, 0
	}
	x := im.required(o, of)
	list := x.floats(im.budget)
	var dims []int
	n := 1
	for _, d := range im.integers(o, shape) {
		if d < 1 || d > schema.MaxSize || n > schema.MaxSize/int(d) {
			try.Failf("a constant with a dimension of %d is not supported", d)
		}
		dims, n = append(dims, int(d)), n*int(d)
	}
	if to := broadcast(x.dims, dims); !slices.Equal(to, dims) || o.Name == "FILL" && len(x.dims) > 0 {
		try.Failf("a constant of shape %v cannot be repeated to %v", x.dims, dims)
	}
	if len(list) == 1 {
		return im.each(dims, n, func(int) float32 { return list[0] })
	}
	out := im.room(dims, n)
	steps := strides(x.dims, dims)
	im.walk(dims, n, steps, steps, func(i, at, _ int) { out.list[i] = list[at] })
	return out
}
