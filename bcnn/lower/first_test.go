package lower_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// firstNet has a convolution of scaled bytes with a bias, what reads it, and an output in
// the middle.
func firstNet(rng *rand.Rand, centre []float32) (*bcnn.Network, []float32) {
	net := &bcnn.Network{Name: "first", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 9, W: 8, C: 3}, DType: bcnn.Uint8}}}
	net.Append("centre", bcnn.Affine{Bias: centre})
	net.Append("scale", bcnn.Affine{Scale: []float32{1.0 / 64}})
	weights, bias := make([]float32, 6*7*7*3), make([]float32, 6)
	for i := range weights {
		weights[i] = float32(rng.NormFloat64())
	}
	clear(weights[:147]) // a filter of zeros
	for i := range weights[147:294] {
		weights[147+i] = 1e-3 * (1 + weights[147+i]/100) // one of almost equal weights
	}
	for i := range bias {
		bias[i] = rng.Float32()
	}
	window := bcnn.Window{KH: 7, KW: 7, StrideH: 2, StrideW: 2, Pad: bcnn.Padding{Top: 3, Left: 3, Bottom: 3, Right: 3}}
	conv := net.Append("conv", bcnn.Conv2D{Window: window, Out: 6, Weights: bcnn.Weights{F32: weights}, Bias: bias})
	net.Append("conv.integers", bcnn.ReLU{}) // the name that comes to mind
	net.Append("add", bcnn.Add{}, conv, conv+1)
	net.Outputs = []int{conv, conv + 2}
	net.Layers[conv].Source = &bcnn.Source{Name: "c", Dims: []int{5, 4, 6}}
	return net, weights
}

func TestRoundFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	net, weights := firstNet(rng, []float32{-128})
	before, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	image := bcnn.NewTensor(bcnn.Uint8, 3, net.Inputs[0].Shape)
	for i := range image.U8 {
		image.U8[i] = uint8(rng.IntN(256))
	}
	for i := range image.U8[:len(image.U8)/3] {
		image.U8[i] = 255 * uint8(rng.IntN(2))
	}
	want, err := ref.RunAll(t.Context(), before, []bcnn.Tensor{image}, nil)
	require.NoError(t, err)
	for _, c := range []struct {
		bits int
		off  float64 // of a weight
	}{{16, 0.51 / 32639}, {12, 0.51 / 2047}, {8, 0.51 / 127}, {2, 0.51}} {
		rounded, layers, err := lower.RoundFirst(t.Context(), net, c.bits, lower.Options{})
		require.NoError(t, err)
		require.Len(t, layers, 1)
		require.Equal(t, "conv", layers[0].Layer)
		require.Equal(t, c.bits, layers[0].Bits)
		require.Positive(t, layers[0].Weight)
		require.LessOrEqual(t, layers[0].Weight, c.off)
		require.Positive(t, layers[0].Output)
		require.Equal(t, []string{"centre", "scale", "conv.integers'", "conv", "conv.integers", "add"}, names(rounded))
		require.Equal(t, net.Layers[2].Source, rounded.Layers[3].Source)
		p, err := lower.Network(t.Context(), rounded, lower.Options{})
		require.NoError(t, err)
		conv := p.Steps[0].Op.(*plan.Conv)
		require.Empty(t, p.Note(0).WhyFloat)
		require.Equal(t, c.bits > 8, conv.Int16 != nil)
		require.Equal(t, c.bits <= 8, conv.Int8 != nil)
		require.Equal(t, c.bits <= 8, rounded.Layers[2].Op.(bcnn.Conv2D).Weights.Int8 != nil) // of a byte in a file
		got, err := ref.RunAll(t.Context(), p, []bcnn.Tensor{image}, nil)
		require.NoError(t, err)
		// Within the bound that the report gives, and float32's own rounding.
		for i, v := range want[0].F32 {
			filter := weights[i%6*147:][:147]
			var most float64
			for _, w := range filter {
				most += 2 * math.Abs(float64(w))
			}
			require.InDelta(t, v, got[0].F32[i], layers[0].Output*most+1e-5*most+1e-7, "output %d, %d bits", i, c.bits)
		}
	}
	require.Equal(t, []string{"centre", "scale", "conv", "conv.integers", "add"}, names(net))
	for _, bits := range []int{-1, 0, 1, 17} {
		_, _, err = lower.RoundFirst(t.Context(), net, bits, lower.Options{})
		require.ErrorContains(t, err, "want 2 to 16")
	}
}

func names(n *bcnn.Network) (all []string) {
	for _, l := range n.Layers {
		all = append(all, l.Name)
	}
	return all
}

// alike returns weights of nearly 0.7, which no rule takes for bits.
func alike(n int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = 0.7 - float32(i%101)*0.7e-6
	}
	return w
}

// Sums of 20×20×3 weights of 16 bits that are all alike do not fit into 32: the filter gets fewer.
func TestRoundFirstOfManyTaps(t *testing.T) {
	net := &bcnn.Network{Name: "many", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 20, W: 20, C: 3}, DType: bcnn.Uint8}}}
	net.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: alike(2 * 20 * 20 * 3)}})
	rounded, layers, err := lower.RoundFirst(t.Context(), net, 16, lower.Options{})
	require.NoError(t, err)
	require.Equal(t, 14, layers[0].Bits)
	sum := int64(0)
	for _, w := range rounded.Layers[0].Op.(bcnn.Dense).Weights.F32[:1200] {
		sum += int64(w)
	}
	require.LessOrEqual(t, 255*sum, int64(math.MaxInt32))
	require.Greater(t, 255*(sum+2*1200), int64(math.MaxInt32))
	p, err := lower.Network(t.Context(), rounded, lower.Options{})
	require.NoError(t, err)
	require.NotNil(t, p.Steps[0].Op.(*plan.Conv).Int16)
}

func TestRoundFirstRefuses(t *testing.T) {
	net, _ := firstNet(rand.New(rand.NewPCG(2, 1)), []float32{-127.5})
	_, _, err := lower.RoundFirst(t.Context(), net, 16, lower.Options{})
	require.ErrorContains(t, err, "conv: the zero of the scaled input is not one integer for all channels")
	net.Inputs[0].DType = bcnn.Float32
	_, _, err = lower.RoundFirst(t.Context(), net, 16, lower.Options{})
	require.ErrorContains(t, err, "no layer with real weights reads the bytes of an input")
}

// A layer of too many taps for any bits keeps its weights, and does not stand in the way of
// others.
func TestRoundFirstOfTooManyTaps(t *testing.T) {
	testenv.Long(t)
	net := &bcnn.Network{Name: "many", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 2905, W: 2900, C: 1}, DType: bcnn.Uint8}}}
	net.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: alike(2905 * 2900)}})
	_, _, err := lower.RoundFirst(t.Context(), net, 16, lower.Options{})
	require.ErrorContains(t, err, "no layer can have first weights of 16 bits: dense: ")
	net.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 3}, Out: 1, Weights: bcnn.Weights{F32: []float32{0.3, -0.211, 0.0777}}}, bcnn.NetworkInput)
	net.Outputs = []int{0, 1}
	rounded, layers, err := lower.RoundFirst(t.Context(), net, 16, lower.Options{})
	require.NoError(t, err)
	require.Len(t, layers, 1)
	require.Equal(t, "conv", layers[0].Layer)
	require.Equal(t, []string{"dense", "conv.integers", "conv"}, names(rounded))
	require.Equal(t, []int{0, 2}, rounded.Outputs)
}
