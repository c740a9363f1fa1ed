package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

func TestSummarize(t *testing.T) {
	n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 6, W: 5, C: 3}, DType: bcnn.Uint8}}}
	n.Append("layer0", bcnn.Binarize{Scheme: bcnn.SchemeLBP})
	n.Append("layer1", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 2, StrideH: 2, Pad: bcnn.Padding{Top: 1}}, Out: 4, Weights: bcnn.Weights{Bits: make([]uint64, 24)}, Bias: make([]float32, 4)})
	n.Append("layer2", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 6, Groups: 2, Weights: bcnn.Weights{F32: make([]float32, 12)}})
	n.Append("layer3", bcnn.ReLU{})
	n.Append("layer4", bcnn.Dense{Out: 10, Weights: bcnn.Weights{Bits: make([]uint64, 10*bits.Words(3*4*6))}})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	require.Equal(t, []plan.LayerReport{
		{Layer: "layer1", Kind: "conv2d", Output: bcnn.Shape{H: 3, W: 4, C: 4}, Params: 3*2*3*4 + 4, Step: 1, Precision: plan.Binary,
			Planes: 1, BytesFloat: 4 * 76, BytesPacked: 8*24 + 16, MACs: 3 * 2 * 3 * 4 * 12},
		{Layer: "layer2", Kind: "conv2d", Output: bcnn.Shape{H: 3, W: 4, C: 6}, Params: 2 * 6,
			Planes: 1, BytesFloat: 48, BytesPacked: 48, MACs: 12 * 12, Step: 2, Precision: plan.Float, WhyFloat: "its weights are real"},
		{Layer: "layer4", Kind: "dense", Output: bcnn.Shape{H: 1, W: 1, C: 10}, Params: 720,
			Planes: 1, BytesFloat: 2880, BytesPacked: 160, MACs: 720, Step: len(p.Steps) - 1, Precision: plan.Float, WhyFloat: "its input is real: no sign in front of it, or a scale or offset between that is not one number"},
	}, plan.Summarize(n, p))
}

// Products of two layers have no weights, but multiplications.
func TestSummarizeProducts(t *testing.T) {
	n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 5, C: 3}, DType: bcnn.Float32}}}
	n.Append("norm", bcnn.Affine{Scale: []float32{2}})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("scores", bcnn.MatMul{}, 1, 1)
	n.Append("turned", bcnn.Transpose{}, 0)
	n.Append("values", bcnn.MatMul{}, 2, 3)
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	require.Equal(t, []plan.LayerReport{
		{Layer: "scores", Kind: "matmul", Output: bcnn.Shape{H: 1, W: 5, C: 5}, Step: 2, Planes: 1, Precision: plan.Binary, MACs: 5 * 5 * 3},
		{Layer: "values", Kind: "matmul", Output: bcnn.Shape{H: 1, W: 5, C: 3}, Planes: 1, Step: len(p.Steps) - 1, Precision: plan.Float, MACs: 5 * 3 * 5, WhyFloat: "not both of its inputs are signs"},
	}, plan.Summarize(n, p))
}

func TestStrings(t *testing.T) {
	require.Equal(t, "none relu prelu clip function ActivationKind(9)", fmt.Sprint(plan.ActivationNone, " ", plan.ActivationReLU, " ", plan.ActivationPReLU, " ",
		plan.ActivationClip, " ", plan.ActivationFunction, " ", plan.ActivationKind(9)))
	for kind, op := range map[string]plan.Op{
		"binarize": &plan.Binarize{}, "conv": &plan.Conv{}, "dense": &plan.Conv{Dense: true}, "maxpool": &plan.MaxPool{},
		"affine": &plan.Affine{}, "sign": &plan.Sign{}, "add": &plan.Add{}, "flatten": &plan.Flatten{},
		"avgpool": &plan.AvgPool{}, "mul": &plan.Pair{}, "min": &plan.Pair{Kind: plan.PairMin}, "max": &plan.Pair{Kind: plan.PairMax}, "mask": &plan.Pair{Kind: plan.PairMask}, "concat": &plan.Concat{}, "channels": &plan.Channels{}, "quantize": &plan.Quantize{}, "table": &plan.Table{},
		"pixels": &plan.Pixels{}, "resample": &plan.Resample{}, "topk": &plan.TopK{}, "matmul": &plan.MatMul{}, "transpose": &plan.Transpose{},
	} {
		require.Equal(t, kind, plan.Step{Op: op}.Kind())
	}
}
