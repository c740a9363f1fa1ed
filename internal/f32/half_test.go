package f32_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/f32"
)

// Halves of all exponents, against the definition of binary16.
func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		e, f := h>>10&31, float64(h&1023)
		want := math.Ldexp(1+f/1024, e-15)
		switch {
		case e == 0:
			want = math.Ldexp(f/1024, -14)
		case e == 31 && f == 0:
			want = math.Inf(1)
		case e == 31:
			require.True(t, math.IsNaN(float64(f32.FromHalf(uint16(h)))))
			continue
		}
		if h>>15 == 1 {
			want = -want
		}
		require.Equal(t, math.Float32bits(float32(want)), math.Float32bits(f32.FromHalf(uint16(h))), "%#x", h)
	}
}
