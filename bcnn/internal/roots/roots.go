// Package roots writes quotients and roots as layers, for all importers: products with 1/x and
// 1/√x, which functions give for numbers of a small range (see bcnn.Reciprocal), and powers of
// two.
package roots

import "github.com/bitcnn/bitcnn/bcnn"

// Emit appends a layer, of the shape of its first input, named by a suffix, and returns its
// output, in the importer's own terms.
type Emit[V any] func(suffix string, op bcnn.Op, in ...V) V

// scaled returns a power of two r for each value, and the values times r², which are at
// least 1 and below 4 in magnitude.
func scaled[V any](emit Emit[V], x V) (r, y V) {
	r = emit("/power", bcnn.Function{Name: bcnn.RootScale}, x)
	y = emit("/scaled", bcnn.Mul{}, x, r)
	return r, emit("/scaled", bcnn.Mul{}, y, r)
}

// Reciprocal appends layers that give 1/x.
func Reciprocal[V any](emit Emit[V], x V) V {
	r, y := scaled(emit, x)
	y = emit("/reciprocal", bcnn.Function{Name: bcnn.Reciprocal}, y)
	y = emit("/reciprocal", bcnn.Mul{}, y, r)
	return emit("", bcnn.Mul{}, y, r)
}

// RSqrt appends layers that give 1/√x.
func RSqrt[V any](emit Emit[V], x V) V {
	r, y := scaled(emit, x)
	y = emit("/rsqrt", bcnn.Function{Name: bcnn.RSqrt}, y)
	return emit("", bcnn.Mul{}, y, r)
}
