package sets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func TestLookup(t *testing.T) {
	names := Names()
	require.Equal(t, "generic", names[len(names)-1])
	best, err := Lookup("")
	require.NoError(t, err)
	require.Equal(t, names[0], best.ISA)
	for _, name := range names {
		s, err := Lookup(name)
		require.NoError(t, err)
		require.Equal(t, name, s.ISA)
		require.Zero(t, 64%s.Block)
	}
	_, err = Lookup("mmx")
	require.EqualError(t, err, fmt.Sprintf(`no kernels for instruction set "mmx" on this processor; there are %s`, strings.Join(names, ", ")))
}

// forEach runs a test for every Set that this processor can run, but for those that have the functions
// of another and are taken more often only.
func forEach(t *testing.T, f func(t *testing.T, s *kern.Set, rng *rand.Rand)) {
	for _, s := range runnable() {
		if s.Matrix == nil || !s.Matrix.Always {
			t.Run(s.ISA, func(t *testing.T) { f(t, s, rand.New(rand.NewPCG(1, 2))) })
		}
	}
}

// forEachOwn runs a test of functions that are fields of Set itself, which leaves out Wide and Matrix,
// for every Set that has another of them than those in front.
func forEachOwn(t *testing.T, f func(t *testing.T, s *kern.Set, rng *rand.Rand)) {
	var different []*kern.Set
	for _, s := range runnable() {
		if slices.ContainsFunc(different, func(other *kern.Set) bool { return equalOwn(s, other) }) {
			continue
		}
		different = append(different, s)
		t.Run(s.ISA, func(t *testing.T) { f(t, s, rand.New(rand.NewPCG(1, 2))) })
	}
}

// equalOwn reports whether two Sets differ in name, costs, peak, Wide and Matrix at most. Functions are
// equal where they are the same code and have the same variables.
func equalOwn(a, b *kern.Set) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		f, g := x.Field(i), y.Field(i)
		switch x.Type().Field(i).Name {
		case "ISA", "Wide", "Matrix", "Cost", "Peaks", "Read":
			continue
		}
		if !equalValues(f, g) {
			return false
		}
	}
	return true
}

func equalValues(f, g reflect.Value) bool {
	switch f.Kind() {
	case reflect.Func:
		return *(*unsafe.Pointer)(f.Addr().UnsafePointer()) == *(*unsafe.Pointer)(g.Addr().UnsafePointer())
	case reflect.Array:
		for i := range f.Len() {
			if !equalValues(f.Index(i), g.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range f.NumField() {
			if !equalValues(f.Field(i), g.Field(i)) {
				return false
			}
		}
		return true
	}
	return f.Equal(g)
}

func TestEqualOwn(t *testing.T) {
	a, wide := generic.Set(), generic.Set()
	wide.ISA, wide.Wide, wide.Matrix, wide.Cost.Bits = "wide", &kern.Wide{}, &kern.Matrix{}, 1
	require.True(t, equalOwn(&a, &wide))
	block, other, captured := generic.Set(), generic.Set(), generic.Set()
	block.Block *= 2
	require.False(t, equalOwn(&a, &block))
	other.Pairs[kern.Min], other.Pairs[kern.Max] = other.Pairs[kern.Max], other.Pairs[kern.Min]
	require.False(t, equalOwn(&a, &other))
	var functions [2]func([]uint32, []uint64)
	var calls [2]int
	for i := range functions {
		functions[i] = func([]uint32, []uint64) { calls[i]++ }
	}
	captured.Narrow, other = functions[0], generic.Set()
	other.Narrow = functions[1]
	require.False(t, equalOwn(&captured, &other))
	other.Narrow = functions[0]
	require.True(t, equalOwn(&captured, &other))
}

// guarded returns a slice of n values in the midst of others, and a function
// that checks that these are untouched. The slice is not aligned to vectors.
func guarded[T uint8 | int32 | uint64 | float32](t *testing.T, n int) ([]T, func()) {
	const margin = 9
	all := make([]T, n+2*margin)
	for i := range all {
		all[i] = 77
	}
	return all[margin:][:n:n], func() {
		t.Helper()
		for i, v := range all {
			if (i < margin || i >= margin+n) && v != 77 {
				t.Fatalf("element %d of %d overwritten with %v", i-margin, n, v)
			}
		}
	}
}

// unaligned returns n bytes at an odd multiple of the alignment that the
// kernels may count on, and a function that checks that those around them are
// untouched.
func unaligned(t *testing.T, n, alignment int) ([]uint8, func()) {
	const margin = 192
	all := make([]uint8, n+2*margin)
	skip := margin + int(-uintptr(unsafe.Pointer(&all[0]))%64) + alignment
	for i := range all {
		all[i] = 0xa5
	}
	return all[skip:][:n:n], func() {
		t.Helper()
		for i, v := range all {
			if (i < skip || i >= skip+n) && v != 0xa5 {
				t.Fatalf("byte %d of %d overwritten with %#x", i-skip, n, v)
			}
		}
	}
}

func randomBits(rng *rand.Rand, rows, n int) []uint64 {
	values := make([]int8, rows*n)
	for i := range values {
		values[i] = int8(rng.IntN(2))
	}
	out := make([]uint64, rows*bits.Words(n))
	bits.Pack(out, values, n)
	return out
}

func randomBytes(rng *rand.Rand, n int) []uint8 {
	b := make([]uint8, n)
	few := rng.IntN(2) == 0 // so that ties are common
	for i := range b {
		b[i] = uint8(rng.IntN(256))
		if few {
			b[i] = []uint8{0, 1, 127, 128, 254, 255}[rng.IntN(6)]
		}
	}
	return b
}

func randomWords(rng *rand.Rand, n int) []uint64 {
	w := make([]uint64, n)
	for i := range w {
		w[i] = rng.Uint64()
	}
	return w
}

// awkward draws float32 values whose sums often lie in the middle between two
// others, cancel, or are subnormal.
func awkward(rng *rand.Rand) float32 {
	switch rng.IntN(6) {
	case 0:
		return math.Float32frombits(rng.Uint32())
	case 1:
		return []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1))}[rng.IntN(7)]
	case 2:
		return float32(math.Ldexp(1+float64(rng.IntN(1<<12))/(1<<12), rng.IntN(40)-140))
	}
	return float32(math.Ldexp(1+float64(rng.IntN(1<<13))/(1<<12), rng.IntN(60)-30)) * float32(1-2*rng.IntN(2))
}

func awkwards(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = awkward(rng)
	}
	return out
}

// requireSame compares by bits, except that processors disagree about those of
// a NaN.
func requireSame(t *testing.T, want, got float32, what ...any) {
	if (want == want || got == got) && math.Float32bits(want) != math.Float32bits(got) {
		t.Helper()
		require.Fail(t, "another value", "want %g, got %g: %v", want, got, what)
	}
}

// requireEqual is require.Equal for one of millions of values, which takes no stack where they are
// equal.
func requireEqual[T comparable](t *testing.T, want, got T, what ...any) {
	if want != got {
		t.Helper()
		require.Equal(t, want, got, what...)
	}
}

// sizes are lengths on both sides of whatever a kernel takes at a time.
var sizes = []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100, 129, 200}

func TestPeak(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, _ *rand.Rand) {
		require.NotEmpty(t, s.Peaks)
		for _, p := range s.Peaks {
			require.Positive(t, p.Products)
			p.Run(1)
		}
	})
}

// Memory is read to its end and no further.
func TestRead(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, _ *rand.Rand) {
		for _, n := range []int{1, 2, 5} {
			s.Read(fenced(t, n*kern.ReadBytes))
		}
	})
}
