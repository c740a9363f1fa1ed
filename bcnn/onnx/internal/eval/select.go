package eval

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TopK returns the k largest values along an axis, or the smallest, in order, and their positions.
// Of equal values the first comes first or, if last is set, the last.
func (e *Evaluator) TopK(t *Tensor, axis, k int, smallest, last bool) (values, positions *Tensor) {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	size := t.Dims[axis]
	if k < 0 || k > size {
		try.Failf("the %d largest of %d values do not exist", k, size)
	}
	dims := slices.Clone(t.Dims)
	dims[axis] = k
	values = e.NewTensor(t.Type, dims)
	positions = e.NewTensor(pb.Int64, dims)
	// The positions of one lane are sorted at a time.
	try.Check(e.Budget.Charge(8*int64(size) + lookUnits*int64(t.Len())*int64(1+bits.Len(uint(size)))))
	lane := make([]int, size)
	inner := strides(t.Dims)[axis]
	for to := range values.Len() / max(k, 1) {
		from := to/inner*inner*size + to%inner
		for i := range lane {
			lane[i] = i
		}
		slices.SortStableFunc(lane, func(x, y int) int {
			order := cmp.Compare(t.At(from+y*inner), t.At(from+x*inner))
			if smallest {
				order = -order
			}
			if order == 0 && last {
				return cmp.Compare(y, x)
			}
			return order
		})
		for i, p := range lane[:k] {
			at := to/inner*inner*k + to%inner + i*inner
			values.Set(at, t.At(from+p*inner))
			positions.I64[at] = int64(p)
		}
	}
	try.Check(e.Budget.Charge(0))
	return values, positions
}

// OneHot returns a tensor with a new dimension of size depth at axis. It is values[1] where the
// position along it is the index, and values[0] elsewhere.
func (e *Evaluator) OneHot(indices, depth, values *Tensor, axis int) *Tensor {
	switch {
	case indices.HasBatch() || depth.HasBatch():
		try.Fail(errBatch)
	case depth.Len() != 1 || !(depth.At(0) >= 1 && depth.At(0) <= pb.MaxSize):
		try.Failf("the depth must be one positive number")
	case values.Len() != 2:
		try.Failf("values has %d numbers, want 2: off and on", values.Len())
	}
	size := int(depth.At(0))
	out := e.NewTensor(values.Type, slices.Insert(slices.Clone(indices.Dims), axis, size))
	inner := strides(out.Dims)[axis]
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p := int(indices.At(i/(inner*size)*inner + i%inner))
			if p < 0 {
				p += size
			}
			out.Set(i, values.At(int(truth(i/inner%size == p))))
		}
	}))
	return out
}
