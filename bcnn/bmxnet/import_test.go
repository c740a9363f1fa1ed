package bmxnet

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// requireSame imports a graph and compares its output for random inputs with what the
// graph computes.
func requireSame(t *testing.T, g *graph, c, h, w int) *bcnn.Network {
	t.Helper()
	net, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{Name: "test", InputShape: bcnn.Shape{H: h, W: w, C: c}})
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	for range 3 {
		in := image{c, h, w, nil}
		for range c * h * w {
			v := float64(float32(g.rng.NormFloat64()))
			if g.rng.IntN(8) == 0 {
				v = 0
			}
			in.v = append(in.v, v)
		}
		x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
		for i, v := range in.v {
			x.F32[i%(h*w)*c+i/(h*w)] = float32(v)
		}
		got, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		want := g.compute(t, in)
		require.Equal(t, bcnn.Shape{H: want.h, W: want.w, C: want.c}, got.Shape)
		largest := 1.0
		for _, v := range want.v {
			largest = max(largest, math.Abs(v))
		}
		pixels := want.h * want.w
		for i, v := range want.v {
			require.InDelta(t, v, got.F32[i%pixels*want.c+i/pixels], 1e-5*largest, "value %d", i)
		}
	}
	return net
}

// leNet is a network in the form of that which was published.
func leNet() *graph {
	g := newGraph()
	g.weighted("Convolution", attributes2("kernel", "(3, 3)", "num_filter", 64, "pad", "(1L, 1L)"), 64, 64, 2, 3, 3)
	g.op("Activation", attributes2("act_type", "tanh"))
	g.op("Pooling", attributes2("kernel", "(2, 2)", "stride", "(2, 2)", "pool_type", "max"))
	g.norm(64)
	g.op("QActivation", attributes2("act_bit", 1, "backward_only", "True"))
	g.weighted("QConvolution", attributes2("act_bit", 1, "kernel", "(3, 3)", "num_filter", 64, "pad", "(1, 1)", "stride", "(2, 1)"), 0, 64, 64, 3, 3)
	g.norm(64, "fix_gamma", "False", "eps", "2e-05")
	g.op("Pooling", attributes2("kernel", "(2, 2)", "pool_type", "max"))
	g.op("Flatten", nil)
	g.op("QActivation", attributes2("act_bit", 1))
	g.weighted("QFullyConnected", attributes2("num_hidden", 20), 0, 20, 64*2*3)
	g.norm(20)
	g.op("Activation", attributes2("act_type", "tanh"))
	g.weighted("FullyConnected", attributes2("num_hidden", 5), 5, 5, 20)
	label := len(g.nodes)
	g.nodes = append(g.nodes, testNode{op: "null", name: "softmax_label"})
	g.op("SoftmaxOutput", nil, label-1, label)
	return g
}

// Weights in all forms make one network.
func TestForms(t *testing.T) {
	var first *bcnn.Network
	for _, word := range []int{0, 32, 64} {
		for i, header := range []uint32{0, magicV1, magicV2, magicV3} {
			g := leNet()
			g.word, g.header, g.attrs = word, header, []string{"param", "attr", "attrs"}[i%3]
			net := requireSame(t, g, 2, 12, 8)
			require.Equal(t, bcnn.Softmax{}, net.Layers[len(net.Layers)-1].Op)
			if first == nil {
				first = net
			}
			require.Equal(t, first, net, "words of %d bits, header %#x", word, header)
		}
	}
	binary := 0
	p, err := lower.Network(t.Context(), first, lower.Options{})
	require.NoError(t, err)
	for _, l := range plan.Summarize(first, p) {
		if l.Precision == plan.Binary {
			binary++
		}
	}
	require.Equal(t, 2, binary)
}

// supported are graphs on an input of 4 channels of 5×6, by what they show.
func supported() map[string]func(g *graph) {
	return map[string]func(g *graph){
		"strides, dilation and groups": func(g *graph) {
			g.weighted("Convolution", attributes2("kernel", "(3, 2)", "num_filter", 6, "num_group", 2, "stride", "(2, 1)", "dilate", "(1, 2)", "pad", "[2, 1]", "no_bias", "True"), 0, 6, 2, 3, 2)
		},
		"binary groups with a bias": func(g *graph) {
			g.weighted("QConvolution", attributes2("kernel", "(3, 3)", "num_filter", 6, "num_group", 2, "pad", "(1, 1)", "no_bias", "False"), 6, 6, 2, 3, 3)
		},
		"scaled by the mean": func(g *graph) {
			g.weighted("QConvolution", attributes2("kernel", "(3, 3)", "num_filter", 5, "scaling_mode", "forward"), 0, 5, 4, 3, 3)
		},
		"binary weights only": func(g *graph) {
			g.weighted("QConvolution", attributes2("kernel", "(3, 3)", "num_filter", 5, "pad", "(1, 1)", "act_bit", 32), 0, 5, 4, 3, 3)
		},
		"a shared sign": func(g *graph) {
			a := g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 5), 0, 5, 4, 1, 1)
			w := g.param("arg:", 5, 4, 1, 1)
			b := g.op("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 5), 0, w)
			g.op("elemwise_add", nil, a, b)
		},
		"max full":           pooled("max", "(3, 3)", "stride", "(2, 2)", "pooling_convention", "full"),
		"max full padded":    pooled("max", "(3, 3)", "stride", "(2, 2)", "pad", "(1, 1)", "pooling_convention", "full"),
		"max valid":          pooled("max", "(2, 3)", "stride", "(2, 2)"),
		"avg valid":          pooled("avg", "(3, 2)", "stride", "(2, 3)"),
		"avg valid padded":   pooled("avg", "(3, 3)", "stride", "(2, 2)", "pad", "(1, 1)"),
		"avg without it":     pooled("avg", "(3, 3)", "stride", "(2, 2)", "pad", "(1, 1)", "count_include_pad", "False"),
		"avg full":           pooled("avg", "(3, 3)", "stride", "(2, 2)", "pooling_convention", "full"),
		"avg full, no more":  pooled("avg", "(3, 3)", "stride", "(3, 1)", "pad", "(2, 1)", "pooling_convention", "full"),
		"avg full uncounted": pooled("avg", "(3, 3)", "stride", "(2, 2)", "pad", "(1, 1)", "pooling_convention", "full", "count_include_pad", "False"),
		"global avg":         pooled("avg", "(7, 7)", "global_pool", "True"),
		"global max":         pooled("max", "(7, 7)", "global_pool", "True"),
		"signs of a pool": func(g *graph) {
			g.op("QActivation", nil)
			pooled("max", "(2, 2)")(g)
			g.op("QActivation", nil)
		},
		"relu":           func(g *graph) { g.op("Activation", attributes2("act_type", "relu")) },
		"sigmoid":        func(g *graph) { g.op("Activation", attributes2("act_type", "sigmoid")) },
		"L2 of images":   func(g *graph) { g.op("L2Normalization", nil) },
		"L2 of pixels":   func(g *graph) { g.op("L2Normalization", attributes2("mode", "channel", "eps", 0.5)) },
		"L2 of channels": func(g *graph) { g.op("L2Normalization", attributes2("mode", "spatial")) },
		"L2 of a vector": func(g *graph) {
			g.op("Flatten", nil)
			g.op("L2Normalization", nil)
		},
		"leaky": func(g *graph) { g.op("LeakyReLU", attributes2("slope", 0.3)) },
		"rrelu": func(g *graph) { g.op("LeakyReLU", attributes2("act_type", "rrelu")) },
		"prelu": func(g *graph) { g.weighted("LeakyReLU", attributes2("act_type", "prelu"), 0, 4) },
		"clip":  func(g *graph) { g.op("clip", attributes2("a_min", -0.5, "a_max", 1)) },
		"norm of a vector": func(g *graph) {
			g.op("Flatten", nil)
			g.norm(4*5*6, "fix_gamma", "0")
		},
		"a flattened output": func(g *graph) { g.op("Reshape", attributes2("shape", "(0, -1)")) },
		"joined": func(g *graph) {
			a := g.op("Activation", attributes2("act_type", "relu"))
			g.op("Concat", attributes2("dim", 1, "num_args", 3), a, 0, a)
		},
		"joined vectors": func(g *graph) {
			a := g.op("Flatten", nil)
			b := g.op("clip", attributes2("a_min", 0, "a_max", 1))
			g.op("Concat", nil, a, b)
		},
		"sums": func(g *graph) {
			a := g.op("Activation", attributes2("act_type", "relu"))
			g.op("add_n", nil, a, 0, a)
			g.op("Dropout", attributes2("p", 0.5))
			g.op("_copy", nil)
			g.op("BlockGrad", nil)
		},
		"sum of vectors": func(g *graph) {
			a := g.op("Flatten", nil)
			g.norm(4 * 5 * 6)
			g.op("elemwise_add", nil, len(g.nodes)-1, a)
		},
		"a gate": func(g *graph) {
			p := g.op("Pooling", attributes2("global_pool", "True", "pool_type", "avg", "kernel", "(1, 1)"))
			g.op("broadcast_mul", nil, p, 0)
		},
		"numbers": func(g *graph) {
			g.op("_plus_scalar", attributes2("scalar", 1.5))
			g.op("_mul_scalar", attributes2("scalar", -0.75))
			g.op("_minus_scalar", attributes2("scalar", 0.1))
			g.op("_div_scalar", attributes2("scalar", 4))
		},
		"softrelu": func(g *graph) { g.op("Activation", attributes2("act_type", "softrelu")) },
		"elu":      func(g *graph) { g.op("LeakyReLU", attributes2("act_type", "elu", "slope", 1)) },
		"gelu":     func(g *graph) { g.op("LeakyReLU", attributes2("act_type", "gelu")) },
		"limits": func(g *graph) {
			g.op("_maximum_scalar", attributes2("scalar", -0.5))
			g.op("_minimum_scalar", attributes2("scalar", 0.75))
		},
		"a flattened output with its size": func(g *graph) { g.op("Reshape", attributes2("shape", "(-1, 120)")) },
		"means of channels": func(g *graph) {
			g.op("mean", attributes2("axis", "(2, 3)"))
			g.weighted("FullyConnected", attributes2("num_hidden", 2), 2, 2, 4)
		},
		"means as a gate": func(g *graph) {
			g.op("broadcast_mul", nil, g.op("mean", attributes2("axis", "(-2, -1)", "keepdims", "True")), 0)
		},
		"a number less a value": func(g *graph) { g.op("_rminus_scalar", attributes2("scalar", 1.5)) },
		"a difference": func(g *graph) {
			a := g.op("Activation", attributes2("act_type", "tanh"))
			g.op("elemwise_sub", nil, 0, a)
		},
		"with weights": func(g *graph) {
			g.op("broadcast_add", nil, 0, g.param("arg:", 1, 4, 1, 1))
			last := g.op("broadcast_sub", nil, len(g.nodes)-1, g.param("arg:", 4, 1, 1))
			last = g.op("broadcast_sub", nil, g.param("arg:", 1), last)
			g.op("_mul", nil, last, g.param("arg:", 1, 4, 1, 1))
			g.op("Flatten", nil)
			g.op("broadcast_add", nil, len(g.nodes)-1, g.param("arg:", 1, 120))
		},
		"padded": func(g *graph) {
			g.op("Pad", attributes2("mode", "constant", "pad_width", "(0, 0, 0, 0, 1, 2, 3, 0)", "constant_value", 0.5))
		},
		"padded by the edge": func(g *graph) { g.op("Pad", attributes2("mode", "edge", "pad_width", "(0, 0, 0, 0, 1, 2, 3, 0)")) },
		"padded by reflection": func(g *graph) {
			g.op("Pad", attributes2("mode", "reflect", "pad_width", "(0, 0, 0, 0, 4, 2, 5, 0)"))
		},
		"some channels": func(g *graph) {
			a := g.op("slice_axis", attributes2("axis", 1, "begin", 1, "end", "None"), 0)
			b := g.op("slice_axis", attributes2("axis", 1, "begin", -4, "end", -1), 0)
			g.op("elemwise_add", nil, a, b)
		},
		"logarithms of probabilities": func(g *graph) {
			g.op("Flatten", nil)
			g.op("log_softmax", attributes2("axis", 1))
		},
		"a softmax with a temperature": func(g *graph) {
			g.op("Flatten", nil)
			g.op("Dropout", attributes2("p", 0.5, "mode", "training"))
			g.op("softmax", attributes2("axis", -1, "temperature", 2.5))
		},
		"signs of an image and of its vector": func(g *graph) {
			a := g.op("det_sign", nil, 0)
			b := g.op("det_sign", nil, g.op("Flatten", nil, 0))
			g.op("elemwise_add", nil, g.op("Flatten", nil, a), b)
		},
		"signs of a vector and of its image": func(g *graph) {
			b := g.op("det_sign", nil, g.op("Flatten", nil, 0))
			a := g.op("Flatten", nil, g.op("Pooling", attributes2("kernel", "(1, 1)"), g.op("det_sign", nil, 0)))
			g.op("elemwise_add", nil, a, b)
		},
		"levels of an image and of its vector": func(g *graph) {
			a := g.op("QActivation", attributes2("act_bit", 8), 0)
			b := g.op("QActivation", attributes2("act_bit", 8), g.op("Flatten", nil, 0))
			g.op("elemwise_add", nil, g.op("Flatten", nil, a), b)
		},
		"activations of 32 bits": func(g *graph) {
			g.op("QActivation", attributes2("act_bit", 32, "backward_only", "True"))
			g.op("Activation", attributes2("act_type", "relu"))
		},
		"clip to one number": func(g *graph) { g.op("clip", attributes2("a_min", 0.5, "a_max", 0.5)) },
		"a layer of a vector": func(g *graph) {
			g.op("Flatten", nil)
			g.weighted("FullyConnected", attributes2("num_hidden", 3, "flatten", "False"), 3, 3, 120)
		},
		"a layer of one pixel": func(g *graph) {
			g.op("Pooling", attributes2("global_pool", "True", "kernel", "(1, 1)"))
			g.weighted("FullyConnected", attributes2("num_hidden", 3, "flatten", "False"), 3, 3, 4)
		},
		"a layer of signs with a bias": func(g *graph) {
			g.op("Flatten", nil)
			g.weighted("QFullyConnected", attributes2("num_hidden", 3, "no_bias", "False"), 3, 3, 120)
		},
		"one joined":   func(g *graph) { g.op("Concat", nil, g.op("Activation", attributes2("act_type", "relu"))) },
		"one summed":   func(g *graph) { g.op("add_n", nil, g.op("Activation", attributes2("act_type", "relu"))) },
		"prelu of one": func(g *graph) { g.weighted("LeakyReLU", attributes2("act_type", "prelu"), 0, 1) },
	}
}

// Every operator is computed as MXNet does.
func TestOperators(t *testing.T) {
	for name, make := range supported() {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			make(g)
			requireSame(t, g, 4, 5, 6)
		})
	}
}

// The layers of BMXNet 2 are binary, with their padding and their scale.
func TestSecondVersion(t *testing.T) {
	for name, c := range map[string]struct {
		fill   any
		width  string
		own    string // padding of the convolution
		scaled bool
		layers []string
		pad    int
	}{
		"offset":           {-1, "(0, 0, 0, 0, 1, 2, 1, 0)", "(0, 0)", false, []string{"sign", "conv2d", "affine", "affine", "batchnorm", "sign", "dense"}, -1},
		"plus":             {1, "(0, 0, 0, 0, 1, 2, 1, 0)", "(0, 0)", false, []string{"sign", "conv2d", "affine", "affine", "batchnorm", "sign", "dense"}, 1},
		"scaled":           {-1, "(0, 0, 0, 0, 1, 1, 1, 1)", "(0, 0)", true, []string{"sign", "conv2d", "affine", "batchnorm", "sign", "dense"}, -1},
		"zeros":            {0, "(0, 0, 0, 0, 1, 1, 1, 1)", "(0, 0)", false, []string{"sign", "conv2d", "affine", "affine", "batchnorm", "sign", "dense"}, 0},
		"both of them pad": {-1, "(0, 0, 0, 0, 1, 1, 1, 1)", "(1, 0)", false, []string{"sign", "pixels", "conv2d", "affine", "affine", "batchnorm", "sign", "dense"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			g.op("_contrib_gradcancel", attributes2("threshold", "1.0"))
			g.op("det_sign", nil)
			x := g.op("Pad", attributes2("mode", "constant", "pad_width", c.width, "constant_value", c.fill))
			w := g.param("arg:", 6, 4, 3, 2)
			g.array(w).values[3] = 0
			signs := g.op("det_sign", nil, w)
			x = g.op("Convolution", attributes2("kernel", "(3, 2)", "num_filter", 6, "pad", c.own, "no_bias", "True"), x, signs)
			if c.scaled {
				s := g.op("abs", nil, w)
				s = g.op("mean", attributes2("axis", 0, "exclude", "True", "keepdims", "True"), s)
				s = g.op("transpose", attributes2("axes", "(1, 0, 2, 3)"), s)
				g.op("broadcast_mul", nil, x, g.op("BlockGrad", nil, s))
			} else {
				g.op("_plus_scalar", attributes2("scalar", 4*3*2))
				g.op("_div_scalar", attributes2("scalar", 2))
			}
			g.norm(6)
			x = g.op("det_sign", nil)
			values := len(g.compute(t, image{4, 5, 6, make([]float64, 120)}).v)
			g.op("FullyConnected", attributes2("num_hidden", 3, "no_bias", "True"), x, g.op("det_sign", nil, g.param("arg:", 3, values)))
			net := requireSame(t, g, 4, 5, 6)
			require.Equal(t, c.layers, kinds(net))
			for _, l := range net.Layers {
				switch op := l.Op.(type) {
				case bcnn.Conv2D:
					require.Equal(t, c.pad, op.PadValue)
					require.True(t, op.Weights.Binary())
				case bcnn.Dense:
					require.True(t, op.Weights.Binary())
				}
			}
		})
	}
}

// A convolution that rounds its input to several bits does not take in what is around it.
func TestPaddedLevels(t *testing.T) {
	for _, fill := range []int{-1, 1} {
		for _, bits := range []int{2, 8} {
			g := newGraph()
			g.op("det_sign", nil)
			g.op("Pad", attributes2("mode", "constant", "pad_width", "(0, 0, 0, 0, 1, 2, 1, 0)", "constant_value", fill))
			g.weighted("QConvolution", attributes2("kernel", "(3, 3)", "num_filter", 5, "act_bit", bits, "weight_bit", 1), 0, 5, 4, 3, 3)
			requireSame(t, g, 4, 5, 6)
		}
	}
}

func pooled(kind, kernel string, more ...any) func(g *graph) {
	return func(g *graph) {
		g.op("Pooling", attributes2(append([]any{"pool_type", kind, "kernel", kernel}, more...)...))
	}
}

// The input, as options and the file describe it.
func TestInput(t *testing.T) {
	g := newGraph()
	g.op("Flatten", nil)
	g.weighted("FullyConnected", attributes2("num_hidden", 2), 2, 2, 12)
	net, _, err := Decode(t.Context(), g.symbol(), g.file(), Options{
		InputShape: bcnn.Shape{H: 2, W: 2, C: 3}, InputType: bcnn.Uint8, Mean: []float32{1, 2, 3}, Scale: []float32{0.5}, Name: "n", Labels: []string{"a", "b"}, Resize: 4,
	})
	require.NoError(t, err)
	source := &bcnn.Source{Name: "data", Dims: []int{3, 2, 2}, ChannelsFirst: true}
	require.Equal(t, bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 3}, DType: bcnn.Uint8, Resize: 4, Source: source}, net.Inputs[0])
	require.Equal(t, &bcnn.Source{Name: "FullyConnected4_output", Dims: []int{2}, ChannelsFirst: true}, net.Layers[2].Source)
	require.Equal(t, []string{"affine", "affine", "dense"}, kinds(net))
	require.Equal(t, bcnn.Affine{Bias: []float32{-1, -2, -3}}, net.Layers[0].Op)
	require.Equal(t, bcnn.Affine{Scale: []float32{0.5}}, net.Layers[1].Op)
	require.Equal(t, []string{"a", "b"}, net.Labels)
	require.Equal(t, "data/mean data/scale FullyConnected4", fmt.Sprint(net.Layers[0].Name, " ", net.Layers[1].Name, " ", net.Layers[2].Name))

	g.nodes[0].attrs = attributes2("__shape__", "(0, 3, 2, 2)")
	net, _, err = Decode(t.Context(), g.symbol(), g.file(), Options{})
	require.NoError(t, err)
	require.Equal(t, bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 3}, DType: bcnn.Float32, Source: source}, net.Inputs[0])
	g.nodes[0].attrs = attributes2("__shape__", "(0, 12)")
	net, _, err = Decode(t.Context(), g.symbol(), g.file(), Options{})
	require.NoError(t, err)
	require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 12}, net.Inputs[0].Shape)
	require.Equal(t, []int{12}, net.Inputs[0].Source.Dims)
}

// Activations and weights of several bits.
func TestBits(t *testing.T) {
	for _, bits := range [][3]int{{2, 1, 2}, {4, 1, 4}, {8, 1, 0}, {2, 2, 4}, {3, 3, 0}, {1, 2, 2}, {1, 4, 4}, {1, 7, 0}, {32, 2, 0}, {32, 7, 0}, {4, 4, 0}} {
		act, weight := bits[0], bits[1]
		t.Run(fmt.Sprint("act ", act, " weight ", weight), func(t *testing.T) {
			g := newGraph()
			g.weighted("Convolution", attributes2("kernel", "(1, 1)", "num_filter", 4), 4, 4, 4, 1, 1)
			if act < 32 {
				g.op("QActivation", attributes2("act_bit", act))
			}
			g.weighted("QConvolution", attributes2("kernel", "(3, 2)", "num_filter", 6, "pad", "(1, 1)", "stride", "(1, 2)", "act_bit", act, "weight_bit", weight), 0, 6, 4, 3, 2)
			g.norm(6)
			g.weighted("QConvolution", attributes2("kernel", "(2, 2)", "num_filter", 5, "no_bias", "False", "act_bit", act, "weight_bit", weight, "num_group", 1), 5, 5, 6, 2, 2)
			g.norm(5)
			g.op("Flatten", nil)
			g.op("QActivation", attributes2("act_bit", act, "backward_only", "True"))
			g.weighted("QFullyConnected", attributes2("num_hidden", 3, "act_bit", act, "weight_bit", weight), 0, 3, 5*4*3)
			net := requireSame(t, g, 4, 5, 6)
			p, err := lower.Network(t.Context(), net, lower.Options{})
			require.NoError(t, err)
			for _, l := range plan.Summarize(net, p)[1:] {
				require.True(t, bits[2] == 0 || l.Precision < plan.Float, l.WhyFloat)
			}
		})
	}
}

// The level of a value next to a threshold is that of BMXNet's rounding.
func TestThresholdsOfLevels(t *testing.T) {
	for k := 2; k <= mostActBits; k++ {
		for n := 1; n <= top(k); n++ {
			x := f32.Least(func(x float32) bool { return rounded(x, k) >= n })
			require.Equal(t, n, int(math.Round(float64(float32(top(k))*x))))
			require.Equal(t, n-1, int(math.Round(float64(float32(top(k))*math.Nextafter32(x, 0)))))
		}
	}
}
