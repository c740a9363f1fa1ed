// Package roots writes quotients and roots as layers, for all importers: products with functions,
// which give them for numbers of a small range (see bcnn.Inverse), and with powers of two. They
// give what IEEE 754 gives for 0, infinities, NaN and negative numbers, and are near it elsewhere.
package roots

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Emit appends a layer, of the shape of its first input, named by a suffix, and returns its
// output, in the importer's own terms.
type Emit[V any] func(suffix string, op bcnn.Op, in ...V) V

// Product appends a layer that multiplies two values, of which one may be repeated to the
// dimensions of the other, and returns its output.
type Product[V any] func(a, b V) V

// scaled returns a power of two r for each value, and the values times r and times r², which is
// below 1 in magnitude and at least ¼, or smaller for subnormal values.
func scaled[V any](emit Emit[V], x V) (r, xr, y V) {
	r = emit("/power", bcnn.Function{Name: bcnn.RootPower}, x)
	xr = emit("/scaled", bcnn.Mul{}, x, r)
	return r, xr, emit("/scaled", bcnn.Mul{}, xr, r)
}

// Inverse is 1/x or 1/√x as the product of two factors: 1/x itself is infinite, or loses bits, where
// x is near the ends of what float32 holds.
type Inverse[V any] struct {
	// Power is a power of two: at least 1 where |x| < 1, else at most ½.
	Power V
	// Rest is the other factor: at least 1 in magnitude where |x| < 1, else at most 2. It is
	// infinite of 0, and 0 of what is infinite.
	Rest V
}

// Invert appends layers that give the factors of 1/x.
func Invert[V any](emit Emit[V], x V) Inverse[V] {
	r, _, y := scaled(emit, x)
	return inverse(emit, r, y)
}

// InvertSum appends layers that give the factors of 1/x of sums of magnitudes. Those of 0 are
// finite, so that 0/x is 0.
func InvertSum[V any](emit Emit[V], x V) Inverse[V] {
	r, _, y := scaled(emit, x)
	return inverse(emit, r, emit("/least", leastRoot, y))
}

// leastRoot takes 0 for the least number that scaled makes of others.
var leastRoot = bcnn.Clip{Min: 0x1p-17, Max: float32(math.Inf(1))}

func inverse[V any](emit Emit[V], r, y V) Inverse[V] {
	y = emit("/reciprocal", bcnn.Function{Name: bcnn.Inverse}, y)
	return Inverse[V]{Power: r, Rest: emit("/reciprocal", bcnn.Mul{}, y, r)}
}

// InvertRoot appends layers that give the factors of 1/√x.
func InvertRoot[V any](emit Emit[V], x V) Inverse[V] {
	r, _, y := scaled(emit, x)
	return Inverse[V]{Power: r, Rest: emit("/rsqrt", bcnn.Function{Name: bcnn.InverseRoot}, y)}
}

// Reciprocal appends layers that give 1/x.
func Reciprocal[V any](emit Emit[V], x V) V {
	i := Invert(emit, x)
	return emit("", bcnn.Mul{}, i.Rest, i.Power)
}

// Quotient appends layers that multiply a by both factors.
func (i Inverse[V]) Quotient(times Product[V], a V) V {
	return times(times(a, i.Power), i.Rest)
}

// RSqrt appends layers that give 1/√x.
func RSqrt[V any](emit Emit[V], x V) V {
	i := InvertRoot(emit, x)
	return emit("", bcnn.Mul{}, i.Rest, i.Power)
}

// RSqrtSum appends layers that give 1/√x of sums of squares, and 0 of 0.
func RSqrtSum[V any](emit Emit[V], x V) V {
	r, _, y := scaled(emit, x)
	y = emit("/rsqrt", bcnn.Function{Name: bcnn.InverseRoot}, emit("/least", leastRoot, y))
	y = emit("/rsqrt", bcnn.Mul{}, y, r)
	some := emit("/some", bcnn.Quantize{Levels: 2, Thresholds: []float32{math.SmallestNonzeroFloat32}}, x)
	return emit("", bcnn.Mul{}, y, some)
}

// Sqrt appends layers that give √x.
func Sqrt[V any](emit Emit[V], x V) V {
	_, xr, y := scaled(emit, x)
	y = emit("/factor", bcnn.Function{Name: bcnn.RootFactor}, y)
	return emit("", bcnn.Mul{}, xr, y)
}

// Power appends layers that give x to a power of so many quarters, which are not 0, as a product of x
// or 1/x and of roots of them. reciprocal gives 1/x.
func Power[V any](emit Emit[V], x V, quarters int, reciprocal func() V) V {
	k := quarters
	whole, root := func() V { return x }, func(x V) V { return Sqrt(emit, x) }
	if quarters < 0 {
		k = -quarters
		whole, root = reciprocal, func(x V) V { return RSqrt(emit, x) }
	}
	var factors []V
	if k >= 4 {
		w := whole()
		for range k / 4 {
			factors = append(factors, w)
		}
	}
	if k%4 >= 2 {
		factors = append(factors, root(x))
	}
	if k%2 == 1 {
		factors = append(factors, root(Sqrt(emit, x))) // rsqrt may be −∞, of which sqrt is NaN
	}
	y := factors[0]
	for _, f := range factors[1:] {
		y = emit("", bcnn.Mul{}, y, f)
	}
	return y
}
