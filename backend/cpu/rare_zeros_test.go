package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestRareZeros has thresholds of three levels: those between which there is one float32, in each of the
// places that they may have among three, and others.
func TestRareZeros(t *testing.T) {
	inf, nan, tiny := float32(math.Inf(1)), float32(math.NaN()), float32(math.SmallestNonzeroFloat32)
	next := math.Nextafter32(3, inf)
	for name, c := range map[string]struct {
		first, second, third []float32 // of two channels
		want                 bool
	}{
		"sign":                   {[]float32{0, 0}, []float32{tiny, tiny}, []float32{nan, nan}, true},
		"sign of negated values": {[]float32{-inf, -inf}, []float32{0, 0}, []float32{tiny, tiny}, true},
		"sign behind a shift":    {[]float32{3, -inf}, []float32{next, 3}, []float32{nan, next}, true},
		"two values":             {[]float32{0, 0}, []float32{tiny, 2 * tiny}, []float32{nan, nan}, false},
		"ternary":                {[]float32{-0.5, -0.5}, []float32{0.5, 0.5}, []float32{nan, nan}, false},
		"four levels":            {[]float32{0, 0}, []float32{tiny, tiny}, []float32{1, 1}, false},
		"four levels of two":     {[]float32{0, 0}, []float32{tiny, tiny}, []float32{nan, inf}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlanner(1, input(bcnn.Float32, 2, 2, 2))
			op := &plan.Sign{Planes: 2, Threshold: plan.Threshold{F32: append(append(append([]float32{}, c.first...), c.second...), c.third...)}}
			p.step("sign", op, bcnn.Bits, bcnn.Shape{H: 4, W: 2, C: 2})
			window := bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}.Normal()
			p.step("pool", &plan.MaxPool{Window: window}, bcnn.Bits, bcnn.Shape{H: 2, W: 1, C: 2})
			require.Equal(t, []bool{false, c.want, c.want}, rareZeros(&p.plan))
		})
	}
	require.Equal(t, []bool{false, false}, rareZeros(&plan.Plan{
		Tensors: make([]plan.Tensor, 2), Steps: []plan.Step{{In: []int{0}, Out: 1, Op: &plan.Sign{}}},
	}), "one plane")
}
