package generic

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// Pairs are those of kern.Set.
var Pairs = [kern.NumPairs]kern.PairKernels{
	kern.Mul:  {All: mul, Each: mulEach, Rows: kern.RowsOf(mul)},
	kern.Min:  {All: minimum, Each: minEach, Rows: kern.RowsOf(minimum)},
	kern.Max:  {All: maximum, Each: maxEach, Rows: kern.RowsOf(maximum)},
	kern.Mask: {All: mask, Each: maskEach, Rows: kern.RowsOf(mask)},
}

func minimum(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, x := range a {
		if dst[i] = b[i]; x < dst[i] || x != x {
			dst[i] = x
		}
	}
}

func maximum(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, x := range a {
		if dst[i] = b[i]; x > dst[i] || x != x {
			dst[i] = x
		}
	}
}

func mask(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, y := range b {
		x := a[i]
		if y == 0 {
			x = 0
		}
		dst[i] = x
	}
}

func mul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func mulEach(dst, a, b []float32, n int) {
	for r, y := range b {
		row := dst[r*n:][:n]
		for i, x := range a[r*n:][:n] {
			row[i] = x * y
		}
	}
}

func minEach(dst, a, b []float32, n int) {
	for r, y := range b {
		row := dst[r*n:][:n]
		for i, x := range a[r*n:][:n] {
			if row[i] = y; x < y || x != x {
				row[i] = x
			}
		}
	}
}

func maxEach(dst, a, b []float32, n int) {
	for r, y := range b {
		row := dst[r*n:][:n]
		for i, x := range a[r*n:][:n] {
			if row[i] = y; x > y || x != x {
				row[i] = x
			}
		}
	}
}

func maskEach(dst, a, b []float32, n int) {
	for r, y := range b {
		if row := dst[r*n:][:n]; y == 0 {
			clear(row)
		} else {
			copy(row, a[r*n:])
		}
	}
}
