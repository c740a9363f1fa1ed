package f32

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func logOnePlusExp(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// truths are the functions in float64, and how many units in the last place those of
// float32 may miss them by: of the value, or of least where its magnitude is below. Values
// below flush may be missed by as much.
var truths = map[string]struct {
	f     func(x float64) float64
	units float64
	least float64
	// values at −∞, 0 and ∞
	low, zero, high float32
}{
	"tanh":     {math.Tanh, 0.62, 0, -1, 0, 1},
	"sigmoid":  {logistic, 1, flush, 0, 0.5, 1},
	"exp":      {math.Exp, 1, flush, 0, 1, infinity},
	"softplus": {logOnePlusExp, 1, flush, 0, math.Ln2, infinity},
	"elu":      {func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) }, 0.65, 0, -1, 0, infinity},
	"erf":      {math.Erf, 1.5, 0x1p-126, -1, 0, 1},
	"silu":     {func(x float64) float64 { return x * logistic(x) }, 1, flush, negativeZero, 0, infinity},
	"gelu":     {func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }, 1, flush, negativeZero, 0, infinity},
	"gelu_tanh": {func(x float64) float64 {
		return x * logistic(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))
	}, 1, flush, negativeZero, 0, infinity},
	"mish":      {func(x float64) float64 { return x * math.Tanh(logOnePlusExp(x)) }, 1.5, flush, negativeZero, 0, infinity},
	"hardswish": {func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }, 1.5, 0.25, negativeZero, 0, infinity},
	"reciprocal": {func(x float64) float64 {
		return math.Copysign(1/min(max(math.Abs(x), 1), 4), x)
	}, 0.75, 0, -0.25, 1, 0.25},
	"rsqrt": {func(x float64) float64 { return 1 / math.Sqrt(min(max(x, 1), 4)) }, 0.75, 0, 1, 1, 0.5},
	"rootscale": {func(x float64) float64 {
		_, e := math.Frexp(min(max(math.Abs(x), 0x1p-126), math.MaxFloat32))
		return math.Ldexp(1, -int(math.Floor(float64(e-1)/2)))
	}, 0x1p-20, 0, 0x1p-63, 0x1p63, 0x1p-63},
	"inverse": {func(x float64) float64 {
		switch m := math.Abs(x); {
		case m < 0x1p-17:
			return math.Copysign(math.Inf(1), x)
		case m >= 4:
			return math.Copysign(0, x)
		}
		return 1 / x
	}, 0.75, 0, negativeZero, infinity, 0},
	"inverse_root": {func(x float64) float64 {
		switch {
		case math.Abs(x) < 0x1p-17:
			return math.Copysign(math.Inf(1), x)
		case x >= 4:
			return 0
		}
		return 1 / math.Sqrt(x)
	}, 0.75, 0, nan, infinity, 0},
	"root_factor": {func(x float64) float64 {
		if math.Abs(x) < 0x1p-17 || x >= 4 {
			return 1
		}
		return 1 / math.Sqrt(x)
	}, 0.75, 0, nan, 1, 1},
	"root_power": {func(x float64) float64 {
		_, e := math.Frexp(min(max(math.Abs(x), 0x1p-133), math.MaxFloat32))
		return math.Ldexp(1, -1-int(math.Floor(float64(e-1)/2)))
	}, 0x1p-20, 0, 0x1p-64, 0x1p66, 0x1p-64},
	"float16_shift":  {shiftOf(13, -14, 16), 0x1p-20, 0, 0, 0.75, 0},
	"bfloat16_shift": {shiftOf(16, -126, 111), 0x1p-20, 0, 0, 0x1.8p-110, 0},
	"float16_range": {func(x float64) float64 {
		if math.Abs(x) < 65536 {
			return 1
		}
		return math.Inf(1)
	}, 0x1p-20, 0, infinity, 1, infinity},
}

func shiftOf(bits, least, end int) func(float64) float64 {
	return func(x float64) float64 {
		if math.Abs(x) >= math.Ldexp(1, end) {
			return 0
		}
		_, e := math.Frexp(max(math.Abs(x), math.Ldexp(1, least)))
		return math.Ldexp(1.5, e-1+bits)
	}
}

// flush bounds the values that functions with e^x take for 0.
const flush = 1e-34

var (
	infinity, nan = float32(math.Inf(1)), float32(math.NaN())
	negativeZero  = float32(math.Copysign(0, -1))
)

// ordered numbers the float32 values in ascending order.
func ordered(i int64) float32 {
	if i < 0 {
		return -math.Float32frombits(uint32(-i))
	}
	return math.Float32frombits(uint32(i))
}

// TestFunctions compares with float64, and looks for a fall of those that may not.
func TestFunctions(t *testing.T) {
	require.Len(t, truths, len(Names()))
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			truth, f := truths[name], Named(name)
			worst, where := 0.0, float32(0)
			check := func(x, y float32) {
				want := truth.f(float64(x))
				if math.IsNaN(want) || math.IsInf(want, 0) && Bends(name) || want == 0 {
					requireSame(t, float32(want), y, x)
					return
				}
				if math.Abs(want) > math.MaxFloat32 {
					require.True(t, math.Abs(float64(y)) >= math.MaxFloat32, "%v of %v", y, x)
					return
				}
				if truth.least == flush && math.Abs(want) < flush {
					require.InDelta(t, want, y, flush)
					return
				}
				near := float32(max(math.Abs(want), truth.least))
				unit := float64(math.Nextafter32(near, infinity) - near)
				if miss := math.Abs(float64(y)-want) / unit; miss > worst {
					worst, where = miss, x
				}
			}
			const end = int64(infinite)
			last := f.Of(-infinity)
			see := func(i int64, compare bool) {
				x := ordered(i)
				y := f.Of(x)
				if y != y && !math.IsNaN(truth.f(float64(x))) || y < last && !Bends(name) {
					require.Fail(t, "falls", "%v: %v after %v", x, y, last)
				}
				last = y
				if compare {
					check(x, y)
				}
			}
			for i := 1 - end; i < end; i += 10007 {
				see(i, true)
			}
			last = f.Of(-infinity)
			for i := 1 - end; i < end; i++ { // about the ends of all intervals
				if at := uint64(i) % (1 << (mantissaBits - mostBits)); at > 16 && at < 1<<(mantissaBits-mostBits)-16 {
					i += 1<<(mantissaBits-mostBits) - 32
				}
				see(i, i%8 == 0)
			}
			t.Logf("%.4f units in the last place, of %v; %d rows", worst, where, len(f.rows))
			require.Less(t, worst, truth.units)

			requireSame(t, truth.low, f.Of(-infinity), -infinity)
			requireSame(t, truth.zero, f.Of(0), 0)
			requireSame(t, truth.high, f.Of(infinity), infinity)
			requireSame(t, nan, f.Of(nan), nan)
			if truth.zero == 0 {
				requireSame(t, negativeZero, f.Of(negativeZero), negativeZero)
			}
			if testing.Short() || Bends(name) {
				return
			}
			last = f.Of(-infinity)
			first, to := int64(math.Float32bits(0x1p-26)), int64(math.Float32bits(128))
			for i := -to; i <= to; i++ {
				if i > -first && i < first {
					i = first
				}
				see(i, i%64 == 0)
			}
			require.Less(t, worst, truth.units)
		})
	}
}

// requireSame asks for the value of x by its bits, any NaN for a NaN.
func requireSame(t *testing.T, want, got, x float32) {
	t.Helper()
	if want != want && got != got {
		return
	}
	if math.Float32bits(want) != math.Float32bits(got) { // millions of calls: require would take most of the time
		require.Fail(t, "another value", "%v instead of %v of %v", got, want, x)
	}
}

// The tables are the same on every machine.
func TestTables(t *testing.T) {
	sum := sha256.New()
	for _, name := range Names() {
		f := Named(name)
		require.Less(t, len(f.rows), 1500, name)
		require.Len(t, f.Table(), directorySize+rowSize*len(f.rows))
		require.NoError(t, binary.Write(sum, binary.LittleEndian, f.Table()))
	}
	require.Equal(t, "bc1c31c88252a425be7b277a382dae234adf72230474d8d25c0bb1310d53185f", fmt.Sprintf("%x", sum.Sum(nil)))
	require.Nil(t, Named("sine"))
}

func TestOf(t *testing.T) {
	f := Named("tanh")
	require.Equal(t, float32(1), f.Of(20))
	require.Equal(t, float32(1), f.Of(9.02))
	require.Less(t, f.Of(9), float32(1))
	require.Equal(t, float32(math.SmallestNonzeroFloat32), f.Of(math.SmallestNonzeroFloat32))
}

// Functions of arguments that no table asks for.
func TestSeries(t *testing.T) {
	for x := -80.0; x < 80; x += 0.37 {
		require.InEpsilon(t, math.Exp(x), exp(x), 1e-14)
		if x < 0 {
			require.InEpsilon(t, math.Expm1(x), expm1(x), 1e-14)
		}
	}
	for x := 1e-9; x <= 1; x *= 1.3 {
		require.InEpsilon(t, math.Log1p(x), log1p(x), 1e-14)
		require.InEpsilon(t, math.Erf(4*x), erf(4*x), 1e-13)
	}
	for x := -14.0; x < 14; x += 0.13 {
		require.InEpsilon(t, math.Erfc(-x/math.Sqrt2)/2, normal(x), 1e-10)
	}
}

func BenchmarkFunction(b *testing.B) {
	f := Named("silu")
	values := make([]float32, 1024)
	for i := range values {
		values[i] = float32(i-512) / 100
	}
	out := make([]float32, len(values))
	b.SetBytes(int64(4 * len(values)))
	for b.Loop() {
		for i, x := range values {
			out[i] = f.Of(x)
		}
	}
}

// TestHalves rounds to 16 bits by shift and range as it is done bit by bit.
func TestHalves(t *testing.T) {
	shift, within, brain := Named("float16_shift"), Named("float16_range"), Named("bfloat16_shift")
	rounded := func(f *Function, x float32) float32 { return float32(x+f.Of(x)) - f.Of(x) }
	check := func(x float32) {
		half := rounded(shift, x)
		half *= within.Of(half)
		requireSame(t, roundTo(x, 10, -14, 16), half+0, x)
		if math.Abs(float64(x)) < 0x1p111 {
			requireSame(t, roundTo(x, 7, -126, 128), rounded(brain, x)+0, x)
		} else {
			requireSame(t, x, rounded(brain, x), x)
		}
	}
	for i := int64(0); i < 1<<32; i += 40961 {
		check(math.Float32frombits(uint32(i)))
	}
	for _, x := range []float32{0, 1, 65504, 65519.996, 65520, 65536, 0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-149, 1 + 0x1p-11, 1 + 0x1.8p-10, 2048, 2049, 2051, infinity, nan, math.MaxFloat32} {
		check(x)
		check(-x)
	}
}

// roundTo rounds to even to a format with bits of fraction, by its least exponent and the first one
// that is infinite. 0 is +0.
func roundTo(x float32, bits, least, end int) float32 {
	v := float64(x)
	if v == 0 || v-v != 0 {
		return x + 0
	}
	_, e := math.Frexp(v)
	unit := max(e-1, least) - bits
	v = math.Ldexp(math.RoundToEven(math.Ldexp(v, -unit)), unit)
	if math.Abs(v) >= math.Ldexp(1, end) {
		v = math.Inf(int(math.Copysign(1, v)))
	}
	return float32(v) + 0
}
