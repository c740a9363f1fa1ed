package bmxnet

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Which layers there are tells how a graph was read.
func TestKindsOfLayers(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(g *graph)
		kinds []string
	}{
		"one filter": {func(g *graph) {
			g.weighted("Convolution", attributes2("kernel", "(1, 1)", "num_filter", 1), 1, 1, 4, 1, 1)
		}, []string{"conv2d"}},
		"one row":    {pooled("max", "(5, 1)"), []string{"maxpool"}},
		"one column": {pooled("max", "(1, 6)"), []string{"maxpool"}},
		"real quantised": {func(g *graph) {
			g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 3, "act_bit", 32, "weight_bit", 32), 0, 3, 4, 1, 1)
		}, []string{"conv2d"}},
		"several bits": {func(g *graph) {
			g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 3, "act_bit", 2, "weight_bit", 2), 0, 3, 4, 1, 1)
		}, []string{"quantize", "conv2d", "affine"}},
		"joined of one": {func(g *graph) { g.op("Concat", nil, g.op("Activation", attributes2("act_type", "relu"))) }, []string{"relu"}},
		"a mask": {func(g *graph) {
			g.op("broadcast_mul", nil, 0, g.weighted("Convolution", attributes2("kernel", "(1, 1)", "num_filter", 1), 1, 1, 4, 1, 1))
		}, []string{"conv2d", "mul"}},
		"padded signs": {func(g *graph) {
			g.op("det_sign", nil)
			g.op("Pad", attributes2("mode", "constant", "pad_width", "(0, 0, 0, 0, 1, 1, 1, 1)", "constant_value", 1))
			g.op("det_sign", nil)
		}, []string{"sign", "pixels"}},
		"padded with -1": {func(g *graph) {
			g.op("det_sign", nil)
			g.op("Pad", attributes2("mode", "constant", "pad_width", "(0, 0, 0, 0, 1, 1, 1, 1)", "constant_value", -1))
			g.op("det_sign", nil)
		}, []string{"sign", "pixels"}},
		"padded by edges": {func(g *graph) {
			g.op("det_sign", nil)
			g.op("Pad", attributes2("mode", "edge", "pad_width", "(0, 0, 0, 0, 1, 1, 1, 1)"))
			g.op("det_sign", nil)
		}, []string{"sign", "pixels"}},
		"padded with half": {func(g *graph) {
			g.op("det_sign", nil)
			g.op("Pad", attributes2("mode", "constant", "pad_width", "(0, 0, 0, 0, 1, 1, 1, 1)", "constant_value", 0.5))
			g.op("det_sign", nil)
		}, []string{"sign", "pixels", "sign"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			c.make(g)
			require.Equal(t, c.kinds, kinds(requireSame(t, g, 4, 5, 6)))
		})
	}
}

// A sign is called after what it is of.
func TestNamesOfSigns(t *testing.T) {
	for op, attrs := range map[string]map[string]string{"QActivation": nil, "det_sign": nil} {
		g := newGraph()
		g.op("Activation", attributes2("act_type", "tanh"))
		g.op(op, attrs)
		net := requireSame(t, g, 4, 5, 6)
		require.Equal(t, "Activation1/sign", net.Layers[len(net.Layers)-1].Name)
	}
	g := newGraph()
	g.op("Activation", attributes2("act_type", "tanh"))
	g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 3, "act_bit", 1, "weight_bit", 2), 0, 3, 4, 1, 1)
	require.Equal(t, "Activation1/sign", requireSame(t, g, 4, 5, 6).Layers[1].Name)
}

// Packed weights are those of binary layers, or of layers whose weights alone are binary.
func TestPackedBits(t *testing.T) {
	for _, c := range []struct {
		act, weight int
		ok          bool
	}{{1, 1, true}, {32, 1, true}, {2, 1, false}, {1, 2, false}, {2, 2, false}, {32, 2, false}} {
		g := newGraph()
		g.word = 32
		g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 8, "act_bit", c.act, "weight_bit", c.weight), 0, 8, 4, 1, 1)
		if c.ok {
			requireSame(t, g, 4, 5, 6)
			continue
		}
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
		require.ErrorContains(t, err, "packed weights are supported only with 1 bit, and with activations of 1 bit or of full precision")
	}
}

// Sums of several bits are exact in float32, or refused.
func TestExactSums(t *testing.T) {
	for _, c := range []struct {
		channels, rows int
		ok             bool
	}{{259, 1, true}, {260, 1, false}, {129, 2, true}, {130, 2, false}} { // 2²³ / 255 / 127
		g := newGraph()
		g.weighted("QConvolution", attributes2("kernel", fmt.Sprintf("(%d, 1)", c.rows), "num_filter", 1, "act_bit", 8, "weight_bit", 7), 0, 1, c.channels, c.rows, 1)
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{InputShape: bcnn.Shape{H: 2, W: 1, C: c.channels}})
		if c.ok {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "sums of 260 products of 8 and 7 bits are not exact in float32")
		}
	}
}

// Several graphs for one error.
func TestMoreErrors(t *testing.T) {
	pad := func(width string) func(*graph) {
		return func(g *graph) { g.op("Pad", attributes2("mode", "edge", "pad_width", width)) }
	}
	constant := func(op string, dims []int, attrs ...any) func(*graph) {
		return func(g *graph) { g.op(op, attributes2(attrs...), g.param("arg:", dims...)) }
	}
	for _, c := range []struct {
		want string
		make func(g *graph)
	}{
		{"of which those for batch and channels are 0", pad("(1, 0, 0, 0, 1, 1, 1, 1)")},
		{"of which those for batch and channels are 0", pad("(0, 0, 1, 0, 1, 1, 1, 1)")},
		{"of which those for batch and channels are 0", pad("(0, 0, 0, 1, 1, 1, 1, 1)")},
		{"of which those for batch and channels are 0", pad("(0, 0, 0, 0, 1, 1)")},
		{"want each of the 2 dimensions once", constant("transpose", []int{4, 1}, "axes", "(0, 2)")},
		{"want each of the 2 dimensions once", constant("transpose", []int{4, 1}, "axes", "(3, 0)")},
		{`axis is "x", want numbers`, constant("mean", []int{4, 2}, "axis", "x", "exclude", 1, "keepdims", 1)},
		{"a mean of weights is supported", constant("mean", []int{4, 2}, "axis", 1, "exclude", 1, "keepdims", 1)},
		{"a mean of weights is supported", constant("mean", []int{4, 2}, "axis", 0, "keepdims", 1)},
		{"a mean of weights is supported", constant("mean", []int{4, 2}, "axis", 0, "exclude", 1)},
		{`axis "(2, 3)" is not supported`, func(g *graph) { g.op("mean", attributes2("axis", "(2, 3)", "exclude", "True")) }},
		{`axis "(1, 2)" is not supported`, func(g *graph) { g.op("mean", attributes2("axis", "(1, 2)")) }},
		{"a product of shapes 5×6×4 and 5×6×3 is not", func(g *graph) {
			g.op("broadcast_mul", nil, 0, g.op("slice_axis", attributes2("axis", 1, "begin", 1)))
		}},
		{"a product of shapes 5×6×4 and 5×1×4 is not", func(g *graph) { g.op("broadcast_mul", nil, 0, g.op("Pooling", attributes2("kernel", "(1, 6)"))) }},
		{"a product of shapes 5×6×4 and 1×6×4 is not", func(g *graph) { g.op("broadcast_mul", nil, 0, g.op("Pooling", attributes2("kernel", "(5, 1)"))) }},
		{"its weights are all 0", func(g *graph) {
			w := g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 1, "act_bit", 2, "weight_bit", 2), 0, 1, 4, 1, 1)
			clear(g.array(g.nodes[w].inputs[1]).values)
		}},
		{"it has 0 inputs", func(g *graph) {
			g.nodes = append(g.nodes, testNode{op: "Convolution", name: "c", attrs: attributes2("kernel", "(1, 1)", "num_filter", 1)})
		}},
		{`mode is "x", want instance, channel or spatial`, func(g *graph) { g.op("L2Normalization", attributes2("mode", "x")) }},
		{`act_bit is "x", want a number`, func(g *graph) { g.op("QActivation", attributes2("act_bit", "x")) }},
		{"axis 2 is not supported", func(g *graph) { g.op("Flatten", nil); g.op("softmax", attributes2("axis", 2)) }},
		{`axis is "2", want 1`, func(g *graph) { g.norm(4, "axis", 2) }},
	} {
		g := newGraph()
		c.make(g)
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
		require.ErrorContains(t, err, c.want)
	}
	// A constant that cannot be is one obstacle, whatever reads it.
	g := newGraph()
	w := g.op("transpose", attributes2("axes", "(1, 0)"), g.param("arg:", 4, 2))
	g.op("broadcast_mul", nil, 0, g.op("abs", nil, w))
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 1)
	// A shape of one dimension is none.
	g = newGraph()
	g.op("clip", nil)
	g.nodes[0].attrs = attributes2("__shape__", "(3,)")
	_, _, err = Decode(t.Context(), g.symbol(), g.file(), Options{})
	require.ErrorContains(t, err, "the file does not say how large it is")
}

// Limits may be reached.
func TestLimitsReached(t *testing.T) {
	g := newGraph()
	g.op("clip", attributes2("a_max", 1))
	bytes := int64(len(g.symbol()) + len(g.file()))
	for _, s := range []bcnn.Shape{{H: maxSide, W: 1, C: 1}, {H: 1, W: maxSide, C: 1}, {H: 1, W: 1, C: maxOut}} {
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{InputShape: s, Limits: bcnn.Limits{FileBytes: bytes, TensorBytes: s.Bytes(bcnn.Float32)}})
		require.NoError(t, err, "%v", s)
		_, _, err = Decode(t.Context(), g.symbol(), g.file(), Options{InputShape: s, Limits: bcnn.Limits{TensorBytes: s.Bytes(bcnn.Float32) - 1}})
		require.Error(t, err, "%v", s)
	}
	for _, s := range []bcnn.Shape{{H: maxSide + 1, W: 1, C: 1}, {H: 1, W: maxSide + 1, C: 1}, {H: 1, W: 1, C: maxOut + 1}} {
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{InputShape: s})
		require.ErrorContains(t, err, s.String()+" is too large")
	}
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{InputShape: bcnn.Shape{H: 1, W: 1, C: 1}, Limits: bcnn.Limits{FileBytes: bytes - 1}})
	require.ErrorContains(t, err, "bytes; Limits.FileBytes allows more")
}
