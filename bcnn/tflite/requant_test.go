package tflite

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Factors are fraction·2^(exponent − 31), up to 2^30, and 0 below 2^−32.
func TestNewFactor(t *testing.T) {
	for scale, want := range map[float64]factor{
		0: {}, 0.5: {1 << 30, 0}, 1: {1 << 30, 1}, 0.75: {3 << 29, 0}, 3: {3 << 29, 2},
		1 - 0x1p-40: {1 << 30, 1}, // rounds to 1
		0x1p-32:     {1 << 30, -31}, 0x1p-33: {}, 0x1p29: {1 << 30, 30},
		0.3: {1288490189, -1}, // 0.3·2^32, rounded
	} {
		require.Equal(t, want, newFactor(scale), scale)
	}
	for _, scale := range []float64{-1, -1e-300, math.NaN(), math.Inf(1), 0x1p30, 1e30} {
		_, err := try.Do(func() factor { return newFactor(scale) })
		require.ErrorContains(t, err, "the ratio of its scales", "%v", scale)
	}
}

func TestFactorFits(t *testing.T) {
	fits := func(exponent int, x int64) error {
		_, err := try.Do(func() int { factor{1 << 30, exponent}.fits(x); return 0 })
		return err
	}
	for _, c := range []struct {
		exponent int
		x        int64
		ok       bool
	}{
		{0, math.MaxInt32, true}, {0, -math.MaxInt32, true}, {0, math.MaxInt32 + 1, false}, {0, math.MinInt32, false},
		{3, 1<<28 - 1, true}, {3, 1 << 28, false}, {-5, math.MaxInt32, true}, {-5, math.MaxInt32 + 1, false}, {1, 1 << 30, false}, {1, 1<<30 - 1, true},
	} {
		require.Equal(t, c.ok, fits(c.exponent, c.x) == nil, "%+v", c)
	}
	require.EqualError(t, fits(2, -1<<30), "sums of up to 1073741824, times 2^2, exceed 32 bits")
	require.EqualError(t, fits(-2, 1<<31), "sums of up to 2147483648, times 2^0, exceed 32 bits")
}

// The first step rounds halves up, the second one as it is told: 9/4 becomes 5/2, and 3.
func TestFactorRounds(t *testing.T) {
	for _, c := range []struct {
		scale    float64
		x        int64
		up, away int64
	}{
		{1, 7, 7, 7}, {1, -7, -7, -7}, {4, 3, 12, 12}, {0, 1000, 0, 0},
		{0.5, 5, 3, 3}, {0.5, -5, -2, -2}, // in one step
		{0.25, 10, 3, 3}, {0.25, -10, -2, -3}, {0.25, -9, -2, -2}, {0.25, -12, -3, -3}, {0.25, -11, -2, -3}, {0.25, 9, 3, 3}, {0.25, 8, 2, 2},
		{0.125, 12, 2, 2}, {0.125, -12, -1, -2}, {0.125, -4, 0, -1}, {0.125, 4, 1, 1}, {0.125, 3, 1, 1}, {0.125, -3, 0, 0},
		{3, -5, -15, -15}, {0.75, 3, 2, 2}, {0.75, 2, 2, 2}, {0.75, -2, -1, -1},
	} {
		f := newFactor(c.scale)
		require.Equal(t, c.up, f.of(c.x, halvesUp), "%+v", c)
		require.Equal(t, c.away, f.of(c.x, halvesAway), "%+v", c)
	}
}

func TestActivationRange(t *testing.T) {
	for _, c := range []struct {
		scale float32
		zero  int
		kind  int
		want  clamp
	}{
		{0.1, 10, actNone, clamp{-128, 127}},
		{0.1, 10, actReLU, clamp{10, 127}},
		{0.1, 10, actReLU1, clamp{0, 20}},
		{0.1, 10, actReLU6, clamp{10, 70}},
		{0.01, -128, actReLU6, clamp{-128, 127}},
		{0.01, 0, actReLU1, clamp{-100, 100}},
		{0.005, 0, actReLU1, clamp{-128, 127}},
		{4, 1, actReLU6, clamp{1, 3}}, // 1.5, halves away from 0
		{1e-30, 5, actReLU1, clamp{-128, 127}},
	} {
		require.Equal(t, c.want, (&value{scale: c.scale, zero: c.zero}).activationRange(c.kind), "%+v", c)
	}
	_, err := try.Do(func() clamp { return (&value{scale: 1}).activationRange(4) })
	require.EqualError(t, err, "the fused activation 4 is not supported")
	require.Equal(t, []int64{-3, -3, 0, 5, 5}, []int64{clamp{-3, 5}.of(-4), clamp{-3, 5}.of(-3), clamp{-3, 5}.of(0), clamp{-3, 5}.of(5), clamp{-3, 5}.of(9)})
}

// The thresholds that a search finds are those that a plain walk over all sums finds, for
// steps of even width, of uneven ones, and for several at one sum.
func TestStepsOfSums(t *testing.T) {
	for name, c := range map[string]struct {
		lo, hi int64
		q      func(x int64) int64
	}{
		"even":           {-2000, 2000, func(x int64) int64 { return (x+2000)/15 - 128 }},
		"one by one":     {-128, 127, func(x int64) int64 { return x }},
		"several at one": {-20, 20, func(x int64) int64 { return min(max(7*x, -128), 127) }},
		"uneven":         {-500, 500, func(x int64) int64 { return max(min(x*x*x/100000, 127), -128) }},
		"never":          {-500, 500, func(x int64) int64 { return -128 }},
		"always":         {-500, 500, func(x int64) int64 { return 127 }},
		"a jump":         {0, 4000, func(x int64) int64 { return min(x/4000, 1) * 100 }},
		"one sum":        {5, 5, func(x int64) int64 { return x }},
	} {
		t.Run(name, func(t *testing.T) {
			im := newTestImporter(t)
			got := make([]float32, steps8)
			im.steps8Of(got, c.lo, c.hi, c.q)
			want := make([]float32, steps8)
			for k := range want {
				x := c.lo
				for x <= c.hi && c.q(x) < int64(k-127) {
					x++
				}
				want[k] = float32(x)
			}
			for k := range got { // what is never reached may be any number beyond
				got[k] = min(got[k], float32(c.hi+1))
			}
			require.Equal(t, want, got)
		})
	}
}

// The least number that becomes an integer, or more, is where two neighbours differ.
func TestLeastOf(t *testing.T) {
	leastOf := func(n int, scale float32, f func(x, scale float32) float64) float32 {
		return f32.Least(func(x float32) bool { return f(x, scale) >= float64(n) })
	}
	for _, scale := range []float32{1, 0.5, 0.1, 0.0235294122248888, 1e-30, 3e10} {
		for name, f := range map[string]func(x, scale float32) float64{"in blocks": inBlocks, "one by one": oneByOne} {
			for n := -130; n <= 130; n++ {
				x := leastOf(n, scale, f)
				require.GreaterOrEqual(t, f(x, scale), float64(n), "%s %v %d", name, scale, n)
				require.Less(t, f(math.Nextafter32(x, float32(math.Inf(-1))), scale), float64(n), "%s %v %d", name, scale, n)
			}
		}
	}
	// Beyond what float32 holds there is none.
	require.Equal(t, float32(math.MaxFloat32), leastOf(200, 3e36, oneByOne))
	require.Equal(t, float32(-math.MaxFloat32), leastOf(-200, 3e36, oneByOne))
}

func TestRound8(t *testing.T) {
	for y, want := range map[float32]int{0: 0, 2.5: 3, -2.5: -3, 2.4: 2, 126.6: 127, 127.5: 127, 1e30: 127, -128.4: -128, -129: -128, -1e30: -128} {
		require.Equal(t, want, round8(y, math.MinInt8), y)
	}
	require.Equal(t, []int{0, 255}, []int{round8(-3, 0), round8(300, 0)})
}
