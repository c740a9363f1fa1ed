package tflite

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// SAME padding gives ⌈size/stride⌉ positions, of which the padding behind is the larger half.
func TestSamePadding(t *testing.T) {
	for _, c := range []struct{ size, kernel, stride, dilation, before, after int }{
		{5, 3, 1, 1, 1, 1}, {5, 2, 1, 1, 0, 1}, {5, 3, 2, 1, 1, 1}, {6, 3, 2, 1, 0, 1}, {4, 1, 3, 1, 0, 0}, {5, 4, 3, 1, 1, 1},
		{5, 1, 1, 1, 0, 0}, {7, 3, 1, 3, 3, 3}, {7, 2, 1, 3, 1, 2}, {8, 2, 4, 1, 0, 0}, {1, 5, 1, 1, 2, 2},
	} {
		before, after := same(c.size, c.kernel, c.stride, c.dilation)
		require.Equal(t, [2]int{c.before, c.after}, [2]int{before, after}, "%+v", c)
	}
}

// Pools of windows, with SAME padding, which does not count, and with zeros that a PAD
// puts around, which do.
func TestPools(t *testing.T) {
	const h, w = 4, 5
	x := make([]float32, h*w)
	for i := range x {
		x[i] = float32(7*i%11) - 5
	}
	for _, c := range []struct {
		name           string
		pads           []int32 // of rows and columns
		padding        uint8
		sw, sh, kw, kh int
		top, left      int
		outH, outW     int
	}{
		{"valid", nil, 1, 1, 2, 3, 2, 0, 0, 2, 3},
		{"same", nil, 0, 2, 1, 3, 2, 0, 1, 4, 3},
		{"all", nil, 1, 1, 1, 5, 4, 0, 0, 1, 1},
		{"padded", []int32{1, 2, 2, 1}, 1, 1, 1, 3, 3, 1, 2, 5, 6},
		{"padded above", []int32{1, 0, 0, 0}, 1, 2, 2, 2, 2, 1, 0, 2, 2},
		{"padded at the right", []int32{0, 0, 0, 1}, 1, 2, 2, 2, 2, 0, 0, 2, 3},
	} {
		for _, name := range []string{"MAX_POOL_2D", "AVERAGE_POOL_2D"} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				g := newGraph(1, h, w, 1)
				at, relu := int32(0), c.pads != nil
				if relu {
					at = g.add("RELU", nil, []int32{1, h, w, 1}, at)
					at = g.add("PAD", nil, []int32{1, h + c.pads[0] + c.pads[1], w + c.pads[2] + c.pads[3], 1}, at,
						g.ints(0, 0, c.pads[0], c.pads[1], c.pads[2], c.pads[3], 0, 0))
				}
				g.outputs[0] = g.add(name, map[int]any{0: c.padding, 1: c.sw, 2: c.sh, 3: c.kw, 4: c.kh}, []int32{1, int32(c.outH), int32(c.outW), 1}, at)
				var want []float32
				for i := range c.outH * c.outW {
					largest, sum, n := float32(math.Inf(-1)), float32(0), float32(0)
					for k := range c.kh * c.kw {
						y, z := i/c.outW*c.sh-c.top+k/c.kw, i%c.outW*c.sw-c.left+k%c.kw
						v := float32(0)
						if y >= 0 && y < h && z >= 0 && z < w {
							if v = x[y*w+z]; relu {
								v = max(v, 0)
							}
						} else if !relu {
							continue
						}
						largest, sum, n = max(largest, v), sum+v, n+1
					}
					if name == "AVERAGE_POOL_2D" {
						largest = sum / n
					}
					want = append(want, largest)
				}
				require.InDeltaSlice(t, want, runInputs(t, g, x)[0], 1e-6)
			})
		}
	}
}

// paddedGraph is a PAD of 1 around an image of 4×4×2, with an operator in front of it and
// one behind.
func paddedGraph(front, behind string, options map[int]any, out []int32) *testGraph {
	g := newGraph(1, 4, 4, 2)
	x := g.add(front, nil, []int32{1, 4, 4, 2}, 0)
	x = g.add("PAD", nil, []int32{1, 6, 6, 2}, x, g.ints(0, 0, 1, 1, 1, 1, 0, 0))
	g.outputs[0] = g.add(behind, options, out, x)
	return g
}

func TestPoolsRefused(t *testing.T) {
	packed := newGraph(1, 4, 4, 2)
	x := packed.add("LceQuantize", nil, []int32{1, 4, 4, 1}, 0)
	packed.tensors[x].typ = schema.Int32
	packed.outputs[0] = packed.add("MAX_POOL_2D", pool(1, 1, 2), []int32{1, 3, 3, 1}, x)
	numbers := newGraph(1, 4, 4, 2)
	x = numbers.add("ARG_MAX", nil, []int32{1, 4, 4}, 0, numbers.ints(3))
	numbers.tensors[x].typ = schema.Int32
	numbers.outputs[0] = numbers.add("MAX_POOL_2D", pool(1, 1, 2), []int32{1, 3, 3, 1}, x)
	unsigned := newGraph(1, 4, 4, 2)
	unsigned.tensors[0].typ, unsigned.tensors[0].scale, unsigned.tensors[0].zero = schema.Uint8, []float32{1}, []int64{0}
	options := pool(1, 1, 2)
	options[5] = uint8(1)
	unsigned.outputs[0] = unsigned.add("MAX_POOL_2D", options, []int32{1, 3, 3, 2}, 0)
	activation := pool(1, 1, 2)
	activation[5] = uint8(4)
	for _, c := range []struct {
		g    *testGraph
		want string
	}{
		{with("MAX_POOL_2D", activation, []int32{1, 3, 3, 2}, nil), "the fused activation 4 is not supported"},
		{with("AVERAGE_POOL_2D", activation, []int32{1, 3, 3, 2}, nil), "the fused activation 4 is not supported"},
		{packed, "its input is packed bits, which this operator does not support"},
		{numbers, "channel indices, as of ARG_MAX, are supported only as an output of the model"},
		{unsigned, "8-bit values are not supported here"},
		{with("MAX_POOL_2D", pool(1, 1, 5), []int32{1, 1, 1, 2}, nil), "the window is larger than its padded input"},
	} {
		refused(t, c.g.encode(), c.want)
	}
	// Zeros around are the padding of what reads them, if that computes the same.
	for _, c := range []struct {
		g      *testGraph
		pixels bool
	}{
		{paddedGraph("RELU", "MAX_POOL_2D", pool(1, 1, 2), []int32{1, 5, 5, 2}), false},
		{paddedGraph("RELU", "MAX_POOL_2D", pool(0, 1, 3), []int32{1, 6, 6, 2}), false},
		{paddedGraph("NEG", "AVERAGE_POOL_2D", pool(1, 1, 2), []int32{1, 5, 5, 2}), false},
		{paddedGraph("NEG", "MAX_POOL_2D", pool(1, 1, 2), []int32{1, 5, 5, 2}), true},
		{paddedGraph("RELU", "AVERAGE_POOL_2D", pool(0, 1, 2), []int32{1, 6, 6, 2}), true},
		{paddedGraph("RELU", "NEG", nil, []int32{1, 6, 6, 2}), true},
	} {
		net, _, err := Decode(t.Context(), c.g.encode(), Options{Name: "net"})
		require.NoError(t, err)
		require.Equal(t, c.pixels, slices.ContainsFunc(net.Layers, func(l bcnn.Layer) bool { return l.Op.Kind() == "pixels" }))
	}
}

// SUM rounds in float32, halves away from 0, and keeps within INT8: what LCE's interpreter gave.
func TestKernelsOfSum(t *testing.T) {
	for _, c := range []struct {
		q         []int8
		in, scale float32
		zero      int64
		want      float32
	}{
		{[]int8{79, -107, -83, -68}, 0.2, 0.3, 10, 109}, {[]int8{79, -107, -83, -68}, 0.2, 0.1, 10, 127}, {[]int8{-128, -128, -128, -128}, 0.2, 0.1, 10, -128},
		{[]int8{79, -107, -83, -68}, 0.5, 1, 10, 85}, {[]int8{-82, -82, -82, -83}, 0.5, 1, 10, 9}, {[]int8{-82, -82, -82, -81}, 0.5, 1, 10, 11},
	} {
		for _, axes := range [][]int32{{1, 2}, {1, 2, 3}, {-1, -2, -3}, {2, 3, 1}} {
			g := newGraph(1, 2, 2, 1)
			g.quantised(0, c.in, -82)
			g.outputs[0] = g.add("SUM", keepDims(true), []int32{1, 1, 1, 1}, 0, g.ints(axes...))
			g.quantised(g.outputs[0], c.scale, c.zero)
			report, y := runInt8(t, g, c.q...)
			require.Equal(t, of(c.want), y, "%+v", c)
			require.Empty(t, report.Deviations)
		}
	}
	g := newGraph(1, 2, 2, 1)
	g.quantised(0, 0.2, -82)
	g.outputs[0] = g.add("SUM", keepDims(true), []int32{1, 1, 1, 1}, 0, g.ints(1, 2))
	g.quantised(g.outputs[0], 0.2, -82)
	refused(t, g.encode(), "a sum of 8-bit values with the scale and zero point of its input is not supported")
}

// ADD_N adds values and constants, in the order of its inputs.
func TestAddN(t *testing.T) {
	d := []int32{1, 1, 1, 2}
	g := newGraph(d...)
	relu := g.add("RELU", nil, d, 0)
	g.outputs[0] = g.add("ADD_N", nil, d, 0, relu, g.floats([]int32{2}, 1e8, -1), 0)
	require.Equal(t, of(100000008, -7), runInputs(t, g, of(3, -3))[0])
	g = newGraph(d...)
	g.outputs[0] = g.add("ADD_N", nil, d, g.floats(nil, 0.5), 0)
	require.Equal(t, of(3.5, -2.5), runInputs(t, g, of(3, -3))[0])
	g = newGraph(d...)
	g.outputs[0] = g.add("ADD_N", nil, d, 0)
	refused(t, g.encode(), "it has 1 inputs, want at least 2")
}

// MEAN, SUM, REDUCE_MAX and REDUCE_MIN over heights, widths and channels.
func TestReductions(t *testing.T) {
	for _, c := range []struct {
		dims, out []int32
		axes      []int32
		over      [3]bool
		err       string
	}{
		{[]int32{1, 2, 3, 4}, []int32{1, 1, 1, 4}, []int32{1, 2}, [3]bool{true, true, false}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 1, 3, 4}, []int32{1}, [3]bool{true, false, false}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 2, 1, 4}, []int32{-2}, [3]bool{false, true, false}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 4}, []int32{2, 1, -2, 2}, [3]bool{true, true, false}, ""},
		{[]int32{1, 2, 3, 1}, []int32{1, 1, 1, 1}, []int32{1, 2, 3}, [3]bool{true, true, true}, ""},
		{[]int32{1, 2, 3, 1}, []int32{1, 2, 3, 1}, []int32{3}, [3]bool{false, false, true}, ""},
		{[]int32{1, 3, 4}, []int32{1, 4}, []int32{1}, [3]bool{false, true, false}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 1, 1, 1}, []int32{1, 2, 3}, [3]bool{true, true, true}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1}, []int32{1, 2, 3}, [3]bool{true, true, true}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 2, 3, 1}, []int32{-1}, [3]bool{false, false, true}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 2, 3}, []int32{3}, [3]bool{false, false, true}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 3}, []int32{1, 3}, [3]bool{true, false, true}, ""},
		{[]int32{1, 4}, []int32{1, 1}, []int32{1}, [3]bool{false, false, true}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 2, 3, 4}, []int32{0}, [3]bool{}, ""},
		{[]int32{1, 2, 3, 4}, []int32{1, 2, 3, 4}, []int32{4}, [3]bool{}, "there is no dimension 4, its input has 4 dimensions"},
		{[]int32{1, 2, 3, 4}, []int32{1, 2, 3, 4}, []int32{-5}, [3]bool{}, "there is no dimension -1, its input has 4 dimensions"},
	} {
		for _, name := range []string{"MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"} {
			g := newGraph(c.dims...)
			g.outputs[0] = g.add(name, keepDims(len(c.out) == len(c.dims)), c.out, 0, g.ints(c.axes...))
			if c.err != "" {
				refused(t, g.encode(), c.err)
				continue
			}
			d := [3]int{1, 1, 1}
			for i, n := range c.dims[1:] {
				d[i+4-len(c.dims)] = int(n)
			}
			to := d
			for i, over := range c.over {
				if over {
					to[i] = 1
				}
			}
			x := make([]float32, sizeOf(c.dims))
			mean, sum := make([]float32, to[0]*to[1]*to[2]), make([]float32, to[0]*to[1]*to[2])
			most, least := slices.Repeat([]float32{float32(math.Inf(-1))}, len(sum)), slices.Repeat([]float32{float32(math.Inf(1))}, len(sum))
			for i := range x {
				x[i] = float32(5*i%7) - 3
				at := (i/d[2]/d[1]%to[0]*to[1]+i/d[2]%d[1]%to[1])*to[2] + i%d[2]%to[2]
				mean[at] += x[i] * float32(len(sum)) / float32(len(x))
				sum[at] += x[i]
				most[at], least[at] = max(most[at], x[i]), min(least[at], x[i])
			}
			want := map[string][]float32{"MEAN": mean, "SUM": sum, "REDUCE_MAX": most, "REDUCE_MIN": least}[name]
			require.InDeltaSlice(t, want, runInputs(t, g, x)[0], 1e-5, "%s %+v", name, c)
		}
	}
}

// PAD of channels puts zeros beside them, PADV2 any number around images.
func TestPaddings(t *testing.T) {
	for _, c := range []struct {
		name string
		pads []int32
		fill float32
	}{
		{"channels behind", []int32{0, 0, 0, 0, 0, 0, 0, 2}, 0},
		{"channels in front", []int32{0, 0, 0, 0, 0, 0, 3, 0}, 0},
		{"channels on both sides", []int32{0, 0, 0, 0, 0, 0, 1, 2}, 0},
		{"rows and columns of 2", []int32{0, 0, 1, 2, 3, 0, 0, 0}, 2},
		{"columns of 1", []int32{0, 0, 0, 0, 0, 2, 0, 0}, 1},
		{"rows of −1", []int32{0, 0, 2, 0, 0, 0, 0, 0}, -1},
	} {
		for _, front := range []string{"NEG", "SIGN", "RELU", "bits", "half", "quarters"} {
			for _, behind := range []string{"NEG", "SIGN", "bits"} {
				t.Run(c.name+" "+front+" "+behind, func(t *testing.T) {
					const h, w, ch = 2, 2, 2
					out := []int32{1, h + c.pads[2] + c.pads[3], w + c.pads[4] + c.pads[5], ch + c.pads[6] + c.pads[7]}
					g := newGraph(1, h, w, ch)
					at := g.put(front, []int32{1, h, w, ch}, 0)
					name, inputs := "PAD", []int32{at, g.ints(c.pads...)}
					if c.fill != 0 {
						name, inputs = "PADV2", append(inputs, g.floats(nil, c.fill))
					}
					at = g.add(name, nil, out, inputs...)
					g.outputs[0] = g.put(behind, out, at)
					x := of(0, 1, -2, 3, 0.5, -0.5, 4, -5)
					want := make([]float32, sizeOf(out))
					for i := range want {
						k := i%int(out[3]) - int(c.pads[6])
						z, y := i/int(out[3])%int(out[2])-int(c.pads[4]), i/int(out[3])/int(out[2])-int(c.pads[2])
						v := c.fill
						if k >= 0 && k < ch && z >= 0 && z < w && y >= 0 && y < h {
							v = plain[front](x[(y*w+z)*ch+k])
						}
						want[i] = plain[behind](v)
					}
					require.InDeltaSlice(t, want, runInputs(t, g, x)[0], 0)
				})
			}
		}
	}
	// A slice takes padding away again.
	for _, front := range []string{"NEG", "SIGN", "bits", "half"} {
		g := newGraph(1, 1, 3, 1)
		x := g.put(front, []int32{1, 1, 3, 1}, 0)
		x = g.add("PAD", nil, []int32{1, 1, 5, 1}, x, g.ints(0, 0, 0, 0, 1, 1, 0, 0))
		x = g.add("SLICE", nil, []int32{1, 1, 3, 1}, x, g.ints(0, 0, 2, 0), g.ints(1, 1, 3, 1))
		g.outputs[0] = g.add("NEG", nil, []int32{1, 1, 3, 1}, x)
		require.InDeltaSlice(t, of(-plain[front](-2), -plain[front](3), 0), runInputs(t, g, of(1, -2, 3))[0], 0, front)
	}
	three := newGraph(1, 4, 2)
	three.outputs[0] = three.add("PAD", nil, []int32{1, 4, 3}, 0, three.ints(0, 0, 0, 0, 0, 1))
	require.Equal(t, of(0, 1, 0, 2, 3, 0, 4, 5, 0, 6, 7, 0), runInputs(t, three, counted(8))[0])
	for want, pads := range map[string][]int32{
		"7 amounts of padding for 4 dimensions, want two for each": {0, 0, 0, 0, 0, 0, 0}, "padding of -1": {0, 0, -1, 0, 0, 0, 0, 0}, "padding of 65537": {0, 0, 0, 65537, 0, 0, 0, 0},
		"padding of the batch": {1, 0, 0, 0, 0, 0, 0, 0}, "shape 65537×1×1 is larger": {0, 0, 0, 65536, 0, 0, 0, 0},
	} {
		g := newGraph(1, 1, 1, 1)
		y := g.add("PAD", nil, []int32{1, 65537, 1, 1}, 0, g.ints(pads...))
		g.outputs[0] = g.add("NEG", nil, []int32{1, 65537, 1, 1}, y)
		refused(t, g.encode(), want)
	}
	quantised := newGraph(1, 1, 1, 1)
	quantised.quantised(0, 1, 0)
	quantised.outputs[0] = quantised.add("PADV2", nil, []int32{1, 1, 1, 1}, 0, quantised.ints(0, 0, 0, 0, 0, 0, 0, 0), quantised.floats(nil, 1))
	refused(t, quantised.encode(), "8-bit values are not supported here")
	for _, fill := range [][]float32{of(1, 2), of(float32(math.NaN())), of(float32(math.Inf(-1)))} {
		g := newGraph(1, 1, 1, 1)
		g.outputs[0] = g.add("PADV2", nil, []int32{1, 1, 1, 1}, 0, g.ints(0, 0, 0, 0, 0, 0, 0, 0), g.floats([]int32{int32(len(fill))}, fill...))
		refused(t, g.encode(), "the padding value must be one finite number")
	}
}
