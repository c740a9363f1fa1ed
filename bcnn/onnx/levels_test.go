package onnx

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestLevels imports quantised activations and weights in the forms in which they are
// written, on inputs of which many lie between two levels.
func TestLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	quant := func(in, out string, attrs ...any) testNode {
		return op("qonnx.custom_op.general/Quant", in, out, append([]any{"rounding_mode", "ROUND"}, attrs...)...)
	}
	bytes := func(name string, typ pb.DataType, v float64) testTensor {
		return testTensor{name: name, typ: typ, dims: []int{}, values: []float64{v}}
	}
	constants := []testTensor{number("zero", 0), number("one", 1), number("minus", -1), number("two", 2), number("half", 0.5), number("quarter", 0.25),
		number("three", 3), number("four", 4), number("minustwo", -2), number("third", 1./3),
		floats("per", []int{1, 3, 1, 1}, 0.5, 1, 2), bytes("u0", pb.Uint8, 0), bytes("u1", pb.Uint8, 1), bytes("u3", pb.Uint8, 3), bytes("u128", pb.Uint8, 128),
		bytes("i0", pb.Int8, 0), bytes("i1", pb.Int8, 1), bytes("i2", pb.Int8, -2), bytes("i7", pb.Int8, 7)}
	constants = append(constants, floats("thresholds", []int{3, 3}, -1, 0, 1, -0.5, 0.5, 0.5, 0, 1, 1.5), floats("falling", []int{1, 2}, 1, -0.25), floats("list", []int{3}, 0.5, 1, 2))
	weights := map[string][]float64{
		"±1": {-1, 1}, "ternary": {-1, 0, 1}, "scaled": {-0.5, 0, 0.5}, "2 bits": {-2, -1, 0, 1}, "odd": {-1.5, -0.5, 0.5, 1.5}, "zero": {0},
		"8 bits": {-4, -91. / 32, -7. / 32, 0, 1. / 32, 44. / 32, 127. / 32},
	}
	products := map[string]int{"±1": 1, "ternary": 2, "scaled": 2, "2 bits": 4, "odd": 3, "zero": 2, "8 bits": 256}
	tests := []struct {
		name     string
		nodes    []testNode // from x to q
		planes   int        // 0 where they do not become levels, 8 where they have more than planes
		low, top int
	}{
		{"Quant, 2 bits", []testNode{quant("x one zero two", "q", "signed", 0, "narrow", 0)}, 2, 0, 3},
		{"Quant, 2 bits, scaled", []testNode{quant("x half zero two", "q", "signed", 0, "narrow", 0)}, 2, 0, 3},
		{"Quant, 2 bits, narrow", []testNode{quant("x one zero two", "q", "signed", 0, "narrow", 1)}, 2, 0, 2},
		{"Quant, 1 bit, unsigned", []testNode{quant("x one zero one", "q", "signed", 0, "narrow", 0)}, 1, 0, 1},
		{"Quant, 2 bits, signed", []testNode{quant("x one zero two", "q", "signed", 1, "narrow", 0)}, 2, -2, 1},
		{"Quant, ternary", []testNode{quant("x half zero two", "q", "signed", 1, "narrow", 1)}, 2, -1, 1},
		{"Quant, 3 bits, signed", []testNode{quant("x quarter zero three", "q", "signed", 1, "narrow", 0)}, 3, -4, 3},
		{"Quant behind a ReLU", []testNode{op("Relu", "x", "a"), quant("a half zero three", "q", "signed", 1, "narrow", 0)}, 2, 0, 3},
		{"Quant, a scale per channel", []testNode{quant("x per zero two", "q", "signed", 0, "narrow", 0)}, 0, 0, 3},
		{"Quant, 8 bits", []testNode{quant("x quarter zero eight", "q", "signed", 0, "narrow", 0)}, 8, 0, 255},
		{"Quant, a zero point", []testNode{quant("x half one two", "q", "signed", 0, "narrow", 0)}, 2, -1, 2},
		{"Quant, rounded down", []testNode{quant("x half zero two", "q", "signed", 1, "narrow", 0, "rounding_mode", "floor")}, 2, -2, 1},
		{"Quant, rounded up", []testNode{quant("x half zero two", "q", "signed", 1, "narrow", 0, "rounding_mode", "CEIL")}, 2, -2, 1},
		{"Quant, rounded from 0", []testNode{quant("x half zero two", "q", "signed", 1, "narrow", 0, "rounding_mode", "UP")}, 2, -2, 1},
		{"Quant, rounded to 0", []testNode{quant("x half zero two", "q", "signed", 1, "narrow", 0, "rounding_mode", "DOWN")}, 2, -2, 1},
		{"Quant, halves from 0", []testNode{quant("x half zero two", "q", "signed", 1, "narrow", 0, "rounding_mode", "HALF_UP")}, 2, -2, 1},
		{"Quant, halves to 0", []testNode{quant("x half zero two", "q", "signed", 1, "narrow", 0, "rounding_mode", "HALF_DOWN")}, 2, -2, 1},
		{"IntQuant", []testNode{op("qonnx.custom_op.general/IntQuant", "x half zero two", "q", "signed", 0, "narrow", 0, "rounding_mode", "HALF_EVEN")}, 2, 0, 3},
		{"Trunc", []testNode{op("qonnx.custom_op.general/Trunc", "x quarter zero four half two", "q", "signed", 0, "narrow", 0, "rounding_mode", "FLOOR")}, 2, 0, 3},
		{"Trunc to all levels", []testNode{op("qonnx.custom_op.general/Trunc", "x quarter zero four half two", "q", "signed", 0, "rounding_mode", "FLOOR")}, 2, 0, 3},
		{"MultiThreshold", []testNode{op("qonnx.custom_op.general/MultiThreshold", "x thresholds", "q", "out_dtype", "UINT2")}, 2, 0, 3},
		{"MultiThreshold, scaled", []testNode{op("qonnx.custom_op.general/MultiThreshold", "x falling", "q", "out_scale", 0.5, "data_layout", "NCHW")}, 2, 0, 2},
		{"Clip, Round", []testNode{op("Clip", "x minus one", "a"), op("Round", "a", "q")}, 2, -1, 1},
		{"Clip, Add, Mul, Round", []testNode{op("Clip", "x minus one", "a"), op("Add", "a one", "b"), op("Mul", "b half", "c"), op("Round", "c", "q")}, 1, 0, 1},
		{"Clip, Mul, Round, Div", []testNode{op("Clip", "x zero one", "a"), op("Mul", "a two", "b"), op("Round", "b", "c"), op("Div", "c two", "q")}, 2, 0, 2},
		{"straight through", []testNode{op("Clip", "x zero one", "a"), op("Mul", "a two", "b"), op("Round", "b", "c"), op("Div", "c two", "d"),
			op("Sub", "d a", "e"), op("Add", "a e", "q")}, 2, 0, 2},
		{"Round, Clip", []testNode{op("Round", "x", "a"), op("Clip", "a minustwo one", "q")}, 2, -2, 1},
		{"Div, Round, Clip, Mul", []testNode{op("Div", "x half", "a"), op("Round", "a", "b"), op("Clip", "b zero three", "c"), op("Mul", "half c", "q")}, 2, 0, 3},
		{"Round, Relu, Min", []testNode{op("Round", "x", "a"), op("Relu", "a", "b"), op("Min", "b two", "q")}, 2, 0, 2},
		{"Floor", []testNode{op("Clip", "x minus two", "a"), op("Floor", "a", "q")}, 2, -1, 2},
		{"Ceil", []testNode{op("Clip", "x minus two", "a"), op("Ceil", "a", "q")}, 2, -1, 2},
		{"QuantizeLinear", []testNode{op("QuantizeLinear", "x half u0", "a"), op("Clip", "a u0 u3", "b"), op("DequantizeLinear", "b half u0", "q")}, 2, 0, 3},
		{"QuantizeLinear, a zero point", []testNode{op("QuantizeLinear", "x half u1", "a"), op("Clip", "a u0 u3", "b"), op("DequantizeLinear", "b half u1", "q")}, 2, -1, 2},
		{"QuantizeLinear, a scale per channel", []testNode{op("QuantizeLinear", "x list u0", "a"), op("Clip", "a u0 u3", "b"), op("DequantizeLinear", "b list u0", "q")}, 0, 0, 3},
		{"QuantizeLinear, int8", []testNode{op("QuantizeLinear", "x one i0", "a"), op("Clip", "a i2 i1", "b"), op("DequantizeLinear", "b one i0", "q")}, 2, -2, 1},
		{"QuantizeLinear, all bytes", []testNode{op("QuantizeLinear", "x quarter u128", "a"), op("DequantizeLinear", "a quarter u128", "q")}, 8, -128, 127},
		{"Cast to integers", []testNode{op("Clip", "x zero two", "a"), op("Round", "a", "b"), op("Cast", "b", "c", "to", int(pb.Int8)), op("Cast", "c", "q", "to", int(pb.Float))}, 2, 0, 2},
		{"Sign", []testNode{op("Sign", "x", "q")}, 2, -1, 1},
		{"Sign, falling", []testNode{op("Neg", "x", "a"), op("Sign", "a", "b"), op("Mul", "b minus", "q")}, 2, -1, 1},
		{"Sign and 1, halved", []testNode{op("Sign", "x", "a"), op("Add", "a one", "b"), op("Mul", "b half", "q")}, 2, 0, 2},
	}
	constants = append(constants, number("eight", 8))
	for _, test := range tests {
		for name, values := range weights {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				m := testModel{
					input: image(3, 6, 5), output: "y",
					nodes: append(append([]testNode{}, test.nodes...),
						op("MaxPool", "q", "p", "kernel_shape", []int{2, 2}, "strides", []int{1, 1}),
						op("Conv", "p w bias", "y", "pads", []int{1, 1, 0, 2}, "strides", []int{2, 1})),
					inits: append(append([]testTensor{}, constants...), randomTensor(r, "w", []int{4, 3, 3, 2}, values...), randomTensor(r, "bias", []int{4}, 0, 1, -0.5)),
				}
				net, _ := compare(t, r, m, Options{}, false)
				var levels []bcnn.Quantize
				for _, l := range net.Layers {
					if q, ok := l.Op.(bcnn.Quantize); ok {
						levels = append(levels, q)
					}
				}
				require.Len(t, levels, 1)
				require.Equal(t, []int{test.low, test.top}, []int{levels[0].Low, levels[0].Low + levels[0].Levels - 1})
				layers := summarize(t, net)
				require.Len(t, layers, 1)
				planes := test.planes * products[name]
				if planes > 6 { // as many products of bits are never faster than those of bytes
					require.True(t, layers[0].Bytes, "%d products", planes)
				}
				require.Equal(t, test.planes > 0 && test.planes <= 4 && name != "8 bits", layers[0].small, layers[0].WhyFloat)
				if layers[0].Bytes {
					planes = 1
				}
				require.Equal(t, max(planes, 1), layers[0].Planes)
			})
		}
	}
}

// TestIntegerWeights binarises the input: weights of a few bits, behind every padding
// that ±1 and {0, 1} can have, dense layers, and weights that are integers only nearly.
func TestIntegerWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	constants := []testTensor{number("zero", 0), number("one", 1), number("minus", -1), number("half", 0.5), ints("pads", 0, 0, 1, 2, 0, 0, 1, 0)}
	sign := []testNode{op("Greater", "x zero", "a"), op("Where", "a one minus", "s")}
	step := []testNode{op("Greater", "x zero", "a"), op("Cast", "a", "s", "to", int(pb.Float))}
	for name, test := range map[string]struct {
		nodes  []testNode
		values []float64
		planes int
	}{
		"zeros around": {append(sign, op("Conv", "s w", "y", "pads", []int{1, 1, 1, 1})), []float64{-1, 0, 1}, 2},
		"−1 around":    {append(sign, op("Pad", "s pads minus", "p"), op("Conv", "p w", "y")), []float64{-0.25, 0, 0.25}, 2},
		"{0, 1}":       {append(step, op("Conv", "s w", "y", "pads", []int{1, 1, 1, 1})), []float64{-2, -1, 0, 1}, 4},
		"{0, 1}, ones": {append(step, op("Pad", "s pads one", "p"), op("Conv", "p w", "y")), []float64{-3, -1, 1, 3}, 3},
		"too many":     {append(sign, op("Conv", "s w", "y")), []float64{-9, 1, 2}, 0},
		"not integers": {append(sign, op("Conv", "s w", "y")), []float64{-1, 0, 1, 1.0001}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			values := append([]float64{}, test.values...)
			w := randomTensor(r, "w", []int{4, 3, 3, 3}, values...)
			copy(w.values, values) // each occurs
			m := testModel{input: image(3, 5, 6), nodes: test.nodes, inits: append(constants, w), output: "y"}
			if name == "not integers" { // the sums are real
				net, _, err := Load(t.Context(), write(t, m.encode()), Options{})
				require.NoError(t, err)
				require.False(t, summarize(t, net)[0].small)
				return
			}
			net, _ := compare(t, r, m, Options{}, false)
			layer := summarize(t, net)[0]
			require.Equal(t, test.planes > 0, layer.small)
			require.True(t, !layer.small || layer.Planes == test.planes)
		})
	}
	m := testModel{input: image(3, 2, 2), nodes: append(sign, op("Flatten", "s", "f"), op("MatMul", "f w", "y")),
		inits: append(constants, randomTensor(r, "w", []int{12, 5}, -0.5, 0, 0.5)), output: "y"}
	net, _ := compare(t, r, m, Options{}, false)
	require.Equal(t, 2, summarize(t, net)[0].Planes)
	require.True(t, summarize(t, net)[0].small)
}

// TestMultiThreshold gives each channel a threshold of its own, in both layouts, and
// refuses what is no list of thresholds.
func TestMultiThreshold(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	const name = "qonnx.custom_op.general/MultiThreshold"
	first := floats("first", []int{3, 1}, 0.5, -0.25, 0)
	conv := op("Conv", "q w", "y", "pads", []int{1, 0, 0, 1})
	inits := []testTensor{first, randomTensor(r, "w", []int{4, 3, 2, 2}, -1, 1), floats("per", []int{2, 2}, 0, 1, 0, 1), floats("flat", []int{3}, 1, 2, 3),
		floats("number", []int{1, 2}, 0, math.NaN())}
	bipolar := []any{"out_scale", 2.0, "out_bias", -1.0}
	m := testModel{input: image(3, 6, 5), inits: inits, output: "y", nodes: []testNode{op(name, "x first", "q", bipolar...), conv}}
	net, _ := compare(t, r, m, Options{}, false)
	require.True(t, summarize(t, net)[0].small)

	last := m
	last.nodes = []testNode{op("Transpose", "x", "a", perm(0, 2, 3, 1)...), op(name, "a first", "b", append(bipolar, "data_layout", "NHWC")...), op("Transpose", "b", "q", perm(0, 3, 1, 2)...), conv}
	other, _, err := Load(t.Context(), write(t, last.encode()), Options{})
	require.NoError(t, err)
	for i := range other.Layers {
		require.Equal(t, net.Layers[i].Op, other.Layers[i].Op)
	}

	for want, node := range map[string]testNode{
		"does not fit":        op(name, "x per", "q"),
		"want FLOAT of shape": op(name, "x flat", "q"),
		"a threshold is NaN":  op(name, "x number", "q"),
		`data_layout "NHW" does not fit a tensor of 4 dimensions`:  op(name, "x first", "q", "data_layout", "NHW"),
		`data_layout "NHWX" does not fit a tensor of 4 dimensions`: op(name, "x first", "q", "data_layout", "NHWX"),
	} {
		m.nodes = []testNode{node, conv}
		_, _, err := Load(t.Context(), write(t, m.encode()), Options{})
		require.ErrorContains(t, err, want)
	}
}

// TestQuantizedWeights reads weights that are rounded, limited and scaled again in the
// graph.
func TestQuantizedWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	bytes := func(name string, v float64) testTensor {
		return testTensor{name: name, typ: pb.Int8, dims: []int{}, values: []float64{v}}
	}
	m := testModel{
		input: image(3, 6, 5), output: "y",
		inits: []testTensor{randomTensor(r, "w", []int{4, 3, 2, 2}, -3, -0.5, -0.3, 0, 0.2, 0.6, 2), number("scale", 0.25), number("one", 1), number("minus", -1), bytes("zero", 0), bytes("lo", -1), bytes("hi", 1)},
		nodes: []testNode{op("QuantizeLinear", "w scale zero", "a"), op("Clip", "a lo hi", "b"), op("DequantizeLinear", "b scale zero", "v"),
			op("Clip", "x minus one", "c"), op("Round", "c", "q"), op("Conv", "q v", "y")},
	}
	net, _ := compare(t, r, m, Options{}, false)
	layers := summarize(t, net)
	requireProducts(t, "4", layers)
}

// TestChannelsLast imports the operators of QONNX on images with the channels last.
func TestChannelsLast(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	const domain = "qonnx.custom_op.channels_last/"
	inits := []testTensor{number("zero", 0), number("one", 1), number("minus", -1), floats("per", []int{3}, 0.5, -1, 2), floats("var", []int{3}, 1, 2, 3)}
	window := []any{"kernel_shape", []int{2, 2}, "strides", []int{1, 1}}
	for _, dims := range [][]int{{3, 6, 5}, {3, 7}} {
		spatial := len(dims) - 1
		k := window
		first, last := []int{0, 2, 1}, []int{0, 2, 1}
		if spatial == 2 {
			first, last = []int{0, 3, 1, 2}, []int{0, 2, 3, 1}
		} else {
			k = []any{"kernel_shape", []int{2}, "strides", []int{1}}
		}
		input := testInput{"x", pb.Float, []any{"batch"}}
		for _, d := range dims {
			input.dims = append(input.dims, d)
		}
		weights := randomTensor(r, "w", append([]int{4, 3}, slices.Repeat([]int{2}, spatial)...), -1, 1)
		plain := testModel{input: input, output: "y", inits: append(inits, weights), nodes: []testNode{
			op("BatchNormalization", "x per minus3 per var", "a"), op("MaxPool", "a", "b", k...), op("Greater", "b zero", "c"), op("Where", "c one minus", "s"), op("Conv", "s w", "y")}}
		plain.inits = append(plain.inits, floats("minus3", []int{3}, -1, 0, 1))
		net, _, err := Load(t.Context(), write(t, plain.encode()), Options{})
		require.NoError(t, err)

		m := plain
		m.nodes = []testNode{
			op("Transpose", "x", "l", perm(last...)...), op(domain+"BatchNormalization", "l per minus3 per var", "a"), op(domain+"MaxPool", "a", "b", k...),
			op("Greater", "b zero", "c"), op("Where", "c one minus", "s"), op("Transpose", "w", "v", perm(last...)...), op(domain+"Conv", "s v", "d"), op("Transpose", "d", "y", perm(first...)...)}
		other, _, err := Load(t.Context(), write(t, m.encode()), Options{})
		require.NoError(t, err)
		require.Len(t, other.Layers, len(net.Layers))
		for i := range other.Layers {
			require.Equal(t, net.Layers[i].Op, other.Layers[i].Op)
		}
	}
}

// Levels that begin anywhere, seen by what may come behind them.
func TestOffsetLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(103, 104))
	k := []any{"kernel_shape", []int{2, 2}, "strides", []int{2, 2}}
	around := []int{1, 1, 1, 1}
	for _, c := range []struct {
		name   string
		nodes  []testNode // from q, which is 0.5·{0, 1, 2, 3} − 0.75, to y
		binary int
	}{
		{"±1 weights", []testNode{op("Conv", "q pm", "y")}, 1},
		{"padded", []testNode{op("Conv", "q pm", "y", "pads", around)}, 1},
		{"ternary weights, padded", []testNode{op("Conv", "q ternary", "y", "pads", around, "strides", []int{2, 1})}, 1},
		{"real weights, padded", []testNode{op("Conv", "q real", "y", "pads", around)}, 0},
		{"padded before", []testNode{op("Pad", "q pads", "p"), op("Conv", "p pm", "y")}, 1},
		{"padded with a level", []testNode{op("Pad", "q pads low", "p"), op("Conv", "p pm", "y")}, 1},
		{"pooled", []testNode{op("MaxPool", "q", "p", k...), op("Conv", "p pm", "y", "pads", around)}, 1},
		{"means", []testNode{op("AveragePool", "q", "p", k...), op("Conv", "p pm", "y")}, 0},
		{"moved twice and scaled", []testNode{op("Add", "q low", "a"), op("Mul", "a two", "b"), op("Sub", "b low", "c"), op("Conv", "c pm", "y", "pads", around)}, 1},
		{"negated", []testNode{op("Neg", "q", "a"), op("Conv", "a pm", "y", "pads", around)}, 1},
		{"from a number", []testNode{op("Sub", "two q", "a"), op("Conv", "a pm", "y")}, 1},
		{"whole steps", []testNode{op("Sub", "q low", "a"), op("Add", "a half", "b"), op("Conv", "b pm", "y", "pads", around)}, 1},
		{"joined", []testNode{op("Concat", "q x", "a", "axis", 1), op("Conv", "a wide", "y", "pads", around)}, 0},
		{"a sign", []testNode{op("Greater", "q zero", "a"), op("Where", "a two low", "b"), op("Conv", "b real", "y")}, 0},
		{"a sum", []testNode{op("Add", "q x", "y")}, 0},
		{"limits", []testNode{op("Clip", "q low zero", "y")}, 0},
		{"a batch norm", []testNode{op("BatchNormalization", "q per per per per", "a"), op("Conv", "a pm", "y", "pads", around)}, 0},
		{"dense", []testNode{op("Flatten", "q", "a"), op("MatMul", "a dense", "y")}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 4), output: "y", rounds: true, inits: []testTensor{
				randomTensor(r, "pm", []int{4, 3, 3, 3}, -1, 1), randomTensor(r, "ternary", []int{4, 3, 3, 3}, -1, 0, 1), randomTensor(r, "real", []int{4, 3, 2, 2}, -1, 0.3, 0.7),
				randomTensor(r, "wide", []int{2, 6, 3, 3}, -1, 1), randomTensor(r, "dense", []int{48, 5}, -1, 1), floats("per", []int{3}, 0.5, 1, 2),
				ints("pads", 0, 0, 1, 0, 0, 0, 1, 1), number("low", -0.75), number("half", 0.5), number("two", 2), number("three", 3), number("zero", 0)},
				nodes: append([]testNode{op("Div", "x half", "a0"), op("Clip", "a0 zero three", "b0"), op("Round", "b0", "c0"), op("Mul", "c0 half", "d0"), op("Add", "d0 low", "q")}, c.nodes...)}
			if c.name == "pooled" || c.name == "means" {
				m.input = image(3, 8, 8)
			}
			net, _ := compare(t, r, m, Options{}, false)
			binary := 0
			for _, l := range summarize(t, net) {
				if l.small {
					binary++
				}
			}
			require.Equal(t, c.binary, binary)
		})
	}
}
