package eval

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// position returns an index of a dimension, which counts from its end where it is negative.
func position(v int64, size int) (int, error) {
	if v < int64(-size) || v >= int64(size) {
		return 0, fmt.Errorf("index %d of %d", v, size)
	}
	if v < 0 {
		v += int64(size)
	}
	return int(v), nil
}

// clone is a copy whose values may be set.
func (e *Evaluator) clone(t *Tensor) (*Tensor, error) {
	if t.HasBatch() {
		return nil, errBatch
	}
	out, err := e.NewTensor(t.Type, t.Dims)
	if err == nil {
		err = e.copyRun(out, 0, t, 0, t.Len())
	}
	return out, err
}

// ScatterND replaces slices of a tensor: the last dimension of the indices names the
// position of each.
func (e *Evaluator) ScatterND(t, indices, updates *Tensor) (*Tensor, error) {
	list, err := indices.Integers()
	if err != nil {
		return nil, err
	}
	if len(indices.Dims) == 0 || updates.Type != t.Type || updates.HasBatch() {
		return nil, errors.New("indices without dimensions, or updates of another type")
	}
	last := len(indices.Dims) - 1
	k := indices.Dims[last]
	if k < 1 || k > len(t.Dims) || !slices.Equal(updates.Dims, slices.Concat(indices.Dims[:last], t.Dims[k:])) {
		return nil, fmt.Errorf("updates %v at indices %v of %v", updates.Dims, indices.Dims, t.Dims)
	}
	if err := e.Budget.Charge(lookUnits * int64(len(list))); err != nil {
		return nil, err
	}
	out, err := e.clone(t)
	if err != nil {
		return nil, err
	}
	each := strides(t.Dims)
	run := each[k-1]
	for i := range len(list) / k {
		to := 0
		for d, v := range list[i*k:][:k] {
			p, err := position(v, t.Dims[d])
			if err != nil {
				return nil, err
			}
			to += p * each[d]
		}
		if err := e.copyRun(out, to, updates, i*run, run); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// alongAxis calls f with every position of indices and the position in t that is the same
// but for the axis, where it is the index.
func (e *Evaluator) alongAxis(t, indices *Tensor, axis int, f func(i, at int)) error {
	list, err := indices.Integers()
	if err != nil {
		return err
	}
	if len(indices.Dims) != len(t.Dims) {
		return fmt.Errorf("indices %v of %v", indices.Dims, t.Dims)
	}
	for d, size := range indices.Dims {
		if d != axis && size > t.Dims[d] {
			return fmt.Errorf("indices %v of %v", indices.Dims, t.Dims)
		}
	}
	steps := strides(t.Dims)
	run := steps[axis]
	steps[axis] = 0
	var wrong error
	err = e.walk(indices.Dims, [][]int{steps}, func(i int, at []int) {
		p, err := position(list[i], t.Dims[axis])
		if err != nil {
			wrong = err
			return
		}
		f(i, at[0]+p*run)
	})
	if err == nil {
		err = wrong
	}
	return err
}

// GatherElements takes a value for every index along an axis.
func (e *Evaluator) GatherElements(t, indices *Tensor, axis int) (*Tensor, error) {
	if t.HasBatch() {
		return nil, errBatch
	}
	out, err := e.NewTensor(t.Type, indices.Dims)
	if err != nil {
		return nil, err
	}
	return out, e.alongAxis(t, indices, axis, func(i, at int) { out.put(i, t, at) })
}

// ScatterElements replaces a value for every index along an axis.
func (e *Evaluator) ScatterElements(t, indices, updates *Tensor, axis int) (*Tensor, error) {
	if updates.Type != t.Type || updates.HasBatch() || !slices.Equal(updates.Dims, indices.Dims) {
		return nil, fmt.Errorf("updates %v at indices %v of %v", updates.Dims, indices.Dims, t.Dims)
	}
	out, err := e.clone(t)
	if err != nil {
		return nil, err
	}
	return out, e.alongAxis(t, indices, axis, func(i, at int) { out.put(at, updates, i) })
}

// put copies a value of a tensor of the same type.
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

// CumSum adds up the values along an axis: each becomes the sum of those up to it, or
// before it where it is exclusive, from the other end where it is reversed.
func (e *Evaluator) CumSum(t *Tensor, axis int, exclusive, reverse bool) (*Tensor, error) {
	if t.HasBatch() {
		return nil, errBatch
	}
	if !t.Type.Real() && t.Type != pb.Int64 && t.Type != pb.Int32 {
		return nil, fmt.Errorf("CumSum of %v", t.Type)
	}
	out, err := e.NewTensor(t.Type, t.Dims)
	if err != nil || out.Len() == 0 {
		return out, err
	}
	if err := e.Budget.Charge(lookUnits * int64(t.Len())); err != nil {
		return nil, err
	}
	size, inner := t.Dims[axis], strides(t.Dims)[axis]
	overflow := false
	err = e.Budget.Loop(t.Len()/size, func(lo, hi int) {
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
	})
	if err == nil && overflow {
		err = errors.New("integer overflow")
	}
	return out, err
}
