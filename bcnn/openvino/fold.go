package openvino

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Operators on constants: what makes weights of packed or quantised ones, and shapes.

// stridesIn returns how far apart the elements of a tensor are along dimensions that it is
// broadcast to.
func stridesIn(dims, out []int) []int {
	missing := len(out) - len(dims)
	strides := make([]int, len(out))
	stride := 1
	for i, d := range slices.Backward(dims) {
		if missing < 0 || d != 1 && d != out[missing+i] {
			try.Failf("a constant of shape %v is not broadcast to %v", dims, out)
		}
		if d > 1 {
			strides[missing+i] = stride
		}
		stride *= d
	}
	return strides
}

// each calls f for every element of dimensions, with its number and its places in tensors of some
// strides.
func (im *importer) each(dims []int, strides [][]int, f func(i int, at []int)) {
	count := num.Product(dims...)
	if count > maxValues {
		try.Failf("a constant of shape %v has more than %d values", dims, maxValues)
	}
	at, index := make([]int, len(strides)), make([]int, len(dims))
	work := int64(8 * (len(strides) + 1))
	try.Check(im.budget.Loop(count, func(lo, hi int) {
		try.Check(im.budget.Charge(work * int64(hi-lo)))
		for i := lo; i < hi; i++ {
			f(i, at)
			for d := len(dims) - 1; d >= 0; d-- {
				index[d]++
				for k := range at {
					at[k] += strides[k][d]
				}
				if index[d] < dims[d] {
					break
				}
				for k := range at {
					at[k] -= strides[k][d] * dims[d]
				}
				index[d] = 0
			}
		}
	}))
}

// broadcast returns the dimensions of a function of two tensors.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, d := range b {
		switch k := len(a) - len(b) + i; {
		case out[k] == 1:
			out[k] = d
		case d != 1 && d != out[k]:
			try.Failf("constants of shapes %v and %v are not broadcast to one shape", a, b)
		}
	}
	return out
}

// arithmetic folds a function of two numbers in float32.
func arithmetic(f func(a, b float32) float32) func(im *importer, n *node) *constant {
	return func(im *importer, n *node) *constant {
		n.only("auto_broadcast", "numpy")
		n.ignore("m_pythondiv") // is about integers
		a, b := im.constant(n, 0), im.constant(n, 1)
		a.checkReal()
		b.checkReal()
		dims := broadcast(a.dims, b.dims)
		count := num.Product(dims...)
		if int64(count)*4 > im.limits.TensorBytes {
			try.Failf("a constant of shape %v is too large; Limits.TensorBytes allows more", dims)
		}
		out := &constant{typ: "f32", dims: dims, floats: im.newFloats(count)}
		im.each(dims, [][]int{stridesIn(a.dims, dims), stridesIn(b.dims, dims)}, func(i int, at []int) {
			out.floats[i] = f(a.floats[at[0]], b.floats[at[1]])
		})
		return out
	}
}

// foldConvert changes the type of a constant.
func foldConvert(im *importer, n *node) *constant {
	c, to := im.constant(n, 0), n.text("destination_type", "")
	out := *c
	out.typ = to
	switch {
	case to == c.typ:
	case to == "f32" && c.typ == "f16":
	case to == "f32" && c.ints != nil && !c.open:
		out.ints, out.floats = nil, im.newFloats(len(c.ints))
		try.Check(im.budget.Loop(len(c.ints), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out.floats[i] = float32(c.ints[i])
			}
		}))
	case (to == "i64" || to == "i32") && c.ints != nil && c.typ != "boolean":
		if slices.ContainsFunc(c.ints, func(v int64) bool { return to == "i32" && v != int64(int32(v)) && v != batchSize }) {
			try.Failf("its constant does not fit i32")
		}
	default:
		try.Failf("a conversion of a constant of %s to %s is not supported", c.typ, short(to))
	}
	return &out
}

// foldTranspose changes the order of dimensions of a constant.
func foldTranspose(im *importer, n *node) *constant {
	c := im.constant(n, 0)
	order := im.order(n, len(c.dims))
	if c.floats == nil {
		try.Failf("a transpose of a constant of %s is not supported", c.typ)
	}
	own := stridesIn(c.dims, c.dims)
	dims, strides := make([]int, len(order)), make([]int, len(order))
	for i, d := range order {
		dims[i], strides[i] = c.dims[d], own[d]
	}
	out := &constant{typ: c.typ, dims: dims, floats: im.newFloats(len(c.floats))}
	im.each(dims, [][]int{strides}, func(i int, at []int) { out.floats[i] = c.floats[at[0]] })
	return out
}

// foldReshape is Reshape, Squeeze or Unsqueeze of a constant.
func foldReshape(im *importer, n *node) *constant {
	c := *im.constant(n, 0)
	c.dims = im.newDims(n, c.dims)
	return &c
}

// foldConcat joins numbers, or lists of integers.
func foldConcat(im *importer, n *node) *constant {
	axis := n.integer("axis", "", -maxDims, maxDims)
	if im.constant(n, 0).floats != nil {
		return im.joined(n, axis)
	}
	if axis > 0 || axis < -1 {
		n.fail("axis", "0: a concatenation of constants of several dimensions is not supported")
	}
	out := &constant{}
	for k := range n.from {
		c := im.constant(n, k)
		list := c.integers(true)
		if len(c.dims) != 1 || k > 0 && c.typ != out.typ || len(out.ints)+len(list) > maxDims {
			try.Failf("a concatenation of constants that are no lists of at most %d integers of one type is not supported", maxDims)
		}
		out.typ, out.ints, out.open = c.typ, append(out.ints, list...), out.open || c.open
	}
	out.dims = []int{len(out.ints)}
	return out
}

// foldGather picks of a list of integers.
func foldGather(im *importer, n *node) *constant {
	n.only("batch_dims", "0")
	c, at, axis := im.constant(n, 0), im.constant(n, 1), im.constant(n, 2).integers(false)
	list, index := c.integers(true), at.integers(false)
	if len(axis) != 1 || axis[0] != 0 || len(c.dims) != 1 {
		try.Failf("a Gather of constants is supported only of a list of integers, along axis 0")
	}
	out := &constant{typ: c.typ, dims: at.dims, open: c.open, ints: make([]int64, len(index))}
	for i, k := range index {
		if k < 0 {
			k += int64(len(list))
		}
		if k < 0 || k >= int64(len(list)) {
			try.Failf("its index %d is outside a list of %d", index[i], len(list))
		}
		out.ints[i] = list[k]
	}
	return out
}

// foldSlice is StridedSlice of a list of integers.
func foldSlice(im *importer, n *node) *constant {
	mask := func(name string) bool {
		list := n.numbers(name, 0, 1)
		return len(list) > 0 && list[0] == 1
	}
	begins, ends := mask("begin_mask"), mask("end_mask")
	for _, name := range []string{"new_axis_mask", "ellipsis_mask"} {
		if mask(name) {
			n.fail(name, "0")
		}
	}
	shrink := mask("shrink_axis_mask")
	c := im.constant(n, 0)
	list := c.integers(true)
	bounds := [3][]int64{{0}, {0}, {1}}
	for k := range bounds {
		if k == 2 && len(n.from) < 4 {
			break
		}
		if bounds[k] = im.constant(n, k+1).integers(false); len(bounds[k]) != 1 {
			try.Failf("it slices constants of more than one dimension, which is not supported")
		}
	}
	if len(c.dims) != 1 {
		try.Failf("it slices a constant of shape %v, want a list", c.dims)
	}
	size, step := int64(len(list)), bounds[2][0]
	if step < 1 {
		try.Failf("its step of %d is not supported, want 1 or more", step)
	}
	place := func(at int64) int64 {
		if at < 0 {
			at += size
		}
		return min(max(at, 0), size)
	}
	// A mask of 1 says that the number given is not read: it is from the beginning, to the end.
	from, to := int64(0), size
	if !begins {
		from = place(bounds[0][0])
	}
	if !ends {
		to = place(bounds[1][0])
	}
	out := &constant{typ: c.typ, open: c.open, ints: []int64{}}
	if shrink {
		if from >= size {
			try.Failf("its index %d is outside a list of %d", bounds[0][0], size)
		}
		out.ints, out.dims = []int64{list[from]}, []int{}
		return out
	}
	for ; from < to; from += step {
		out.ints = append(out.ints, list[from])
	}
	out.dims = []int{len(out.ints)}
	return out
}

// shapeOf makes a constant of the dimensions of a tensor.
func shapeOf(im *importer, n *node) operand {
	typ := n.text("output_type", "i64")
	if typ != "i64" && typ != "i32" {
		n.fail("output_type", "i64 or i32")
	}
	o := im.operand(n, 0)
	out := &constant{typ: typ}
	if o.c != nil {
		for _, d := range o.c.dims {
			out.ints = append(out.ints, int64(d))
		}
	} else {
		out.ints = []int64{int64(im.batch)}
		if im.batch == -1 {
			out.ints[0], out.open = math.MinInt64, true
		}
		for _, d := range o.v.dims() {
			out.ints = append(out.ints, int64(d))
		}
	}
	out.dims = []int{len(out.ints)}
	return operand{c: out}
}
