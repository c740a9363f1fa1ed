package eval

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operators that move or replace values.

// Trilu keeps the values of matrices, the last two dimensions, that lie on diagonal k or above it,
// or below it without upper. The others become 0.
func (e *Evaluator) Trilu(t *Tensor, k int64, upper bool) *Tensor {
	rank := len(t.Dims)
	if rank < 2 {
		try.Failf("its input has shape %v, want at least 2 dimensions", t.Dims)
	}
	out := e.clone(t)
	rows, cols := t.Dims[rank-2], t.Dims[rank-1]
	zero := Scalar(t.Type, 0)
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			above := int64(i%cols-i/cols%rows) - k // how far above diagonal k it lies
			if upper && above < 0 || !upper && above > 0 {
				out.put(i, zero, 0)
			}
		}
	}))
	return out
}

// EyeLike returns a matrix of the given dimensions with ones on diagonal k, and zeros elsewhere.
func (e *Evaluator) EyeLike(typ pb.DataType, dims []int, k int64) *Tensor {
	if len(dims) != 2 || typ.Bits() == 0 {
		try.Failf("the result would have shape %v and elements of %v, want a matrix of a supported type", dims, typ)
	}
	out := e.NewTensor(typ, slices.Clone(dims))
	for row := range dims[0] {
		try.Check(e.Budget.Charge(1))
		if col := int64(row) + k; col >= 0 && col < int64(dims[1]) {
			out.Set(row*dims[1]+int(col), 1)
		}
	}
	return out
}

// ReverseSequence reverses, for each position along axis batch, the first values along axis time:
// lengths says how many.
func (e *Evaluator) ReverseSequence(t, lengths *Tensor, batch, time int) *Tensor {
	list := try.Value(lengths.Integers())
	if batch == time || len(lengths.Dims) != 1 || len(list) != t.Dims[batch] {
		try.Failf("sequence_lens of shape %v do not fit an input of shape %v with batch_axis %d and time_axis %d", lengths.Dims, t.Dims, batch, time)
	}
	for _, n := range list {
		try.Check(e.Budget.Charge(1))
		if n < 0 || n > int64(t.Dims[time]) {
			try.Failf("a sequence length of %d does not fit a dimension of %d", n, t.Dims[time])
		}
	}
	out := e.clone(t)
	each := strides(t.Dims)
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			n, k := list[i/each[batch]%t.Dims[batch]], i/each[time]%t.Dims[time]
			if k < int(n) {
				out.put(i, t, i+(int(n)-1-2*k)*each[time])
			}
		}
	}))
	return out
}

// Pad returns a tensor whose dimension d consists of the positions of t in positions[d], with fill
// where a position is −1.
func (e *Evaluator) Pad(t *Tensor, positions [][]int, fill *Tensor) *Tensor {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	dims, each := make([]int, len(t.Dims)), strides(t.Dims)
	for d, list := range positions {
		dims[d] = len(list)
	}
	out := e.NewTensor(t.Type, dims)
	to := strides(dims)
	try.Check(e.Budget.Charge(int64(len(dims)) * int64(out.Len())))
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, inside := 0, true
			for d, list := range positions {
				p := list[i/to[d]%dims[d]]
				inside = inside && p >= 0
				from += p * each[d]
			}
			if inside {
				out.put(i, t, from)
			} else {
				out.put(i, fill, 0)
			}
		}
	}))
	return out
}
