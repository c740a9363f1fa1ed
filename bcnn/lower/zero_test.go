package lower_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// A sum of integers that is 0 stays 0 behind factors that are no powers of two, also where layers on
// signs or levels are computed in float32.
func TestZeroSums(t *testing.T) {
	weights := []int8{3, 3, -5, -3, -3, -5}
	for name, c := range map[string]struct {
		codes bcnn.Op
		code  int // of −1
		conv  bcnn.Conv2D
		why   string
	}{
		"bits in groups":   {bcnn.Sign{Zero: bcnn.ZeroIsPlus}, -1, bcnn.Conv2D{Out: 2, Groups: 2, Weights: bcnn.Weights{Int8: weights}}, "it sums bits in groups that are too small"},
		"levels in groups": {bcnn.Quantize{Low: -1, Levels: 3, Thresholds: []float32{0, 1}}, -1, bcnn.Conv2D{Out: 2, Groups: 2, Weights: bcnn.Weights{Int8: weights}}, "it sums bytes in groups that are too small"},
		"levels without 0": {bcnn.Quantize{Low: 1, Levels: 200, Thresholds: rising(199)}, 1, bcnn.Conv2D{Out: 1, Weights: bcnn.Weights{Int8: weights}}, "0 is not among the levels of its input"},
		"many products":    {bcnn.Sign{Zero: bcnn.ZeroIsPlus}, -1, bcnn.Conv2D{Out: 1, Weights: bcnn.Weights{Int8: []int8{3, 100, -5, -3, 7, -5}}}, "its weights have more levels than products of bits are worth, and its input is bits"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &bcnn.Network{Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 1, W: 1, C: 6}}}}
			q := n.Append("q", c.codes, bcnn.NetworkInput)
			c.conv.Window = bcnn.Window{KH: 1, KW: 1}
			y := n.Append("c", c.conv, q)
			sums := make([]float32, c.conv.Out)
			for k, w := range c.conv.Weights.Int8 {
				sums[k*c.conv.Out/6] -= float32(c.code * int(w))
			}
			y = n.Append("i", bcnn.Affine{Bias: sums}, y)
			y = n.Append("g", bcnn.Affine{Scale: []float32{0.5}}, y)
			n.Append("s", bcnn.Affine{Scale: []float32{0.075}}, y)
			p, err := lower.Network(t.Context(), n, lower.Options{})
			require.NoError(t, err)
			x := bcnn.NewTensor(bcnn.Float32, 1, n.Inputs[0].Shape)
			for i := range x.F32 {
				x.F32[i] = -1
			}
			out, err := ref.Run(t.Context(), p, x, nil)
			require.NoError(t, err)
			for _, v := range out.F32 {
				require.Zero(t, v)
			}
			why := ""
			for i, step := range p.Steps {
				if _, ok := step.Op.(*plan.Conv); ok {
					why = p.Note(i).WhyFloat
				}
			}
			require.Equal(t, c.why, why)
		})
	}
}

func rising(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(i)
	}
	return list
}
