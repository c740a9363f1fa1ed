package tflite

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// QUANTIZE of INT8 rounds blocks of 16 values otherwise than what is left: −2/4 is 0 in a
// block and −1 behind.
func TestRequantizeInBlocks(t *testing.T) {
	for _, c := range []struct {
		dims      []int32
		whole     int
		deviation string
	}{
		{[]int32{1, 10}, 0, ""}, {[]int32{1, 16}, 16, ""}, {[]int32{1, 19}, 16, ""}, {[]int32{1, 32}, 32, ""}, {[]int32{1, 2, 2, 2}, 0, ""}, {[]int32{1, 4, 4, 2}, 32, ""},
		{[]int32{1, 4, 5, 1}, 20, "operator 0 (QUANTIZE): the last 4 of 20 values may differ by at most 1, if they are halfway between two integers"},
		{[]int32{1, 1, 1, 17}, 16, ""},
	} {
		g := newGraph(c.dims...)
		g.quantised(0, 0.25, 0)
		g.outputs[0] = g.add("QUANTIZE", nil, c.dims, 0)
		g.quantised(g.outputs[0], 1, 5)
		q := slices.Repeat([]int8{-2}, sizeOf(c.dims))
		want := slices.Repeat(of(4), len(q))
		for i := range c.whole {
			want[i] = 5
		}
		report, y := runInt8(t, g, q...)
		require.Equal(t, want, y, "%+v", c)
		if c.deviation == "" {
			require.Empty(t, report.Deviations)
		} else {
			require.Equal(t, []string{c.deviation}, report.Deviations)
		}
	}
	// Where nothing is a half, nothing deviates.
	g := newGraph(1, 4, 5, 1)
	g.quantised(0, 2, 0)
	g.outputs[0] = g.add("QUANTIZE", nil, []int32{1, 4, 5, 1}, 0)
	g.quantised(g.outputs[0], 1, 5)
	report, _ := runInt8(t, g, make([]int8, 20)...)
	require.Empty(t, report.Deviations)
	// Few numbers are rounded one by one, whatever shape they have.
	for _, dims := range [][]int32{{1, 6}, {1, 1, 2, 3}} {
		g := newGraph(dims...)
		g.outputs[0] = g.add("QUANTIZE", nil, dims, 0)
		g.quantised(g.outputs[0], 0.04, 0)
		net, y := runGraph(t, g, 0.5, -0.5, 0.1, -0.1, 0.02, 0.06)
		require.Equal(t, of(13, -13, 3, -3, 1, 2), y)
		require.Len(t, net.Layers, 1)
		_, report, err := Decode(t.Context(), g.encode(), Options{})
		require.NoError(t, err)
		require.Empty(t, report.Deviations)
	}
}

// MEAN has a faster kernel for images that stay images, unless the file counts dimensions
// from the last: what LCE's interpreter gave for both.
func TestKernelsOfMean(t *testing.T) {
	q := []int8{79, -107, -83, -68}
	for _, c := range []struct {
		out, axes []int32
		want      float32
	}{
		{[]int32{1, 1, 1, 1}, []int32{1, 2}, -45}, {[]int32{1, 1, 1, 1}, []int32{2, 1}, -45}, {[]int32{1, 1, 1, 1}, []int32{-3, -2}, -44},
		{[]int32{1, 1, 1, 1}, []int32{1, -2}, -44}, {[]int32{1, 1}, []int32{1, 2}, -44}, {[]int32{1, 1, 1, 1}, []int32{1, 2, 3}, -44},
	} {
		g := newGraph(1, 2, 2, 1)
		g.quantised(0, 0.2, -82)
		g.outputs[0] = g.add("MEAN", keepDims(len(c.out) == 4), c.out, 0, g.ints(c.axes...))
		g.quantised(g.outputs[0], 0.2, -82)
		_, y := runInt8(t, g, q...)
		require.Equal(t, of(c.want), y, "%+v", c)
	}
	for h, want := range map[int32]string{64: "", 65: "a mean or sum of 4160 8-bit values is not supported, only of at most 4096"} {
		g := newGraph(1, h, 64, 1)
		g.quantised(0, 0.2, -82)
		g.outputs[0] = g.add("MEAN", map[int]any{0: uint8(1)}, []int32{1, 1, 1, 1}, 0, g.ints(1, 2))
		g.quantised(g.outputs[0], 0.2, -82)
		if want != "" {
			refused(t, g.encode(), want)
			continue
		}
		x := slices.Repeat([]int8{-100, 50}, 64*32)
		_, y := runInt8(t, g, x...)
		require.InDelta(t, -25, y[0], 1)
	}
}

// Functions that never fall are one layer, and so are those that never rise behind a change
// of the sign. Others are a sum of both.
func TestLayersOfFunctions(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  map[int]any
		in, out  int64 // zero points
		want     []string
		inScale  float32
		outScale float32
	}{
		{"RELU", nil, -128, 0, []string{"quantize"}, 1, 1},
		{"RELU", nil, 5, 0, []string{"affine", "quantize"}, 1, 1},
		{"RELU6", nil, -128, 0, []string{"quantize"}, 1, 1},
		{"LEAKY_RELU", map[int]any{0: float32(0.5)}, -128, 0, []string{"quantize"}, 1, 1},
		{"LEAKY_RELU", map[int]any{0: float32(-1)}, 127, -128, []string{"affine", "affine", "quantize"}, 1, 1},
		{"LEAKY_RELU", map[int]any{0: float32(-1)}, 0, -128, []string{"affine", "quantize", "quantize", "affine", "add"}, 1, 1},
		// It falls by 1, and rises by 255 from there, as much as there are steps.
		{"LEAKY_RELU", map[int]any{0: float32(-0.5)}, -127, -128, []string{"affine", "quantize", "quantize", "affine", "add"}, 0.5, 0.25},
		{"ABS", nil, -128, 0, []string{"quantize"}, 1, 1},
		{"ABS", nil, 127, -128, []string{"affine", "affine", "quantize"}, 1, 1},
	} {
		g := newGraph(1, 1, 1, 256)
		g.quantised(0, c.inScale, c.in)
		g.outputs[0] = g.add(c.name, c.options, []int32{1, 1, 1, 256}, 0)
		g.quantised(g.outputs[0], c.outScale, c.out)
		_, net, report := layersOf(t, g)
		var got []string
		for _, l := range net.Layers {
			got = append(got, l.Op.Kind())
		}
		require.Equal(t, c.want, got, "%+v", c)
		require.Empty(t, report.Deviations)
		all := make([]int8, 256)
		for i := range all {
			all[i] = int8(i - 128)
		}
		_, y := runInt8(t, g, all...)
		for i, q := range all {
			x := float64(c.inScale) * float64(int64(q)-c.in)
			switch c.name {
			case "RELU":
				x = max(x, 0)
			case "RELU6":
				x = min(max(x, 0), 6)
			case "ABS":
				x = math.Abs(x)
			case "LEAKY_RELU":
				if x < 0 {
					x *= float64(c.options[0].(float32))
				}
			}
			require.InDelta(t, min(max(x/float64(c.outScale)+float64(c.out), -128), 127), y[i], 0.5, "%+v %d", c, q)
		}
	}
}

// Integers that are near to the middle of two are counted: relative to what is added up.
func TestUncertainIntegers(t *testing.T) {
	for _, c := range []struct {
		name  string
		scale float32 // times 64
		want  int     // odd multiples of ½ + 2^−16 within 2^−15 of a half: the first
	}{{"ELU", 0.5 + 0x1p-16, 1}, {"TANH", 0.5 + 0x1p-16, 0}} {
		g := newGraph(1, 1, 1, 1)
		g.quantised(0, c.scale/64, -128)
		g.outputs[0] = g.add(c.name, nil, []int32{1, 1, 1, 1}, 0)
		g.quantised(g.outputs[0], 1.0/64, 0)
		_, report, err := Decode(t.Context(), g.encode(), Options{})
		require.NoError(t, err)
		if c.want == 0 {
			require.Empty(t, report.Deviations)
			continue
		}
		require.Equal(t, []string{fmt.Sprintf("operator 0 (%s): results may differ by at most 1, for at most %d of the 256 integers: these results are halfway between two integers", c.name, c.want)}, report.Deviations)
	}
}

// A number that the output cannot hold is as certain as any: of 256 that lie as near to a
// middle as a scale of 2^−20 makes them, the one at 510 is not counted.
func TestCertainIntegers(t *testing.T) {
	g := newGraph(1, 1, 1, 1)
	g.quantised(0, 0x1p-19, -128)
	g.outputs[0] = g.add("ELU", nil, []int32{1, 1, 1, 1}, 0)
	g.quantised(g.outputs[0], 0x1p-20, -128)
	_, report, err := Decode(t.Context(), g.encode(), Options{})
	require.NoError(t, err)
	require.Len(t, report.Deviations, 1)
	require.Contains(t, report.Deviations[0], "for at most 255 of the 256 integers")
}

// Weights have one scale, or one for each output along the right dimension.
func TestScalesOfWeights(t *testing.T) {
	for _, c := range []struct {
		name   string
		dims   []int32
		scales []float32
		zeros  []int64
		axis   int32
		err    string
	}{
		{"FULLY_CONNECTED", []int32{2, 2}, of(0.5), []int64{0}, 0, ""},
		{"FULLY_CONNECTED", []int32{2, 2}, of(0.5, 1), []int64{0, 0}, 0, ""},
		{"FULLY_CONNECTED", []int32{2, 2}, of(0.5, 1), []int64{0, 0}, 1, "its weights have 2 scales along dimension 1, want one, or one for each of 2 outputs"},
		{"FULLY_CONNECTED", []int32{2, 2}, of(0.5, 1, 2), []int64{0, 0, 0}, 0, "its weights have 3 scales along dimension 0, want one, or one for each of 2 outputs"},
		{"FULLY_CONNECTED", []int32{2, 2}, of(0.5, 1), []int64{0, 1}, 0, "its weights have scale 1 and zero point 1, want a finite scale and zero point 0"},
		{"FULLY_CONNECTED", []int32{2, 2}, of(-0.5, 1), []int64{0, 0}, 0, "its weights have scale -0.5 and zero point 0, want a finite scale and zero point 0"},
		{"FULLY_CONNECTED", []int32{2, 2}, of(float32(math.Inf(1))), []int64{0}, 0, "its weights have scale +Inf and zero point 0, want a finite scale and zero point 0"},
		{"FULLY_CONNECTED", []int32{2, 2}, of(float32(math.NaN())), []int64{0}, 0, "its weights have scale NaN and zero point 0, want a finite scale and zero point 0"},
		{"FULLY_CONNECTED", []int32{2, 2}, of(0, 1), []int64{0, 0}, 0, ""},
		{"CONV_2D", []int32{2, 1, 1, 2}, of(0.5, 1), []int64{0, 0}, 0, ""},
		{"CONV_2D", []int32{2, 1, 1, 2}, of(0.5, 1), []int64{0, 0}, 3, "its weights have 2 scales along dimension 3, want one, or one for each of 2 outputs"},
		{"DEPTHWISE_CONV_2D", []int32{1, 1, 1, 2}, of(0.5, 1), []int64{0, 0}, 3, ""},
		{"DEPTHWISE_CONV_2D", []int32{1, 1, 1, 2}, of(0.5, 1), []int64{0, 0}, 0, "its weights have 2 scales along dimension 0, want one, or one for each of 2 outputs"},
	} {
		g := newGraph(1, 1, 1, 2)
		g.quantised(0, 0.5, 1)
		weights := []int8{4, -2, 6, 10}[:sizeOf(c.dims)]
		data := make([]byte, len(weights))
		for i, w := range weights {
			data[i] = byte(w)
		}
		w := g.tensor(testTensor{name: "w", typ: schema.Int8, dims: c.dims, data: data, scale: c.scales, zero: c.zeros, axis: c.axis})
		bias := g.ints(8, -8)
		options, out := map[int]any{0: uint8(1), 1: 1, 2: 1}, []int32{1, 1, 1, 2}
		if c.name == "FULLY_CONNECTED" {
			options, out = nil, []int32{1, 2}
		}
		g.outputs[0] = g.add(c.name, options, out, 0, w, bias)
		g.quantised(g.outputs[0], 1, 2)
		if c.err != "" {
			refused(t, g.encode(), c.err)
			continue
		}
		q := []int8{5, -3} // 4 and −4 from the zero point
		var want []float32
		for o := range 2 {
			sum := 8 - 16*o
			if c.name == "DEPTHWISE_CONV_2D" {
				sum += int(weights[o]) * (4 - 8*o)
			} else {
				sum += 4*int(weights[2*o]) - 4*int(weights[2*o+1])
			}
			want = append(want, float32(float64(sum)*0.5*float64(c.scales[o%len(c.scales)])+2))
		}
		_, y := runInt8(t, g, q...)
		require.Equal(t, want, y, "%+v", c)
	}
	w := func(channels int32, biases ...int32) *testGraph {
		g := newGraph(1, channels)
		g.quantised(0, 0.5, 1)
		w := g.tensor(testTensor{name: "w", dims: []int32{2, channels}, data: make([]byte, 2*channels)})
		g.quantised(w, 1, 0)
		g.outputs[0] = g.add("FULLY_CONNECTED", nil, []int32{1, 2}, 0, w, g.ints(biases...))
		g.quantised(g.outputs[0], 1, 2)
		return g
	}
	refused(t, w(2, 1, 2, 3).encode(), "it has 3 biases, want one for each of 2 channels")
	refused(t, w(2, 1).encode(), "it has 1 biases, want one for each of 2 channels")
	g := w(2, 1, 2)
	g.tensors[3].typ = schema.Int64
	g.tensors[3].data = append(g.tensors[3].data, g.tensors[3].data...)
	refused(t, g.encode(), "its biases: ")
}

// Sums of bytes fit into 32 bits up to 65,793 taps.
func TestTapsOfInt8(t *testing.T) {
	for n, want := range map[int]string{maxTaps8: "", maxTaps8 + 1: "sums of 8-bit products may reach"} {
		weights := testTensor{dims: []int32{1, int32(n)}, data: slices.Repeat([]byte{127}, n), scale: of(0.01), zero: []int64{0}}
		data := int8Graph("FULLY_CONNECTED", []int32{1, int32(n)}, []int32{1, 1}, 25, weights).encode()
		if want != "" {
			refused(t, data, want)
			continue
		}
		_, _, err := Decode(t.Context(), data, Options{Name: "net"})
		require.NoError(t, err)
	}
}

// ADD of 8-bit values: in blocks of 16 it rounds otherwise, which only the rest may show.
func TestAddOfInt8(t *testing.T) {
	second := func(n int32) testTensor { return testTensor{dims: []int32{1, n}, scale: of(0.03), zero: []int64{7}} }
	for n, want := range map[int32]int{15: 0, 16: 0, 17: 1, 31: 1, 32: 0} {
		for _, op := range []string{"ADD", "SUB"} {
			_, report, err := Decode(t.Context(), int8Graph(op, []int32{1, n}, []int32{1, n}, 0.04, second(n)).encode(), Options{Name: "net"})
			require.NoError(t, err)
			if op == "SUB" {
				require.Empty(t, report.Deviations)
			} else {
				require.Len(t, report.Deviations, want, "%d", n)
			}
		}
	}
	// Values of one scale are added as they are.
	for _, c := range []struct {
		scale float32
		want  []string
	}{{0.02, []string{"add/zero", "add/sum", "add"}}, {0.01, []string{"add/second/integers", "add/second", "add/sum", "add"}}} {
		g := newGraph(1, 3)
		g.quantised(0, 0.02, -128)
		x := g.tensor(testTensor{name: "x", dims: []int32{1, 3}})
		g.inputs = append(g.inputs, x)
		g.quantised(x, c.scale, 4)
		if c.scale == 0.02 {
			g.quantised(x, c.scale, -128)
		}
		g.outputs[0] = g.add("ADD", nil, []int32{1, 3}, 0, x)
		g.quantised(g.outputs[0], 0.02, 0)
		names, _, report := layersOf(t, g)
		if c.scale == 0.02 {
			require.Equal(t, []string{"add/sum", "add"}, names)
		} else {
			require.Contains(t, names, "add/second")
			require.Contains(t, names, "add/second/integers")
			require.NotContains(t, names, "add/first")
		}
		require.Empty(t, report.Deviations)
	}
	for _, c := range []struct {
		scale float32 // of the output of a sum of scales of 1
		want  string
	}{{0x1p-18, ""}, {0x1p-19, "the scale of its output is too small for the scales of its inputs"}} {
		g := newGraph(1, 3)
		g.quantised(0, 1, 0)
		g.outputs[0] = g.add("ADD", nil, []int32{1, 3}, 0, 0)
		g.quantised(g.outputs[0], c.scale, 0)
		if c.want != "" {
			refused(t, g.encode(), c.want)
			continue
		}
		_, y := runInt8(t, g, -1, 0, 1)
		require.Equal(t, of(-128, 0, 127), y)
	}
	v := &value{typ: schema.Int8, scale: 1}
	s := newSum8(v, v, v, 1, clamp{-128, 127}, false)
	thresholds := make([]float32, steps8)
	require.True(t, tell(s, v, v, 1, 1, thresholds))
	for k, at := range thresholds {
		require.Equal(t, float32(k-127), at)
	}
	require.False(t, tell(s, v, v, 1, -1, thresholds), "the levels rise with both")
}

// Binary convolutions with an output of INT8, whose integers may fall as the sums rise, and
// of bits, whose thresholds may be never reached, or always.
func TestIntegersOfBinaryConvolutions(t *testing.T) {
	const channels, out = 40, 6
	build := func(act int32) (*testGraph, []byte) {
		g := newGraph(1, 1, 1, channels)
		x := g.add("LceQuantize", nil, []int32{1, 1, 1, 2}, 0)
		g.tensors[x].typ = schema.Int32
		data := make([]byte, 4*out*2)
		for i := range data {
			data[i] = byte(37 * i * i >> 1)
		}
		filter := g.tensor(testTensor{name: "w", typ: schema.Int32, dims: []int32{out, 1, 1, 2}, data: data})
		y := g.add("LceBconv2d", nil, []int32{1, 1, 1, out}, x, filter)
		options := []int32{channels, 1, 1, act, 0, 1, 1, 1}
		g.operators[1].custom = flexMap([]string{
			"channels_in", "dilation_height_factor", "dilation_width_factor", "fused_activation_function", "pad_values", "padding", "stride_height", "stride_width",
		}, options)
		g.outputs[0] = y
		return g, data
	}
	x := make([]float32, channels)
	for i := range x {
		x[i] = float32(i*5%7) - 3
	}
	sums := func(data []byte, x []float32) (list []float64) {
		for o := range out {
			sum := 0.0
			for c, v := range signsOf(x) {
				sum += float64(v) * float64(1-2*int(data[8*o+c/8]>>(c%8)&1))
			}
			list = append(list, sum)
		}
		return list
	}
	multiplier, bias := of(0.5, -0.5, 2, -1, 0, -4), of(1, -2, 0, 3, 7, 100)
	for act, f := range []func(x float64) float64{
		func(x float64) float64 { return x }, func(x float64) float64 { return max(x, 0) },
		func(x float64) float64 { return min(max(x, -1), 1) }, func(x float64) float64 { return min(max(x, 0), 6) },
	} {
		g, data := build(int32(act))
		g.operators[1].inputs = append(g.operators[1].inputs, g.floats([]int32{out}, multiplier...), g.floats([]int32{out}, bias...), -1)
		g.quantised(g.outputs[0], 0.5, 3)
		for shift := range 4 {
			in := append(slices.Clone(x[7*shift:]), x[:7*shift]...)
			var want []float32
			for o, sum := range sums(data, in) {
				want = append(want, float32(min(max((f(sum)*float64(multiplier[o])+float64(bias[o]))/0.5+3, -128), 127)))
			}
			require.Equal(t, want, runInputs(t, g, in)[0], "activation %d", act)
		}
	}
	g, data := build(0)
	thresholds := []int32{math.MinInt32, -1, 0, 19, 40, math.MaxInt32}
	g.operators[1].inputs = append(g.operators[1].inputs, -1, -1, g.ints(thresholds...))
	g.tensors[g.outputs[0]].dims, g.tensors[g.outputs[0]].typ = []int32{1, 1, 1, 1}, schema.Int32
	g.outputs[0] = g.add("LceDequantize", nil, []int32{1, 1, 1, out}, g.outputs[0])
	same := make([]float32, channels) // as the third filter, so that nothing differs
	for c := range same {
		same[c] = 1 - 2*float32(data[16+c/8]>>(c%8)&1)
	}
	for _, in := range [][]float32{x, same} {
		var want []float32
		for o, sum := range sums(data, in) {
			differ := int64(channels-sum) / 2
			v := float32(1)
			if differ > int64(thresholds[o]) {
				v = -1
			}
			want = append(want, v)
		}
		require.Equal(t, want, runInputs(t, g, in)[0])
	}
	g.operators[1].inputs[4] = g.ints(1, 2, 3)
	refused(t, g.encode(), "it has 3 thresholds, want one for each of 6 channels")
	for _, n := range []int{out - 1, out + 1} {
		for k, want := range []string{fmt.Sprintf("it has %d multipliers and 6 biases, want one of each for each of 6 channels", n), fmt.Sprintf("it has 6 multipliers and %d biases, want one of each for each of 6 channels", n)} {
			g, _ := build(0)
			right, wrong := g.floats([]int32{out}, multiplier...), g.floats([]int32{int32(n)}, make([]float32, n)...)
			inputs := []int32{right, right}
			inputs[k] = wrong
			g.operators[1].inputs = append(g.operators[1].inputs, inputs[0], inputs[1], -1)
			refused(t, g.encode(), want)
		}
	}
}

// Weights that are multiples of α become integers behind signs and levels, whatever has
// moved these, and behind nothing else.
func TestWeightsBehindWhatMoves(t *testing.T) {
	d := []int32{1, 2, 2, 2}
	ints := func(g *testGraph, list ...int32) int32 { return g.ints(list...) }
	number := func(g *testGraph, v float32) int32 { return g.floats(nil, v) }
	for name, c := range map[string]struct {
		of   func(g *testGraph, x int32) int32
		dims []int32 // of what the layer reads
		want [3]string
	}{ // behind numbers, SIGN and bits
		"nothing": {func(g *testGraph, x int32) int32 { return x }, d, [3]string{"numbers", "integers", "integers"}},
		"PADV2 1": {func(g *testGraph, x int32) int32 {
			return g.add("PADV2", nil, []int32{1, 3, 2, 2}, x, ints(g, 0, 0, 1, 0, 0, 0, 0, 0), number(g, 1))
		}, []int32{1, 3, 2, 2}, [3]string{"numbers", "integers", "integers"}},
		"PADV2 -1": {func(g *testGraph, x int32) int32 {
			return g.add("PADV2", nil, []int32{1, 3, 2, 2}, x, ints(g, 0, 0, 1, 0, 0, 0, 0, 0), number(g, -1))
		}, []int32{1, 3, 2, 2}, [3]string{"numbers", "integers", "integers"}},
		"PADV2 2": {func(g *testGraph, x int32) int32 {
			return g.add("PADV2", nil, []int32{1, 3, 2, 2}, x, ints(g, 0, 0, 1, 0, 0, 0, 0, 0), number(g, 2))
		}, []int32{1, 3, 2, 2}, [3]string{"numbers", "numbers", "numbers"}},
		"PADV2 -2": {func(g *testGraph, x int32) int32 {
			return g.add("PADV2", nil, []int32{1, 3, 2, 2}, x, ints(g, 0, 0, 1, 0, 0, 0, 0, 0), number(g, -2))
		}, []int32{1, 3, 2, 2}, [3]string{"numbers", "numbers", "numbers"}},
		"the largest": {func(g *testGraph, x int32) int32 { return g.add("MAX_POOL_2D", pool(1, 1, 2), []int32{1, 1, 1, 2}, x) }, []int32{1, 1, 1, 2}, [3]string{"numbers", "integers", "integers"}},
		"the mean": {func(g *testGraph, x int32) int32 {
			return g.add("AVERAGE_POOL_2D", pool(1, 1, 2), []int32{1, 1, 1, 2}, x)
		}, []int32{1, 1, 1, 2}, [3]string{"numbers", "numbers", "numbers"}},
		"nearest": {func(g *testGraph, x int32) int32 {
			return g.add("RESIZE_NEAREST_NEIGHBOR", nil, []int32{1, 4, 4, 2}, x, ints(g, 4, 4))
		}, []int32{1, 4, 4, 2}, [3]string{"numbers", "integers", "integers"}},
		"bilinear": {func(g *testGraph, x int32) int32 {
			return g.add("RESIZE_BILINEAR", nil, []int32{1, 4, 4, 2}, x, ints(g, 4, 4))
		}, []int32{1, 4, 4, 2}, [3]string{"numbers", "numbers", "numbers"}},
		"rows": {func(g *testGraph, x int32) int32 {
			return g.add("CONCATENATION", map[int]any{0: 1}, []int32{1, 4, 2, 2}, x, x)
		}, []int32{1, 4, 2, 2}, [3]string{"numbers", "integers", "integers"}},
		"unlike rows": {func(g *testGraph, x int32) int32 {
			return g.add("CONCATENATION", map[int]any{0: 1}, []int32{1, 4, 2, 2}, x, 0)
		}, []int32{1, 4, 2, 2}, [3]string{"numbers", "numbers", "numbers"}},
		"rows unlike": {func(g *testGraph, x int32) int32 {
			return g.add("CONCATENATION", map[int]any{0: 1}, []int32{1, 4, 2, 2}, 0, x)
		}, []int32{1, 4, 2, 2}, [3]string{"numbers", "numbers", "numbers"}},
		"an image": {func(g *testGraph, x int32) int32 { return g.add("RESHAPE", nil, []int32{1, 1, 4, 2}, x) }, []int32{1, 1, 4, 2}, [3]string{"numbers", "integers", "integers"}},
		"part": {func(g *testGraph, x int32) int32 {
			return g.add("SLICE", nil, []int32{1, 1, 2, 2}, x, ints(g, 0, 1, 0, 0), ints(g, 1, 1, 2, 2))
		}, []int32{1, 1, 2, 2}, [3]string{"numbers", "integers", "integers"}},
		"every other": {func(g *testGraph, x int32) int32 {
			return g.add("STRIDED_SLICE", nil, []int32{1, 1, 2, 2}, x, ints(g, 0, 0, 0, 0), ints(g, 1, 2, 2, 2), ints(g, 1, 2, 1, 1))
		}, []int32{1, 1, 2, 2}, [3]string{"numbers", "integers", "integers"}},
		"reflected": {func(g *testGraph, x int32) int32 {
			return g.add("MIRROR_PAD", nil, []int32{1, 3, 2, 2}, x, ints(g, 0, 0, 1, 0, 0, 0, 0, 0))
		}, []int32{1, 3, 2, 2}, [3]string{"numbers", "integers", "integers"}},
		"a factor": {func(g *testGraph, x int32) int32 { return g.add("MUL", nil, d, x, number(g, 0.5)) }, d, [3]string{"numbers", "integers", "integers"}},
		"a sum":    {func(g *testGraph, x int32) int32 { return g.add("ADD", nil, d, x, x) }, d, [3]string{"numbers", "integers", "integers"}},
	} {
		for i, front := range []string{"NEG", "SIGN", "bits"} {
			g := newGraph(d...)
			x := c.of(g, g.put(front, d, 0))
			out := slices.Clone(c.dims)
			g.outputs[0] = g.add("CONV_2D", convOptions(1, 1), out, x, g.floats([]int32{2, 1, 1, 2}, 0.5, 1.5, 2, -0.5))
			net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
			require.NoError(t, err, name)
			require.Equal(t, c.want[i], kindOf(net), "%s behind %s", name, front)
			for _, l := range net.Layers { // no factor is left to be multiplied with
				require.NotContains(t, l.Name, "/values")
			}
		}
	}

}
