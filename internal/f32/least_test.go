package f32

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeast(t *testing.T) {
	const most, tiny = math.MaxFloat32, math.SmallestNonzeroFloat32
	for _, want := range []float32{-most, -1.5, -tiny, 0, tiny, 0.1, 1, 3e38, most} {
		require.Equal(t, want, Least(func(x float32) bool { return x >= want }), want)
		if want < most {
			require.Equal(t, math.Nextafter32(want, most), Least(func(x float32) bool { return x > want }), want)
		}
	}
	require.Equal(t, float32(most), Least(func(float32) bool { return false }))
	require.Equal(t, float32(-most), Least(func(float32) bool { return true }))
	require.Equal(t, float32(0.5), Least(func(x float32) bool { return math.Round(float64(x)) >= 1 }))
}
