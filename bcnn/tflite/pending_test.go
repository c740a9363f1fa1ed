package tflite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// layersOf imports a graph and returns its layers by their names.
func layersOf(t *testing.T, g *testGraph) (names []string, net *bcnn.Network, report *Report) {
	t.Helper()
	net, report, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	for _, l := range net.Layers {
		names = append(names, l.Name)
	}
	return names, net, report
}

// A factor of signs waits for the layer behind. Other functions of it are functions of the signs.
func TestFactorsWait(t *testing.T) {
	dims := []int32{1, 1, 1, 3}
	weights := of(1, -1, 1, -1, -1, 1)
	dense := func(g *testGraph, x int32) int32 {
		return g.add("FULLY_CONNECTED", nil, []int32{1, 2}, x, g.floats([]int32{2, 3}, weights...), -1)
	}
	times := func(g *testGraph, x int32, factor float32, options map[int]any) int32 {
		return g.add("MUL", options, dims, x, g.floats(nil, factor))
	}
	x := of(2, -3, 0)
	signs := of(1, -1, 1)
	scaled := func(f float32) []float32 {
		y := slices.Clone(signs)
		for i := range y {
			y[i] *= f
		}
		return y
	}
	same := func(v float32) float32 { return v }
	for _, c := range []struct {
		name   string
		make   func(g *testGraph, s int32) int32
		values float32 // by which the signs are multiplied in front of the layer
		kind   string
	}{
		{"no factor", func(g *testGraph, s int32) int32 { return dense(g, s) }, 1, "bits"},
		{"a factor", func(g *testGraph, s int32) int32 { return dense(g, times(g, s, 0.5, nil)) }, 0.5, "bits"},
		{"two", func(g *testGraph, s int32) int32 { return dense(g, times(g, times(g, s, 0.5, nil), 3, nil)) }, 1.5, "bits"},
		{"less than 0", func(g *testGraph, s int32) int32 { return dense(g, times(g, s, -2, nil)) }, -2, "bits"},
		{"0", func(g *testGraph, s int32) int32 { return dense(g, times(g, s, 0, nil)) }, 0, "bits"},
		{"with an activation", func(g *testGraph, s int32) int32 {
			return dense(g, times(g, g.add("ADD", nil, dims, s, g.floats(nil, 0)), 1, map[int]any{0: uint8(3)}))
		}, 0, ""},
		{"reshaped", func(g *testGraph, s int32) int32 {
			return dense(g, g.add("RESHAPE", nil, []int32{1, 3}, times(g, s, 0.25, nil)))
		}, 0.25, "bits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGraph(dims...)
			g.outputs[0] = c.make(g, g.put("bits", dims, 0))
			got := runInputs(t, g, x)[0]
			if c.kind == "" { // RELU6 of ±1
				require.Equal(t, dot(of(1, 0, 1), weights, nil, same), got)
				return
			}
			require.InDeltaSlice(t, dot(scaled(c.values), weights, nil, same), got, 0)
			_, net, _ := layersOf(t, g)
			if c.values > 0 { // then there is no layer for the factor
				require.Equal(t, c.kind, kindOf(net))
				for _, l := range net.Layers {
					require.NotContains(t, l.Name, "mul")
				}
			}
		})
	}
	g := newGraph(dims...)
	s := times(g, g.put("bits", dims, 0), 0.5, nil)
	a, b := g.add("NEG", nil, dims, s), g.add("EXP", nil, dims, s)
	g.outputs = []int32{a, b, dense(g, s)}
	names, _, _ := layersOf(t, g)
	require.NotContains(t, names, "mul") // all three read the signs
	got := runInputs(t, g, x)
	require.Equal(t, of(-0.5, 0.5, -0.5), got[0])
	require.InDelta(t, 1.6487213, got[1][0], 1e-6)
	require.Equal(t, dot(scaled(0.5), weights, nil, same), got[2])
}

// Layers on joined signs and levels of unlike factors become one for each part, unless
// there are too many of them, or they are numbers.
func TestPartsOfLayers(t *testing.T) {
	for _, c := range []struct {
		name    string
		parts   []string
		factors []float32
		bias    bool
		sums    int // of layers, besides the first
	}{
		{"two", []string{"bits", "bits"}, of(1, 0.5), true, 1},
		{"three", []string{"bits", "bits", "bits"}, of(2, 0.5, 4), false, 2},
		{"numbers among them", []string{"bits", "NEG"}, of(1, 1), true, 0},
		{"as many as there may be", slices.Repeat([]string{"bits", "bits"}, 8), slices.Repeat(of(1, 0.5), 8), true, 15},
		{"more", slices.Repeat([]string{"bits"}, 17), append(slices.Repeat(of(1, 0.5), 8), 1), true, 0},
		{"of one factor", []string{"bits", "bits"}, of(0.5, 0.5), true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := len(c.parts)
			g := newGraph(1, 1, 1, int32(3*n))
			sizes := slices.Repeat([]int32{3}, n)
			var outputs []int32
			for range sizes {
				outputs = append(outputs, g.tensor(testTensor{name: "part", dims: []int32{1, 1, 1, 3}}))
			}
			g.operators = []testOperator{{name: "SPLIT", inputs: []int32{g.ints(3), 0}, outputs: outputs}}
			x := make([]float32, 3*n)
			for i := range x {
				x[i] = float32(i*7%5) - 2
			}
			values := slices.Clone(x)
			var joined []int32
			for i, name := range c.parts {
				y := g.put(name, []int32{1, 1, 1, 3}, outputs[i])
				if c.factors[i] != 1 {
					y = g.add("MUL", nil, []int32{1, 1, 1, 3}, y, g.floats(nil, c.factors[i]))
				}
				joined = append(joined, y)
				for k := range 3 {
					values[3*i+k] = plain[name](x[3*i+k]) * c.factors[i]
				}
			}
			y := g.add("CONCATENATION", map[int]any{0: 3}, []int32{1, 1, 1, int32(3 * n)}, joined...)
			weights := make([]float32, 2*3*n)
			for i := range weights {
				weights[i] = float32(1 - 2*(i*i/3%2))
			}
			inputs := []int32{y, g.floats([]int32{2, 1, 1, int32(3 * n)}, weights...), -1}
			var bias []float32
			if c.bias {
				bias = of(0.25, -3)
				inputs[2] = g.floats([]int32{2}, bias...)
			}
			g.outputs = []int32{g.add("CONV_2D", convOptions(1, 1), []int32{1, 1, 1, 2}, inputs...)}
			require.InDeltaSlice(t, dot(values, weights, bias, func(v float32) float32 { return v }), runInputs(t, g, x)[0], 1e-5)
			_, net, _ := layersOf(t, g)
			sums := 0
			for _, l := range net.Layers {
				if _, ok := l.Op.(bcnn.Add); ok {
					sums++
				}
			}
			require.Equal(t, c.sums, sums)
		})
	}
}

// SOFTMAX stands at the end, with a factor in front, or in front of the DEQUANTIZE that
// gives the output.
func TestSoftmax(t *testing.T) {
	for _, c := range []struct {
		name string
		beta float32
		want []bcnn.Op
	}{
		{"SOFTMAX", 1, []bcnn.Op{bcnn.Softmax{}}},
		{"SOFTMAX", 2, []bcnn.Op{bcnn.Affine{Scale: of(2)}, bcnn.Softmax{}}},
		{"LOG_SOFTMAX", 0, []bcnn.Op{bcnn.Softmax{Log: true}}},
	} {
		g := newGraph(1, 3)
		options := map[int]any{0: c.beta}
		if c.name == "LOG_SOFTMAX" {
			options = nil
		}
		g.outputs[0] = g.add(c.name, options, []int32{1, 3}, 0)
		_, net, _ := layersOf(t, g)
		var got []bcnn.Op
		for _, l := range net.Layers {
			got = append(got, l.Op)
		}
		require.Equal(t, c.want, got)
		g.outputs[0] = g.add("NEG", nil, []int32{1, 3}, g.outputs[0])
		refused(t, g.encode(), "a softmax is supported only as an output of the model")
	}
	for _, c := range []struct {
		name    string
		between bool // another operator between it and DEQUANTIZE, which does not read it
		reader  bool // another operator that does
		output  bool // what DEQUANTIZE gives is one
		err     bool
	}{
		{"alone", false, false, true, false}, {"with others", true, false, true, false}, {"that another one reads", false, true, true, true},
		{"of no output", false, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGraph(1, 3)
			g.quantised(0, 0.5, 1)
			y := g.add("SOFTMAX", map[int]any{0: float32(1)}, []int32{1, 3}, 0)
			g.quantised(y, 1.0/256, -128)
			g.outputs = nil
			if c.between {
				g.outputs = append(g.outputs, g.add("DEQUANTIZE", nil, []int32{1, 3}, 0))
			}
			d := g.add("DEQUANTIZE", nil, []int32{1, 3}, y)
			if c.reader {
				g.outputs = append(g.outputs, g.add("ABS", nil, []int32{1, 3}, y))
				g.quantised(g.outputs[0], 1, 0)
			}
			if !c.output {
				d = g.add("RELU", nil, []int32{1, 3}, d)
			}
			g.outputs = append(g.outputs, d)
			if c.err {
				refused(t, g.encode(), "a softmax is supported only as an output of the model")
				return
			}
			_, net, report := layersOf(t, g)
			if net.Outputs == nil {
				net.Outputs = []int{len(net.Layers) - 1}
			}
			require.Equal(t, "FLOAT32", report.Outputs[len(report.Outputs)-1].Type)
			require.Equal(t, bcnn.Softmax{}, net.Layers[net.Outputs[len(net.Outputs)-1]].Op)
		})
	}
	g := newGraph(1, 3)
	g.quantised(0, 0.5, 1)
	g.outputs[0] = g.add("SOFTMAX", map[int]any{0: float32(3)}, []int32{1, 3}, 0)
	g.quantised(g.outputs[0], 1.0/256, -128)
	_, net, _ := layersOf(t, g)
	require.Contains(t, fmt.Sprint(net.Layers), fmt.Sprint(bcnn.Affine{Scale: of(1.5)}))
}

// Binary convolutions pad with zeros or +1, and their groups share out the channels.
func TestBinaryConvolutions(t *testing.T) {
	for _, c := range []struct {
		name                     string
		channels, groups, out    int32
		padding, padValue, front int32 // front: a PAD of 1 in front of the signs
		stride, dilation         int32
		act                      int32
	}{
		{"valid", 40, 1, 3, 1, 0, 0, 1, 1, 0},
		{"same, of zeros", 33, 1, 3, 0, 0, 0, 1, 1, 0},
		{"same, of +1", 33, 1, 3, 0, 1, 0, 1, 1, 0},
		{"same, of +1, with an activation", 33, 1, 3, 0, 1, 0, 1, 1, 1},
		{"same, of zeros, with an activation", 64, 1, 3, 0, 0, 0, 1, 1, 2},
		{"strides", 32, 1, 2, 0, 1, 0, 2, 1, 3},
		{"dilations", 7, 1, 2, 0, 1, 0, 1, 2, 0},
		{"groups", 64, 2, 4, 1, 0, 0, 1, 1, 0},
		{"padded in front", 10, 1, 2, 1, 0, 1, 1, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			const h, w = 4, 3
			per := c.channels / c.groups
			words := (per + 31) / 32
			g := newGraph(1, h, w, c.channels)
			x := int32(0)
			ph, pw := int32(h), int32(w)
			if c.front > 0 {
				ph, pw = h+2, w+2
				x = g.add("PAD", nil, []int32{1, ph, pw, c.channels}, x, g.ints(0, 0, 1, 1, 1, 1, 0, 0))
			}
			x = g.add("LceQuantize", nil, []int32{1, ph, pw, (c.channels + 31) / 32}, x)
			g.tensors[x].typ = schema.Int32
			data := make([]byte, 4*c.out*9*words)
			for i := range data {
				data[i] = byte(i * i * 31 >> 3)
			}
			filter := g.tensor(testTensor{name: "w", typ: schema.Int32, dims: []int32{c.out, 3, 3, words}, data: data})
			var multiplier, bias []float32
			for o := range c.out {
				multiplier, bias = append(multiplier, 0.5*float32(o+1)), append(bias, float32(o)-1)
			}
			size := func(n int32) int32 {
				if c.padding == 0 {
					return (n + c.stride - 1) / c.stride
				}
				return (n-2*c.dilation-1)/c.stride + 1
			}
			outH, outW := size(ph), size(pw)
			y := g.add("LceBconv2d", nil, []int32{1, outH, outW, c.out}, x, filter, g.floats([]int32{c.out}, multiplier...), g.floats([]int32{c.out}, bias...), -1)
			g.operators[len(g.operators)-1].custom = flexMap([]string{
				"channels_in", "dilation_height_factor", "dilation_width_factor", "fused_activation_function", "pad_values", "padding", "stride_height", "stride_width",
			}, []int32{c.channels, c.dilation, c.dilation, c.act, c.padValue, c.padding, c.stride, c.stride})
			g.outputs[0] = y
			in := make([]float32, h*w*c.channels)
			for i := range in {
				in[i] = float32(i*13%7) - 3
			}
			top, left := -c.front, -c.front
			if c.padding == 0 {
				a, _ := same(int(ph), 3, int(c.stride), int(c.dilation))
				b, _ := same(int(pw), 3, int(c.stride), int(c.dilation))
				top, left = -int32(a), -int32(b)
			}
			outside := float32(c.padValue)
			if c.front > 0 {
				outside = 1
			}
			var want []float32
			for i := range outH * outW * c.out {
				o, col, row := i%c.out, i/c.out%outW, i/c.out/outW
				sum := float32(0)
				for k := range 9 * per {
					ch, kx, ky := k%per, k/per%3, k/per/3
					yy, xx := row*c.stride+top+ky*c.dilation, col*c.stride+left+kx*c.dilation
					v := outside
					if yy >= 0 && yy < h && xx >= 0 && xx < w {
						v = signsOf(in[(yy*w+xx)*c.channels+o/(c.out/c.groups)*per+ch:][:1])[0]
					}
					at := ((o*3+ky)*3+kx)*words + ch/32
					bit := data[4*at+ch%32/8] >> (ch % 8) & 1
					sum += v * (1 - 2*float32(bit))
				}
				sum = []func(x float32) float32{
					func(x float32) float32 { return x }, func(x float32) float32 { return max(x, 0) },
					func(x float32) float32 { return min(max(x, -1), 1) }, func(x float32) float32 { return min(max(x, 0), 6) },
				}[c.act](sum)
				want = append(want, sum*multiplier[o]+bias[o])
			}
			require.Equal(t, want, runInputs(t, g, in)[0])
		})
	}
}
