// Package f32 is the float32 arithmetic of the numeric contract for code that
// has no hardware instruction for it.
package f32

import "math"

// FMA returns x·y + z with a single rounding to float32, on every platform.
//
// The product of two float32 values is exact in float64. Rounding the float64
// sum to odd (Boldo and Melquiond, "Emulation of a FMA and correctly rounded
// sums: proved algorithms using rounding to odd", 2008) keeps what the second
// rounding, to float32, needs to know.
func FMA(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	c := float64(z)
	s := float64(p + c)
	// Knuth's exact error of the sum. The conversions keep the compiler from
	// fusing, which would change it.
	v := float64(s - p)
	e := float64(p-float64(s-v)) + float64(c-v)
	if e != 0 && e-e == 0 { // inexact and finite
		if b := math.Float64bits(s); b&1 == 0 {
			if (e > 0) == (s > 0) {
				b++
			} else {
				b--
			}
			s = math.Float64frombits(b)
		}
	}
	return float32(s)
}
