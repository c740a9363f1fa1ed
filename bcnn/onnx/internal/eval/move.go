package eval

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operators that move values.

// Broadcast returns the dimensions that a and b are broadcast to. It fails if they do not match.
func Broadcast(a, b []int) ([]int, error) {
	long, short := a, b
	if len(a) < len(b) {
		long, short = b, a
	}
	out := append([]int{}, long...)
	for i, n := range short {
		switch o := &out[len(long)-len(short)+i]; {
		case *o == 1:
			*o = n
		case n != 1 && n != *o:
			return nil, fmt.Errorf("shapes %v and %v cannot be broadcast together", a, b)
		}
	}
	return out, nil
}

// strides returns how far apart neighbours along each dimension are, in values.
func strides(dims []int) []int {
	out := make([]int, len(dims))
	stride := 1
	for i := len(dims) - 1; i >= 0; i-- {
		out[i] = stride
		stride *= dims[i]
	}
	return out
}

// stretched returns the strides of an operand of dimensions from along the rank dimensions that it
// is broadcast to: 0 for repeated ones.
func stretched(from []int, rank int) []int {
	out := append(make([]int, rank-len(from)), strides(from)...)
	for i, n := range from {
		if n == 1 {
			out[rank-len(from)+i] = 0
		}
	}
	return out
}

// walk calls f for every position i of a tensor of dimensions dims, in order. at has the positions
// in operands, which have the given strides along dims.
func (e *Evaluator) walk(dims []int, operands [][]int, f func(i int, at []int)) {
	n := try.Value(Count(dims))
	dims, operands = join(dims, operands)
	at := make([]int, len(operands))
	index := make([]int, len(dims))
	last := len(dims) - 1
	steps := make([]int, len(operands))
	for k, strides := range operands {
		steps[k] = strides[last]
	}
	try.Check(e.Budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; {
			row := min(hi-i, dims[last]-index[last])
			for end := i + row; i < end; i++ {
				f(i, at)
				for k, step := range steps {
					at[k] += step
				}
			}
			index[last] += row
			for d := last; index[d] == dims[d]; d-- {
				index[d] = 0
				for k, strides := range operands {
					at[k] -= strides[d] * dims[d]
				}
				if d == 0 {
					break
				}
				index[d-1]++
				for k, strides := range operands {
					at[k] += strides[d-1]
				}
			}
		}
	}))
}

// join returns equivalent dimensions and strides without dimensions of size 1, and with neighbours
// joined over which all operands run evenly. That saves carries in walk, and a walk over dimensions
// such as [n 1 1 1] then takes no longer than its values. At least one dimension is left.
func join(dims []int, operands [][]int) (fewer []int, strides [][]int) {
	strides = make([][]int, len(operands))
	for d, size := range dims {
		last := len(fewer) - 1
		even := last >= 0
		for k, o := range operands {
			even = even && strides[k][last] == o[d]*size
		}
		switch {
		case size == 1:
		case even:
			fewer[last] *= size
			for k, o := range operands {
				strides[k][last] = o[d]
			}
		default:
			fewer = append(fewer, size)
			for k, o := range operands {
				strides[k] = append(strides[k], o[d])
			}
		}
	}
	if len(fewer) == 0 {
		fewer = []int{1}
		for k := range strides {
			strides[k] = []int{0}
		}
	}
	return fewer, strides
}

// like allocates a tensor of the type of t. If marked is set, it has marks for the batch size.
func (e *Evaluator) like(t *Tensor, marked bool, dims []int) *Tensor {
	if len(dims) > pb.MaxRank {
		try.Failf("the result would have more than %d dimensions", pb.MaxRank)
	}
	if t.Sized() {
		try.Fail(errBatch)
	}
	out := e.NewTensor(t.Type, dims)
	if marked {
		try.Check(e.Budget.Charge(2 * int64(out.Len())))
		out.Batch = make([]bool, out.Len())
	}
	return out
}

// strided returns a tensor of the values of t at start plus multiples of the given strides.
func (e *Evaluator) strided(t *Tensor, dims []int, start int, steps []int) *Tensor {
	return e.placed(t, dims, dims, start, steps)
}

// placed is strided where steps belong to the dimensions each, which split those of the result.
func (e *Evaluator) placed(t *Tensor, dims, each []int, start int, steps []int) *Tensor {
	out := e.like(t, t.HasBatch(), dims)
	gather(e, out.F32, t.F32, each, start, steps)
	gather(e, out.F64, t.F64, each, start, steps)
	gather(e, out.I64, t.I64, each, start, steps)
	gather(e, out.Batch, t.Batch, each, start, steps)
	out.trim()
	return out
}

func gather[T any](e *Evaluator, to, from []T, dims []int, start int, steps []int) {
	if len(to) == 0 {
		return
	}
	e.walk(dims, [][]int{steps}, func(i int, at []int) { to[i] = from[start+at[0]] })
}

// copyRun copies n consecutive values of t, from position from on, to out.
func (e *Evaluator) copyRun(out *Tensor, to int, t *Tensor, from, n int) {
	try.Check(e.Budget.Loop(n, func(lo, hi int) {
		switch {
		case t.F32 != nil:
			copy(out.F32[to+lo:to+hi], t.F32[from+lo:])
		case t.F64 != nil:
			copy(out.F64[to+lo:to+hi], t.F64[from+lo:])
		default:
			copy(out.I64[to+lo:to+hi], t.I64[from+lo:])
		}
		if out.Batch != nil && t.Batch != nil {
			copy(out.Batch[to+lo:to+hi], t.Batch[from+lo:])
		}
	}))
}

// Expand broadcasts a tensor to dims.
func (e *Evaluator) Expand(t *Tensor, dims []int) *Tensor {
	dims = try.Value(Broadcast(t.Dims, dims))
	return e.strided(t, dims, 0, stretched(t.Dims, len(dims)))
}

// Transpose returns a tensor whose dimension i is dimension perm[i] of t.
func (e *Evaluator) Transpose(t *Tensor, perm []int) *Tensor {
	from := strides(t.Dims)
	dims, steps := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		dims[i], steps[i] = t.Dims[p], from[p]
	}
	return e.strided(t, dims, 0, steps)
}

// Slice returns, of every dimension i, dims[i] positions from starts[i] on, steps[i] apart. Steps
// may be negative. All must lie inside the tensor.
func (e *Evaluator) Slice(t *Tensor, starts, steps, dims []int) *Tensor {
	moves, start := strides(t.Dims), 0
	for i, s := range starts {
		start += s * moves[i]
		moves[i] *= steps[i]
	}
	return e.strided(t, dims, start, moves)
}

// Tile repeats a tensor repeats[i] times along dimension i.
func (e *Evaluator) Tile(t *Tensor, repeats []int) *Tensor {
	dims, from := make([]int, len(t.Dims)), strides(t.Dims)
	var each, steps []int // two dimensions for each: the copy, and the position in it
	for i, n := range t.Dims {
		if dims[i] = n * repeats[i]; dims[i] > pb.MaxSize { // of two numbers up to MaxSize
			try.Failf("the result would have more than %d values along dimension %d", pb.MaxSize, i)
		}
		each, steps = append(each, repeats[i], n), append(steps, 0, from[i])
	}
	out := e.placed(t, dims, each, 0, steps)
	return out
}

// Concat joins tensors along an axis. It skips empty ones, which would else be visited for each row
// of the others.
func (e *Evaluator) Concat(parts []*Tensor, axis int) *Tensor {
	try.Check(e.Budget.Charge(16 * int64(len(parts))))
	first := parts[0]
	dims := slices.Clone(first.Dims)
	dims[axis] = 0
	marked := false
	var filled []*Tensor // those with values
	for _, t := range parts {
		if t.Type != first.Type || len(t.Dims) != len(dims) {
			try.Failf("the tensors must have the same type and number of dimensions")
		}
		for i, d := range t.Dims {
			if i != axis && d != dims[i] {
				try.Failf("tensors of shapes %v and %v cannot be joined", t.Dims, first.Dims)
			}
		}
		if dims[axis] += t.Dims[axis]; dims[axis] > pb.MaxSize {
			try.Failf("the result would have more than %d values along dimension %d", pb.MaxSize, axis)
		}
		marked = marked || t.HasBatch()
		if t.Len() > 0 {
			filled = append(filled, t)
		}
	}
	out := e.like(first, marked, dims)
	inner := strides(dims)[axis]
	for to, outer := 0, 0; to < out.Len(); outer++ {
		for _, t := range filled {
			n := t.Dims[axis] * inner
			e.copyRun(out, to, t, outer*n, n)
			to += n
		}
	}
	out.trim()
	return out
}

// Gather takes the slices of a tensor along an axis that the indices name.
func (e *Evaluator) Gather(t, indices *Tensor, axis int) *Tensor {
	list := try.Value(indices.Integers())
	size := t.Dims[axis]
	wrong := -1
	try.Check(e.Budget.Loop(len(list), func(lo, hi int) {
		for i, v := range list[lo:hi] {
			if v < int64(-size) || v >= int64(size) {
				wrong = lo + i
			}
		}
	}))
	if wrong >= 0 {
		try.Failf("index %d lies outside a dimension of %d", list[wrong], size)
	}
	dims := slices.Concat(t.Dims[:axis], indices.Dims, t.Dims[axis+1:])
	out := e.like(t, t.HasBatch(), dims)
	inner := strides(t.Dims)[axis]
	for to, outer := 0, 0; to < out.Len(); outer += size * inner {
		for _, v := range list {
			if v < 0 {
				v += int64(size)
			}
			e.copyRun(out, to, t, outer+int(v)*inner, inner)
			to += inner
		}
	}
	out.trim()
	return out
}
