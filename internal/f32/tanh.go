package f32

import (
	"math"
	"sync"
)

// The hyperbolic tangent of the numeric contract: polynomials of degree 6 on eight
// intervals between a power of 2 and the next, so that a device needs a table, a
// product and a sum at a time, and no division. TanhTable has TanhRow numbers for each
// interval: hi, lo, c1, …, c6. With u the distance from the middle of the interval,
//
//	tanh(x) = hi + (((c6·u + c5)·u + …)·u + lo)
//
// for x from TanhFirst to TanhEnd, every product and every sum rounded. Below it is x,
// above it is 1; it is odd.
const (
	TanhFirst = 0x39800000 // the bits of 2^-12
	TanhEnd   = 0x41200000 // the bits of 10
	TanhShift = 20         // of the bits of a number, so that its interval remains
	TanhRow   = 8
)

// order of the series that the polynomials are made of.
const order = 20

// TanhTable returns the table. It is the same on every machine: the conversions keep
// compilers from fusing products and sums.
var TanhTable = sync.OnceValue(func() []float32 {
	var table []float32
	var at, y float64
	var series [order + 1]float64
	for b := uint32(TanhFirst); b < TanhEnd; b += 1 << TanhShift {
		middle := float64(math.Float32frombits(b | 1<<(TanhShift-1)))
		half := middle - float64(math.Float32frombits(b))
		if y == 0 { // x − x³/3 + 2x⁵/15 − 17x⁷/315: what is left is below 2^-100
			s := float64(middle * middle)
			y = float64(middle * (1 + float64(s*(-1.0/3+float64(s*(2.0/15-float64(s*(17.0/315))))))))
		} else {
			y = evaluate(series[:], middle-at)
		}
		at = middle
		// y' = 1 − y²
		series[0] = y
		for k := range order {
			sum := 0.0
			if k == 0 {
				sum = 1
			}
			for i := range k + 1 {
				sum -= float64(series[i] * series[k-i])
			}
			series[k+1] = sum / float64(k+1)
		}
		c := shorten(series, half)
		hi := float32(c[0])
		table = append(table, hi, float32(c[0]-float64(hi)))
		for _, v := range c[1:] {
			table = append(table, float32(v))
		}
	}
	return table
})

func evaluate(c []float64, u float64) float64 {
	v := 0.0
	for k := len(c) - 1; k >= 0; k-- {
		v = float64(v*u) + c[k]
	}
	return v
}

// shorten makes a polynomial of degree TanhRow − 2 of a longer one: for as long as it is
// too long, a multiple of the Chebyshev polynomial of its degree is subtracted, which is
// the least that takes its last term away between −half and half.
func shorten(c [order + 1]float64, half float64) []float64 {
	const degree = TanhRow - 2
	scale := 1.0
	for k := range c {
		c[k] = float64(c[k] * scale)
		scale = float64(scale * half)
	}
	for n := order; n > degree; n-- {
		before, t := []float64{1}, []float64{0, 1} // T0, T1
		for range n - 1 {
			next := append([]float64{0}, t...)
			for k := range next {
				next[k] *= 2
			}
			for k, v := range before {
				next[k] -= v
			}
			before, t = t, next
		}
		factor := c[n] / t[n]
		for k, v := range t {
			c[k] -= float64(factor * v)
		}
	}
	scale = 1
	for k := range degree + 1 {
		c[k] /= scale
		scale = float64(scale * half)
	}
	return c[:degree+1]
}

// Tanh returns the hyperbolic tangent. It never falls, is within 0.62 units in the last
// place, keeps the sign of zeros, and is 1 from 9.02 on; of a NaN it is a NaN.
func Tanh(x float32) float32 { return tanh(TanhTable(), x) }

// Tanhs replaces values by their hyperbolic tangents.
func Tanhs(values []float32) {
	table := TanhTable()
	for i, x := range values {
		values[i] = tanh(table, x)
	}
}

func tanh(table []float32, x float32) float32 {
	const sign = 1 << 31
	all := math.Float32bits(x)
	b := all &^ sign
	if b < TanhFirst || b > 0x7f800000 {
		return x
	}
	t := float32(1)
	if b < TanhEnd {
		row := (*[TanhRow]float32)(table[(b-TanhFirst)>>TanhShift*TanhRow:])
		middle := b&^(1<<TanhShift-1) | 1<<(TanhShift-1)
		u := math.Float32frombits(b) - math.Float32frombits(middle)
		p := row[7]
		p = float32(p*u) + row[6]
		p = float32(p*u) + row[5]
		p = float32(p*u) + row[4]
		p = float32(p*u) + row[3]
		p = float32(p*u) + row[2]
		p = float32(p*u) + row[1]
		t = row[0] + p
	}
	return math.Float32frombits(math.Float32bits(t) | all&sign)
}
