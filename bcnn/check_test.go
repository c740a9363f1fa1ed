package bcnn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// small is a well-formed network that the cases below break.
func small() *bcnn.Network {
	n := &bcnn.Network{
		Name:   "small",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 6, W: 6, C: 3}, DType: bcnn.Uint8}},
		Labels: []string{"a", "b"},
	}
	pad := bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}
	n.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{1, 2, 3}})
	n.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: pad}, Out: 2, PadValue: -1,
		Weights: bcnn.Weights{Bits: make([]uint64, 18)}})
	n.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
	n.Append("bn", bcnn.BatchNorm{Gamma: []float32{1, 1}, Beta: []float32{0, 0}, Mean: []float32{0, 0}, Var: []float32{1, 1}})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsMinus})
	n.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: make([]uint64, 2)}})
	n.Append("softmax", bcnn.Softmax{})
	return n
}

func TestCheckNamesLayerAndCause(t *testing.T) {
	require.NoError(t, small().Check())
	conv := func(change func(*bcnn.Conv2D)) func(*bcnn.Network) {
		return func(n *bcnn.Network) {
			c := n.Layers[1].Op.(bcnn.Conv2D)
			change(&c)
			n.Layers[1].Op = c
		}
	}
	op := func(i int, op bcnn.Op) func(*bcnn.Network) {
		return func(n *bcnn.Network) { n.Layers[i].Op = op }
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		change func(*bcnn.Network)
		want   []string
	}{
		{"no layers", func(n *bcnn.Network) { n.Layers = nil }, []string{"no layers"}},
		{"input type", func(n *bcnn.Network) { n.Inputs[0].DType = bcnn.Bits }, []string{"input", "bits"}},
		{"input empty", func(n *bcnn.Network) { n.Inputs[0].Shape.W = 0 }, []string{"input", "empty"}},
		{"input huge", func(n *bcnn.Network) { n.Inputs[0].Shape = bcnn.Shape{H: 1 << 16, W: 1 << 10, C: 1 << 10} }, []string{"input", "values"}},
		{"input wide", func(n *bcnn.Network) { n.Inputs[0].Shape = bcnn.Shape{H: 1, W: 1<<16 + 1, C: 1} }, []string{"input", "larger"}},
		{"input deep", func(n *bcnn.Network) { n.Inputs[0].Shape = bcnn.Shape{H: 1, W: 1, C: 1<<22 + 1} }, []string{"input", "larger"}},
		{"input overflow", func(n *bcnn.Network) { n.Inputs[0].Shape = bcnn.Shape{H: math.MaxInt, W: math.MaxInt, C: 2} }, []string{"input", "larger"}},
		{"resize", func(n *bcnn.Network) { n.Inputs[0].Resize = 5 }, []string{"resize 5"}},
		{"no name", func(n *bcnn.Network) { n.Layers[2].Name = "" }, []string{"layer 2", "name"}},
		{"same name", func(n *bcnn.Network) { n.Layers[2].Name = "conv" }, []string{`"conv"`, "another layer"}},
		{"no op", op(2, nil), []string{`"pool"`, "it has no operation"}},
		{"a pointer", op(2, &bcnn.ReLU{}), []string{`"pool"`, "the operation is a pointer, *bcnn.ReLU, want a value"}},
		{"a nil pointer", op(2, (*bcnn.ReLU)(nil)), []string{`"pool"`, "the operation is a pointer, *bcnn.ReLU, want a value"}},
		{"forward reference", func(n *bcnn.Network) { n.Layers[2].Inputs = []int{3} }, []string{`"pool"`, "layer 3"}},
		{"reference to itself", func(n *bcnn.Network) { n.Layers[2].Inputs = []int{2} }, []string{`"pool"`, "layer 2, want an earlier layer"}},
		{"negative reference", func(n *bcnn.Network) { n.Layers[2].Inputs = []int{-2} }, []string{`"pool"`, "layer -2"}},
		{"no inputs", func(n *bcnn.Network) { n.Layers[2].Inputs = nil }, []string{`"pool"`, "0 inputs"}},
		{"unused", func(n *bcnn.Network) { n.Layers[4].Inputs = []int{2} }, []string{`"bn"`, "not used"}},
		{"labels", func(n *bcnn.Network) { n.Labels = []string{"a"} }, []string{"1 labels for 2"}},
		{"softmax inside", op(2, bcnn.Softmax{}), []string{`"bn"`, "softmax"}},
		{"binarize later", op(1, bcnn.Binarize{Scheme: bcnn.SchemeLBP}), []string{`"conv"`, "uint8 input"}},
		{"scheme", op(0, bcnn.Binarize{Scheme: "x"}), []string{"binarize", `"x"`}},
		{"thresholds", op(0, bcnn.Binarize{Scheme: bcnn.SchemeGrey}), []string{"0 thresholds", "want 1"}},
		{"grey channels", func(n *bcnn.Network) {
			n.Inputs[0].Shape.C = 2
			n.Layers[0].Op = bcnn.Binarize{Scheme: bcnn.SchemeLBP}
		}, []string{"1 or 3 channels"}},
		{"kernel", conv(func(c *bcnn.Conv2D) { c.KH = 0 }), []string{`"conv"`, "kernel 0×3"}},
		{"stride", conv(func(c *bcnn.Conv2D) { c.StrideW = -1 }), []string{`"conv"`, "stride"}},
		{"padding", conv(func(c *bcnn.Conv2D) { c.Pad.Left = -1 }), []string{`"conv"`, "padding -1"}},
		{"too large a window", conv(func(c *bcnn.Conv2D) { c.DilationH = 9 }), []string{`"conv"`, "does not fit"}},
		{"absurd dilation", conv(func(c *bcnn.Conv2D) { c.DilationH = math.MaxInt }), []string{`"conv"`, "dilation"}},
		{"no outputs", conv(func(c *bcnn.Conv2D) { c.Out = 0 }), []string{"0 output channels are too few or too many"}},
		{"groups", conv(func(c *bcnn.Conv2D) { c.Groups = 2 }), []string{"2 groups"}},
		{"negative groups", conv(func(c *bcnn.Conv2D) { c.Groups = -1 }), []string{"-1 groups"}},
		{"pad value", conv(func(c *bcnn.Conv2D) { c.PadValue = 2 }), []string{"padding value 2"}},
		{"pad value of real weights", conv(func(c *bcnn.Conv2D) { c.Weights = bcnn.Weights{F32: make([]float32, 54)} }), []string{"needs binary or integer weights"}},
		{"few weights", conv(func(c *bcnn.Conv2D) { c.Weights.Bits = c.Weights.Bits[1:] }), []string{"17 words"}},
		{"both weights", conv(func(c *bcnn.Conv2D) { c.Weights.F32 = []float32{1} }), []string{"more than one kind"}},
		{"padding bits", conv(func(c *bcnn.Conv2D) { c.Weights.Bits = append(make([]uint64, 17), 8) }), []string{"row 17", "padding bits"}},
		{"bias", conv(func(c *bcnn.Conv2D) { c.Bias = []float32{1} }), []string{"1 values of bias for 2"}},
		{"bias not finite", conv(func(c *bcnn.Conv2D) { c.Bias = []float32{1, nan} }), []string{"bias[1]", "NaN"}},
		{"pool dilation", op(2, bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, DilationH: 2}}), []string{`"pool"`, "dilation"}},
		{"pool in the padding", op(2, bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 6, StrideW: 6, Pad: bcnn.Padding{Top: 1}}}), []string{`"pool"`, "wholly in the padding"}},
		{"variance", op(3, bcnn.BatchNorm{Gamma: []float32{1, 1}, Beta: []float32{0, 0}, Mean: []float32{0, 0}, Var: []float32{1, 0}}), []string{`"bn"`, "variance[1]"}},
		{"gamma", op(3, bcnn.BatchNorm{Beta: []float32{0, 0}, Mean: []float32{0, 0}, Var: []float32{1, 1}}), []string{"0 values of gamma"}},
		{"affine", op(3, bcnn.Affine{Scale: []float32{1, 2, 3}}), []string{"3 values of scale for 2"}},
		{"sign rule", op(4, bcnn.Sign{}), []string{`"sign"`, "rule for 0"}},
		{"dense outputs", op(5, bcnn.Dense{}), []string{"0 outputs are too few or too many"}},
		{"dense weights", op(5, bcnn.Dense{Out: 2}), []string{`"dense"`, "0 weights, want 2×18"}},
		{"absent input", func(n *bcnn.Network) { n.Layers[0].Inputs = []int{-2} }, []string{`"binarize"`, "layer -2"}},
		{"no inputs", func(n *bcnn.Network) { n.Inputs = nil }, []string{"has no inputs"}},
		{"second input", func(n *bcnn.Network) { n.Inputs = append(n.Inputs, bcnn.Input{DType: bcnn.Float32}) }, []string{"input 2", "empty"}},
		{"large inputs", func(n *bcnn.Network) {
			large := bcnn.Input{Shape: bcnn.Shape{H: 1 << 14, W: 1 << 13, C: 1}, DType: bcnn.Float32}
			n.Inputs = append(n.Inputs, large, large)
		}, []string{"the inputs have more than 268435456 values together"}},
		{"absent output", func(n *bcnn.Network) { n.Outputs = []int{6, 7} }, []string{"output 1 is layer 7"}},
		{"same output", func(n *bcnn.Network) { n.Outputs = []int{6, 2, 6} }, []string{"output 2 is layer 6"}},
		{"no output of the last layer", func(n *bcnn.Network) { n.Outputs = []int{2} }, []string{`"softmax"`, "not used"}},
		{"source of the input", func(n *bcnn.Network) { n.Inputs[0].Source = &bcnn.Source{Dims: []int{107}} }, []string{"input", "dimensions [107]", "6×6×3"}},
		{"source with too many values", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Dims: []int{2, 3, 3, 2}} }, []string{`"sign"`, "dimensions [2 3 3 2]"}},
		{"source with too few values", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Dims: []int{9}} }, []string{`"sign"`, "dimensions [9]"}},
		{"source without values", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Dims: []int{0, 18}} }, []string{`"sign"`, "dimensions [0 18]"}},
		{"source with many dimensions", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Dims: make([]int, 32)} }, []string{`"sign"`, "32 dimensions"}},
		{"source of another type", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Dims: []int{18}, Type: "int7"} }, []string{`"sign"`, `"int7"`}},
		{"offset of values", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Dims: []int{18}, Offset: 1} }, []string{`"sign"`, "offset of 1"}},
		{"large offset", func(n *bcnn.Network) {
			n.Layers[4].Source = &bcnn.Source{Dims: []int{18}, Type: bcnn.SourceUint8, Offset: 256}
		}, []string{`"sign"`, "256"}},
		{"source of bits", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Dims: []int{9}, Type: bcnn.SourceBits} }, []string{`"sign"`, "words"}},
		{"name of a source", func(n *bcnn.Network) { n.Layers[4].Source = &bcnn.Source{Name: "a\n", Dims: []int{18}} }, []string{`"sign"`, "U+000A"}},
		{"long name of a source", func(n *bcnn.Network) {
			n.Layers[4].Source = &bcnn.Source{Name: strings.Repeat("x", 257), Dims: []int{18}}
		}, []string{`"sign"`, "257 bytes"}},
		{"add shapes", func(n *bcnn.Network) {
			n.Layers[2] = bcnn.Layer{Name: "add", Op: bcnn.Add{}, Inputs: []int{1, 0}}
		}, []string{`"add"`, "6×6×2 and 6×6×3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := small()
			c.change(n)
			err := n.Check()
			require.Error(t, err)
			for _, w := range append(c.want, "small") {
				require.ErrorContains(t, err, w)
			}
			_, err = lower.Network(t.Context(), n, lower.Options{})
			require.Error(t, err)
		})
	}
}

func TestTensorCheck(t *testing.T) {
	s := bcnn.Shape{H: 2, W: 3, C: 65}
	for _, d := range []bcnn.DType{bcnn.Uint8, bcnn.Bits, bcnn.Float32} {
		require.NoError(t, bcnn.NewTensor(d, 1, s).Check(d, s))
		x := bcnn.NewTensor(d, 2, s)
		require.NoError(t, x.Check(d, s))
		require.ErrorContains(t, x.Check(d, bcnn.Shape{H: 2, W: 3, C: 64}), "2×3×64")
		x.N = 3
		require.ErrorContains(t, x.Check(d, s), "elements")
		x.N = 0
		require.ErrorContains(t, x.Check(d, s), "batch size 0")
	}
	require.EqualValues(t, 2*3*2*8, s.Bytes(bcnn.Bits))
	require.ErrorContains(t, bcnn.NewTensor(bcnn.Uint8, 1, s).Check(bcnn.Float32, s), "uint8")
}

func TestNamesOfEnds(t *testing.T) {
	bytes := bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 2}, DType: bcnn.Uint8}
	named := bytes
	named.Source = &bcnn.Source{Name: "photo", Dims: []int{2}}
	n := &bcnn.Network{Name: "ends", Inputs: []bcnn.Input{bytes, named, bytes}}
	n.Append("a", bcnn.ReLU{})
	n.Append("b", bcnn.ReLU{})
	n.Append("c", bcnn.ReLU{})
	require.Equal(t, []string{"input", "photo", "input 3"}, []string{n.InputName(0), n.InputName(1), n.InputName(2)})
	require.Equal(t, "output", n.OutputName(0))
	n.Outputs = []int{2, 0, 1}
	n.Layers[0].Source = &bcnn.Source{Name: "scores"}
	n.Layers[1].Source = &bcnn.Source{Dims: []int{2}} // without a name
	require.Equal(t, []string{"output", "scores", "output 3"}, []string{n.OutputName(0), n.OutputName(1), n.OutputName(2)})
}
