package tflite

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// runGraph imports a graph and executes it.
func runGraph(t *testing.T, g *testGraph, values ...float32) (*bcnn.Network, []float32) {
	t.Helper()
	net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
	require.Len(t, x.F32, len(values))
	copy(x.F32, values)
	y, err := ref.Run(t.Context(), plan, x, nil)
	require.NoError(t, err)
	return net, y.F32
}

// Numbers of channels come in the type and the dimensions of the file.
func TestNumbersOfChannels(t *testing.T) {
	values := []float32{3, 1, 2, 5, 7, 7, 0, -1, -2, 4, 4, 4}
	for _, c := range []struct {
		name    string
		in, out []int32
		typ     schema.Type
		axis    int32
		want    []float32
		source  bcnn.Source
	}{
		{"ARG_MAX", []int32{1, 12}, []int32{1}, schema.Int64, 1, []float32{4}, bcnn.Source{Name: "y", Dims: []int{}, Type: bcnn.SourceInt64}},
		{"ARG_MIN", []int32{1, 12}, []int32{1}, schema.Int32, -1, []float32{8}, bcnn.Source{Name: "y", Dims: []int{}, Type: bcnn.SourceInt32}},
		{"ARG_MAX", []int32{1, 2, 2, 3}, []int32{1, 2, 2}, schema.Int64, 3, []float32{0, 1, 0, 0}, bcnn.Source{Name: "y", Dims: []int{2, 2}, Type: bcnn.SourceInt64}},
		{"ARG_MIN", []int32{1, 2, 2, 3}, []int32{1, 2, 2}, schema.Int32, -1, []float32{1, 0, 2, 0}, bcnn.Source{Name: "y", Dims: []int{2, 2}, Type: bcnn.SourceInt32}},
	} {
		g := newGraph(c.in...)
		g.tensors[1] = testTensor{name: "y", typ: c.typ, dims: c.out}
		g.operators = []testOperator{{name: c.name, inputs: []int32{0, g.ints(c.axis)}, outputs: []int32{1}}}
		net, got := runGraph(t, g, values...)
		require.Equal(t, c.want, got, "%+v", c)
		require.Equal(t, &c.source, net.Layers[len(net.Layers)-1].Source)
	}
	for want, change := range map[string]func(g *testGraph){
		"supported only over the channels":                                                 func(g *testGraph) { g.operators[0].inputs[1] = g.ints(2) },
		"channel indices of type FLOAT32 are not supported, want INT32 or INT64":           func(g *testGraph) { g.tensors[1].typ = schema.Float32 },
		"its output has shape [1 2 3] in the file, which does not fit 1 images of 2×2×1":   func(g *testGraph) { g.tensors[1].dims = []int32{1, 2, 3} },
		"its output has shape [1 4 4 4] in the file, which does not fit 1 images of 2×2×1": func(g *testGraph) { g.tensors[1].dims = []int32{1, 4, 4, 4} },
		"supported only as an output": func(g *testGraph) {
			g.outputs[0] = g.add("RELU", nil, []int32{1, 2, 2}, 1)
		},
	} {
		g := newGraph(1, 2, 2, 3)
		g.tensors[1] = testTensor{name: "y", typ: schema.Int32, dims: []int32{1, 2, 2}}
		g.operators = []testOperator{{name: "ARG_MAX", inputs: []int32{0, g.ints(3)}, outputs: []int32{1}}}
		change(g)
		_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.ErrorContains(t, err, want)
	}
}

// MAXIMUM and MINIMUM of two tensors, of which one may be repeated, and with constants.
func TestExtremes(t *testing.T) {
	in := []int32{1, 2, 2, 2}
	values := []float32{1, -2, 3, -4, -5, 6, 0, 8}
	for _, c := range []struct {
		name    string
		swapped bool
		other   func(g *testGraph) int32
		values  func(pixel, channel int) float32 // of the other
	}{
		{"another", false, func(g *testGraph) int32 { return g.add("NEG", nil, in, 0) }, func(p, c int) float32 { return -values[2*p+c] }},
		{"largest of channels", true, func(g *testGraph) int32 {
			return g.add("REDUCE_MAX", map[int]any{0: uint8(1)}, []int32{1, 1, 1, 2}, 0, g.ints(1, 2))
		}, func(_, c int) float32 { return []float32{3, 8}[c] }},
		{"a channel", true, func(g *testGraph) int32 {
			return g.add("SLICE", nil, []int32{1, 2, 2, 1}, 0, g.ints(0, 0, 0, 1), g.ints(-1, -1, -1, 1))
		}, func(p, _ int) float32 { return values[2*p+1] }},
		{"constants of channels", false, func(g *testGraph) int32 { return g.floats([]int32{2}, 2, -3) }, func(_, c int) float32 { return []float32{2, -3}[c] }},
		{"a number", true, func(g *testGraph) int32 { return g.floats(nil, 0.5) }, func(int, int) float32 { return 0.5 }},
	} {
		for _, most := range []bool{false, true} {
			g := newGraph(in...)
			inputs := []int32{0, c.other(g)}
			if c.swapped {
				inputs[0], inputs[1] = inputs[1], inputs[0]
			}
			name, f := "MINIMUM", math.Min
			if most {
				name, f = "MAXIMUM", math.Max
			}
			g.outputs[0] = g.add(name, nil, in, inputs...)
			_, got := runGraph(t, g, values...)
			for i, v := range values {
				require.Equal(t, float32(f(float64(v), float64(c.values(i/2, i%2)))), got[i], "%s %s", c.name, name)
			}
		}
	}
}

// What the importer of ONNX reads, and tf2onnx writes, is refused with that way out: not of files that
// tf2onnx does not read, or of which it makes what is refused in the end.
func TestThroughONNX(t *testing.T) {
	const way = "python -m tf2onnx.convert --tflite FILE --output FILE.onnx"
	d := []int32{1, 2, 2, 3}
	for _, name := range throughONNX {
		require.Nil(t, handlers[name], name)
		g := newGraph(d...)
		g.outputs[0] = g.add(name, nil, d, 0, 0)
		refused(t, g.encode(), way)
		g = newGraph(d...)
		g.outputs[0] = g.add("LceQuantize", nil, d, g.add(name, nil, d, 0, 0))
		notRefused(t, g, way)
		g = newGraph(d...)
		x := g.add("QUANTIZE", nil, d, 0)
		g.quantised(x, 0.5, 0)
		g.outputs[0] = g.add(name, nil, d, g.add("DEQUANTIZE", nil, d, x))
		notRefused(t, g, way)
	}
	g := newGraph(d...)
	g.outputs[0] = g.add("CUMSUM", nil, d, 0, g.ints(1))
	notRefused(t, g, way)
}

// notRefused requires an error without some words.
func notRefused(t *testing.T, g *testGraph, words string) {
	t.Helper()
	_, _, err := Decode(t.Context(), g.encode(), Options{})
	require.ErrorContains(t, err, "this operator is not supported")
	require.NotContains(t, err.Error(), words)
}
