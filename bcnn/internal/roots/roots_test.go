package roots_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/roots"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// numbers are all powers of two of float32, what lies between them, and what IEEE 754 treats apart.
func numbers() (x []float32) {
	for e := -149; e < 128; e++ {
		for _, m := range []float64{1, 1.0000001, 1.25, 1.5, 1.9999999} {
			x = append(x, float32(math.Ldexp(m, e)))
		}
	}
	x = append(x, 0, math.MaxFloat32, float32(math.Inf(1)))
	for _, v := range x {
		x = append(x, -v)
	}
	return append(x, float32(math.NaN()))
}

// quotient returns layers that give a number divided by x.
func quotient(a float32) func(roots.Emit[int], int) int {
	return func(emit roots.Emit[int], x int) int {
		times := func(a, b int) int { return emit("", bcnn.Mul{}, a, b) }
		dividend := emit("/a", bcnn.Affine{Bias: []float32{a}}, emit("/zero", bcnn.Channels{Index: allZero(len(numbers()))}, x))
		return roots.Invert(emit, x).Quotient(times, dividend)
	}
}

func allZero(n int) []int32 {
	index := make([]int32, n)
	for i := range index {
		index[i] = -1
	}
	return index
}

// What float64 gives of the same numbers.
func TestRoots(t *testing.T) {
	x := numbers()
	positive := func(f func(x float64) float64) func(float64) float64 {
		return func(x float64) float64 {
			if x < 0 {
				return math.NaN()
			}
			return f(x)
		}
	}
	type test struct {
		write func(roots.Emit[int], int) int
		want  func(x float64) float64
	}
	tests := map[string]test{
		"1/x":  {roots.Reciprocal[int], func(x float64) float64 { return 1 / x }},
		"1/√x": {roots.RSqrt[int], positive(func(x float64) float64 { return math.Copysign(1/math.Sqrt(x), x) })},
		"√x":   {roots.Sqrt[int], positive(math.Sqrt)},
		"its share of a sum": {
			func(emit roots.Emit[int], x int) int {
				x = emit("/magnitude", bcnn.PReLU{Slope: []float32{-1}}, x)
				times := func(a, b int) int { return emit("", bcnn.Mul{}, a, b) }
				return roots.InvertSum(emit, x).Quotient(times, x)
			},
			func(x float64) float64 {
				if x == 0 {
					return x
				}
				return x / x
			},
		},
		"1/√ of a sum": {
			func(emit roots.Emit[int], x int) int {
				return roots.RSqrtSum(emit, emit("/magnitude", bcnn.PReLU{Slope: []float32{-1}}, x))
			},
			func(x float64) float64 {
				if x == 0 {
					return 0
				}
				return 1 / math.Sqrt(math.Abs(x))
			},
		},
	}
	for _, a := range []float32{math.SmallestNonzeroFloat32, 0x1.8p-127, 0x1.4p-126, 1e-20, 0.75, 1, 3, 1e20, math.MaxFloat32} {
		tests[fmt.Sprint(a, "/x")] = test{quotient(a), func(x float64) float64 { return float64(a) / x }}
		tests[fmt.Sprint(-a, "/x")] = test{quotient(-a), func(x float64) float64 { return -float64(a) / x }}
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			for i, y := range run(t, x, c.write) {
				requireNear(t, c.want(float64(x[i])), y, x[i])
			}
		})
	}
}

// requireNear asks for a result within two units in the last place, three where it is below 2^-125,
// and for the very zeros, infinities and signs.
func requireNear(t *testing.T, want float64, got, of float32) {
	t.Helper()
	if math.IsNaN(want) {
		require.True(t, got != got, "%v instead of NaN of %v", got, of)
		return
	}
	if single := float32(want); want == 0 || math.IsInf(want, 0) {
		require.Equal(t, math.Float32bits(single), math.Float32bits(got), "%v instead of %v of %v", got, single, of)
		return
	}
	require.Equal(t, math.Signbit(want), math.Signbit(float64(got)), "%v of %v", got, of)
	if math.Abs(want) > math.MaxFloat32*(1-0x1p-22) {
		require.GreaterOrEqual(t, math.Abs(float64(got)), math.MaxFloat32*(1-0x1p-22), "of %v", of)
		return
	}
	near := float32(max(math.Abs(want), 0x1p-126))
	unit := float64(math.Nextafter32(near, float32(math.Inf(1))) - near)
	most := 2 * unit
	if near < 0x1p-125 {
		most += unit
	}
	require.InDelta(t, want, got, most, "of %v", of)
}

// run returns what the reference makes of numbers by layers.
func run(t *testing.T, x []float32, write func(roots.Emit[int], int) int) []float32 {
	shape := bcnn.Shape{H: 1, W: 1, C: len(x)}
	n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: shape, DType: bcnn.Float32}}}
	last := write(func(suffix string, op bcnn.Op, in ...int) int {
		return n.Append(fmt.Sprint(len(n.Layers), suffix), op, in...)
	}, bcnn.NetworkInput)
	require.Equal(t, len(n.Layers)-1, last)
	plan, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	in := bcnn.NewTensor(bcnn.Float32, 1, shape)
	copy(in.F32, x)
	out, err := ref.Run(t.Context(), plan, in, nil)
	require.NoError(t, err)
	return out.F32
}
