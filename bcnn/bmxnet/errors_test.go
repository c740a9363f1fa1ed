package bmxnet

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

var shape = Options{InputShape: bcnn.Shape{H: 5, W: 6, C: 4}, Name: "n"}

// All that stands in the way is reported at once.
func TestObstacles(t *testing.T) {
	g := newGraph()
	g.weighted("Convolution", attributes2("kernel", "(3,)", "num_filter", 4), 4, 4, 4, 3) // 3
	g.op("Activation", attributes2("act_type", "softsign"))                               // 4
	g.op("ROIPooling", nil)                                                               // 5
	g.weighted("QFullyConnected", attributes2("num_hidden", 2, "act_bit", 9), 0, 2, 4)    // 7
	g.op("Pooling", attributes2("pool_type", "sum", "kernel", "(2, 2)"))                  // 8
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	require.Equal(t, []string{
		`node "Convolution3" (Convolution, index 3): kernel is "(3,)", want two numbers: one-dimensional and three-dimensional layers are not supported`,
		`node "Activation4" (Activation, index 4): act_type "softsign" is not supported, want relu, sigmoid, tanh or softrelu`,
		`node "ROIPooling5" (ROIPooling, index 5): this operator is not supported; a network has no layer for it: save the network without it`,
		`node "QFullyConnected7" (QFullyConnected, index 7): activations of 9 bits are not supported, want act_bit 1 to 8, or 32`,
		`node "Pooling8" (Pooling, index 8): pool_type "sum" is not supported, want max or avg`,
	}, strings.Split(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n  ", "\n"), "5 nodes stand in the way\n"), "\n"))

	// The size of the input does not hide the rest.
	g = newGraph()
	g.op("Flatten", nil)
	g.op("ROIPooling", nil)
	_, _, err = Decode(t.Context(), g.symbol(), g.file(), Options{})
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 2)
	require.Equal(t, bcnn.Obstacle{
		Node: "data", Index: -1, Err: obstacles.Obstacles[0].Err, Option: "InputShape", Advice: "give its size with Options.InputShape",
	}, obstacles.Obstacles[0])
}

// Graphs that are no networks; what is supported is none of them.
func TestErrors(t *testing.T) {
	for name, make := range supported() {
		g := newGraph()
		make(g)
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
		require.NoError(t, err, name)
	}
	conv := func(attrs ...any) func(*graph) {
		return func(g *graph) {
			list := append([]any{"kernel", "(3, 3)", "num_filter", 4}, attrs...)
			g.weighted("QConvolution", attributes2(list...), 0, 4, 4, 3, 3)
		}
	}
	op := func(name string, attrs ...any) func(*graph) {
		return func(g *graph) { g.op(name, attributes2(attrs...)) }
	}
	for want, make := range map[string]func(*graph){
		"activations of few bits are not supported with real weights": conv("weight_bit", 32),
		"weights of 8 bits are not supported":                         conv("weight_bit", 8, "act_bit", 32),
		"scaling_factor is not supported":                             conv("scaling_factor", "True"),
		`scaling_mode is "both", want none`:                           conv("scaling_mode", "both"),
		`layout is "NHWC", want NCHW`:                                 conv("layout", "NHWC"),
		`stride is "(0, 1)", want numbers from`:                       conv("stride", "(0, 1)"),
		`pad is "(1, x)", want numbers from 0`:                        conv("pad", "(1, x)"),
		`num_group is "0", want a number from 1`:                      conv("num_group", 0),
		"3 groups do not divide 4 filters":                            conv("num_group", 3),
		`no_bias is "maybe", want True or False`:                      conv("no_bias", "maybe"),
		"it has 2 inputs, want more than 2":                           conv("no_bias", "False"),
		"its weights have shape [4 4 3 3], want [4 4 3 5]":            conv("kernel", "(3, 5)"),
		"the window is larger than its padded":                        conv("dilate", "(9, 9)"),
		"kernel or num_filter is missing":                             op("Convolution", "kernel", "(1, 1)"),
		"its input is 5×6×4, want an image whose channels 3 groups divide": func(g *graph) {
			g.weighted("Convolution", attributes2("kernel", "(1, 1)", "num_filter", 3, "num_group", 3, "no_bias", 1), 0, 3, 1, 1, 1)
		},
		"its input is 5×6×4, want an image whose channels 1 groups divide": func(g *graph) {
			g.op("Flatten", nil)
			g.weighted("Convolution", attributes2("kernel", "(1, 1)", "num_filter", 3, "no_bias", 1), 0, 3, 4, 1, 1)
		},
		"a_min 0.5 is more than a_max 0.25":        op("clip", "a_min", 0.5, "a_max", 0.25),
		`axis is "2", want 1`:                      op("BatchNorm", "axis", 2),
		`shape "(0, 119)" is not supported`:        op("Reshape", "shape", "(0, 119)"),
		`shape "(1, 120)" is not supported`:        op("Reshape", "shape", "(1, 120)"),
		`shape "(-2, 120)" is not supported`:       op("Reshape", "shape", "(-2, 120)"),
		`shape "(-1, -1)" is not supported`:        op("Reshape", "shape", "(-1, -1)"),
		`shape "(0, -2)" is not supported`:         op("Reshape", "shape", "(0, -2)"),
		`shape "(0,)" is not supported`:            op("Reshape", "shape", "(0,)"),
		`shape "(0, -1)" is not supported`:         op("Reshape", "shape", "(0, -1)", "reverse", 1),
		`axis "(2, 3)" is not supported`:           op("mean", "axis", "(2, 3)", "exclude", 1),
		`axis "(-1, -2)" is not supported`:         op("mean", "axis", "(-1, -2)"),
		"axis 2 is not supported, want 1 or -1":    op("softmax", "axis", 2),
		"temperature -1 is not supported":          op("softmax", "temperature", -1),
		`act_bit is "33", want a number from 1 to`: op("QActivation", "act_bit", 33),
		"images of 5×6 and 5×4 cannot be concatenated": func(g *graph) {
			g.op("Concat", nil, 0, g.op("Pooling", attributes2("kernel", "(1, 3)")))
		},
		"images of 5×6 and 3×6 cannot be concatenated": func(g *graph) {
			g.op("Concat", nil, 0, g.op("Pooling", attributes2("kernel", "(3, 1)")))
		},
		"a product of shapes 5×6×4 and 5×4×4": func(g *graph) {
			g.op("broadcast_mul", nil, 0, g.op("Pooling", attributes2("kernel", "(1, 3)")))
		},
		"a product of shapes 5×6×4 and 3×6×4": func(g *graph) {
			g.op("broadcast_mul", nil, 0, g.op("Pooling", attributes2("kernel", "(3, 1)")))
		},
		"its input \"w1\" must be computed, not constant ": func(g *graph) {
			g.op("add_n", nil, 0, g.param("arg:", 1), 0)
		},
		"num_hidden is missing": op("FullyConnected"),
		"flatten=False is not supported": func(g *graph) {
			g.weighted("FullyConnected", attributes2("num_hidden", 2, "flatten", "False"), 2, 2, 120)
		},
		"flatten=False is not supported: it applies": func(g *graph) {
			g.op("Pooling", attributes2("kernel", "(5, 3)", "stride", "(5, 3)"))
			g.weighted("FullyConnected", attributes2("num_hidden", 2, "flatten", "False"), 2, 2, 8)
		},
		`pooling_convention "same"`: op("Pooling", "kernel", "(2, 2)", "pooling_convention", "same"),
		"kernel is missing":         op("Pooling"),
		"an average pool with count_include_pad=True and pooling_convention full": op("Pooling", "kernel", "(2, 2)", "stride", "(2, 3)", "pad", "(1, 1)", "pool_type", "avg", "pooling_convention", "full"),
		"a_min 1 is more than a_max 0":                                            op("clip", "a_min", 1),
		"it divides by 0":                                                         op("_div_scalar"),
		`scalar is "x", want a number`:                                            op("_mul_scalar", "scalar", "x"),
		`eps is "nan", want a number`:                                             op("BatchNorm", "eps", "nan"),
		`shape "(1, 2, 3)" is not supported`:                                      op("Reshape", "shape", "(1, 2, 3)"),
		`dim is "2", want 1`:                                                      op("Concat", "dim", 2),
		`act_type "selu" is not supported`:                                        op("LeakyReLU", "act_type", "selu"),
		"slope 0.25 of act_type elu":                                              op("LeakyReLU", "act_type", "elu"),
		`axis "1" is not supported, want`:                                         op("mean", "axis", 1),
		`shape "(-1, 119)" is not supported`:                                      op("Reshape", "shape", "(-1, 119)"),
		"activations of 9 bits":                                                   op("QActivation", "act_bit", 9),
		"a softmax of 5×6×4 is not supported":                                     op("SoftmaxOutput"),
		"no layer computes the output of the graph, which is its input":           op("Dropout"),
		`mode "always" is not supported`:                                          op("Dropout", "mode", "always"),
		"axis 0 is not supported":                                                 op("softmax", "axis", 0),
		"temperature 0 is not supported":                                          op("softmax", "temperature", 0),
		"\"w1\" has 3 values, want 4":                                             func(g *graph) { g.norm(3) },
		"it has 3 slopes, want one, or one for each of 4 channels":                func(g *graph) { g.weighted("LeakyReLU", attributes2("act_type", "prelu"), 0, 3) },
		"is a second input besides \"data\", or weights that are not in the file of the weights": func(g *graph) {
			g.nodes = append(g.nodes, testNode{op: "null", name: "more"})
			g.op("elemwise_add", nil, 0, 1)
		},
		"its input \"w1\" must be computed, not constant": func(g *graph) {
			g.param("arg:", 4)
			g.op("clip", nil, 1)
		},
		"its input \"abs2\" must be computed, not constant": func(g *graph) {
			g.param("arg:", 4)
			g.op("abs", nil)
			g.op("clip", nil)
		},
		"weights of shape [4] do not fit values of 5×6×4": func(g *graph) {
			g.param("arg:", 4)
			g.op("elemwise_add", nil, 0, 1)
		},
		"weights of shape [1 1 4 1 1] do not fit values of 5×6×4": func(g *graph) {
			g.op("elemwise_add", nil, 0, g.param("arg:", 1, 1, 4, 1, 1))
		},
		"a difference of shapes 5×6×4 and 5×6×3 is not": func(g *graph) {
			g.op("elemwise_sub", nil, 0, g.op("slice_axis", attributes2("axis", 1, "begin", 1)))
		},
		"a mean of weights is supported only with axis=0": func(g *graph) { g.op("mean", attributes2("axis", 1), g.param("arg:", 4, 2)) },
		"a mean of no values is undefined": func(g *graph) {
			g.op("mean", attributes2("axis", 0, "exclude", 1, "keepdims", 1), g.param("arg:", 4, 0))
		},
		"a transpose of weights of shape [4 2]":                          func(g *graph) { g.op("transpose", attributes2("axes", "(1, 0)"), g.param("arg:", 4, 2)) },
		"want each of the 2 dimensions once":                             func(g *graph) { g.op("transpose", attributes2("axes", "(1, 1)"), g.param("arg:", 4, 1)) },
		`pad_width "(0, 1, 0, 0, 1, 1, 1, 1)" is not`:                    op("Pad", "mode", "edge", "pad_width", "(0, 1, 0, 0, 1, 1, 1, 1)"),
		`mode "wrap" is not supported`:                                   op("Pad", "mode", "wrap", "pad_width", "(0, 0, 0, 0, 1, 1, 1, 1)"),
		"padding of 5 and 1 by reflection does not fit a dimension of 5": op("Pad", "mode", "reflect", "pad_width", "(0, 0, 0, 0, 5, 1, 1, 1)"),
		"axis 2 is not supported, want 1":                                op("slice_axis", "axis", 2),
		"a slice from channel 3 to channel 3 of 4 is empty":              op("slice_axis", "axis", 1, "begin", -1, "end", 3),
		"\"label\" is not in the file of the weights": func(g *graph) {
			g.nodes = append(g.nodes, testNode{op: "null", name: "label"})
			g.op("FullyConnected", attributes2("num_hidden", 2), 0, 1)
		},
		"input 1, \"clip1\", must be constant weights, but is computed": func(g *graph) {
			g.op("clip", nil)
			g.op("FullyConnected", attributes2("num_hidden", 2), 0, 1)
		},
		"its input is a vector": func(g *graph) {
			g.op("Flatten", nil)
			g.op("Pooling", attributes2("kernel", "(1, 1)"))
		},
		"axis -1 is the columns": func(g *graph) {
			g.op("Pooling", attributes2("pool_type", "avg", "kernel", "(1, 1)", "global_pool", "True"))
			g.op("softmax", nil)
		},
		"follows a softmax": func(g *graph) {
			g.op("Flatten", nil)
			g.op("softmax", nil)
			g.op("clip", attributes2("a_max", 1))
		},
		"a sum of shapes 5×6×4 and 3×4×4": func(g *graph) {
			g.op("Pooling", attributes2("kernel", "(3, 3)"))
			g.op("elemwise_add", nil, 0, 1)
		},
		"images of 5×6 and 3×4 cannot be concatenated": func(g *graph) {
			g.op("Pooling", attributes2("kernel", "(3, 3)"))
			g.op("Concat", nil, 0, 1)
		},
		"a product of shapes 5×6×4 and 3×4×4": func(g *graph) {
			g.op("Pooling", attributes2("kernel", "(3, 3)"))
			g.op("broadcast_mul", nil, 0, 1)
		},
	} {
		g := newGraph()
		make(g)
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
		require.ErrorContains(t, err, strings.TrimSpace(want))
	}
}

// Files of weights that are none.
func TestHostileParams(t *testing.T) {
	g := leNet()
	whole := g.file()
	for cut := range len(whole) {
		if cut%97 == 0 || cut > len(whole)-300 || cut < 100 {
			_, _, err := Decode(t.Context(), g.symbol(), whole[:cut], Options{InputShape: bcnn.Shape{H: 12, W: 8, C: 2}})
			require.Error(t, err, "%d bytes", cut)
		}
	}
	le := binary.LittleEndian
	list := func(count uint64, rest ...uint32) []byte {
		b := le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, listMagic), 0), count)
		for _, v := range rest {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	for want, data := range map[string][]byte{
		"not a file of weights":                                 {1, 2, 3},
		"the file ends too early":                               list(1 << 60),
		"array 0: storage type 1: sparse":                       list(1, magicV2, 1),
		"array 0: it has 33 dimensions":                         list(1, 33),
		"array 0: it has more than 2147483647 values":           list(1, 2, 1<<30, 2),
		"array 0: it has more than 2147483647 values ":          list(1, magicV1, 1, 0xffffffff, 0xffffffff),
		"array 0: element type 12":                              list(1, 1, 1, 1, 0, 12),
		"array 0: element type 7":                               list(1, 1, 1, 1, 0, 7),
		"array 0: the file ends too early":                      list(1, 1, 1<<20, 1, 0, 0),
		"0 names for 1 arrays":                                  list(1, 1, 1, 1, 0, 0, 7, 0, 0),
		"4 bytes follow the last name, where the file must end": list(0, 0, 0, 1),
		"two arrays are called \"a\"":                           paramsFile(0, []testArray{{name: "arg:a", dims: []int{0}}, {name: "aux:a", dims: []int{0}}}),
	} {
		_, _, err := Decode(t.Context(), g.symbol(), data, shape)
		require.ErrorContains(t, err, strings.TrimSpace(want))
	}
	packed := func(change func(a *testArray)) error {
		g := newGraph()
		g.word = 32
		g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 8), 0, 8, 4, 1, 1)
		list := g.written()
		change(&list[0])
		_, _, err := Decode(t.Context(), g.symbol(), paramsFile(0, list), shape)
		return err
	}
	require.NoError(t, packed(func(*testArray) {}))
	require.ErrorContains(t, packed(func(a *testArray) { a.dims, a.raw = []int{2}, make([]byte, 8) }), "2 packed words of 32 bits do not hold 32 weights")
	require.ErrorContains(t, packed(func(a *testArray) { a.dtype, a.dims = uint8s, []int{4} }), "packed weights in elements of type 3 are not supported")
	g = newGraph()
	g.word = 32
	g.weighted("QFullyConnected", attributes2("num_hidden", 4), 0, 4, 120)
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
	require.ErrorContains(t, err, "120 inputs are no multiple of the 32 bits of a word")
	g = newGraph()
	g.word = 32
	g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 8, "scaling_mode", "forward"), 0, 8, 4, 1, 1)
	_, _, err = Decode(t.Context(), g.symbol(), g.file(), shape)
	require.ErrorContains(t, err, "the magnitudes of packed weights are not known")
}

// Weights may be halves, doubles, or what no float can be.
func TestElementTypes(t *testing.T) {
	decode := func(dtype int32, raw []byte, values ...float64) (*bcnn.Network, error) {
		g := newGraph()
		g.weighted("LeakyReLU", attributes2("act_type", "prelu"), 0, 4)
		g.params[0].dtype, g.params[0].raw, g.params[0].values = dtype, raw, values
		net, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
		return net, err
	}
	want := []float32{1, -0.5, 0x1p-24, 65504}
	net, err := decode(float16s, []byte{0, 0x3c, 0, 0xb8, 1, 0, 0xff, 0x7b})
	require.NoError(t, err)
	require.Equal(t, bcnn.PReLU{Slope: want}, net.Layers[0].Op)
	net, err = decode(float64s, nil, 1, -0.5, 0x1p-24, 65504)
	require.NoError(t, err)
	require.Equal(t, bcnn.PReLU{Slope: want}, net.Layers[0].Op)
	_, err = decode(float16s, []byte{0, 0x7c, 0, 0, 0, 0, 0, 0})
	require.ErrorContains(t, err, "slope[0] is +Inf")
	_, err = decode(float16s, []byte{0, 0, 1, 0x7c, 0, 0, 0, 0})
	require.ErrorContains(t, err, "slope[1] is NaN")
	_, err = decode(int8s, []byte{0, 0, 0, 0})
	require.ErrorContains(t, err, "elements of type 5 are not supported here, want floating-point numbers")
}

// Graphs that are none.
func TestHostileSymbol(t *testing.T) {
	for want, symbol := range map[string]string{
		"EOF":                         ``,
		"[ where { is expected":       `[]`,
		"it has no nodes":             `{"nodes":[],"heads":[[0,0]]}`,
		"it has no heads":             `{"nodes":[{}]}`,
		"is output 0 of node 1":       `{"nodes":[{}],"heads":[[1,0,0]]}`,
		"is output 1 of node 0":       `{"nodes":[{}],"heads":[[0,1,0]]}`,
		"is output 0 of node -1":      `{"nodes":[{}],"heads":[[-1,0,0]]}`,
		"2 outputs, a network has":    `{"nodes":[{}],"heads":[[0,0],[0,0]]}`,
		"node 1 reads node 1":         `{"nodes":[{},{"inputs":[[1,0,0]]}],"heads":[[0]]}`,
		"node 0 reads node -1":        `{"nodes":[{"inputs":[[-1,0,0]]}],"heads":[[0]]}`,
		"node 0: json":                `{"nodes":[{"op":3}]}`,
		"node 0: json ":               `{"nodes":[{"attrs":{"a":[]}}]}`,
		"invalid character":           `{"nodes":[{}],"heads":[[0]],}`,
		"(symbol.json): EOF":          `{"nodes":[{}],"heads":[[0]]`,
		"exceeded max depth":          `{"more":` + strings.Repeat("[", 20000) + `}`,
		"the graph has no operators":  `{"nodes":[{"op":"null"}],"heads":[[0]]}`,
		"it has 0 inputs":             `{"nodes":[{"op":"Flatten"}],"heads":[[0]]}`,
		"it reads output 2 of \"\"":   `{"nodes":[{"op":"null"},{"op":"Flatten","inputs":[[0,2,0]]}],"heads":[[1]]}`,
		"the name must have 1 to 256": `{"nodes":[{"op":"null"},{"op":"relu","name":"` + strings.Repeat("x", 300) + `","inputs":[[0]]}],"heads":[[1]]}`,
	} {
		_, _, err := Decode(t.Context(), []byte(symbol), paramsFile(0, nil), shape)
		require.ErrorContains(t, err, strings.TrimSpace(want), "%.100s", symbol)
	}
	// Names of nodes need not differ.
	g := newGraph()
	for range 3 {
		g.op("relu", nil)
		g.nodes[len(g.nodes)-1].name = "r"
	}
	for i := range g.nodes {
		if g.nodes[i].op == "relu" {
			g.nodes[i].op = "_copy"
		}
	}
	g.op("clip", attributes2("a_max", 1))
	g.nodes[4].name = "r"
	g.op("clip", attributes2("a_max", 1))
	g.nodes[5].name = "r"
	net, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
	require.NoError(t, err)
	require.Equal(t, "r r_5", net.Layers[0].Name+" "+net.Layers[1].Name)
}

func TestLimits(t *testing.T) {
	g := leNet()
	for want, limits := range map[string]bcnn.Limits{
		"more than 100 bytes; Limits.FileBytes allows more": {FileBytes: 100},
		"more than 5 nodes; Limits.Layers allows more":      {Layers: 5},
		"takes 24576 bytes, at most 1000 are allowed":       {TensorBytes: 1000},
		"a limit is negative":                               {Layers: -1},
	} {
		opts := Options{InputShape: bcnn.Shape{H: 12, W: 8, C: 2}, Limits: limits}
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
		require.ErrorContains(t, err, want)
	}
	for want, opts := range map[string]Options{
		"type of the input is bits":                        {InputType: bcnn.Bits},
		"input \"data\": its shape 65537×1×1 is too large": {InputShape: bcnn.Shape{H: 65537, W: 1, C: 1}},
		"Mean has 2 values, the input has 3 channels":      {InputShape: bcnn.Shape{H: 1, W: 1, C: 3}, Mean: []float32{1, 2}},
	} {
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), opts)
		require.ErrorContains(t, err, want)
	}
	for _, kind := range []bcnn.DType{0, bcnn.Uint8, bcnn.Float32} {
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{InputShape: bcnn.Shape{H: 12, W: 8, C: 2}, InputType: kind, Name: "n"})
		require.NoError(t, err)
	}
	_, _, err := Decode(t.Context(), make([]byte, maxSymbol+1), nil, Options{})
	require.ErrorContains(t, err, "at most 8388608 are supported")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Decode(ctx, g.symbol(), g.file(), shape)
	require.ErrorIs(t, err, context.Canceled)
}

// The weights are found beside the graph, or named.
func TestFiles(t *testing.T) {
	g := newGraph()
	g.weighted("FullyConnected", attributes2("num_hidden", 2), 2, 2, 120)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o644))
		return path
	}
	fsys := os.DirFS(dir)
	symbol := write("net-symbol.json", g.symbol())
	opts := Options{InputShape: shape.InputShape}
	requireBoth := func(want string, opts, inFS Options) {
		t.Helper()
		net, _, err := Load(t.Context(), symbol, opts)
		other, _, err2 := Read(t.Context(), fsys, "net-symbol.json", inFS)
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, err2)
			require.Equal(t, "net", net.Name)
			require.Equal(t, net, other)
			return
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err2, want)
	}
	requireBoth(`net-symbol.json: there are no weights beside it, such as "net-0000.params"`, opts, opts)
	write("net-part-0000.params", nil)
	write("nettle-0001.params", nil)
	write("net-0001.params", g.file())
	requireBoth("", opts, opts)
	both := opts
	both.Limits.FileBytes = int64(len(g.symbol()) + len(g.file()))
	requireBoth("", both, both)
	both.Limits.FileBytes--
	requireBoth("net-0001.params", both, both)
	both.Limits.FileBytes = int64(len(g.symbol())) - 1
	requireBoth("net-symbol.json", both, both)
	other := write("net-0002.params", nil)
	requireBoth("net-symbol.json: several files of weights are beside it: net-0001.params, net-0002.params; ", opts, opts)
	named, inFS := opts, opts
	named.Params, inFS.Params = filepath.Join(dir, "net-0001.params"), "net-0001.params"
	requireBoth("", named, inFS)
	named.Params, inFS.Params = other, "net-0002.params"
	requireBoth("net-0002.params: not a file of weights of MXNet", named, inFS)
	requireBoth("", Options{Params: filepath.Join(dir, "net-0001.params"), InputShape: shape.InputShape}, Options{Params: "net-0001.params", InputShape: shape.InputShape})

	for i := range 19 {
		write(fmt.Sprintf("net-%04d.params", 100+i), nil)
		if i == 17 {
			requireBoth("net-0117.params; choose one with Options.Params", opts, opts)
		}
	}
	requireBoth("net-0117.params, …; choose one with Options.Params", opts, opts)
	_, _, err := Load(t.Context(), filepath.Join(dir, "absent-symbol.json"), opts)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = Read(t.Context(), fstest.MapFS{"a": {Data: []byte("{}")}}, "a", Options{Params: "b"})
	require.ErrorContains(t, err, "b: ")
	_, _, err = Load(t.Context(), write("bad-symbol.json", bytes.Repeat([]byte("x"), 9)), Options{Params: other})
	require.ErrorContains(t, err, "bad-symbol.json: not a graph of MXNet (symbol.json): ")
}
