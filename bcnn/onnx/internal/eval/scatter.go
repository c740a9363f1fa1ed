package eval

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Position returns an index into a dimension. Negative ones count from the end.
func Position(v int64, size int) int {
	if v < int64(-size) || v >= int64(size) {
		try.Failf("index %d lies outside a dimension of %d", v, size)
	}
	if v < 0 {
		v += int64(size)
	}
	return int(v)
}

// clone returns a copy of a tensor.
func (e *Evaluator) clone(t *Tensor) *Tensor {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	out := e.NewTensor(t.Type, t.Dims)
	e.copyRun(out, 0, t, 0, t.Len())
	return out
}

// combine replaces value i by value k of from, or combines both, as how says: none, add, mul, max
// or min.
func (t *Tensor) combine(how string, i int, from *Tensor, k int) {
	x, y := t.At(i), from.At(k)
	switch how {
	case "add":
		x += y
	case "mul":
		x *= y
	case "max":
		x = max(x, y)
	case "min":
		x = min(x, y)
	default:
		t.put(i, from, k)
		return
	}
	if !t.Type.Real() && !holds(t.Type, x) {
		try.Failf("integer overflow")
	}
	t.Set(i, x)
}

// checkReduction checks the attribute reduction of ScatterND and ScatterElements.
func checkReduction(how string, typ pb.DataType) {
	switch how {
	case "none":
	case "add", "mul", "max", "min":
		if typ == pb.Bool {
			try.Failf("reduction %s of %v is not supported", how, typ)
		}
	default:
		try.Failf("reduction %s is not supported", text.Quote(how))
	}
}

// ScatterND replaces slices of a tensor by updates, or combines both as how says. The last
// dimension of indices is the position of each slice.
func (e *Evaluator) ScatterND(t, indices, updates *Tensor, how string) *Tensor {
	checkReduction(how, t.Type)
	list := try.Value(indices.Integers())
	if len(indices.Dims) == 0 || updates.Type != t.Type || updates.HasBatch() {
		try.Failf("the indices must have dimensions, and the updates the type of the data")
	}
	last := len(indices.Dims) - 1
	k := indices.Dims[last]
	if k < 1 || k > len(t.Dims) || !slices.Equal(updates.Dims, slices.Concat(indices.Dims[:last], t.Dims[k:])) {
		try.Failf("updates of shape %v and indices of shape %v do not fit data of shape %v", updates.Dims, indices.Dims, t.Dims)
	}
	try.Check(e.Budget.Charge(lookUnits * int64(len(list))))
	out := e.clone(t)
	each := strides(t.Dims)
	run := each[k-1]
	for i := range len(list) / k {
		to := 0
		for d, v := range list[i*k:][:k] {
			to += Position(v, t.Dims[d]) * each[d]
		}
		if how == "none" {
			e.copyRun(out, to, updates, i*run, run)
			continue
		}
		try.Check(e.Budget.Loop(run, func(lo, hi int) {
			for k := lo; k < hi; k++ {
				out.combine(how, to+k, updates, i*run+k)
			}
		}))
	}
	return out
}

// alongAxis calls f for every position i of indices, and the position at in t that is the same but
// for the axis, where it is the index.
func (e *Evaluator) alongAxis(t, indices *Tensor, axis int, f func(i, at int)) {
	list := try.Value(indices.Integers())
	if len(indices.Dims) != len(t.Dims) {
		try.Failf("indices of shape %v do not fit data of shape %v", indices.Dims, t.Dims)
	}
	for d, size := range indices.Dims {
		if d != axis && size > t.Dims[d] {
			try.Failf("indices of shape %v do not fit data of shape %v", indices.Dims, t.Dims)
		}
	}
	steps := strides(t.Dims)
	run := steps[axis]
	steps[axis] = 0
	e.walk(indices.Dims, [][]int{steps}, func(i int, at []int) {
		f(i, at[0]+Position(list[i], t.Dims[axis])*run)
	})
}

// GatherElements returns, for each index, the value at that position along the axis.
func (e *Evaluator) GatherElements(t, indices *Tensor, axis int) *Tensor {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	out := e.NewTensor(t.Type, indices.Dims)
	e.alongAxis(t, indices, axis, func(i, at int) { out.put(i, t, at) })
	return out
}

// ScatterElements replaces, for each index, the value at that position along the axis by its
// update, or combines both as how says.
func (e *Evaluator) ScatterElements(t, indices, updates *Tensor, axis int, how string) *Tensor {
	checkReduction(how, t.Type)
	if updates.Type != t.Type || updates.HasBatch() || !slices.Equal(updates.Dims, indices.Dims) {
		try.Failf("updates of shape %v and indices of shape %v do not fit data of shape %v", updates.Dims, indices.Dims, t.Dims)
	}
	if t.Batch != nil && how == "none" { // a shape, of which some sizes are replaced
		out := e.like(t, true, t.Dims)
		e.copyRun(out, 0, t, 0, t.Len())
		e.alongAxis(t, indices, axis, func(i, at int) {
			out.put(at, updates, i)
			out.Batch[at] = false
		})
		out.trim()
		return out
	}
	out := e.clone(t)
	e.alongAxis(t, indices, axis, func(i, at int) { out.combine(how, at, updates, i) })
	return out
}

// put copies value k of a tensor of the same type to value i.
func (t *Tensor) put(i int, from *Tensor, k int) {
	switch {
	case t.F32 != nil:
		t.F32[i] = from.F32[k]
	case t.F64 != nil:
		t.F64[i] = from.F64[k]
	default:
		t.I64[i] = from.I64[k]
	}
}

// CumSum replaces each value by the sum of those up to it along an axis, without it if exclusive is
// set, and from the other end if reverse is set.
func (e *Evaluator) CumSum(t *Tensor, axis int, exclusive, reverse bool) *Tensor {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	if !t.Type.Real() && t.Type != pb.Int64 && t.Type != pb.Int32 {
		try.Failf("CumSum of %v is not supported", t.Type)
	}
	out := e.NewTensor(t.Type, t.Dims)
	if out.Len() == 0 {
		return out
	}
	try.Check(e.Budget.Charge(lookUnits * int64(t.Len())))
	size, inner := t.Dims[axis], strides(t.Dims)[axis]
	overflow := false
	try.Check(e.Budget.Loop(t.Len()/size, func(lo, hi int) {
		for lane := lo; lane < hi; lane++ {
			sum := 0.0
			for k := range size {
				if reverse {
					k = size - 1 - k
				}
				at := lane/inner*inner*size + lane%inner + k*inner
				v := sum
				if sum += t.At(at); !exclusive {
					v = sum
				}
				if !t.Type.Real() && !holds(t.Type, v) {
					overflow = true
					return
				}
				out.Set(at, v)
			}
		}
	}))
	if overflow {
		try.Failf("integer overflow")
	}
	return out
}
