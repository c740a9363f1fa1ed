package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// The tensor of a step is the output of the last layer that is fused into it, unless
// part of a layer before it is still to come.
func TestResults(t *testing.T) {
	n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 4, W: 4, C: 1}, DType: bcnn.Float32}}}
	n.Append("relu", bcnn.ReLU{})
	n.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsMinus})
	n.Append("conv", bcnn.Conv2D{
		Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{Bits: []uint64{1}}, Bias: []float32{0.5},
	})
	n.Append("flat", bcnn.Flatten{})
	n.Append("sign2", bcnn.Sign{Zero: bcnn.ZeroIsMinus})
	n.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: []uint64{3, 9}}})
	n.Append("softmax", bcnn.Softmax{})
	names := func(unfused bool) [][2]string {
		p, err := lower.Network(t.Context(), n, lower.Options{Unfused: unfused})
		require.NoError(t, err)
		var list [][2]string
		for i, l := range plan.Results(n, p) {
			layer := ""
			if l >= 0 {
				layer = n.Layers[l].Name
			}
			list = append(list, [2]string{p.Steps[i].Name, layer})
		}
		return list
	}
	// The pool moves behind the sign.
	require.Equal(t, [][2]string{{"relu+sign", ""}, {"pool", "sign"}, {"conv+sign2", "sign2"}, {"dense", "dense"}}, names(false))
	require.Equal(t, [][2]string{{"relu+sign", ""}, {"pool", "sign"}, {"conv", ""}, {"conv+sign2", "sign2"}, {"dense", "dense"}}, names(true))
}
