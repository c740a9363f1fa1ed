package simplify_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// network returns a network of an image of floats; name numbers the layers of a test.
func network(shape bcnn.Shape) *bcnn.Network {
	return &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: shape}}}
}

// then appends a layer with a name of its own.
func then(n *bcnn.Network, op bcnn.Op, inputs ...int) int {
	return n.Append(fmt.Sprint(op.Kind(), len(n.Layers)), op, inputs...)
}

// draw returns so many of some values.
func draw(r *rand.Rand, n int, of ...float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = of[r.IntN(len(of))]
	}
	return out
}

// products returns how many products of bits stand for one in the layers with weights, 0 for
// those in float32.
func products(t testing.TB, n *bcnn.Network) []int {
	t.Helper()
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	var out []int
	for _, l := range plan.Summarize(n, p) {
		k := l.Planes
		if l.Precision > 4 && l.WhyFloat != "it sums bits in groups that are too small" {
			k = 0
		}
		out = append(out, k)
	}
	return out
}

// outputs runs a network.
func outputs(t testing.TB, n *bcnn.Network, in []bcnn.Tensor) []bcnn.Tensor {
	t.Helper()
	plan, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	out, err := ref.RunAll(t.Context(), plan, in, nil)
	require.NoError(t, err)
	return out
}

// requireSame checks that two networks compute the same, up to a fraction of the largest
// output.
func requireSame(t testing.TB, n, m *bcnn.Network, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var in []bcnn.Tensor
	for _, i := range n.Inputs {
		x := bcnn.NewTensor(i.DType, 2, i.Shape)
		for k := range x.F32 {
			x.F32[k] = float32(r.NormFloat64())
		}
		for k := range x.U8 {
			x.U8[k] = uint8(r.IntN(256))
		}
		in = append(in, x)
	}
	want, got := outputs(t, n, in), outputs(t, m, in)
	require.Len(t, got, len(want))
	for k := range want {
		largest := 0.0
		for _, x := range want[k].F32 {
			largest = max(largest, math.Abs(float64(x)))
		}
		for i, x := range want[k].F32 {
			require.InDelta(t, x, got[k].F32[i], 1e-5*max(largest, 1e-3), "output %d, value %d", k, i)
		}
	}
}

// Products of codes with factors are products of the codes, of ±1 if they are.
func TestProductsOfCodes(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, then []bcnn.Op
		found, bits bool
	}{
		{"signs", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}}, nil, false, true},
		{"factors", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{0.5}}}, nil, true, true},
		{"factors, turned", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{-0.25}}}, []bcnn.Op{bcnn.Transpose{}, bcnn.Transpose{}}, true, true},
		{"{0, 1}", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{0.5}}}, nil, true, true},
		{"{0, −1}, turned", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{-0.5}}}, []bcnn.Op{bcnn.Transpose{}, bcnn.Transpose{}}, true, true},
		{"{0, 1} and ±1", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{0.5}}}, []bcnn.Op{bcnn.Affine{Scale: []float32{2}, Bias: []float32{-1}}}, true, true},
		{"±1 and {0, 4}", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}}, []bcnn.Op{bcnn.Affine{Scale: []float32{2}, Bias: []float32{2}}}, true, true},
		{"{1, 2}", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{1.5}}}, nil, false, false},
		{"factors for each channel", []bcnn.Op{bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{1, 2, 3, 4, 5}}}, nil, false, false},
		{"levels", []bcnn.Op{bcnn.Ternary(), bcnn.Affine{Scale: []float32{0.5}}}, nil, true, false},
		{"real numbers", []bcnn.Op{bcnn.Affine{Scale: []float32{0.5}}}, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := network(bcnn.Shape{H: 2, W: 4, C: 5})
			for _, op := range c.first {
				then(n, op)
			}
			first := len(n.Layers) - 1
			for _, op := range c.then {
				then(n, op)
			}
			n.Append("product", bcnn.MatMul{}, first, len(n.Layers)-1)
			m, found, err := simplify.Network(t.Context(), n, simplify.Options{})
			require.NoError(t, err)
			require.Equal(t, c.found, slices.ContainsFunc(found, func(f simplify.Finding) bool { return f.Layer == "product" && f.Rule == simplify.Factors }), "%v", found)
			requireSame(t, n, m, 1)
			p, err := lower.Network(t.Context(), m, lower.Options{})
			require.NoError(t, err)
			at := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Kind() == "matmul" })
			require.Equal(t, c.bits, p.Tensors[p.Steps[at].In[0]].DType == bcnn.Bits)
		})
	}
}

// What a network by hand becomes: how many products of bits its layers with weights take, with
// the rule that finds it and without. 0 is float32.
func TestRules(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shape := bcnn.Shape{H: 6, W: 5, C: 8}
	sign, half := bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Quantize{Low: 0, Levels: 2, Thresholds: []float32{0.5}}
	scale := func(k, b float32) bcnn.Affine { return bcnn.Affine{Scale: []float32{k}, Bias: []float32{b}} }
	conv := func(channels, out, pad int, w ...float32) bcnn.Conv2D {
		return bcnn.Conv2D{
			Window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}}, Out: out,
			Weights: bcnn.Weights{F32: draw(r, out*9*channels, w...)}, Bias: draw(r, out, 0.25, -1.5, 0),
		}
	}
	grouped := conv(4, 6, 1, 0.3, -0.1337)
	grouped.Groups = 2
	around := []int32{-1, 0, 1, 2, 3, 4, 5, -1}
	border := func(fill float32) bcnn.Pixels {
		return bcnn.Pixels{Rows: around, Cols: []int32{-1, 0, 1, 2, 3, 4, -1, -1}, Fill: fill}
	}
	rounded := func(n *bcnn.Network, least float32) {
		x := then(n, bcnn.Clip{Min: least, Max: 3}, then(n, scale(1.5, 0), bcnn.NetworkInput))
		s := then(n, scale(0.5, 0.5), then(n, bcnn.Sign{Zero: bcnn.ZeroIsMinus}, x))
		magnitude := then(n, scale(1, 0.5), then(n, bcnn.PReLU{Slope: []float32{-1}}, x))
		then(n, bcnn.Mul{}, s, then(n, bcnn.Quantize{Levels: 4, Thresholds: []float32{1, 2, 3}}, magnitude))
	}
	golden := readExamples(t)
	for _, c := range []struct {
		name    string
		build   func(n *bcnn.Network)
		want    []int
		rule    simplify.Rule
		without []int
	}{
		{"sign and ±0.5", func(n *bcnn.Network) {
			then(n, sign)
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Weights, []int{0}},
		{"multiples", func(n *bcnn.Network) {
			then(n, sign)
			then(n, conv(8, 3, 1, 0.25, -0.75, 0))
		}, []int{6}, simplify.Weights, []int{0}},
		{"two values", func(n *bcnn.Network) {
			then(n, sign)
			then(n, conv(8, 3, 1, 0.7, -0.1337))
		}, []int{1}, simplify.Weights, []int{0}},
		{"two values in groups", func(n *bcnn.Network) {
			then(n, sign)
			then(n, grouped) // of two, between zeros of two parts
		}, []int{4}, simplify.Weights, []int{0}},
		{"two bases", func(n *bcnn.Network) {
			then(n, sign)
			then(n, conv(8, 3, 1, 0.71, -0.71, 0.2, -0.2))
		}, []int{1, 1}, simplify.Weights, []int{0}},
		{"a factor", func(n *bcnn.Network) {
			then(n, sign)
			then(n, scale(0.3, 0))
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Factors, []int{0}},
		{"0 and 1 with zeros around", func(n *bcnn.Network) {
			then(n, sign)
			then(n, scale(0.5, 0.5))
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Factors, []int{0}},
		{"two values with zeros around", func(n *bcnn.Network) {
			then(n, sign)
			then(n, scale(0.4, 0.7))
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Factors, []int{0}},
		{"two values of two values with zeros around", func(n *bcnn.Network) {
			then(n, sign)
			then(n, scale(-0.4, 0.7))
			then(n, conv(8, 3, 1, 0.5, -0.1337))
		}, []int{1}, simplify.Factors, []int{0}},
		{"ReLU of signs", func(n *bcnn.Network) {
			then(n, sign)
			then(n, bcnn.ReLU{})
			then(n, conv(8, 3, 0, 0.5, -0.5))
		}, []int{1}, simplify.Functions, []int{0}},
		{"ReLU of levels", func(n *bcnn.Network) {
			then(n, bcnn.Quantize{Low: -1, Levels: 3, Thresholds: []float32{-1, 1}})
			then(n, bcnn.ReLU{})
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Functions, []int{0}},
		{"tanh of signs, negated in some channels", func(n *bcnn.Network) {
			then(n, sign)
			then(n, bcnn.Function{Name: bcnn.Tanh})
			then(n, bcnn.Affine{Scale: []float32{1, -1, 1, 1, -1, 1, 1, 1}})
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Functions, []int{0}},
		{"sign of scaled signs", func(n *bcnn.Network) {
			then(n, sign)
			then(n, scale(0.2, 0))
			then(n, sign)
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Functions, []int{1}},
		{"scaled levels that are pooled, shuffled and flattened", func(n *bcnn.Network) {
			then(n, half)
			then(n, scale(0.3, 0))
			then(n, bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
			then(n, bcnn.Channels{Index: []int32{3, 1, 0, -1}})
			then(n, bcnn.Flatten{})
			then(n, bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: draw(r, 2*3*2*4, 0.5, -0.5)}})
		}, []int{1}, simplify.Move, []int{0}},
		{"joined codes of several scales", func(n *bcnn.Network) {
			a := then(n, scale(0.3, 0), then(n, sign, bcnn.NetworkInput))
			b := then(n, scale(0.7, 0), then(n, half, bcnn.NetworkInput))
			then(n, bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 1}}, then(n, bcnn.Concat{}, a, b))
			then(n, conv(16, 3, 1, 0.5, -0.5))
		}, []int{1, 1}, simplify.Parts, []int{0}},
		{"added codes", func(n *bcnn.Network) {
			a := then(n, scale(0.3, 0), then(n, sign, bcnn.NetworkInput))
			b := then(n, scale(0.7, 0), then(n, bcnn.Sign{Zero: bcnn.ZeroIsMinus}, then(n, scale(1, -0.5), bcnn.NetworkInput)))
			then(n, scale(2, 0), then(n, bcnn.Add{}, a, b))
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1, 1}, simplify.Parts, []int{0}},
		{"codes that are added again", func(n *bcnn.Network) {
			s := then(n, sign, bcnn.NetworkInput)
			a := then(n, scale(0.3, 0), s)
			b := then(n, scale(0.7, 0), then(n, bcnn.Sign{Zero: bcnn.ZeroIsMinus}, then(n, scale(1, -0.5), bcnn.NetworkInput)))
			then(n, bcnn.Add{}, then(n, bcnn.Add{}, a, b), s)
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1, 1}, simplify.Parts, []int{0}},
		{"signs of one value at three thresholds", func(n *bcnn.Network) {
			sum := then(n, sign, bcnn.NetworkInput)
			for _, t := range []float32{-0.5, 0.7} {
				sum = then(n, bcnn.Add{}, sum, then(n, sign, then(n, scale(1, -t), bcnn.NetworkInput)))
			}
			then(n, conv(8, 3, 1, 0.5, -0.5), sum)
		}, []int{1}, simplify.Functions, []int{1, 1, 1}},
		{"the product of two conditions on one value", func(n *bcnn.Network) {
			a := then(n, scale(0.5, 0.5), then(n, sign, bcnn.NetworkInput))
			b := then(n, scale(0.5, 0.5), then(n, sign, then(n, scale(2, -1), bcnn.NetworkInput)))
			then(n, conv(8, 3, 1, 0.5, -0.5), then(n, bcnn.Mul{}, a, b))
		}, []int{1}, simplify.Functions, []int{0}},
		{"levels where a condition on their value holds", func(n *bcnn.Network) {
			levels := then(n, bcnn.Quantize{Levels: 4, Thresholds: []float32{-1, 0.5, 2}}, bcnn.NetworkInput)
			held := then(n, scale(0.5, 0.5), then(n, sign, then(n, scale(1, -2), bcnn.NetworkInput)))
			then(n, conv(8, 3, 1, 0.5, -0.5), then(n, bcnn.Mask{}, levels, held))
		}, []int{1}, simplify.Functions, []int{0}},
		{"the largest of levels of one value", func(n *bcnn.Network) {
			then(n, conv(8, 3, 1, 0.5, -0.5), then(n, bcnn.Max{}, then(n, sign, bcnn.NetworkInput), then(n, half, bcnn.NetworkInput)))
		}, []int{1}, simplify.Functions, []int{0}},
		{"halves rounded away from 0, as a sign, a magnitude and a floor", func(n *bcnn.Network) {
			rounded(n, 0)
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Functions, []int{0}},
		{"a magnitude of what may be negative", func(n *bcnn.Network) {
			rounded(n, -0.5)
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{0}, simplify.Functions, []int{0}},
		{"a slope of what is never negative", func(n *bcnn.Network) {
			then(n, bcnn.PReLU{Slope: []float32{0.25, 0.5, 0, -1, 1, 2, 3, 4}}, then(n, bcnn.ReLU{}, then(n, half)))
			then(n, conv(8, 3, 1, 0.5, -0.5))
		}, []int{1}, simplify.Functions, []int{0}},
		{"a sign of three values of odd sums", func(n *bcnn.Network) {
			then(n, sign)
			then(n, bcnn.Channels{Index: []int32{0, 1, 2}})
			then(n, conv(3, 32, 0, 0.5, -0.5))
			n.Layers[len(n.Layers)-1].Op = bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3}, Out: 32, Weights: bcnn.Weights{F32: draw(r, 32*27, 0.5, -0.5)}}
			then(n, bcnn.Ternary())
			then(n, conv(32, 2, 1, 0.5, -0.5))
		}, []int{1, 1}, simplify.Levels, []int{1, 2}},
		{"a border of signs", func(n *bcnn.Network) {
			then(n, sign)
			then(n, border(-1))
			then(n, conv(8, 3, 0, 0.5, -0.5))
		}, []int{1}, simplify.Border, []int{1}},
		{"a border of numbers", func(n *bcnn.Network) {
			then(n, sign)
			then(n, scale(0.5, 1))
			then(n, border(0.5))
			then(n, conv(8, 3, 0, 0.5, -0.5))
		}, []int{1}, simplify.Border, []int{1}},
		{"a border of other numbers", func(n *bcnn.Network) {
			then(n, sign)
			then(n, border(0.5))
			then(n, conv(8, 3, 0, 0.5, -0.5))
		}, []int{0}, simplify.Border, []int{0}},
		{"a border of zeros of real numbers", func(n *bcnn.Network) {
			then(n, border(0))
			then(n, conv(8, 3, 0, 0.5, -0.25))
		}, []int{0}, simplify.Border, []int{0}},
		{"a value times its sigmoid", func(n *bcnn.Network) {
			then(n, bcnn.Mul{}, bcnn.NetworkInput, then(n, bcnn.Function{Name: bcnn.Sigmoid}))
		}, nil, simplify.Gates, nil},
		{"a concatenation plus channels of which some are zeros", func(n *bcnn.Network) {
			half := then(n, bcnn.Channels{Index: []int32{0, 1, 2, 3}}, bcnn.NetworkInput)
			both := then(n, bcnn.Concat{}, bcnn.NetworkInput, half)
			then(n, bcnn.Add{}, both, then(n, bcnn.Channels{Index: []int32{-1, -1, -1, -1, -1, -1, -1, -1, 4, 5, 6, 7}}, bcnn.NetworkInput))
		}, nil, simplify.Sums, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := network(shape)
			c.build(n)
			m, found, err := simplify.Network(t.Context(), n, simplify.Options{})
			require.NoError(t, err)
			requireSame(t, n, m, 1)
			golden.require(t, c.name, text(t, n, m, found))
			require.Equal(t, c.want, products(t, m), "%v", found)
			again, none, err := simplify.Network(t.Context(), m, simplify.Options{})
			require.NoError(t, err)
			require.Empty(t, none)
			require.Same(t, m, again)
			m, _, err = simplify.Network(t.Context(), n, simplify.Options{Without: []simplify.Rule{c.rule}})
			require.NoError(t, err)
			requireSame(t, n, m, 2)
			require.Equal(t, c.without, products(t, m))
			require.Equal(t, n.Layers[len(n.Layers)-1].Name, m.Layers[slices.Max(m.OutputLayers())].Name)
		})
	}
}
