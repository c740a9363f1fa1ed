package f32

import (
	"math"
	"sync"
)

// Function is an elementary function of the numeric contract: a table of polynomials of
// degree 6, so that a device needs a table, a product and a sum at a time, and no
// division. An interval is a part of the numbers with one sign and one exponent. With u
// the distance from the middle m of the interval of x, which is exact, a value is
//
//	hi + (((c6·u + c5)·u + …)·u + lo)
//
// every product and every sum rounded. For an infinite x u is that of the largest finite
// number, and the interval one of its own. Of a NaN a value is a NaN.
type Function struct {
	rows      [][rowSize]float32    // m, hi, lo, c1, …, c6
	directory [directorySize]uint32 // see place
	inner     [2][2]uint32          // see Inner
	words     []float32
}

const (
	degree        = 6
	rowSize       = degree + 3
	directorySize = 512 // signs and exponents
	mantissaBits  = 23
	infinite      = 0x7f800000
)

// Names of the functions. All but those that Bends tells never fall.
var names = []string{"tanh", "sigmoid", "exp", "softplus", "elu", "erf", "silu", "gelu", "gelu_tanh", "mish", "hardswish", "reciprocal", "rsqrt", "rootscale",
	"inverse", "inverse_root", "root_factor", "root_power", "float16_shift", "float16_range", "bfloat16_shift"}

// Names returns the names of all functions.
func Names() []string { return append([]string(nil), names...) }

// Bends reports whether a function falls anywhere.
func Bends(name string) bool {
	switch name {
	case "silu", "gelu", "gelu_tanh", "mish", "hardswish", "reciprocal", "rsqrt", "rootscale", "inverse", "inverse_root", "root_factor", "root_power",
		"float16_shift", "float16_range", "bfloat16_shift":
		return true
	}
	return false
}

var functions = func() map[string]func() *Function {
	all := map[string]func() *Function{}
	for _, name := range names {
		all[name] = sync.OnceValue(func() *Function { return tabulate(curves(name)) })
	}
	return all
}()

// Named returns the function of a name, nil where there is none.
func Named(name string) *Function {
	if f := functions[name]; f != nil {
		return f()
	}
	return nil
}

// TabulateAll makes the tables of all functions, each of which is else made when it is
// first asked for: for tests that count what something allocates.
func TabulateAll() {
	for _, f := range functions {
		f()
	}
}

// place packs the first row of the numbers of a sign and exponent, and how far their
// mantissas are shifted so that the row among these remains.
func place(first, shift int) uint32 { return uint32(first<<5 | shift) }

// Table returns what kernels read: the 512 places, of signs and exponents, as the bits of
// integers, and the rows behind them.
func (f *Function) Table() []float32 { return f.words }

// Inner returns the bounds, from and to, as bits, between which the intervals of the
// positive and of the negative numbers of such a magnitude have a middle of their own.
// Elsewhere m is 0.
func (f *Function) Inner() [2][2]uint32 { return f.inner }

// Of returns the value for x.
func (f *Function) Of(x float32) float32 {
	b := math.Float32bits(x)
	d := f.directory[b>>mantissaBits]
	row := &f.rows[d>>5+b&(1<<mantissaBits-1)>>(d&31)]
	if b&^(1<<31) == infinite {
		b--
	}
	u := math.Float32frombits(b) - row[0]
	p := row[8]
	p = float32(p*u) + row[7]
	p = float32(p*u) + row[6]
	p = float32(p*u) + row[5]
	p = float32(p*u) + row[4]
	p = float32(p*u) + row[3]
	p = float32(p*u) + row[2]
	return row[1] + p
}
