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
	// The strides of each operand along the dimensions of the result.
	starts := [][]int{
		append(matrixSteps(left.Dims, len(outer)), k, 0),
		append(matrixSteps(right.Dims, len(outer)), 0, 1),
	}
	try.Check(e.Budget.Charge(lookUnits * int64(k) * int64(out.Len())))
	e.walk(out.Dims, starts, func(i int, at []int) {
		sum := 0.0
		for j := range k {
			sum += float64(a.At(at[0]+j) * b.At(at[1]+j*cols))
		}
		if !a.Type.Real() && !holds(a.Type, sum) {
			try.Failf("integer overflow")
		}
		out.Set(i, sum)
	})
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
