package eval

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operators whose values decide the size of the result, and GatherND.

// truths returns the positions of values that are not 0.
func (e *Evaluator) truths(t *Tensor) []int {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	count := 0
	try.Check(e.Budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			count += int(truth(t.At(i) != 0))
		}
	}))
	try.Check(e.Budget.Charge(8 * int64(count)))
	at := make([]int, 0, count)
	try.Check(e.Budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if t.At(i) != 0 {
				at = append(at, i)
			}
		}
	}))
	return at
}

// NonZero returns the indices of the values that are not 0: a row for each dimension.
func (e *Evaluator) NonZero(t *Tensor) *Tensor {
	at := e.truths(t)
	out := e.NewTensor(pb.Int64, []int{len(t.Dims), len(at)})
	for d, step := range strides(t.Dims) {
		try.Check(e.Budget.Loop(len(at), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out.I64[d*len(at)+i] = int64(at[i] / step % t.Dims[d])
			}
		}))
	}
	return out
}

// Compress returns the slices along an axis whose condition is true. The condition may be shorter
// than the axis.
func (e *Evaluator) Compress(t, condition *Tensor, axis int) *Tensor {
	if len(condition.Dims) != 1 || condition.Type != pb.Bool || condition.Len() > t.Dims[axis] {
		try.Failf("its condition is %v of shape %v, want a list of at most %d BOOL", condition.Type, condition.Dims, t.Dims[axis])
	}
	at := e.truths(condition)
	indices := e.NewTensor(pb.Int64, []int{len(at)})
	for i, p := range at {
		indices.I64[i] = int64(p)
	}
	return e.Gather(t, indices, axis)
}

// lanes are the slices of a tensor along an axis.
type lanes struct {
	t               *Tensor
	size, inner, of int // of the axis; values behind it; values of a slice
}

// at returns the position of value i of slice k.
func (l lanes) at(k, i int) int { return (i/l.inner*l.size+k)*l.inner + i%l.inner }

// compare orders slices by the first value that differs. NaN comes last.
func (l lanes) compare(x, y int) int {
	for i := range l.of {
		a, b := l.at(x, i), l.at(y, i)
		order := 0
		if l.t.I64 != nil {
			order = cmp.Compare(l.t.I64[a], l.t.I64[b])
		} else if v, w := l.t.At(a), l.t.At(b); v == v || w == w {
			order = cmp.Compare(v, w)
			if v != v || w != w { // cmp has NaN first
				order = -order
			}
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// Unique returns the distinct slices of a tensor along an axis, sorted or in order of first
// occurrence; the first position of each; for every slice, which of them it is; and how often each
// occurs. An axis of −1 stands for the flattened tensor.
func (e *Evaluator) Unique(t *Tensor, axis int, sorted bool) [4]*Tensor {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	if axis < 0 {
		t, axis = t.Redim([]int{t.Len()}), 0
	}
	size := t.Dims[axis]
	l := lanes{t: t, size: size, inner: strides(t.Dims)[axis], of: t.Len() / max(size, 1)}
	try.Check(e.Budget.Charge(12*8*int64(size) + lookUnits*int64(t.Len())*int64(1+bits.Len(uint(size)))))
	order := make([]int, size)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, l.compare)
	group := make([]int, size) // by slice, in ascending order of the groups
	var first, counts []int    // by group
	for i, k := range order {
		if i == 0 || l.compare(order[i-1], k) != 0 {
			first, counts = append(first, k), append(counts, 0)
		}
		group[k] = len(first) - 1
		counts[len(first)-1]++
	}
	groups := make([]int, len(first)) // in the order of the result
	for i := range groups {
		groups[i] = i
	}
	if !sorted {
		slices.SortFunc(groups, func(x, y int) int { return cmp.Compare(first[x], first[y]) })
	}
	place := make([]int64, len(first))
	at, often := e.NewTensor(pb.Int64, []int{len(first)}), e.NewTensor(pb.Int64, []int{len(first)})
	which := e.NewTensor(pb.Int64, []int{size})
	for i, g := range groups {
		place[g] = int64(i)
		at.I64[i], often.I64[i] = int64(first[g]), int64(counts[g])
	}
	for k, g := range group {
		which.I64[k] = place[g]
	}
	return [4]*Tensor{e.Gather(t, at, axis), at, which, often}
}

// GatherND returns the slice of t at each list of indices in the last dimension of indices. The
// first batch dimensions are the same in both.
func (e *Evaluator) GatherND(t, indices *Tensor, batch int) *Tensor {
	list := try.Value(indices.Integers())
	rank := len(indices.Dims)
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	if rank == 0 || batch < 0 || batch >= rank || batch > len(t.Dims) ||
		!slices.Equal(t.Dims[:batch], indices.Dims[:batch]) {
		try.Failf("indices of shape %v do not fit data of shape %v with batch_dims %d", indices.Dims, t.Dims, batch)
	}
	k := indices.Dims[rank-1]
	if k < 1 || batch+k > len(t.Dims) {
		try.Failf("indices of shape %v do not fit data of shape %v with batch_dims %d", indices.Dims, t.Dims, batch)
	}
	out := e.like(t, false, slices.Concat(indices.Dims[:rank-1], t.Dims[batch+k:]))
	each := strides(t.Dims)
	run := each[batch+k-1]
	lists := len(list) / k
	whole, outer := t.Len(), 1 // values per position of the batch, and positions
	if batch > 0 {
		whole = each[batch-1]
		outer = try.Value(Count(t.Dims[:batch]))
	}
	try.Check(e.Budget.Charge(lookUnits * int64(len(list))))
	for i := range lists {
		from := i / max(lists/max(outer, 1), 1) * whole
		for d, v := range list[i*k:][:k] {
			from += Position(v, t.Dims[batch+d]) * each[batch+d]
		}
		e.copyRun(out, i*run, t, from, run)
	}
	return out
}
