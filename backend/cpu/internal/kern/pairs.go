package kern

// Pair is a function of two values.
type Pair int

const (
	Mul  Pair = iota // a·b
	Min              // a where a < b or a is a NaN, else b
	Max              // a where a > b or a is a NaN, else b
	Mask             // a where b is not 0, which a NaN is not either, else +0
	NumPairs
)

// PairKernels set all of dst, which may be a, to a Pair of values of a and b.
type PairKernels struct {
	// All takes b[i] for a[i].
	All func(dst, a, b []float32)
	// Each takes b[i] for all of row i of a. Rows have n values, and there are as many as b has.
	Each func(dst, a, b []float32, n int)
	// Rows takes all of b for each row of a. Rows are as long as b.
	Rows func(dst, a, b []float32)
}

// PairCode is the assembly of a Pair, if a set has any: All for n > 0 times some values, Each and Rows for
// rows > 0 of n values. Rows may be nil.
type PairCode struct {
	All        func(dst, a, b *float32, n int)
	Each, Rows func(dst, a, b *float32, n, rows int)
}

// NewPairs returns kernels that call code, whose All takes 1 << unit values at a time, for rows of at
// least least values, and others for the rest.
func NewPairs(unit, least int, code [NumPairs]PairCode, others [NumPairs]PairKernels) (kernels [NumPairs]PairKernels) {
	kernels = others
	for p, c := range code {
		if c.All != nil {
			kernels[p] = c.kernels(unit, least, others[p])
		}
	}
	return kernels
}

func (c PairCode) kernels(unit, least int, others PairKernels) PairKernels {
	k := PairKernels{
		All: func(dst, a, b []float32) {
			n := len(dst) >> unit
			if n > 0 {
				c.All(&dst[0], &a[0], &b[0], n)
			}
			if whole := n << unit; whole < len(dst) {
				others.All(dst[whole:], a[whole:], b[whole:])
			}
		},
		Each: func(dst, a, b []float32, n int) {
			if n < least {
				others.Each(dst, a, b, n)
			} else if len(b) > 0 {
				c.Each(&dst[0], &a[0], &b[0], n, len(b))
			}
		},
	}
	k.Rows = func(dst, a, b []float32) {
		n := len(b)
		switch {
		case c.Rows != nil && n >= least && len(dst) > 0:
			c.Rows(&dst[0], &a[0], &b[0], n, len(dst)/n)
		case c.Rows == nil && n > 0 && n>>unit<<unit == n:
			for ; len(dst) > 0; dst, a = dst[n:], a[n:] {
				c.All(&dst[0], &a[0], &b[0], n>>unit)
			}
		default:
			others.Rows(dst, a, b)
		}
	}
	return k
}

// RowsOf returns Rows that calls all for each row.
func RowsOf(all func(dst, a, b []float32)) func(dst, a, b []float32) {
	return func(dst, a, b []float32) {
		for n := len(b); len(dst) > 0; dst, a = dst[n:], a[n:] {
			all(dst[:n], a, b)
		}
	}
}
