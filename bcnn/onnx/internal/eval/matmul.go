package eval

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// MatMul multiplies the matrices in the last two dimensions of a and b. The dimensions before them
// are broadcast. A vector a is a row, a vector b a column. Sums are in float64, with one rounding.
func (e *Evaluator) MatMul(a, b *Tensor) *Tensor {
	na, nb := len(a.Dims), len(b.Dims)
	typ := a.Type.Real() || a.Type == pb.Int64 || a.Type == pb.Int32
	if na == 0 || nb == 0 || max(na, nb) > pb.MaxRank-2 || a.Type != b.Type || !typ {
		try.Failf("the product of constants of %v and shape %v and of %v and shape %v is not supported", a.Type, a.Dims, b.Type, b.Dims)
	}
	if a.HasBatch() || b.HasBatch() {
		try.Fail(errBatch)
	}
	left, right := a, b
	if na == 1 {
		left = a.Redim([]int{1, a.Dims[0]})
	}
	if nb == 1 {
		right = b.Redim([]int{b.Dims[0], 1})
	}
	la, lb := len(left.Dims), len(right.Dims)
	rows, k, cols := left.Dims[la-2], left.Dims[la-1], right.Dims[lb-1]
	if right.Dims[lb-2] != k {
		try.Failf("constants of shapes %v and %v cannot be multiplied as matrices", a.Dims, b.Dims)
	}
	outer := try.Value(Broadcast(left.Dims[:la-2], right.Dims[:lb-2]))
	out := e.NewTensor(a.Type, slices.Concat(outer, []int{rows, cols}))
	e.multiply(out, left, right, outer, rows, k, cols)
	dims := slices.Clone(out.Dims)
	if nb == 1 {
		dims = slices.Delete(dims, len(dims)-1, len(dims))
	}
	if na == 1 {
		at := len(outer)
		dims = slices.Delete(dims, at, at+1)
	}
	return out.Redim(dims)
}

// multiply sets out to the products of matrices of rows×k and k×cols. Rows of the left are multiplied
// by all of the right: their values are read once, side by side.
func (e *Evaluator) multiply(out, left, right *Tensor, outer []int, rows, k, cols int) {
	try.Check(e.Budget.Charge(8 * int64(left.Len()+right.Len()+cols)))
	l, r, sums := left.values(), right.values(), make([]float64, cols)
	e.walk(outer, [][]int{matrixSteps(left.Dims, len(outer)), matrixSteps(right.Dims, len(outer))}, func(i int, at []int) {
		for row := range rows {
			try.Check(e.Budget.Charge(int64(k) * int64(cols)))
			clear(sums)
			for j, x := range l[at[0]+row*k:][:k] {
				for c, y := range r[at[1]+j*cols:][:cols] {
					sums[c] += float64(x * y)
				}
			}
			for c, sum := range sums {
				if !out.Type.Real() && !holds(out.Type, sum) {
					try.Failf("integer overflow")
				}
				out.Set((i*rows+row)*cols+c, sum)
			}
		}
	})
}

// values returns the values of a tensor.
func (t *Tensor) values() []float64 {
	all := make([]float64, t.Len())
	for i := range all {
		all[i] = t.At(i)
	}
	return all
}

// matrixSteps returns the strides of the matrices of a tensor along the rank dimensions that they
// are broadcast to.
func matrixSteps(dims []int, rank int) []int {
	n := len(dims) - 2
	steps := append(make([]int, rank-n, rank+2), strides(dims)[:n]...)
	for i, size := range dims[:n] {
		if size == 1 {
			steps[rank-n+i] = 0
		}
	}
	return steps
}
