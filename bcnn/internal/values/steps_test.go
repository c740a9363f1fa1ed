package values

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// What is made of steps is found, with the same numbers, and what is found gives just the
// values.
func TestEqualSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	lows := 0
	for range 20000 {
		scale, shift := float32(math.Exp(r.NormFloat64())), float32(r.NormFloat64())
		if r.IntN(2) == 0 {
			shift = float32(r.IntN(41)-20) * scale
		}
		numbers := []int{0}
		for range 1 + r.IntN(6) {
			numbers = append(numbers, numbers[len(numbers)-1]+r.IntN(3))
		}
		var values []float32
		for _, q := range numbers {
			values = append(values, f32.FMA(float32(q), scale, shift))
		}
		s, ok := EqualSteps(values)
		if !ok {
			continue // float32 rounds the sums too far
		}
		for k, q := range s.Numbers {
			require.Equal(t, values[k], f32.FMA(float32(q), s.Scale, s.Shift))
		}
		low, ok := s.Low(s.Numbers[len(s.Numbers)-1] + 1)
		if !ok {
			continue
		}
		lows++
		for k, q := range s.Numbers {
			require.Equal(t, values[k], float32(q+low)*s.Scale)
		}
	}
	require.Greater(t, lows, 2000)
	for _, c := range []struct {
		name   string
		values []float32
		want   Steps
		ok     bool
		low    int // of ok ones
	}{
		{"ternary", []float32{-0.5, 0, 0.5}, Steps{[]int{0, 1, 2}, 0.5, -0.5}, true, -1},
		{"a wide step", []float32{1, 1, 4, 5}, Steps{[]int{0, 0, 3, 4}, 1, 1}, true, 1},
		{"one value", []float32{3, 3}, Steps{[]int{0, 0}, 1, 3}, true, 3},
		{"falls", []float32{1, 0.5, 2}, Steps{}, false, 0},
		{"uneven", []float32{0, 1, 2.5}, Steps{}, false, 0},
		{"no number", []float32{0, float32(math.NaN()), 1}, Steps{}, false, 0},
		{"infinite", []float32{0, 1, float32(math.Inf(1))}, Steps{}, false, 0},
		{"too many", []float32{0, 1, bcnn.MaxLevels}, Steps{}, false, 0},
		{"as many as there are", []float32{0, 1, bcnn.MaxLevels - 1}, Steps{[]int{0, 1, bcnn.MaxLevels - 1}, 1, 0}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ok := EqualSteps(c.values)
			require.Equal(t, c.ok, ok)
			if !ok {
				return
			}
			require.Equal(t, c.want, s)
			low, ok := s.Low(3)
			require.True(t, ok)
			require.Equal(t, c.low, low)
		})
	}
	_, ok := Steps{[]int{0, 1}, 1, 0.5}.Low(2)
	require.False(t, ok, "half a step")
	_, ok = Steps{[]int{0, 1}, 1, bcnn.MaxLevels - 2}.Low(2)
	require.False(t, ok, "too large")
}
