package tflite

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// dot is a plain layer: filters [out][size], biases, and a fused activation.
func dot(x, weights, bias []float32, act func(float32) float32) []float32 {
	var y []float32
	for o := range len(weights) / len(x) {
		sum := float32(0)
		for i, w := range weights[o*len(x):][:len(x)] {
			sum += x[i] * w
		}
		if bias != nil {
			sum += bias[o]
		}
		y = append(y, act(sum))
	}
	return y
}

func signsOf(x []float32) []float32 {
	var y []float32
	for _, v := range x {
		if v < 0 {
			y = append(y, -1)
		} else {
			y = append(y, 1)
		}
	}
	return y
}

// Weights become bits where they are ±α and that helps, integers where they are multiples
// of α of signs, and stay numbers elsewhere. Whatever they become, the layer is the same.
func TestKindsOfWeights(t *testing.T) {
	none := func(x float32) float32 { return x }
	for _, c := range []struct {
		name    string
		signs   bool // the input is
		size    int
		weights []float32
		kind    string
	}{
		{"±1 of numbers", false, 3, of(1, -1, 1, -1, -1, 1), "bits"},
		{"±1 of numbers, where bits take no less memory", false, 2, of(1, -1, -1, 1), "numbers"},
		{"±½ of numbers", false, 3, of(0.5, -0.5, 0.5, -0.5, -0.5, 0.5), "bits"},
		{"±1 and ±½ of numbers", false, 3, of(1, -1, 1, -0.5, -0.5, 0.5), "bits"},
		{"±½ and ±1 of numbers", false, 3, of(-0.5, -0.5, 0.5, 1, -1, 1), "bits"},
		{"no −α among numbers", false, 3, of(1, 0.5, 1, 1, 0.25, 1), "numbers"},
		{"−1 first", false, 3, of(-1, 0.5, 1, -1, 1, 0.25), "numbers"},
		{"0 first", false, 3, of(0, 1, -1, 1, -1, 1), "numbers"},
		{"α of each filter", true, 3, of(0.5, -0.5, 0.5, -2, -2, 2), "bits"},
		{"±1 of signs", true, 3, of(1, -1, 1, -1, -1, 1), "bits"},
		{"many signs", true, 70, slices.Repeat(of(-1, 1, 1, 1, -1, 1, -1), 20), "bits"},
		{"multiples of signs", true, 3, of(0.5, 0.25, -0.5, 3, -1, 2), "integers"},
		{"±1 in front of a multiple", true, 3, of(1, -1, 1, 1, 2, -1), "integers"},
		{"no multiples of signs", true, 3, of(1, 0.731, 0.113, 0.217, -0.5, 0.391), "numbers"},
		{"±1 in front of numbers", true, 3, of(1, -1, 1, 1, 0.731, 0.113), "numbers"},
	} {
		for _, bias := range [][]float32{nil, of(0.25, -4)} {
			for _, name := range []string{"CONV_2D", "FULLY_CONNECTED"} {
				t.Run(c.name+" "+name, func(t *testing.T) {
					dims := []int32{1, 1, 1, int32(c.size)}
					g := newGraph(dims...)
					x, weights := int32(0), []int32{2, 1, 1, int32(c.size)}
					if c.signs {
						x = g.add("LceQuantize", nil, dims, x)
						g.tensors[x].typ, g.tensors[x].dims = 2, []int32{1, 1, 1, int32((c.size + 31) / 32)}
						x = g.add("LceDequantize", nil, dims, x)
					}
					options, out := convOptions(1, 1), []int32{1, 1, 1, 2}
					if name == "FULLY_CONNECTED" {
						options, weights, out = nil, []int32{2, int32(c.size)}, []int32{1, 2}
					}
					inputs := []int32{x, g.floats(weights, c.weights...), -1}
					if bias != nil {
						inputs[2] = g.floats([]int32{2}, bias...)
					}
					g.outputs[0] = g.add(name, options, out, inputs...)
					values := make([]float32, c.size)
					for i := range values {
						values[i] = float32(5*i%7) - 3
					}
					net, y := runGraph(t, g, values...)
					if c.signs {
						values = signsOf(values)
					}
					for i, want := range dot(values, c.weights, bias, none) {
						require.InDelta(t, want, y[i], 1e-5)
					}
					require.Equal(t, c.kind, kindOf(net))
				})
			}
		}
	}
}

// kindOf says what the weights of the one layer with weights are.
func kindOf(net *bcnn.Network) string {
	for _, l := range net.Layers {
		var w bcnn.Weights
		switch op := l.Op.(type) {
		case bcnn.Conv2D:
			w = op.Weights
		case bcnn.Dense:
			w = op.Weights
		default:
			continue
		}
		switch {
		case w.Bits != nil:
			return "bits"
		case w.Int8 != nil:
			return "integers"
		}
		return "numbers"
	}
	return "none"
}

// keep_num_dims makes of FULLY_CONNECTED a layer of each pixel where it has as many
// weights as there are channels. Without it, all values are one vector.
func TestKeepNumDims(t *testing.T) {
	keep := map[int]any{2: uint8(1)}
	x := of(1, -2, 3, 4, 5, -6, 7, -8, 9, -10, 11, 12)
	perPixel, all := of(1, 2, 3, -1, 0.5, 4), make([]float32, 24)
	for i := range all {
		all[i] = float32(i%5) - 1.5
	}
	relu := func(v float32) float32 { return max(v, 0) }
	same := func(v float32) float32 { return v }
	pixels := func(act func(float32) float32) (y []float32) {
		for i := range 4 {
			y = append(y, dot(x[3*i:][:3], perPixel, of(1, -1), act)...)
		}
		return y
	}
	for _, c := range []struct {
		name    string
		options map[int]any
		size    int32 // of a filter
		weights []float32
		out     []int32
		want    []float32
		err     string
	}{
		{"each pixel", keep, 3, perPixel, []int32{1, 2, 2, 2}, pixels(same), ""},
		{"each pixel, with an activation", map[int]any{0: uint8(1), 2: uint8(1)}, 3, perPixel, []int32{1, 2, 2, 2}, pixels(relu), ""},
		{"all values", nil, 12, all, []int32{1, 2}, dot(x, all, of(1, -1), same), ""},
		{"all values, with an activation", map[int]any{0: uint8(1)}, 12, all, []int32{1, 2}, dot(x, all, of(1, -1), relu), ""},
		{"kept, of all values", keep, 12, all, []int32{1, 2}, nil, "weights of shape [2 12] do not fit pixels of 3 channels"},
		{"not kept", nil, 3, perPixel, []int32{1, 2, 2, 2}, nil, "weights of shape [2 3] do not fit an input of 12 values"},
		{"a part", keep, 4, make([]float32, 8), []int32{1, 2}, nil, "weights of shape [2 4] do not fit pixels of 3 channels"},
		{"in blocks", map[int]any{1: uint8(1)}, 12, all, []int32{1, 2}, nil, "the format 1 of its weights is not supported"},
		{"an activation that there is not", map[int]any{0: uint8(7)}, 12, all, []int32{1, 2}, nil, "the fused activation 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGraph(1, 2, 2, 3)
			g.outputs[0] = g.add("FULLY_CONNECTED", c.options, c.out, 0, g.floats([]int32{2, c.size}, c.weights...), g.floats([]int32{2}, 1, -1))
			if c.err != "" {
				refused(t, g.encode(), c.err)
				return
			}
			_, y := runGraph(t, g, x...)
			require.Equal(t, c.want, y)
		})
	}
}

// Convolutions of unlike strides, dilations, paddings and groups give what plain loops
// give: TensorFlow's SAME padding has its larger half behind.
func TestGeometry(t *testing.T) {
	for _, c := range []struct {
		name             string
		depthwise        bool
		valid            bool
		kh, kw           int
		sw, sh, dw, dh   int
		out, groups, act int
		padTop, padLeft  int
		outH, outW       int
	}{
		{"valid", false, true, 2, 3, 1, 1, 1, 1, 4, 1, 0, 0, 0, 4, 4},
		{"same", false, false, 2, 3, 1, 1, 1, 1, 4, 1, 1, 0, 1, 5, 6},
		{"strides", false, false, 3, 3, 3, 2, 1, 1, 4, 1, 2, 1, 0, 3, 2},
		{"dilations", false, true, 2, 3, 1, 1, 2, 3, 4, 1, 0, 0, 0, 2, 2},
		{"dilated, same", false, false, 2, 2, 1, 1, 3, 2, 4, 1, 3, 1, 1, 5, 6},
		{"groups", false, true, 2, 2, 1, 1, 1, 1, 6, 2, 0, 0, 0, 4, 5},
		{"depthwise", true, true, 2, 3, 2, 1, 1, 1, 4, 4, 1, 0, 0, 4, 2},
		{"depthwise, dilated", true, true, 2, 2, 1, 1, 2, 3, 4, 4, 0, 0, 0, 2, 4},
		{"depthwise, more channels", true, false, 3, 2, 1, 1, 1, 1, 8, 4, 3, 1, 0, 5, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			const h, w, in = 5, 6, 4
			perGroup := in / c.groups
			taps := c.kh * c.kw * perGroup
			weights, bias := make([]float32, c.out*taps), make([]float32, c.out)
			for i := range weights {
				weights[i] = float32(i*7%11) - 5.5
			}
			for i := range bias {
				bias[i] = float32(i) - 1
			}
			g := newGraph(1, h, w, in)
			padding := uint8(0)
			if c.valid {
				padding = 1
			}
			options := map[int]any{0: padding, 1: c.sw, 2: c.sh, 3: uint8(c.act), 4: c.dw, 5: c.dh}
			name, dims, stored := "CONV_2D", []int32{int32(c.out), int32(c.kh), int32(c.kw), int32(perGroup)}, weights
			if c.depthwise { // [kh][kw][out]
				name, dims = "DEPTHWISE_CONV_2D", []int32{1, int32(c.kh), int32(c.kw), int32(c.out)}
				options = map[int]any{0: padding, 1: c.sw, 2: c.sh, 3: c.out / in, 4: uint8(c.act), 5: c.dw, 6: c.dh}
				stored = make([]float32, len(weights))
				for i, v := range weights {
					stored[i%taps*c.out+i/taps] = v
				}
			}
			g.outputs[0] = g.add(name, options, []int32{1, int32(c.outH), int32(c.outW), int32(c.out)}, 0, g.floats(dims, stored...), g.floats([]int32{int32(c.out)}, bias...))
			x := make([]float32, h*w*in)
			for i := range x {
				x[i] = float32(i*5%13) - 6
			}
			_, y := runGraph(t, g, x...)
			var want []float32
			for i := range c.outH * c.outW * c.out {
				o, col, row := i%c.out, i/c.out%c.outW, i/c.out/c.outW
				sum := bias[o]
				for k := range taps {
					ky, kx := row*c.sh-c.padTop+k/perGroup/c.kw*c.dh, col*c.sw-c.padLeft+k/perGroup%c.kw*c.dw
					if ky >= 0 && ky < h && kx >= 0 && kx < w {
						sum += x[(ky*w+kx)*in+o/(c.out/c.groups)*perGroup+k%perGroup] * weights[o*taps+k]
					}
				}
				want = append(want, []func(x float32) float32{
					func(x float32) float32 { return x }, func(x float32) float32 { return max(x, 0) },
					func(x float32) float32 { return min(max(x, -1), 1) }, func(x float32) float32 { return min(max(x, 0), 6) },
				}[c.act](sum))
			}
			require.Equal(t, want, y)
		})
	}
}

// Filters that do not fit the channels in front of them, or each other.
func TestFiltersThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		name   string
		filter []int32
		want   string
	}{
		{"CONV_2D", []int32{2, 1, 1, 4}, "filters of shape [2 1 1 4] do not fit an input of 2 channels"},
		{"CONV_2D", []int32{3, 1, 1, 1}, "filters of shape [3 1 1 1] do not fit an input of 2 channels"},
		{"DEPTHWISE_CONV_2D", []int32{2, 1, 1, 2}, "filters of shape [2 1 1 2] do not fit an input of 2 channels"},
		{"DEPTHWISE_CONV_2D", []int32{1, 1, 1, 3}, "filters of shape [1 1 1 3] do not fit an input of 2 channels"},
		{"DEPTHWISE_CONV_2D", []int32{1, 1, 2}, "its filters have 3 dimensions, want 4"},
		{"FULLY_CONNECTED", []int32{1, 1, 32}, "its weights have 3 dimensions, want 2"},
	} {
		n := int32(1)
		for _, d := range c.filter {
			n *= d
		}
		g := with(c.name, nil, []int32{1, 4, 4, 2}, func(g *testGraph, o *testOperator) {
			o.options = map[int]any{0: uint8(1), 1: 1, 2: 1}
			if c.name == "FULLY_CONNECTED" {
				o.options = nil
			}
			o.inputs = append(o.inputs, g.floats(c.filter, make([]float32, n)...))
		})
		refused(t, g.encode(), c.want)
	}
}
