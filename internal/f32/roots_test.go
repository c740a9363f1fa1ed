package f32

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// quotients are what the functions of small ranges make of all numbers, product by product.
var quotients = map[string]struct {
	f     func(a, b float32) float32
	want  func(a, b float64) float64
	units float64 // in the last place of the result
}{
	"1/x": {
		func(_, b float32) float32 { r, y := toRange(b); return float32(Named("inverse").Of(y)*r) * r },
		func(_, b float64) float64 { return 1 / b }, 0.75,
	},
	"a/x": {
		func(a, b float32) float32 {
			r, y := toRange(b)
			return float32(a*r) * float32(Named("inverse").Of(y)*r)
		},
		func(a, b float64) float64 { return a / b }, 2,
	},
	"1/√x": {
		func(_, b float32) float32 { r, y := toRange(b); return Named("inverse_root").Of(y) * r },
		func(_, b float64) float64 { return math.Copysign(1, b) / math.Sqrt(math.Abs(b)) * sense(b) }, 0.75,
	},
	"√x": {
		func(_, b float32) float32 { r, y := toRange(b); return float32(b*r) * Named("root_factor").Of(y) },
		func(_, b float64) float64 { return math.Sqrt(b) }, 1.75,
	},
}

// sense is NaN below 0, else 1.
func sense(x float64) float64 {
	if x < 0 {
		return math.NaN()
	}
	return 1
}

// toRange returns a power of two and the product of a number with its square.
func toRange(x float32) (r, y float32) {
	r = Named("root_power").Of(x)
	return r, float32(x*r) * r
}

// special are the numbers at which formulas break.
var special = func() (list []float32) {
	for _, x := range []float32{
		0, math.SmallestNonzeroFloat32, 3 * math.SmallestNonzeroFloat32, 0x1p-140, 0x1.fffp-129, 0x1p-128, 0x1.8p-127,
		0x1.fffffcp-127, 0x1p-126, 0x1.000002p-126, 0x1.fffffep-126, 0x1p-125, 0x1p-75, 0.25, 0.5, 0.99999994, 1, 1.0000001, 1.01, 2, 3, 4,
		0x1p64, 0x1p125, 0x1p126, 0x1.000002p126, 0x1p127, math.MaxFloat32, infinity,
	} {
		list = append(list, x, -x)
	}
	return append(list, nan)
}()

// requireQuotient compares with what float64 gives. Numbers below 2^-126 may miss it by a unit more,
// which roundings in front of the last product are, as may those up to 2^-125.
func requireQuotient(t *testing.T, name string, a, b float32) (miss float64) {
	t.Helper()
	c := quotients[name]
	got, want := c.f(a, b), c.want(float64(a), float64(b))
	if math.IsNaN(want) || math.IsInf(want, 0) {
		requireSame(t, float32(want), got, b)
		return 0
	}
	if math.Signbit(want) != math.Signbit(float64(got)) {
		require.Fail(t, "another sign", "%s of %v and %v: %v, want %v", name, a, b, got, want)
	}
	if math.Abs(want) >= math.MaxFloat32 {
		if !(math.Abs(float64(got)) >= math.MaxFloat32*(1-0x1p-22)) {
			require.Fail(t, "too small", "%s of %v and %v: %v, want %v", name, a, b, got, want)
		}
		return 0
	}
	near := max(float32(math.Abs(want)), 0x1p-126)
	unit := float64(math.Nextafter32(near, infinity) - near)
	miss = math.Abs(float64(got)-want) / unit
	most := c.units
	if near < 0x1p-125 {
		most++
	}
	if !(miss < most) {
		require.Fail(t, "too far", "%s of %v and %v: %v, want %v", name, a, b, got, want)
	}
	return miss
}

// What the functions of small ranges make of numbers of every size: 1/x, 1/√x, √x and
// quotients, which are within float32 wherever their results are.
func TestQuotients(t *testing.T) {
	for name := range quotients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, b := range special {
				for _, a := range special {
					requireQuotient(t, name, a, b)
				}
			}
			rng := rand.New(rand.NewPCG(1, 2))
			worst := 0.0
			for range 300_000 {
				worst = max(worst, requireQuotient(t, name, math.Float32frombits(rng.Uint32()), math.Float32frombits(rng.Uint32())))
				a, b := math.Float32frombits(rng.Uint32N(1<<25)), math.Float32frombits(rng.Uint32N(1<<28))
				requireQuotient(t, name, a, b) // of which many are small
			}
			t.Logf("%.4f units in the last place", worst)
		})
	}
}

// The power of two takes numbers to the range that the tables have.
func TestRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 100_000 {
		x := math.Float32frombits(rng.Uint32())
		if i%2 == 0 {
			x = math.Float32frombits(rng.Uint32() &^ (infinite - 1<<mantissaBits)) // many are subnormal
		}
		if m := math.Abs(float64(x)); m == 0 || !(m <= math.MaxFloat32) {
			continue
		}
		r, y := toRange(x)
		require.Equal(t, float64(x)*float64(r)*float64(r), float64(y), "%v", x)
		least := 0.25
		if math.Abs(float64(x)) < 0x1p-126 {
			least = 0x1p-17
		}
		require.True(t, least <= math.Abs(float64(y)) && math.Abs(float64(y)) < 1, "%v of %v", y, x)
	}
}
