package arrays

import "math"

// Difference compares values with those that they should be.
type Difference struct {
	// Largest is the largest difference of two values, and Scale the largest value that
	// there should be, without its sign. Values that are not the same infinity or both
	// no number differ by +Inf.
	Largest, Scale float64
}

// Add compares more values.
func (d *Difference) Add(got []float32, want []float64) {
	for i, w := range want {
		g := float64(got[i])
		if !math.IsInf(w, 0) && w == w {
			d.Scale = max(d.Scale, math.Abs(w))
		}
		if g == w || g != g && w != w {
			continue
		}
		x := math.Abs(g - w)
		if x != x { // one is no number
			x = math.Inf(1)
		}
		d.Largest = max(d.Largest, x)
	}
}

// Relative is the largest difference as a fraction of the largest value: 0 if there is
// none, +Inf if all values should be 0.
func (d *Difference) Relative() float64 {
	if d.Largest == 0 {
		return 0
	}
	return d.Largest / d.Scale
}

// ArgMax returns the index of the largest value, the first if there are several; −1 if
// one is no number.
func ArgMax[T float32 | float64](values []T) int {
	best := 0
	for i, v := range values {
		if v != v {
			return -1
		}
		if v > values[best] {
			best = i
		}
	}
	return best
}
