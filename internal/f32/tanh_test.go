package f32

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestTanh compares with float64 and looks for a fall: for some numbers of every
// interval and those around its ends, or all of them.
func TestTanh(t *testing.T) {
	check := func(near, step uint32) {
		worst, last := 0.0, float32(0)
		for b := uint32(TanhFirst - 1<<TanhShift); b < TanhEnd+1<<TanhShift; b++ {
			if at := b % (1 << TanhShift); at > near && at+step+near < 1<<TanhShift {
				b += step - 1
			}
			x := math.Float32frombits(b)
			y := Tanh(x)
			want := math.Tanh(float64(x))
			ulp := float64(math.Nextafter32(float32(want), 2) - float32(want))
			worst = max(worst, math.Abs(float64(y)-want)/ulp)
			if y < last || Tanh(-x) != -y {
				require.Fail(t, "falls or is not odd", "%v: %v after %v", x, y, last)
			}
			last = y
		}
		t.Logf("%.4f units in the last place", worst)
		require.Less(t, worst, 0.62)
		require.Equal(t, float32(1), last)
	}
	check(64, 4093)
	testenv.Long(t)
	check(0, 1)
}

func TestTanhEnds(t *testing.T) {
	require.Equal(t, uint32(0), math.Float32bits(Tanh(0)))
	require.Equal(t, uint32(1<<31), math.Float32bits(Tanh(float32(math.Copysign(0, -1)))))
	require.Equal(t, float32(1), Tanh(float32(math.Inf(1))))
	require.Equal(t, float32(-1), Tanh(float32(math.Inf(-1))))
	require.Equal(t, float32(1), Tanh(9.02))
	require.Less(t, Tanh(9), float32(1))
	require.Equal(t, math.SmallestNonzeroFloat32, float64(Tanh(math.SmallestNonzeroFloat32)))
	require.True(t, Tanh(float32(math.NaN())) != Tanh(float32(math.NaN())))
	require.Len(t, TanhTable(), (TanhEnd-TanhFirst)>>TanhShift*TanhRow)
	values := []float32{-1, 0.5, 20}
	Tanhs(values)
	require.Equal(t, []float32{Tanh(-1), Tanh(0.5), 1}, values)
}
