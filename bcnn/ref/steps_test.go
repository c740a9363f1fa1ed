package ref_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

var (
	negative = float32(math.Copysign(0, -1))
	tiny     = float32(math.SmallestNonzeroFloat32)
	inf      = float32(math.Inf(1))
	nan      = float32(math.NaN())
)

// What each activation makes of every kind of value, NaN apart.
func TestActivations(t *testing.T) {
	in := floatTensor(1, 1, 8, -inf, -2, -tiny, negative, 0, tiny, 3, inf)
	tiniest := math.Nextafter32(1, 2)
	for _, c := range []struct {
		name string
		a    plan.Activation
		want []float32
	}{
		{"none", plan.Activation{}, in.F32},
		{"relu", relu, []float32{0, 0, 0, negative, 0, tiny, 3, inf}},
		{"prelu", plan.Activation{Kind: plan.ActivationPReLU, Slope: []float32{0.5, tiniest, 0.75, -1, -1, 9, 9, 9}},
			[]float32{-inf, -2 * tiniest, -tiny, negative, 0, tiny, 3, inf}},
		{"prelu of slope 0", plan.Activation{Kind: plan.ActivationPReLU, Slope: []float32{-1, 0, 0, 0, 0, 0, 0, 0}},
			[]float32{inf, negative, negative, negative, 0, tiny, 3, inf}},
		{"relu6", plan.Activation{Kind: plan.ActivationClip, Max: 6}, []float32{0, 0, 0, negative, 0, tiny, 3, 6}},
		{"from −0", plan.Activation{Kind: plan.ActivationClip, Min: negative, Max: 6}, []float32{negative, negative, negative, negative, 0, tiny, 3, 6}},
		{"up to −0", plan.Activation{Kind: plan.ActivationClip, Min: -3, Max: negative}, []float32{-3, -2, -tiny, negative, 0, negative, negative, negative}},
		{"hardtanh", plan.Activation{Kind: plan.ActivationClip, Min: -1, Max: 1}, []float32{-1, -1, -tiny, negative, 0, tiny, 1, 1}},
		{"open below", plan.Activation{Kind: plan.ActivationClip, Min: -inf, Max: 1}, []float32{-inf, -2, -tiny, negative, 0, tiny, 1, 1}},
		{"open above", plan.Activation{Kind: plan.ActivationClip, Min: -1, Max: inf}, []float32{-1, -1, -tiny, negative, 0, tiny, 3, inf}},
		{"one value", plan.Activation{Kind: plan.ActivationClip, Min: 2, Max: 2}, []float32{2, 2, 2, 2, 2, 2, 2, 2}},
	} {
		want := floatTensor(1, 1, 8, c.want...)
		t.Run(c.name, func(t *testing.T) {
			requireStep(t, &plan.Affine{Activation: c.a}, in, want)
			// A convolution and a sum do the same to what they have summed.
			sums := floatTensor(1, 1, 8, -5, -2, -0.5, 0, 0, 0.5, 3, 5)
			halves := floatTensor(1, 1, 8, -2.5, -1, -0.25, 0, 0, 0.25, 1.5, 2.5)
			identity := make([]float32, 64)
			for i := range 8 {
				identity[9*i] = 1
			}
			of := step(t, &plan.Affine{Activation: c.a}, sums)
			requireStep(t, &plan.Conv{Window: window(1, 1), Out: 8, Groups: 1, F32: identity, Bias: make([]float32, 8), Activation: c.a}, sums, of)
			requireStep(t, &plan.Add{Activation: c.a}, halves, of)
		})
	}
	// Of NaN.
	for _, kind := range []plan.ActivationKind{plan.ActivationReLU, plan.ActivationClip, plan.ActivationPReLU} {
		a := plan.Activation{Kind: kind, Min: -2, Max: 5}
		if kind == plan.ActivationPReLU {
			a.Slope = []float32{2}
		}
		got := step(t, &plan.Affine{Activation: a}, floatTensor(1, 1, 1, nan))
		require.True(t, got.F32[0] != got.F32[0], kind)
	}
}

// step returns what one step of the shape of its input makes.
func step(t *testing.T, op plan.Op, in bcnn.Tensor) bcnn.Tensor {
	got, err := ref.Run(t.Context(), single(op, in, in), in, nil)
	require.NoError(t, err)
	return got
}

func TestAvgPool(t *testing.T) {
	same := window(2, 2)
	same.Pad = bcnn.Padding{Top: 1, Left: 1}
	wide := window(1, 2)
	wide.StrideW = 2
	image := floatTensor(2, 2, 1, 1, 2, 3, 6)
	for _, c := range []struct {
		name     string
		op       plan.AvgPool
		in, want bcnn.Tensor
	}{
		{"whole", plan.AvgPool{Window: window(2, 2)}, image, floatTensor(1, 1, 1, 3)},
		{"padding counts", plan.AvgPool{Window: same, CountPadding: true}, image, floatTensor(2, 2, 1, 0.25, 0.75, 1, 3)},
		{"padding does not count", plan.AvgPool{Window: same}, image, floatTensor(2, 2, 1, 1, 1.5, 2, 3)},
		{"of bits", plan.AvgPool{Window: same}, bitTensor(2, 2, 1, 1, -1, -1, -1), floatTensor(2, 2, 1, 1, 0, 0, -0.5)},
		{"of bits, padding counts", plan.AvgPool{Window: same, CountPadding: true}, bitTensor(2, 2, 1, 1, -1, -1, -1), floatTensor(2, 2, 1, 0.25, 0, 0, -0.5)},
		{"channels and images", plan.AvgPool{Window: wide}, floatTensor(1, 3, 2, 1, 2, 3, 4, 9, 9, 5, 6, 7, 8, 9, 9), floatTensor(1, 1, 2, 2, 3, 6, 7)},
		{"a third", plan.AvgPool{Window: window(1, 3)}, floatTensor(1, 3, 1, 1, 0, 0), floatTensor(1, 1, 1, float32(1)/3)},
		{"the order of the sums", plan.AvgPool{Window: window(2, 2)}, floatTensor(2, 2, 1, 0x1p24, 1, 1, -0x1p24), floatTensor(1, 1, 1, 0)},
		{"of −0", plan.AvgPool{Window: window(1, 2)}, floatTensor(1, 2, 1, negative, negative), floatTensor(1, 1, 1, 0)},
	} {
		t.Run(c.name, func(t *testing.T) { requireStep(t, &c.op, c.in, c.want) })
	}
}

// The mean is the correctly rounded quotient of the sum and the number of taps.
// Rounding a quotient to float64 and then to float32 is rounding it once, because
// float64 has more than twice the digits (Figueroa, "When is double rounding
// innocuous?", 1995).
func TestMeansAreRoundedCorrectly(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	check := func(n, channels int) {
		in := floatTensor(1, n, channels, make([]float32, n*channels)...)
		want := floatTensor(1, 1, channels, make([]float32, channels)...)
		for c := range channels {
			a := math.Float32frombits(rng.Uint32())
			switch exponent := math.Float32bits(a) >> 23 & 255; {
			case c%3 == 0: // a multiple of n and its neighbours
				a = float32(n) * float32(rng.IntN(1<<20))
				a = math.Float32frombits(math.Float32bits(a) + rng.Uint32N(3))
			case exponent < 48 || exponent == 255: // the quotient may be subnormal
				a = float32(rng.IntN(1 << 24))
			}
			in.F32[c] = a
			want.F32[c] = float32(float64(a) / float64(n))
		}
		requireStep(t, &plan.AvgPool{Window: window(1, n)}, in, want)
	}
	for n := 1; n <= 1100; n++ {
		check(n, 60)
	}
	for range 3 {
		check(1<<20-rng.IntN(1<<19), 4)
	}
	check(bcnn.MaxPoolTaps, 2)
	check(bcnn.MaxPoolTaps-1, 2)
}

// An infinite sum has no mean, and the contract says so.
func TestMeanOfInfinity(t *testing.T) {
	got, err := ref.Run(t.Context(), single(&plan.AvgPool{Window: window(1, 2)}, floatTensor(1, 2, 1, 1, inf), floatTensor(1, 1, 1, 0)),
		floatTensor(1, 2, 1, 1, inf), nil)
	require.NoError(t, err)
	require.True(t, got.F32[0] != got.F32[0])
}

func TestChannels(t *testing.T) {
	requireStep(t, &plan.Channels{Index: []int32{2, -1, 0, 2}}, floatTensor(1, 2, 3, 1, 2, 3, 4, 5, 6), floatTensor(1, 2, 4, 3, 0, 1, 3, 6, 0, 4, 6))
	requireStep(t, &plan.Channels{Index: []int32{2, 0}}, bitTensor(1, 2, 3, 1, 1, -1, -1, 1, 1), bitTensor(1, 2, 2, -1, 1, 1, -1))
}

// join is a plan of one step that reads the input and what a step makes of it.
func join(op plan.Op, first plan.Step, in, other, want bcnn.Tensor) *plan.Plan {
	p := single(first.Op, in, other)
	p.Tensors, p.Steps = p.Tensors[:2], p.Steps[:1]
	p.Tensors = append(p.Tensors, plan.Tensor{Name: "joined", DType: want.DType, Shape: want.Shape})
	p.Steps = append(p.Steps, plan.Step{Name: "join", In: []int{0, 1}, Out: 2, Op: op})
	p.Outputs = []int{2}
	return p
}

// Infinities and NaN stay where the second value is not 0, and nowhere else.
func TestMask(t *testing.T) {
	nan, negative, least := float32(math.NaN()), float32(math.Copysign(0, -1)), float32(math.SmallestNonzeroFloat32)
	in := floatTensor(1, 1, 8, inf, nan, -1, negative, least, nan, negative, 0)
	reversed := &plan.Channels{Index: []int32{7, 6, 5, 4, 3, 2, 1, 0}}
	want := floatTensor(1, 1, 8, 0, 0, -1, negative, 0, nan, negative, 0)
	got, err := ref.Run(t.Context(), join(&plan.Pair{Kind: plan.PairMask}, plan.Step{Op: reversed}, in, in, want), in, nil)
	require.NoError(t, err)
	require.True(t, got.F32[5] != got.F32[5])
	got.F32[5], want.F32[5] = 0, 0
	for i, x := range want.F32 {
		require.Equal(t, math.Float32bits(x), math.Float32bits(got.F32[i]), i)
	}
}

func TestConcatAndMul(t *testing.T) {
	in := floatTensor(1, 2, 2, 1, 2, 3, -5)
	picked := &plan.Channels{Index: []int32{1}}
	mean := &plan.AvgPool{Window: window(1, 2)}
	one := &plan.Conv{Window: window(1, 2), Out: 1, Groups: 1, F32: []float32{1, 1, 1, 0}, Bias: []float32{0}}
	for _, c := range []struct {
		name        string
		op, first   plan.Op
		other, want bcnn.Tensor
	}{
		{"concat", &plan.Concat{}, picked, floatTensor(1, 2, 1, 2, -5), floatTensor(1, 2, 3, 1, 2, 2, 3, -5, -5)},
		{"equal shapes", &plan.Pair{}, &plan.Affine{}, in, floatTensor(1, 2, 2, 1, 4, 9, 25)},
		{"per channel", &plan.Pair{}, mean, floatTensor(1, 1, 2, 2, -1.5), floatTensor(1, 2, 2, 2, -3, 6, 7.5)},
		{"the smaller", &plan.Pair{Kind: plan.PairMin}, mean, floatTensor(1, 1, 2, 2, -1.5), floatTensor(1, 2, 2, 1, -1.5, 2, -5)},
		{"the larger", &plan.Pair{Kind: plan.PairMax}, mean, floatTensor(1, 1, 2, 2, -1.5), floatTensor(1, 2, 2, 2, 2, 3, -1.5)},
		{"per pixel", &plan.Pair{}, picked, floatTensor(1, 2, 1, 2, -5), floatTensor(1, 2, 2, 2, 4, -15, 25)},
		{"one for all", &plan.Pair{}, one, floatTensor(1, 1, 1, 6), floatTensor(1, 2, 2, 6, 12, 18, -30)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ref.Run(t.Context(), join(c.op, plan.Step{Op: c.first}, in, c.other, c.want), in, nil)
			require.NoError(t, err)
			requireSame(t, c.want, got)
		})
	}
	// Two images, whose factors are not the same; and bits.
	two := floatTensor(1, 2, 2, 1, 2, 3, -5, 2, 2, 4, 8)
	got, err := ref.Run(t.Context(), join(&plan.Pair{}, plan.Step{Op: one}, in, floatTensor(1, 1, 1, 6), in), two, nil)
	require.NoError(t, err)
	requireSame(t, floatTensor(1, 2, 2, 6, 12, 18, -30, 16, 16, 32, 64), got)

	packed := bitTensor(1, 2, 2, 1, -1, -1, -1)
	p := join(&plan.Concat{}, plan.Step{Op: &plan.Channels{Index: []int32{1, 0}}}, packed, packed, bitTensor(1, 2, 4, make([]int8, 8)...))
	p.Tensors = append(p.Tensors, plan.Tensor{DType: bcnn.Float32, Shape: p.Tensors[2].Shape})
	p.Steps = append(p.Steps, plan.Step{In: []int{2}, Out: 3, Op: &plan.Affine{}})
	p.Outputs = []int{3}
	got, err = ref.Run(t.Context(), p, packed, nil)
	require.NoError(t, err)
	requireSame(t, floatTensor(1, 2, 4, 1, -1, -1, 1, -1, -1, -1, -1), got)
}
