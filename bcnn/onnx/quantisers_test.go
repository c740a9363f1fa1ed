package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestChainsOfQuantisers has each way to quantise, per tensor and per channel, behind each other one,
// directly and with operators between that leave the first one pending.
func TestChainsOfQuantisers(t *testing.T) {
	r := rand.New(rand.NewPCG(301, 302))
	quantise := func(scale, zero string) func(in, out string) []testNode {
		return func(in, out string) []testNode {
			return []testNode{op("QuantizeLinear", in+" "+scale+" "+zero, out+"q"), op("DequantizeLinear", out+"q "+scale+" "+zero, out)}
		}
	}
	single := func(name string, inputs string, attrs ...any) func(in, out string) []testNode {
		return func(in, out string) []testNode { return []testNode{op(name, in+inputs, out, attrs...)} }
	}
	quantisers := []struct {
		name string
		of   func(in, out string) []testNode
	}{
		{"QDQ", quantise("half", "i0")},
		{"QDQ, scales", quantise("scales", "i0")},
		{"QDQ, unsigned", quantise("quarter", "u3")},
		{"QDQ, unsigned scales", quantise("scales", "u3s")},
		{"scales and back by one", func(in, out string) []testNode {
			return []testNode{op("QuantizeLinear", in+" scales i0", out+"q"), op("DequantizeLinear", out+"q half i0", out)}
		}},
		{"Quant", single("qonnx.custom_op.general/Quant", " half zero three", "signed", 1, "narrow", 0)},
		{"Quant, scales", single("qonnx.custom_op.general/Quant", " across zero three", "signed", 1, "narrow", 1)},
		{"MultiThreshold", single("qonnx.custom_op.general/MultiThreshold", " row", "out_scale", 0.5, "out_bias", -1.0)},
		{"MultiThreshold, channels", single("qonnx.custom_op.general/MultiThreshold", " rows")},
		{"FakeQuantize", single("org.openvinotoolkit/FakeQuantize", " minus one minus one", "levels", 9)},
		{"FakeQuantize, other bounds", single("org.openvinotoolkit/FakeQuantize", " minus one half two", "levels", 5)},
		{"FakeQuantize, channels", single("org.openvinotoolkit/FakeQuantize", " lows highs lows highs", "levels", 5)},
		{"FakeQuantize of two levels", single("org.openvinotoolkit/FakeQuantize", " across across minus one", "levels", 2)},
		{"FakeQuantize of two levels between", single("org.openvinotoolkit/FakeQuantize", " minus one zero across", "levels", 2)},
		{"BipolarQuant", single("qonnx.custom_op.general/BipolarQuant", " half")},
		{"Floor", single("Floor", "")},
	}
	between := []struct {
		name string
		of   func(in, out string) []testNode
	}{
		{"", nil},
		{"Relu", single("Relu", "")},
		{"Clip", single("Clip", " minus two")},
		{"MaxPool", single("MaxPool", "", "kernel_shape", []int{2, 2}, "strides", []int{1, 1})},
		{"Neg", single("Neg", "")},
		{"Mul", single("Mul", " across")},
		{"Add", single("Add", " across")},
		{"Transpose", single("Transpose", "", "perm", []int{0, 1, 3, 2})},
		{"Concat", func(in, out string) []testNode {
			return []testNode{op("Relu", in, out+"r"), op("Concat", in+" "+out+"r", out+"c", "axis", 2), op("Identity", out+"c", out)}
		}},
	}
	if testing.Short() { // what keeps the first one pending
		between = between[:4]
	}
	of := func(name string, typ pb.DataType, values ...float64) testTensor {
		t := testTensor{name: name, typ: typ, dims: []int{len(values)}, values: values}
		if len(values) == 1 {
			t.dims = []int{}
		}
		return t
	}
	constants := []testTensor{
		number("zero", 0), number("minus", -1), number("two", 2), number("three", 3), number("half", 0.5), number("quarter", 0.25),
		of("scales", pb.Float, 0.5, 1, 0.25), floats("across", []int{1, 3, 1, 1}, 0.25, 0.5, 1), of("i0", pb.Int8, 0), of("u3", pb.Uint8, 3), of("u3s", pb.Uint8, 3, 3, 3),
		floats("row", []int{1, 3}, -1, 0.25, 1), floats("rows", []int{3, 3}, -1, 0, 1, -0.5, 0.5, 0.5, 0, 1, 1.5), number("limit", 16), number("limits", -16),
		number("one", 1), floats("lows", []int{1, 3, 1, 1}, -1, 0, -0.5), floats("highs", []int{1, 3, 1, 1}, 1, 1, 0.5),
	}
	for _, first := range quantisers {
		for _, middle := range between {
			for _, second := range quantisers {
				t.Run(fmt.Sprint(first.name, "/", middle.name, "/", second.name), func(t *testing.T) {
					// Roundings need limits, which all but Floor bring along.
					m := testModel{input: image(3, 3, 4), output: "y", inits: constants, nodes: []testNode{op("Clip", "x limits limit", "l")}}
					m.nodes = append(m.nodes, first.of("l", "a")...)
					in := "a"
					if middle.of != nil {
						m.nodes, in = append(m.nodes, middle.of("a", "b")...), "b"
					}
					m.nodes = append(m.nodes, second.of(in, "c")...)
					m.nodes = append(m.nodes, op("AveragePool", "c", "y", "kernel_shape", []int{1, 2}))
					compare(t, r, m, Options{}, false)
				})
			}
		}
	}
}

// TestQuantisersOfVectors has thresholds and scales for each number of an image that is lined up as a
// vector, behind what is pending on the image: steps, limits and roundings.
func TestQuantisersOfVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(303, 304))
	rows := randomTensor(r, "rows", []int{12, 3}, -1, -0.5, 0, 0.25, 0.5, 1)
	scales := randomTensor(r, "scales", []int{12}, 0.25, 0.5, 1)
	across := testTensor{name: "across", typ: pb.Float, dims: []int{1, 12}, values: scales.values}
	constants := []testTensor{rows, scales, across, number("half", 0.5), number("minus", -1), number("two", 2), number("zero", 0), number("three", 3), {name: "i0", typ: pb.Int8, dims: []int{}, values: []float64{0}}}
	for before, nodes := range map[string][]testNode{
		"steps":    {op("Greater", "f half", "c"), op("Where", "c half minus", "p")},
		"limits":   {op("Clip", "f minus two", "p")},
		"rounding": {op("Clip", "f minus two", "c"), op("Round", "c", "p")},
		"nothing":  {op("Identity", "f", "p")},
	} {
		for behind, last := range map[string]testNode{
			"MultiThreshold": op("qonnx.custom_op.general/MultiThreshold", "p rows", "y"),
			"Quant":          op("qonnx.custom_op.general/Quant", "p across zero three", "y", "signed", 1, "narrow", 0),
			"Mul":            op("Mul", "p across", "y"),
			"PRelu":          op("PRelu", "p across", "y"),
			"Greater":        op("Greater", "p across", "g"),
		} {
			t.Run(before+"/"+behind, func(t *testing.T) {
				m := testModel{input: image(1, 3, 4), output: "y", inits: constants, nodes: slices.Concat([]testNode{op("Flatten", "x", "f")}, nodes, []testNode{last})}
				if behind == "Greater" {
					m.nodes = append(m.nodes, op("Cast", "g", "y", "to", int(pb.Float)))
				}
				compare(t, r, m, Options{}, false)
			})
		}
	}
}

// TestQuantisedWeights has weights that the file quantises on an image: its own integers are
// summed, and none is rounded again. Real numbers are multiplied with them.
func TestQuantisedWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(303, 304))
	filters := testTensor{name: "q", typ: pb.Int8, dims: []int{4, 3, 3, 3}, values: make([]float64, 108)}
	for i := range filters.values {
		filters.values[i] = float64(r.IntN(255) - 127)
	}
	for o := range 4 {
		filters.values[27*o], filters.values[27*o+1] = 127, 126 // so that no larger unit is common
	}
	real := testTensor{name: "w", typ: pb.Float, dims: filters.dims, values: make([]float64, 108)}
	for i, q := range filters.values {
		real.values[i] = q*0x1p-9 + 0x1p-12
	}
	scales := floats("scales", []int{4}, 0x1p-9, 0x1p-8, 0x1p-11, 0x1p-6)
	for name, weights := range map[string]testNode{
		"DequantizeLinear": op("DequantizeLinear", "q scales i0", "v", "axis", 0),
		"Quant":            op("qonnx.custom_op.general/Quant", "w scale zero eight", "v", "signed", 1, "narrow", 1),
		"FakeQuantize":     op("org.openvinotoolkit/FakeQuantize", "w low high low high", "v", "levels", 257),
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 6, 5), nodes: []testNode{weights, op("Conv", "x v bias", "y", "pads", []int{1, 1, 1, 1})}, output: "y",
				inits: []testTensor{filters, real, scales, number("low", -0.25), number("high", 0.25), number("scale", 0x1p-9), number("zero", 0), number("eight", 8), floats("bias", []int{4}, 0.5, -1, 0, 2),
					{name: "i0", typ: pb.Int8, dims: []int{4}, values: make([]float64, 4)}}}
			net, _ := compare(t, r, m, Options{InputType: bcnn.Uint8, Mean: []float32{128}, Scale: []float32{1. / 64}}, false)
			l := summarize(t, net)[0]
			require.Equal(t, []any{plan.Precision(8), ""}, []any{l.Precision, l.WhyFloat})
			require.EqualValues(t, 108, l.BytesPacked)
			for _, l := range net.Layers {
				if conv, ok := l.Op.(bcnn.Conv2D); ok {
					w := conv.Weights.Int8 // [filter][y][x][channel]
					for i, q := range filters.values {
						o, c, at := i/27, i/9%3, i%9
						require.EqualValues(t, q, w[27*o+3*at+c])
					}
				}
			}
			_, _, err := lower.RoundFirst(t.Context(), net, 8, lower.Options{})
			require.ErrorContains(t, err, "no layer with real weights reads the bytes of an input")

			// Scaled in another way for each channel, the sums are of floats, and that is why.
			net, _ = compare(t, r, m, Options{InputType: bcnn.Uint8, Mean: []float32{1, 2, 3}, Scale: []float32{0.5}}, false)
			require.Equal(t, "the zero of the scaled input is not one integer for all channels", summarize(t, net)[0].WhyFloat)

			m.nodes = append([]testNode{op("Transpose", "v", "turned", "perm", []int{0, 1, 3, 2})}, m.nodes...)
			m.nodes[0], m.nodes[1] = m.nodes[1], m.nodes[0]
			m.nodes[2].in[1] = "turned"
			net, _ = compare(t, r, m, Options{}, false)
			l = summarize(t, net)[0]
			require.EqualValues(t, 108, l.BytesPacked)
			require.Equal(t, plan.Float, l.Precision)
			require.Contains(t, l.WhyFloat, "its input is real")
		})
	}
}

// TestClippedActivations has PACT and AdaBits: limits of 0 and α in every way to write them, over α,
// times the last level, rounded, and back. All are levels, whatever α is.
func TestClippedActivations(t *testing.T) {
	alphas, forms := []float64{0.75, 1, 1.5, 1.7, 2.5, 3, 6, 7, 10}, []struct {
		name  string
		nodes []testNode // from x to what is rounded, in units of the last level
	}{
		{"Min of Relu", []testNode{op("Relu", "x", "a"), op("Min", "a alpha", "b"), op("Div", "b alpha", "c"), op("Mul", "c last", "d")}},
		{"Relu of Min", []testNode{op("Min", "alpha x", "a"), op("Relu", "a", "b"), op("Div", "b alpha", "c"), op("Mul", "c last", "d")}},
		{"Where", []testNode{op("Relu", "x", "a"), op("Greater", "a alpha", "w"), op("Where", "w alpha a", "b"), op("Div", "b alpha", "c"), op("Mul", "last c", "d")}},
		{"Where of two Relu", []testNode{op("Relu", "x", "a"), op("Relu", "x", "e"), op("GreaterOrEqual", "a alpha", "w"), op("Where", "w alpha e", "b"), op("Div", "b alpha", "c"), op("Mul", "c last", "d")}},
		{"Clip", []testNode{op("Clip", "x zero alpha", "b"), op("Div", "b alpha", "c"), op("Mul", "c last", "d")}},
		{"Clip with one limit", []testNode{op("Relu", "x", "a"), op("Clip", "a _ alpha", "b"), op("Div", "b alpha", "c"), op("Mul", "c last", "d")}},
		{"Min behind", []testNode{op("Relu", "x", "a"), op("Div", "a alpha", "b"), op("Min", "b one", "c"), op("Mul", "c last", "d")}},
		{"Min behind all", []testNode{op("Relu", "x", "a"), op("Div", "a alpha", "b"), op("Mul", "b last", "c"), op("Min", "c last", "d")}},
		{"limits behind", []testNode{op("Div", "x alpha", "b"), op("Clip", "b zero one", "c"), op("Mul", "c last", "d")}},
		{"times the reciprocal", []testNode{op("Relu", "x", "a"), op("Min", "a alpha", "b"), op("Mul", "b inverse", "c"), op("Mul", "c last", "d")}},
		{"the sum of magnitudes", []testNode{op("Abs", "x", "e"), op("Sub", "x alpha", "f"), op("Abs", "f", "g"), op("Sub", "e g", "h"), op("Add", "h alpha", "i"), op("Mul", "i half", "b"),
			op("Div", "b alpha", "c"), op("Mul", "c last", "d")}},
	}
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			for _, alpha := range alphas {
				for _, bits := range []int{1, 2, 4, 8} {
					last := float64(int(1)<<bits - 1)
					x := bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 1, W: 1021, C: 1})
					m := testModel{input: image(1, 1, len(x.F32)), output: "y", rounds: true,
						inits: []testTensor{number("alpha", float64(float32(alpha))), number("inverse", float64(float32(1/alpha))), number("last", last), number("zero", 0), number("half", 0.5), number("one", 1)},
						nodes: append(slices.Clip(form.nodes), op("Round", "d", "r"), op("Div", "r last", "s"), op("Mul", "s alpha", "y"))}
					net, _, err := Decode(t.Context(), m.encode(), Options{})
					require.NoError(t, err, "α = %v, %d bits", alpha, bits)
					levels := 0
					for _, l := range net.Layers {
						if q, ok := l.Op.(bcnn.Quantize); ok {
							levels += q.Levels
						} else if _, sign := l.Op.(bcnn.Sign); sign {
							levels += 2
						}
					}
					require.LessOrEqual(t, levels, 1<<bits, "α = %v", alpha)
					require.Positive(t, levels)
					plan, err := lower.Network(t.Context(), net, lower.Options{})
					require.NoError(t, err)
					for i := range x.F32 {
						x.F32[i] = float32(alpha * (float64(i)/900 - 0.05))
					}
					got, err := ref.Run(t.Context(), plan, x, nil)
					require.NoError(t, err)
					for i, v := range x.F32 {
						level := max(0, min(float64(v)/alpha, 1)) * last
						if math.Abs(level-math.Floor(level)-0.5) < 1e-3 { // which float32 may round either way
							continue
						}
						require.InDelta(t, math.Round(level)/last*alpha, got.F32[i], 1e-6*alpha, "%v of %v", v, alpha)
					}
				}
			}
		})
	}
}
