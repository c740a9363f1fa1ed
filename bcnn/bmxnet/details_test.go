package bmxnet

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// standing returns what stands in the way of an import, as texts.
func standing(t *testing.T, g *graph, opts Options) (list []string) {
	t.Helper()
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	for _, o := range obstacles.Obstacles {
		list = append(list, o.Node+": "+o.Err.Error())
	}
	return list
}

// What stands in the way is named once, where it stands, and not again by what reads it.
func TestObstaclesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		make func(g *graph)
		opts Options
		want []string
	}{
		"weights that are none": {func(g *graph) {
			s := g.op("mean", attributes2("axis", 1), g.param("arg:", 4, 2))
			g.op("FullyConnected", attributes2("num_hidden", 2, "no_bias", 1), 0, s)
		}, shape, []string{"mean2: a mean of weights is supported only with axis=0, exclude=True and keepdims=True"}},
		"an input of no size, read twice": {func(g *graph) {
			g.op("elemwise_add", nil, g.op("relu", nil, 0), g.op("tanh", nil, 0))
		}, Options{}, []string{"data: the file does not say how large it is"}},
		"weights behind what stands in the way": {func(g *graph) {
			g.op("ROIPooling", nil)
			g.nodes = append(g.nodes, testNode{op: "null", name: "gamma"})
			list := []int{1, 2}
			for range 3 {
				list = append(list, g.param("arg:", 4))
			}
			g.op("BatchNorm", nil, list...)
		}, shape, []string{"ROIPooling1: this operator is not supported", `BatchNorm6: "gamma" is not in the file of the weights`}},
		"both": {func(g *graph) {
			a, b := g.op("ROIPooling", nil, 0), g.op("Correlation", nil, 0)
			g.op("add_n", nil, a, b)
		}, shape, []string{"ROIPooling1: this operator is not supported", "Correlation2: this operator is not supported"}},
		"behind a softmax": {func(g *graph) {
			g.op("Flatten", nil)
			g.op("softmax", nil)
			g.op("relu", nil)
			g.op("tanh", nil)
		}, shape, []string{"relu3: it follows a softmax, which must be the last layer", "tanh4: it follows a softmax, which must be the last layer"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			c.make(g)
			require.Equal(t, c.want, standing(t, g, c.opts))
		})
	}
	// The advice is for operators alone.
	g := newGraph()
	g.op("ROIPooling", nil)
	g.op("Dropout", attributes2("mode", "always"))
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
	var obstacles *bcnn.ObstaclesError
	require.True(t, errors.As(err, &obstacles))
	require.Equal(t, "a network has no layer for it: save the network without it", obstacles.Obstacles[0].Advice)
	require.Empty(t, obstacles.Obstacles[1].Advice)
	require.Equal(t, []int{1, 2}, []int{obstacles.Obstacles[0].Index, obstacles.Obstacles[1].Index})
}

// The sizes that an input may have.
func TestSizesOfInputs(t *testing.T) {
	const none, large = "the file does not say how large it is", "is too large"
	for _, c := range []struct {
		attr   string
		shape  bcnn.Shape
		tensor int64 // its limit in bytes
		want   string
	}{
		{"", bcnn.Shape{H: 1, W: 1, C: 1}, 0, ""},
		{"", bcnn.Shape{H: 0, W: 1, C: 1}, 0, none},
		{"", bcnn.Shape{H: 1, W: 0, C: 1}, 0, none},
		{"", bcnn.Shape{H: 1, W: 1, C: 0}, 0, none},
		{"", bcnn.Shape{H: 1, W: 1, C: -1}, 0, none},
		{"", bcnn.Shape{H: maxSide, W: 1, C: 1}, 0, ""},
		{"", bcnn.Shape{H: maxSide + 1, W: 1, C: 1}, 0, large},
		{"", bcnn.Shape{H: 1, W: maxSide, C: 1}, 0, ""},
		{"", bcnn.Shape{H: 1, W: maxSide + 1, C: 1}, 0, large},
		{"", bcnn.Shape{H: 2, W: 3, C: 5}, 120, ""},
		{"", bcnn.Shape{H: 2, W: 3, C: 5}, 119, large},
		{"", bcnn.Shape{H: 1, W: 1, C: maxOut + 1}, 1 << 50, large},
		{"(0, 3, 2, 5)", bcnn.Shape{}, 0, ""},
		{"(0, 3)", bcnn.Shape{}, 0, ""},
		{"(3,)", bcnn.Shape{}, 0, none},
		{"(0, 0, 2, 5)", bcnn.Shape{}, 0, none},
		{"(0, 3, 2, 5)", bcnn.Shape{H: 1, W: 1, C: 1}, 0, ""},
	} {
		g := newGraph()
		if c.attr != "" {
			g.nodes[0].attrs = attributes2("__shape__", c.attr)
		}
		g.op("relu", nil)
		opts := Options{Name: "n", InputShape: c.shape, Limits: bcnn.Limits{TensorBytes: c.tensor}}
		net, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		want := c.shape
		if want == (bcnn.Shape{}) {
			want = map[string]bcnn.Shape{"(0, 3, 2, 5)": {H: 2, W: 5, C: 3}, "(0, 3)": {H: 1, W: 1, C: 3}}[c.attr]
		}
		require.Equal(t, want, net.Inputs[0].Shape)
	}
}

// Mean and Scale have one value, or one for each channel.
func TestLengthsOfMeanAndScale(t *testing.T) {
	g := newGraph()
	g.op("relu", nil)
	for n, ok := range map[int]bool{0: true, 1: true, 2: false, 3: false, 4: true, 5: false} {
		list := make([]float32, n)
		for i := range list {
			list[i] = 1
		}
		for name, opts := range map[string]Options{"Mean": {Mean: list}, "Scale": {Scale: list}} {
			opts.InputShape, opts.Name = shape.InputShape, "n"
			net, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
			if !ok {
				require.ErrorContains(t, err, fmt.Sprintf("%s has %d values, the input has 4 channels", name, n))
				continue
			}
			require.NoError(t, err)
			require.Len(t, net.Layers, 1+min(n, 1))
		}
	}
}

// Limits hold exactly.
func TestExactLimits(t *testing.T) {
	g := newGraph()
	g.weighted("FullyConnected", attributes2("num_hidden", 2), 2, 2, 120)
	g.op("relu", nil)
	files := int64(len(g.symbol()) + len(g.file()))
	for _, c := range []struct {
		limits bcnn.Limits
		want   string
	}{
		{bcnn.Limits{FileBytes: files}, ""},
		{bcnn.Limits{FileBytes: files - 1}, "graph and weights have more than"},
		{bcnn.Limits{Layers: len(g.nodes)}, ""},
		{bcnn.Limits{Layers: len(g.nodes) - 1}, "the graph has more than 4 nodes; Limits.Layers allows more"},
		{bcnn.Limits{TensorBytes: 120 * 4}, ""},
		{bcnn.Limits{TensorBytes: 120*4 - 1}, "is too large"},
	} {
		opts := shape
		opts.Limits = c.limits
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
		if c.want == "" {
			require.NoError(t, err, "%+v", c)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
	// A layer may have more values than the input.
	g = newGraph()
	g.op("Flatten", nil)
	g.op("relu", nil)
	g.op("Pad", attributes2("mode", "edge", "pad_width", "(0, 0, 0, 0, 1, 0, 0, 0)"), 0)
	g.op("Flatten", nil)
	opts := shape
	opts.Limits = bcnn.Limits{TensorBytes: 6 * 6 * 4 * 4}
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
	require.NoError(t, err)
	opts.Limits.TensorBytes--
	_, _, err = Decode(t.Context(), g.symbol(), g.file(), opts)
	require.ErrorContains(t, err, "a feature map of 6×6×4 takes 576 bytes, at most 575 are allowed; Limits.TensorBytes allows more")
	// As large as a graph may be, and larger by one.
	_, _, err = Decode(t.Context(), []byte(strings.Repeat("x", maxSymbol)), nil, shape)
	require.ErrorContains(t, err, "not a graph of MXNet")
	_, _, err = Decode(t.Context(), []byte(strings.Repeat("x", maxSymbol+1)), nil, shape)
	require.ErrorContains(t, err, "the graph has 8388609 bytes, at most 8388608 are supported")
}

// Sums of products are exact as long as float32 holds every one of them.
func TestSumsOfProducts(t *testing.T) {
	for _, c := range []struct {
		act, weight, inputs int
		ok                  bool
	}{
		{8, 7, 259, true}, {8, 7, 260, false}, // 2^23/255/127
		{8, 1, 32896, true}, {8, 1, 32897, false},
		{32, 7, 66052, true}, {32, 7, 66053, false},
		{1, 7, 66052, true}, {1, 7, 66053, false},
	} {
		g := newGraph()
		g.weighted("QFullyConnected", attributes2("num_hidden", 1, "act_bit", c.act, "weight_bit", c.weight), 0, 1, c.inputs)
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{Name: "n", InputShape: bcnn.Shape{H: 1, W: 1, C: c.inputs}})
		if c.ok {
			require.NoError(t, err, "%+v", c)
		} else {
			require.ErrorContains(t, err, fmt.Sprintf("sums of %d products of %d and %d bits", c.inputs, c.act, c.weight))
		}
	}
}

// What bits of activations and of weights go together, packed and not.
func TestPrecisions(t *testing.T) {
	const act, weights, real, packed = "activations of %d bits are not supported, want act_bit 1 to 8, or 32", "weights of %[2]d bits are not supported, want weight_bit 1 to 7, or 32",
		"activations of few bits are not supported with real weights", "packed weights are supported only with 1 bit"
	for _, c := range []struct {
		act, weight int
		packed      bool
		want        string
	}{
		{1, 1, false, ""}, {1, 1, true, ""}, {32, 1, false, ""}, {32, 1, true, ""}, {32, 32, false, ""},
		{8, 7, false, ""}, {9, 1, false, act}, {31, 1, false, act}, {1, 8, false, weights}, {32, 31, false, weights},
		{1, 32, false, real}, {8, 32, false, real},
		{2, 1, true, packed}, {8, 1, true, packed}, {1, 2, true, packed}, {32, 2, true, packed}, {32, 32, true, packed}, {2, 1, false, ""}, {1, 2, false, ""},
	} {
		g := newGraph()
		if c.packed {
			g.word = 32
		}
		g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 8, "act_bit", c.act, "weight_bit", c.weight), 0, 8, 4, 1, 1)
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
		if c.want == "" {
			require.NoError(t, err, "%+v", c)
		} else {
			want := c.want
			if strings.Contains(want, "%") {
				want = strings.Split(fmt.Sprintf(want, c.act, c.weight), "%!")[0]
			}
			require.ErrorContains(t, err, want, "%+v", c)
		}
	}
	g := newGraph()
	g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 8, "weight_bit", 2), 0, 8, 4, 1, 1)
	for i := range g.params[0].values {
		g.params[0].values[i] = 0
	}
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
	require.ErrorContains(t, err, "its weights are all 0 or NaN")
	g.params[0].values[3] = math.NaN()
	_, _, err = Decode(t.Context(), g.symbol(), g.file(), shape)
	require.ErrorContains(t, err, "its weights are all 0 or NaN")
	g.params[0].values[3] = -1e-30
	_, _, err = Decode(t.Context(), g.symbol(), g.file(), shape)
	require.NoError(t, err)
}

// Sums of bits are exact up to 2^23 of them.
func TestSumsOfBits(t *testing.T) {
	for _, inputs := range []int{maxExact, maxExact + 32} {
		g := newGraph()
		g.word = 32
		g.params = []testArray{{name: "arg:w", dims: []int{inputs / 32}, raw: make([]byte, inputs/8)}}
		g.nodes = append(g.nodes, testNode{op: "null", name: "w"})
		g.op("QFullyConnected", attributes2("num_hidden", 1, "binarized_weights_only", "True"), 0, 1)
		_, _, err := Decode(t.Context(), g.symbol(), paramsFile(0, g.params), Options{Name: "n", InputShape: bcnn.Shape{H: 4, W: 1, C: inputs / 4}})
		if inputs == maxExact {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "sums of 8388640 products are not exact in float32")
		}
	}
}

// A network has no more layers than a limit, whatever nodes they are of.
func TestLimitOfLayers(t *testing.T) {
	g := newGraph()
	g.op("relu", nil)
	for layers, ok := range map[int]bool{2: false, 3: true} {
		opts := Options{Name: "n", InputShape: shape.InputShape, Mean: []float32{1}, Scale: []float32{2}, Limits: bcnn.Limits{Layers: layers}}
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
		if ok {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "the network has more than 2 layers; Limits.Layers allows more")
		}
	}
}

// Vectors are put in the order of the graph where that is another one, once they are read.
func TestOrderOfVectors(t *testing.T) {
	for _, c := range []struct {
		shape bcnn.Shape
		want  []string
	}{
		{bcnn.Shape{H: 2, W: 3, C: 4}, []string{"flatten", "channels", "relu"}},
		{bcnn.Shape{H: 2, W: 3, C: 1}, []string{"flatten", "relu"}},
		{bcnn.Shape{H: 1, W: 1, C: 4}, []string{"relu"}},
	} {
		g := newGraph()
		g.op("Flatten", nil)
		g.op("broadcast_add", nil, 1, g.param("arg:", 1))
		net, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{Name: "n", InputShape: c.shape})
		require.NoError(t, err)
		c.want[len(c.want)-1] = "affine"
		require.Equal(t, c.want, kinds(net))
		n := c.shape.Values()
		require.Equal(t, &bcnn.Source{Name: "broadcast_add3_output", Dims: []int{n}, ChannelsFirst: true}, net.Layers[len(net.Layers)-1].Source)
		if len(c.want) == 3 {
			require.Equal(t, bcnn.Channels{Index: []int32{0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23}}, net.Layers[1].Op)
		}
	}
}

// Layers are called as their nodes, with a number where that is taken or empty, and
// attributes of all three keys count.
func TestNamesAndAttributes(t *testing.T) {
	symbol := func(nodes string) []byte {
		return []byte(`{"nodes":[{"op":"null","name":"data"},` + nodes + `],"heads":[[2]]}`)
	}
	for nodes, want := range map[string][]string{
		`{"op":"relu","name":"a","inputs":[[0]]},{"op":"relu","name":"b","inputs":[[1]]}`: {"a", "b"},
		`{"op":"relu","name":"a","inputs":[[0]]},{"op":"relu","name":"a","inputs":[[1]]}`: {"a", "a_2"},
		`{"op":"relu","inputs":[[0]]},{"op":"relu","name":"a","inputs":[[1]]}`:            {"_1", "a"},
	} {
		net, _, err := Decode(t.Context(), symbol(nodes), paramsFile(0, nil), shape)
		require.NoError(t, err)
		require.Equal(t, want, []string{net.Layers[0].Name, net.Layers[1].Name})
	}
	net, _, err := Decode(t.Context(), symbol(`{"op":"clip","name":"a","param":{"a_min":"1","a_max":"2"},"attr":{"a_max":"3"},"inputs":[[0]]},{"op":"clip","name":"b","attr":{"a_max":"4"},"attrs":{"a_max":"5"},"inputs":[[1]]}`), paramsFile(0, nil), shape)
	require.NoError(t, err)
	require.Equal(t, []bcnn.Op{bcnn.Clip{Min: 1, Max: 3}, bcnn.Clip{Max: 5}}, []bcnn.Op{net.Layers[0].Op, net.Layers[1].Op})
	// Names of tensors that are too long are left out.
	for n, named := range map[int]bool{256 - len("_output"): true, 257 - len("_output"): false} {
		net, _, err := Decode(t.Context(), symbol(`{"op":"relu","name":"`+strings.Repeat("n", n)+`","inputs":[[0]]},{"op":"relu","name":"b","inputs":[[1]]}`), paramsFile(0, nil), shape)
		require.NoError(t, err)
		require.Equal(t, named, net.Layers[0].Source != nil)
	}
}
