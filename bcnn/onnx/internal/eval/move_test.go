package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

func evaluator(t *testing.T) *Evaluator {
	return &Evaluator{Budget: budget.New(t.Context(), math.MaxInt64), TensorBytes: math.MaxInt64}
}

// counting makes a tensor whose values are their places, some of them marked as
// the batch size.
func counting(t *testing.T, r *rand.Rand, e *Evaluator, dims []int) *Tensor {
	typ := []pb.DataType{pb.Float, pb.Double, pb.Int64, pb.Float16}[r.IntN(4)]
	x := e.NewTensor(typ, dims)
	for i := range x.Len() {
		x.Set(i, float64(i))
	}
	if typ == pb.Int64 && r.IntN(2) == 0 {
		for range x.Len() {
			x.Batch = append(x.Batch, r.IntN(3) == 0)
		}
		x.trim()
	}
	return x
}

// check compares a tensor with what f says is at every index: a place in x.
func check(t *testing.T, got, x *Tensor, dims []int, f func(index []int) int) {
	t.Helper()
	require.Equal(t, dims, got.Dims)
	require.Equal(t, x.Type, got.Type)
	n, err := Count(dims)
	require.NoError(t, err)
	require.Equal(t, n, got.Len())
	index := make([]int, len(dims))
	marked := false
	for i := range n {
		rest := i
		for d := len(dims) - 1; d >= 0; d-- {
			index[d] = rest % dims[d]
			rest /= dims[d]
		}
		from := f(index)
		require.Equal(t, x.At(from), got.At(i), "%v", index)
		mark := x.Batch != nil && x.Batch[from]
		require.Equal(t, mark, got.Batch != nil && got.Batch[i], "%v", index)
		marked = marked || mark
	}
	require.Equal(t, marked, got.HasBatch())
}

// place returns the place of an index.
func place(dims, index []int) int {
	at := 0
	for d, i := range index {
		at = at*dims[d] + i
	}
	return at
}

// TestMove compares the operators that move values with their definitions, on
// random shapes of which some are empty.
func TestMove(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		e := evaluator(t)
		dims := make([]int, r.IntN(5))
		for i := range dims {
			dims[i] = []int{0, 1, 1, 2, 3, 4}[r.IntN(6)]
		}
		x := counting(t, r, e, dims)

		perm := r.Perm(len(dims))
		to := make([]int, len(dims))
		for i, p := range perm {
			to[i] = dims[p]
		}
		got := e.Transpose(x, perm)
		check(t, got, x, to, func(index []int) int {
			from := make([]int, len(dims))
			for i, p := range perm {
				from[p] = index[i]
			}
			return place(dims, from)
		})

		wide := slices.Clone(dims)
		for i, d := range wide {
			if d == 1 {
				wide[i] = r.IntN(4)
			}
		}
		lead := r.IntN(3)
		wide = append([]int{2, 3}[:min(lead, 2)], wide...)
		got = e.Expand(x, wide)
		check(t, got, x, wide, func(index []int) int {
			from := slices.Clone(index[len(index)-len(dims):])
			for i, d := range dims {
				if d == 1 {
					from[i] = 0
				}
			}
			return place(dims, from)
		})

		starts, steps, part := make([]int, len(dims)), make([]int, len(dims)), make([]int, len(dims))
		for i, d := range dims {
			starts[i] = r.IntN(d + 1)
			steps[i] = 1 + r.IntN(3)
			part[i] = (r.IntN(d-starts[i]+1) + steps[i] - 1) / steps[i]
			if r.IntN(2) == 0 && d > 0 { // backwards
				starts[i], steps[i] = r.IntN(d), -steps[i]
				part[i] = (r.IntN(starts[i]+1) - steps[i] - 1) / -steps[i]
			}
		}
		got = e.Slice(x, starts, steps, part)
		check(t, got, x, part, func(index []int) int {
			from := slices.Clone(index)
			for i, s := range starts {
				from[i] = s + steps[i]*index[i]
			}
			return place(dims, from)
		})

		repeats, tiled := make([]int, len(dims)), make([]int, len(dims))
		for i, d := range dims {
			repeats[i] = r.IntN(4)
			tiled[i] = d * repeats[i]
		}
		got = e.Tile(x, repeats)
		check(t, got, x, tiled, func(index []int) int {
			from := slices.Clone(index)
			for i, d := range dims {
				from[i] %= d
			}
			return place(dims, from)
		})

		// What is expanded collapses to what it was.
		along := make([]bool, len(dims))
		for i := range along {
			along[i] = r.IntN(2) == 0
		}
		stretched := slices.Clone(dims)
		for i, d := range dims {
			if d == 1 {
				stretched[i] = 3
			}
		}
		got = e.Expand(x, stretched)
		got = e.Collapse(got, along)
		collapsed := slices.Clone(dims)
		for i, d := range dims {
			if d == 1 && !along[i] || x.Len() == 0 {
				collapsed[i] = stretched[i]
			}
		}
		check(t, got, x, collapsed, func(index []int) int {
			from := slices.Clone(index)
			for i, d := range dims {
				from[i] %= d
			}
			return place(dims, from)
		})

		if len(dims) == 0 {
			continue
		}
		axis := r.IntN(len(dims))
		// Parts of x, joined, are x again.
		var parts []*Tensor
		for at := 0; at < dims[axis] || len(parts) == 0; {
			n := r.IntN(dims[axis] - at + 1)
			starts, part := make([]int, len(dims)), slices.Clone(dims)
			starts[axis], part[axis] = at, n
			p := e.Slice(x, starts, slices.Repeat([]int{1}, len(dims)), part)
			parts = append(parts, p)
			at += n
		}
		got = e.Concat(parts, axis)
		check(t, got, x, dims, func(index []int) int { return place(dims, index) })

		list := Sizes(make([]int64, r.IntN(5)), nil)
		if dims[axis] == 0 {
			list = Sizes(nil, nil)
		}
		for i := range list.I64 {
			list.I64[i] = int64(r.IntN(2*dims[axis]) - dims[axis])
		}
		taken := slices.Clone(dims)
		taken[axis] = list.Len()
		got = e.Gather(x, list, axis)
		check(t, got, x, taken, func(index []int) int {
			from := slices.Clone(index)
			from[axis] = (int(list.I64[index[axis]]) + dims[axis]) % dims[axis]
			return place(dims, from)
		})
	}
}

// TestJoin walks dimensions that can be joined in as few as there must be.
func TestJoin(t *testing.T) {
	for _, test := range []struct {
		dims  []int
		steps []int // of one operand
		fewer []int
	}{
		{nil, nil, []int{1}},
		{[]int{1, 1}, []int{5, 7}, []int{1}},
		{[]int{2, 3, 4}, []int{12, 4, 1}, []int{24}},
		{[]int{2, 1, 3, 1, 4}, []int{12, 0, 4, 9, 1}, []int{24}},
		{[]int{2, 3, 4}, []int{0, 4, 1}, []int{2, 12}},
		{[]int{2, 3, 4}, []int{1, 2, 6}, []int{2, 3, 4}},
		{[]int{2, 3, 4}, []int{0, 0, 0}, []int{24}},
	} {
		fewer, strides := join(test.dims, [][]int{test.steps})
		require.Equal(t, test.fewer, fewer)
		require.Len(t, strides[0], len(fewer))
	}
}

func TestWhere(t *testing.T) {
	e := evaluator(t)
	large := int64(1<<62 + 1) // which float64 does not hold
	c := &Tensor{Type: pb.Bool, Dims: []int{2}, I64: []int64{1, 0}}
	got := e.Where([]*Tensor{c, Sizes([]int64{large}, []bool{true}), Sizes([]int64{3, 4}, nil)})
	require.Equal(t, []int64{large, 4}, got.I64)
	require.Equal(t, []bool{true, false}, got.Batch)
	got = e.Where([]*Tensor{{Type: pb.Bool, Dims: []int{1}, I64: []int64{0}}, Sizes([]int64{0}, []bool{true}), Sizes([]int64{4}, nil)})
	require.False(t, got.HasBatch())
}
