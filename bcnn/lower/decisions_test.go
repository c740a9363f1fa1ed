package lower_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

func kinds(p *plan.Plan) []string {
	var k []string
	for _, s := range p.Steps {
		k = append(k, s.Kind()+" "+s.Name)
	}
	return k
}

func TestLowerFuses(t *testing.T) {
	p, err := lower.Network(t.Context(), small(), lower.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"binarize binarize", "conv conv+pool+bn+sign", "dense dense"}, kinds(p))
	require.True(t, p.Softmax)
	require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 2}, p.OutputShape())
	require.Equal(t, bcnn.Shape{H: 3, W: 3, C: 2}, p.Tensors[p.Steps[1].Out].Shape)

	p, err = lower.Network(t.Context(), small(), lower.Options{Unfused: true})
	require.NoError(t, err)
	require.Equal(t, []string{"binarize binarize", "conv conv", "sign bn+sign", "maxpool pool", "dense dense"}, kinds(p))
}

func TestLowerKeepsBytesExactWhereTheZeroIsAByte(t *testing.T) {
	for _, c := range []struct {
		name  string
		scale []bcnn.Affine
		zero  uint8
		why   string
	}{
		{"plain", nil, 0, ""},
		{"minus 128, over 64", []bcnn.Affine{{Bias: []float32{-128}}, {Scale: []float32{1.0 / 64}}}, 128, ""},
		{"over 255", []bcnn.Affine{{Scale: []float32{1.0 / 255}}}, 0, ""},
		{"negative", []bcnn.Affine{{Scale: []float32{-2}, Bias: []float32{510}}}, 255, ""},
		{"half", []bcnn.Affine{{Scale: []float32{2}, Bias: []float32{-255}}}, 0, "not one integer"},
		{"not a byte", []bcnn.Affine{{Bias: []float32{1}}}, 0, "not a byte"},
		{"just no byte", []bcnn.Affine{{Bias: []float32{-256}}}, 0, "not a byte"},
		{"the last byte", []bcnn.Affine{{Bias: []float32{-255}}}, 255, ""},
		{"scales differ", []bcnn.Affine{{Scale: []float32{1, 2, 1}}}, 0, "differently"},
		{"zeros differ", []bcnn.Affine{{Bias: []float32{-1, -2, -1}}}, 0, "one integer"},
		{"zeros differ, one is no byte", []bcnn.Affine{{Bias: []float32{-1, -300, -1}}}, 0, "one integer"},
		{"the last scale differs", []bcnn.Affine{{Scale: []float32{1, 1, 2}}}, 0, "differently"},
		{"constant", []bcnn.Affine{{Scale: []float32{0}}}, 0, "scale of the input is 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := small()
			n.Layers = nil
			for i, a := range c.scale {
				n.Append("scale"+string(rune('a'+i)), a)
			}
			n.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 6, KW: 6}, Out: 2, Weights: bcnn.Weights{Bits: make([]uint64, 72)}})
			p, err := lower.Network(t.Context(), n, lower.Options{})
			require.NoError(t, err)
			conv := p.Steps[len(p.Steps)-1].Op.(*plan.Conv)
			report := plan.Summarize(n, p)
			require.Len(t, report, 1)
			require.Equal(t, c.why == "", report[0].Precision < plan.Float)
			require.EqualValues(t, 216, report[0].Params)
			require.EqualValues(t, 864, report[0].BytesFloat)
			require.EqualValues(t, 576, report[0].BytesPacked)
			require.EqualValues(t, 216, report[0].MACs)
			require.Equal(t, c.zero, conv.ZeroPoint)
			if c.why == "" {
				require.Len(t, p.Steps, 1)
				require.Nil(t, conv.F32)
			} else {
				require.ErrorContains(t, errorString(p.Note(len(p.Steps)-1).WhyFloat), c.why)
				require.Len(t, conv.F32, 216)
			}
		})
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }

// A threshold on float32 sums must sit on the very value where the network's
// own arithmetic changes sign.
func TestFloatThresholdIsTheFirstValueOfTheOtherSign(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	f := func() float32 { return float32(rng.NormFloat64()) }
	const channels = 200
	bn := bcnn.BatchNorm{Epsilon: 1e-5}
	for range channels {
		bn.Gamma, bn.Beta = append(bn.Gamma, f()), append(bn.Beta, f())
		bn.Mean, bn.Var = append(bn.Mean, f()), append(bn.Var, f()*f()+1)
	}
	for i := range bn.Var {
		bn.Var[i] = max(bn.Var[i], 0.1)
	}
	n := &bcnn.Network{Name: "bn", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: channels}, DType: bcnn.Float32}}}
	n.Append("bn", bn)
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsMinus})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	threshold := p.Steps[0].Op.(*plan.Sign).Threshold
	for c, cut := range threshold.F32 {
		positive := func(x float32) bool {
			y := (float64(x)-float64(bn.Mean[c]))*(float64(bn.Gamma[c])/math.Sqrt(float64(bn.Var[c])+float64(bn.Epsilon))) + float64(bn.Beta[c])
			return y > 0
		}
		flip := threshold.Flip[c/64]>>(c%64)&1 == 1
		require.Equal(t, bn.Gamma[c] < 0, flip)
		require.Equal(t, !flip, positive(cut), "channel %d", c)
		require.Equal(t, flip, positive(math.Nextafter32(cut, float32(math.Inf(-1)))), "channel %d", c)
	}
}

// The same of float32 values, whose extremes are infinite.
func TestConstantChannelsOfFloats(t *testing.T) {
	n := fed(bcnn.Float32, 1, 1, 4)
	plus(n, bcnn.Affine{Scale: []float32{0, 0, 0, 0}, Bias: []float32{1, -1, 0, -0.5}})
	plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	inf := float32(math.Inf(1))
	threshold := p.Steps[0].Op.(*plan.Sign).Threshold
	require.Equal(t, []float32{-inf, inf, -inf, inf}, threshold.F32)
	require.Nil(t, threshold.Flip)
}

// A threshold may be any finite float32, the extremes included.
func TestExtremeThresholds(t *testing.T) {
	const most = math.MaxFloat32
	n := fed(bcnn.Float32, 1, 1, 4)
	plus(n, bcnn.Affine{Bias: []float32{most, -most, 0, math.SmallestNonzeroFloat32}})
	plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	// −most passes, and nothing is less.
	want := []float32{float32(math.Inf(-1)), most, float32(math.Copysign(0, -1)), -math.SmallestNonzeroFloat32}
	require.Equal(t, want, p.Steps[0].Op.(*plan.Sign).Threshold.F32)
}

func TestConstantChannels(t *testing.T) {
	n := small()
	n.Layers[3].Op = bcnn.BatchNorm{Gamma: []float32{0, 0}, Beta: []float32{1, 0}, Mean: []float32{9, 9}, Var: []float32{1, 1}}
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	require.Equal(t, []int32{math.MinInt32, math.MaxInt32}, p.Steps[1].Op.(*plan.Conv).Threshold.I32)
}

// The thresholds of bytes lie between 0 and 255, or at the extremes.
func TestThresholdsOfBytes(t *testing.T) {
	n := fed(bcnn.Uint8, 1, 1, 6)
	plus(n, bcnn.Affine{Bias: []float32{0, -0.5, -255, -255.5, 0.5, -254.5}})
	plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	require.Equal(t, []int32{math.MinInt32, 1, 255, math.MaxInt32, math.MinInt32, 255}, p.Steps[0].Op.(*plan.Binarize).Threshold.I32)

	for scheme, thresholds := range map[bcnn.Scheme][]int32{bcnn.SchemeLBP: nil, bcnn.SchemeMinMax: nil, bcnn.SchemeGrey: {7}, bcnn.SchemeThreshold: {7, 8, 9}} {
		n := one(bcnn.Uint8, 1, 1, 3, bcnn.Binarize{Scheme: scheme, Thresholds: thresholds})
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		step := p.Steps[0].Op.(*plan.Binarize)
		require.Equal(t, scheme, step.Scheme)
		require.Equal(t, thresholds != nil, step.Threshold != nil)
		if thresholds != nil {
			require.Equal(t, thresholds, step.Threshold.I32)
		}
	}
}

// Complemented filters of several words keep their padding.
func TestFiltersAreComplemented(t *testing.T) {
	n := fed(bcnn.Float32, 1, 2, 130)
	plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	conv := kernel(130, 3, bcnn.Window{KH: 1, KW: 2})
	for i := range conv.Weights.Bits {
		conv.Weights.Bits[i] = 0x123456789ABCDEF0 * uint64(i+1)
		if i%3 == 2 {
			conv.Weights.Bits[i] &= 3
		}
	}
	plus(n, conv)
	plus(n, bcnn.Affine{Scale: []float32{1, -1, 1}})
	plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	step := p.Steps[1].Op.(*plan.Conv)
	for i, word := range conv.Weights.Bits {
		want := word
		if i/6 == 1 { // the second of three filters
			if want = ^word; i%3 == 2 {
				want = ^word & 3
			}
		}
		require.Equal(t, want, step.Bits[i], "word %d", i)
	}
}

// A ReLU stands between the bytes and exact sums.
func TestLowerKeepsNoBytesBehindReLU(t *testing.T) {
	n := fed(bcnn.Uint8, 1, 1, 2)
	plus(n, bcnn.ReLU{})
	plus(n, point(2, 1))
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	conv := p.Steps[1].Op.(*plan.Conv)
	require.Equal(t, "the input passes through an activation", p.Note(1).WhyFloat)
	require.Zero(t, conv.ZeroPoint)
}

func TestLowerDoesNotChangeTheNetwork(t *testing.T) {
	n := small()
	n.Layers[3].Op = bcnn.BatchNorm{Gamma: []float32{-1, -1}, Beta: []float32{1, 0}, Mean: []float32{9, 9}, Var: []float32{1, 1}}
	n.Layers[2], n.Layers[3] = n.Layers[3], n.Layers[2]
	n.Layers[2].Inputs, n.Layers[3].Inputs = []int{1}, []int{2}
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	weights := p.Steps[1].Op.(*plan.Conv).Bits
	require.EqualValues(t, 7, weights[0], "the filter is complemented, its padding stays 0")
	require.Zero(t, n.Layers[1].Op.(bcnn.Conv2D).Weights.Bits[0])
}

// The largest sum that is possible is held against the bound exactly.
func TestSumsThatOverflowAreRefused(t *testing.T) {
	lower := func(n *bcnn.Network, unfused bool) error {
		_, err := lower.Network(t.Context(), n, lower.Options{Unfused: unfused})
		return err
	}
	// 14,221,746 bytes of up to 255 − z: 2³¹ − 2 where z is 104, as for 151.
	bytes := func(zero float32) *bcnn.Network {
		n := fed(bcnn.Uint8, 341, 331, 126)
		plus(n, bcnn.Affine{Bias: []float32{-zero}})
		plus(n, kernel(126, 1, bcnn.Window{KH: 341, KW: 331}))
		return n
	}
	require.NoError(t, lower(bytes(104), false))
	require.NoError(t, lower(bytes(151), false))
	require.ErrorContains(t, lower(bytes(103), false), `layer "layer0000001": sums may reach 2161705392, but must not exceed 2147483646 to fit into 32 bits`)
	require.ErrorContains(t, lower(bytes(152), false), "sums may reach 2161705392, but must not exceed 2147483646 to fit into 32 bits")
	require.ErrorContains(t, lower(bytes(104), true), "sums may reach 2147483646, but float32 holds all integers only up to 16777216")

	// 2²⁴ bits, in two groups; float32 holds no odd numbers beyond.
	bits := func(w int) *bcnn.Network {
		n := fed(bcnn.Float32, 512, w, 128)
		plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		c := kernel(64, 2, bcnn.Window{KH: 512, KW: w})
		c.Groups = 2
		plus(n, c)
		return n
	}
	require.NoError(t, lower(bits(512), true))
	require.ErrorContains(t, lower(bits(513), true), "sums may reach 16809984, but float32 holds all integers only up to 16777216")
	require.NoError(t, lower(bits(513), false))
}

// Only convolutions on bits have a padding value, and only those on bytes a zero
// point.
func TestPaddingValueIsOfBits(t *testing.T) {
	for _, c := range []struct {
		net  *bcnn.Network
		want int
	}{
		{fed(bcnn.Uint8, 2, 2, 1), 0},
		{fed(bcnn.Float32, 2, 2, 1), 0},
		{one(bcnn.Float32, 2, 2, 1, bcnn.Sign{Zero: bcnn.ZeroIsPlus}), 1},
	} {
		conv := kernel(1, 1, bcnn.Window{KH: 2, KW: 2})
		conv.PadValue = 1
		plus(c.net, conv)
		p, err := lower.Network(t.Context(), c.net, lower.Options{})
		require.NoError(t, err)
		step := p.Steps[len(p.Steps)-1].Op.(*plan.Conv)
		require.Equal(t, c.want, step.PadValue)
		require.Zero(t, step.ZeroPoint)
		require.Nil(t, step.Border)
	}
}

func TestProbabilities(t *testing.T) {
	p := bcnn.Probabilities([]float32{1000, 1000, -1000})
	require.Equal(t, []float64{0.5, 0.5, 0}, p)
	require.InDelta(t, 0.7310585786300049, bcnn.Probabilities([]float32{1, 0})[0], 1e-15)
	require.InDelta(t, -0.3132616875182228, bcnn.LogProbabilities([]float32{1, 0})[0], 1e-15)
	require.Equal(t, []float64{-math.Ln2, -math.Ln2, -2000 - math.Ln2}, bcnn.LogProbabilities([]float32{1000, 1000, -1000}))
}

func TestLuma(t *testing.T) {
	require.EqualValues(t, 255, bcnn.Luma(255, 255, 255))
	require.EqualValues(t, 76, bcnn.Luma(255, 0, 0))
	require.EqualValues(t, 149, bcnn.Luma(0, 255, 0))
	require.EqualValues(t, 28, bcnn.Luma(0, 0, 255))
}

func TestMACs(t *testing.T) {
	// 3×2 kernel over 5×7×4 in two groups: 3×4 outputs of 6 channels, of which a pool
	// of 2×2 drops a row.
	p := &plan.Plan{Tensors: []plan.Tensor{{Shape: bcnn.Shape{H: 5, W: 7, C: 4}}}}
	conv := &plan.Conv{
		Window: bcnn.Window{KH: 3, KW: 2, StrideH: 2, StrideW: 2, DilationH: 1, DilationW: 1,
			Pad: bcnn.Padding{Top: 1, Bottom: 1, Right: 1}},
		Out: 6, Groups: 2, Pool: &bcnn.Window{KH: 2, KW: 2},
	}
	p.Steps = []plan.Step{{In: []int{0}, Op: conv}, {In: []int{0}, Op: &plan.Affine{}}}
	require.Equal(t, int64(3*4*6*3*2*2), p.MACs(0))
	require.Equal(t, p.MACs(0), p.Products(0))
	require.Zero(t, p.MACs(1))

	// Two planes of the same image with weights of two parts: four products of bits for each
	// of the network's.
	p.Tensors[0].Shape = bcnn.Shape{H: 2 * 5, W: 7, C: 2 * 4}
	conv.InPlanes, p.Notes = 2, []plan.Note{{Parts: 2}, {}}
	require.Equal(t, int64(3*4*6*3*2*2), p.MACs(0))
	require.Equal(t, 4*p.MACs(0), p.Products(0))
}

func TestImagesOfABatch(t *testing.T) {
	for _, d := range []bcnn.DType{bcnn.Uint8, bcnn.Bits, bcnn.Float32} {
		shape := bcnn.Shape{H: 2, W: 3, C: 70}
		batch := bcnn.NewTensor(d, 5, shape)
		part := batch.Images(1, 3)
		require.Equal(t, bcnn.NewTensor(d, 3, shape), part)
		switch d { // the same memory
		case bcnn.Uint8:
			part.U8[0] = 7
			require.EqualValues(t, 7, batch.U8[2*3*70])
		case bcnn.Bits:
			part.Words[0] = 7
			require.EqualValues(t, 7, batch.Words[2*3*2])
		case bcnn.Float32:
			part.F32[0] = 7
			require.EqualValues(t, 7, batch.F32[2*3*70])
		}
		require.NoError(t, part.Check(d, shape))
		require.Equal(t, batch.Images(2, 1), part.Images(1, 1))
	}
}

// one returns a network of one layer.
func one(d bcnn.DType, h, w, c int, op bcnn.Op) *bcnn.Network {
	n := fed(d, h, w, c)
	plus(n, op)
	return n
}
