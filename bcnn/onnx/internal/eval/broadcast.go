package eval

import "fmt"

// Broadcast returns the dimensions that a and b are stretched to.
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
			return nil, fmt.Errorf("dimensions %v and %v do not fit together", a, b)
		}
	}
	return out, nil
}

// Walk iterates over the positions of a tensor of dimensions dims, with the
// positions in operands that are broadcast to it.
func Walk(dims []int, operands ...[]int) func(func(int, []int) bool) {
	return func(yield func(int, []int) bool) {
		n := 1
		for _, d := range dims {
			n *= d
		}
		strides := make([][]int, len(operands))
		for k, o := range operands {
			strides[k] = make([]int, len(dims))
			stride := 1
			for i := len(o) - 1; i >= 0; i-- {
				if o[i] != 1 {
					strides[k][len(dims)-len(o)+i] = stride
				}
				stride *= o[i]
			}
		}
		at := make([]int, len(operands))
		index := make([]int, len(dims))
		for i := range n {
			if !yield(i, at) {
				return
			}
			for d := len(dims) - 1; d >= 0; d-- {
				index[d]++
				for k := range at {
					at[k] += strides[k][d]
				}
				if index[d] < dims[d] {
					break
				}
				for k := range at {
					at[k] -= strides[k][d] * dims[d]
				}
				index[d] = 0
			}
		}
	}
}

// Pick makes a tensor of the given positions of t.
func (e *Evaluator) Pick(t *Tensor, dims []int, positions func(func(int, []int) bool)) (*Tensor, error) {
	out, err := e.NewTensor(t.Type, dims)
	if err != nil {
		return nil, err
	}
	if t.Batch != nil {
		out.Batch = make([]bool, out.Len())
	}
	for i, at := range positions {
		switch {
		case t.F32 != nil:
			out.F32[i] = t.F32[at[0]]
		case t.F64 != nil:
			out.F64[i] = t.F64[at[0]]
		default:
			out.I64[i] = t.I64[at[0]]
		}
		if t.Batch != nil {
			out.Batch[i] = t.Batch[at[0]]
		}
	}
	return out, nil
}
