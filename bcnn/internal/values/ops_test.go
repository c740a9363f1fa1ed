package values_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// source is a network whose output takes all of a few values, each of which its input, of
// bytes 0 and 1 or of floats, brings about in some pixel.
type source struct {
	name  string
	build func(n *bcnn.Network) // of one channel
}

// turned is the source with seven of its columns as channels.
func (s source) turned() source {
	return source{s.name, func(n *bcnn.Network) {
		s.build(n)
		n.Append("turned", bcnn.Transpose{})
		n.Append("seven", bcnn.Channels{Index: []int32{0, 1, 2, 3, 4, 5, 6}})
	}}
}

// sources have every kind of set: signs, levels, sums, units that are no integers, thirds,
// real numbers, with and without bounds, and values that are often 0.
func sources() []source {
	affine := func(scale, bias float32) func(n *bcnn.Network) {
		return func(n *bcnn.Network) { n.Append("a", bcnn.Affine{Scale: []float32{scale}, Bias: []float32{bias}}) }
	}
	then := func(first func(n *bcnn.Network), ops ...bcnn.Op) func(n *bcnn.Network) {
		return func(n *bcnn.Network) {
			first(n)
			for i, op := range ops {
				n.Append(fmt.Sprint("t", i), op)
			}
		}
	}
	none := func(*bcnn.Network) {}
	sign := then(none, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	levels := then(none, bcnn.Quantize{Low: -1, Levels: 4, Thresholds: []float32{-1.5, 0, 0.5}})
	window := bcnn.Window{KH: 1, KW: 3, StrideH: 1, StrideW: 1}
	sums := then(sign, bcnn.Conv2D{Window: window, Out: 1, Weights: bcnn.Weights{Bits: []uint64{1, 0, 1}}})
	return []source{
		{"reals", none},
		{"reals above 0", then(none, bcnn.ReLU{})},
		{"reals between limits", then(none, bcnn.Clip{Min: -0.75, Max: 1.5})},
		{"signs", sign},
		{"halves", then(sign, bcnn.Affine{Scale: []float32{0.5}})},
		{"of thirds", then(sign, bcnn.Affine{Scale: []float32{1.0 / 3}})},
		{"signs and 1", then(sign, bcnn.Affine{Bias: []float32{1}})},
		{"levels", levels},
		{"quarters of levels", then(levels, bcnn.Affine{Scale: []float32{-0.25}, Bias: []float32{0.75}})},
		{"sums", sums},
		{"sums above 0", then(sums, bcnn.ReLU{})},
		{"means of three", then(sign, bcnn.AvgPool{Window: bcnn.Window{KH: 1, KW: 3, StrideH: 1, StrideW: 1}})},
		{"small numbers", affine(1e-30, 0)},
		{"large numbers", affine(1e30, 7)},
	}
}

// Each operation gives values of the set that is said, for all pairs of sources, and of all
// values that there are.
func TestOperations(t *testing.T) {
	window := func(kh, kw int, pad bcnn.Padding) bcnn.Window {
		return bcnn.Window{KH: kh, KW: kw, StrideH: 1, StrideW: 1, Pad: pad}
	}
	norm := func(gamma, beta, mean, variance, epsilon float32) bcnn.Op {
		return bcnn.BatchNorm{Gamma: []float32{gamma}, Beta: []float32{beta}, Mean: []float32{mean}, Var: []float32{variance}, Epsilon: epsilon}
	}
	around := bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}
	ops := []bcnn.Op{
		bcnn.Sign{Zero: bcnn.ZeroIsMinus}, bcnn.Sign{Zero: bcnn.ZeroIsPlus},
		bcnn.Quantize{Low: 0, Levels: 3, Thresholds: []float32{0, 1}},
		bcnn.ReLU{}, bcnn.Clip{Min: -1, Max: 1}, bcnn.Clip{Min: 0.3, Max: 2}, bcnn.Clip{Min: -3, Max: -0.1},
		bcnn.PReLU{Slope: []float32{0.25}}, bcnn.PReLU{Slope: []float32{-1}}, bcnn.PReLU{Slope: []float32{0}}, bcnn.PReLU{Slope: []float32{1.7}},
		bcnn.Affine{Scale: []float32{0}, Bias: []float32{2}}, bcnn.Affine{Scale: []float32{-3}}, bcnn.Affine{Scale: []float32{0.1}}, bcnn.Affine{Bias: []float32{0.5}},
		bcnn.Affine{Scale: []float32{1.5}, Bias: []float32{-0.25}}, bcnn.Affine{Scale: []float32{0.3}, Bias: []float32{1e-3}}, bcnn.Affine{Bias: []float32{3e7}},
		norm(1, 0, 0, 100, 0), norm(-1, 0.5, 0, 9, 0), norm(0, 0.25, 1, 1, 0), norm(0.7, -0.1, 0.3, 2, 1e-5),
		bcnn.MaxPool{Window: window(2, 2, bcnn.Padding{})}, bcnn.MaxPool{Window: window(3, 3, around)},
		bcnn.AvgPool{Window: window(2, 2, bcnn.Padding{})}, bcnn.AvgPool{Window: window(3, 3, around)}, bcnn.AvgPool{Window: window(3, 3, around), CountPadding: true},
		bcnn.AvgPool{Window: window(1, 3, bcnn.Padding{})}, bcnn.AvgPool{Window: window(5, 5, bcnn.Padding{})},
		bcnn.Channels{Index: []int32{0, -1, 0}}, bcnn.Channels{Index: []int32{0, 0}},
		bcnn.Pixels{Rows: []int32{0, -1, 2}, Cols: []int32{1, 1, 3}}, bcnn.Pixels{Rows: []int32{0, -1}, Cols: []int32{1, 3}, Fill: 0.7}, bcnn.Pixels{Rows: []int32{4, 0}, Cols: []int32{3}},
		bcnn.Pixels{Rows: []int32{0, -1}, Cols: []int32{1, 3}, Fill: -1}, bcnn.Flatten{}, bcnn.Transpose{},
	}
	for _, name := range bcnn.FunctionNames() {
		ops = append(ops, bcnn.Function{Name: name})
	}
	for _, w := range []bcnn.Weights{
		{Int8: []int8{3, -2, 0, 1}}, {F32: []float32{0.5, -1, 2, 0.1}}, {F32: []float32{0.5, -0.5, 0.5, 0.5}}, {F32: []float32{0.3, 0.3, -0.3, 0.3}},
		{F32: []float32{0, 2.1, -0.7, 1.4}},
	} {
		ops = append(ops, bcnn.Conv2D{Window: window(2, 2, bcnn.Padding{}), Out: 1, Weights: w},
			bcnn.Conv2D{Window: window(2, 2, around), Out: 1, Weights: w, Bias: []float32{0.5}})
	}
	ran := make([]bool, len(ops))
	for _, s := range sources() {
		for i, op := range ops {
			ran[i] = requireContained(t, s.name, []source{s}, op) || ran[i]
		}
		for _, p := range []int{-1, 0, 1} {
			if w := (bcnn.Weights{Bits: []uint64{1, 0, 1, 1}}); s.name == "signs" {
				require.True(t, requireContained(t, s.name, []source{s}, bcnn.Conv2D{Window: window(2, 2, around), Out: 1, PadValue: p, Weights: w}))
			}
		}
		for _, u := range sources() {
			for _, op := range []bcnn.Op{bcnn.Add{}, bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}, bcnn.Concat{}, bcnn.MatMul{}} {
				require.True(t, requireContained(t, s.name+" and "+u.name, []source{s, u}, op))
			}
			require.True(t, requireContained(t, "rows of "+s.name+" and "+u.name, []source{s.turned(), u.turned()}, bcnn.MatMul{}))
		}
	}
	for i, op := range ops {
		require.True(t, ran[i], "%T %+v", op, op)
	}
}

// requireContained runs an operation on sources, each of which has an input of its own; ran is
// false where a plan cannot have it, such as weights of integers for real numbers.
func requireContained(t *testing.T, name string, from []source, op bcnn.Op) (ran bool) {
	t.Helper()
	const size = 7
	net := &bcnn.Network{Name: "n"}
	var ends []int
	for i, s := range from {
		net.Inputs = append(net.Inputs, bcnn.Input{DType: bcnn.Float32, Shape: bcnn.Shape{H: size, W: size + 2, C: 1}})
		net.Append("start", bcnn.Affine{Scale: []float32{1}}, bcnn.NetworkInput-i)
		s.build(net)
		last := len(net.Layers) - 1
		for k := range net.Layers {
			net.Layers[k].Name = fmt.Sprint(k)
		}
		net.Outputs = append(slices.Clone(ends), last)
		shapes, err := net.Shapes()
		require.NoError(t, err, name)
		if shapes[last].W != size { // all sources have the same shape
			rows, cols := make([]int32, size), make([]int32, size)
			for k := range rows {
				rows[k], cols[k] = int32(min(k, shapes[last].H-1)), int32(min(k, shapes[last].W-1))
			}
			last = net.Append("same", bcnn.Pixels{Rows: rows, Cols: cols}, last)
		}
		ends = append(ends, last)
	}
	layer := net.Append("op", op, ends...)
	net.Outputs = []int{layer}
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	if err != nil {
		return false
	}
	a := analysis(t, net)
	set, err := a.Of(layer)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, uint64(len(name))))
	var in []bcnn.Tensor
	for _, x := range plan.Inputs {
		v := bcnn.NewTensor(bcnn.Float32, 4, x.Shape)
		for i := range v.F32 {
			v.F32[i] = []float32{-2, -1, -0.5, 0, 0.25, 0.5, 1, 3, float32(r.NormFloat64())}[r.IntN(9)]
		}
		in = append(in, v)
	}
	out, err := ref.RunAll(t.Context(), plan, in, nil)
	require.NoError(t, err, name)
	for _, v := range numbers(out[0]) {
		if !contains(set, v) {
			t.Errorf("%T %+v of %s gives %v, which is not in %+v", op, op, name, v, set)
			break
		}
	}
	return true
}

// What is known of the outputs, where it matters.
func TestSets(t *testing.T) {
	inf := math.Inf(1)
	multiples := func(unit, most float64, odd, even bool) sets.Multiples {
		return sets.Multiples{Unit: unit, Most: most, Odd: odd, Even: even}
	}
	zero := multiples(1, 0, false, true)
	for _, c := range []struct {
		of   string
		op   bcnn.Op
		want sets.Set
	}{
		{"reals", bcnn.ReLU{}, sets.Set{Max: inf, Often: zero}},
		{"reals", bcnn.PReLU{Slope: []float32{0.5}}, sets.Set{Min: -inf, Max: inf}},
		{"reals", bcnn.Clip{Min: -1, Max: 1}, sets.Set{Min: -1, Max: 1, Often: multiples(1, 1, true, false)}},
		{"reals above 0", bcnn.Affine{Scale: []float32{-2}, Bias: []float32{1}}, sets.Set{Min: -inf, Max: 1, Often: multiples(1, 1, true, true)}},
		{"signs", bcnn.ReLU{}, sets.Set{Max: 1, Often: multiples(1, 1, true, true), Only: true}},
		{"signs", bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{0.5}}, sets.Set{Max: 1, Often: multiples(0.5, 1, true, true), Only: true}},
		{"sums", bcnn.Clip{Min: -1, Max: 1}, sets.Set{Min: -1, Max: 1, Often: multiples(1, 3, true, false), Only: true}},
		{"sums", bcnn.Flatten{}, sets.Set{Min: -3, Max: 3, Often: multiples(1, 3, true, false), Only: true}},
		{"levels", bcnn.Channels{Index: []int32{-1, 0}}, sets.Set{Min: -1, Max: 2, Often: multiples(1, 2, true, true), Only: true}},
		{"halves", bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 1, StrideW: 1}}, sets.Set{Min: -0.5, Max: 0.5, Often: multiples(0.125, 0.5, false, true), Only: true}},
		{"reals", bcnn.Function{Name: bcnn.Sigmoid}, sets.Set{Max: 1}},
	} {
		net := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 4, W: 4, C: 1}}}}
		i := slices.IndexFunc(sources(), func(s source) bool { return s.name == c.of })
		net.Append("start", bcnn.Affine{Scale: []float32{1}})
		sources()[i].build(net)
		last := net.Append("op", c.op)
		for k := range net.Layers {
			net.Layers[k].Name = fmt.Sprint(k)
		}
		got, err := analysis(t, net).Of(last)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%T of %s", c.op, c.of)
	}
	bytes := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 1, W: 1, C: 1}}}}
	bytes.Append("op", bcnn.Affine{Scale: []float32{1}, Bias: []float32{-128}})
	got, err := analysis(t, bytes).Of(0)
	require.NoError(t, err)
	require.Equal(t, sets.Set{Min: -128, Max: 127, Often: multiples(1, 383, true, true), Only: true}, got)
}
