package f32

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// exact computes x·y + z with big.Float and rounds once to nearest even.
func exact(x, y, z float32) float32 {
	const prec = 700 // covers every exponent difference of float32 operands
	p := new(big.Float).SetPrec(prec).SetFloat64(float64(x))
	p.Mul(p, new(big.Float).SetPrec(prec).SetFloat64(float64(y)))
	p.Add(p, new(big.Float).SetPrec(prec).SetFloat64(float64(z)))
	f, _ := p.Float32()
	return f
}

func requireFMA(t *testing.T, x, y, z float32) {
	t.Helper()
	got, want := FMA(x, y, z), exact(x, y, z)
	if want == 0 { // big.Float has no rule for the sign of an exact zero sum
		require.Zero(t, got, "%g·%g+%g", x, y, z)
		return
	}
	require.Equal(t, math.Float32bits(want), math.Float32bits(got), "%g·%g+%g: got %g, want %g", x, y, z, got, want)
}

func TestFMAIsCorrectlyRounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	random := func() float32 {
		for {
			f := math.Float32frombits(rng.Uint32())
			if f == f && !math.IsInf(float64(f), 0) {
				return f
			}
		}
	}
	for range 200_000 {
		requireFMA(t, random(), random(), random())
	}
	// Sums that end close to the middle between two float32 values, where
	// rounding twice goes wrong, with neighbouring exponents and subnormals.
	for range 200_000 {
		x := 1 + float32(rng.IntN(1<<23))/(1<<23)
		y := 1 + float32(rng.IntN(1<<23))/(1<<23)
		z := float32(math.Ldexp(1+float64(rng.IntN(1<<23))/(1<<23), rng.IntN(80)-40))
		if rng.IntN(2) == 0 {
			z = -z
		}
		scale := float32(math.Ldexp(1, -rng.IntN(126)))
		requireFMA(t, x, y, z)
		requireFMA(t, x*scale, y, z*scale)
	}
}

func TestFMADoubleRounding(t *testing.T) {
	// 1·1 + 2^-24 is a tie in float32; a much smaller addend must decide it,
	// although it is lost in the float64 sum.
	x := float32(1 + 1.0/(1<<12))
	z := float32(math.Ldexp(1, -70))
	requireFMA(t, x, x, z)
	requireFMA(t, x, x, -z)
	requireFMA(t, x, -x, z)
}

func TestFMASpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	require.Equal(t, inf, FMA(inf, 1, 1))
	require.Equal(t, -inf, FMA(1, 1, -inf))
	require.Equal(t, inf, FMA(math.MaxFloat32, math.MaxFloat32, 1))
	require.True(t, math.IsNaN(float64(FMA(inf, 0, 1))))
	require.True(t, math.IsNaN(float64(FMA(inf, 1, -inf))))
	require.True(t, math.IsNaN(float64(FMA(nan, 1, 1))))
}

func BenchmarkFMA(b *testing.B) {
	acc := float32(0)
	for i := 0; i < b.N; i++ {
		acc = FMA(acc, 0.999, 1.25)
	}
	_ = acc
}
