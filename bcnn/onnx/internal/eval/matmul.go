package eval

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// MatMul multiplies matrices, the last two dimensions of a with those of b. One of them may
// have more, or both the same before them, or b may be one vector. The products are summed in float64 and
// rounded once.
func (e *Evaluator) MatMul(a, b *Tensor) *Tensor {
	na, nb := len(a.Dims), len(b.Dims)
	if na > 1 && nb == 1 {
		out := e.MatMul(a, b.Redim([]int{b.Dims[0], 1}))
		out = out.Redim(out.Dims[:na-1])
		return out
	}
	if a.Type != b.Type || !a.Type.Real() || na < 2 || nb < 2 || a.Dims[na-1] != b.Dims[nb-2] ||
		na > 2 && nb > 2 && !slices.Equal(a.Dims[:na-2], b.Dims[:nb-2]) {
		try.Failf("the product of constants of %v %v and %v %v is not supported", a.Type, a.Dims, b.Type, b.Dims)
	}
	if a.HasBatch() || b.HasBatch() {
		try.Fail(errBatch)
	}
	rows, k, cols := a.Dims[na-2], a.Dims[na-1], b.Dims[nb-1]
	outer := a.Dims[:na-2]
	if na == 2 {
		outer = b.Dims[:nb-2]
	}
	out := e.NewTensor(a.Type, append(slices.Clone(outer), rows, cols))
	for i := range out.Len() {
		try.Check(e.Budget.Charge(lookUnits * int64(k)))
		row, col := i/cols, i%cols
		from := 0
		if nb > 2 {
			from = row / rows * k * cols
		}
		if na == 2 {
			row %= rows
		}
		sum := 0.0
		for j := range k {
			sum += float64(a.At(row*k+j) * b.At(from+j*cols+col))
		}
		out.Set(i, sum)
	}
	return out
}
