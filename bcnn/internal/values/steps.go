package values

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Steps are numbers that never fall, as integers from 0 on, times a scale, plus a shift, rounded
// once.
type Steps struct {
	Numbers      []int
	Scale, Shift float32
}

// EqualSteps returns numbers as steps of one height; ok is false where they fall, where float32
// does not give just these numbers, or where there are more levels than a layer may have.
func EqualSteps(values []float32) (s Steps, ok bool) {
	s = Steps{Numbers: make([]int, len(values)), Scale: 1, Shift: values[0]}
	step := math.Inf(1)
	for k := 1; k < len(values); k++ {
		d := float64(values[k]) - float64(values[k-1])
		if d < 0 {
			return s, false
		}
		if d > 0 {
			step = min(step, d)
		}
	}
	whole := float64(values[len(values)-1]) - float64(s.Shift)
	if whole == 0 {
		return s, true
	}
	count := math.Round(whole / step)
	if !(count < bcnn.MaxLevels) {
		return s, false
	}
	s.Scale = float32(whole / count)
	for k, v := range values {
		q := math.Round((float64(v) - float64(s.Shift)) / float64(s.Scale))
		s.Numbers[k] = int(q)
		if f32.FMA(float32(q), s.Scale, s.Shift) != v {
			return s, false
		}
	}
	return s, true
}

// Low returns the integer from which on the numbers are integers times the scale, without a
// shift, so that 0 is 0; ok is false where they are not, or would be too large for levels, of
// which there are so many.
func (s Steps) Low(levels int) (low int, ok bool) {
	x := float64(s.Shift / s.Scale)
	if x != math.Trunc(x) || math.Abs(x) >= bcnn.MaxLevels-float64(levels) {
		return 0, false
	}
	return int(x), !slices.ContainsFunc(s.Numbers, func(q int) bool {
		return float32(q+int(x))*s.Scale != f32.FMA(float32(q), s.Scale, s.Shift)
	})
}
