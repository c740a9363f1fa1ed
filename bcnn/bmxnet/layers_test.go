package bmxnet

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// imported returns the layers of a graph, and their kinds.
func imported(t *testing.T, g *graph) ([]bcnn.Layer, []string) {
	t.Helper()
	net, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
	require.NoError(t, err)
	return net.Layers, kinds(net)
}

// Layers are what the graph says, with no more and no other ones.
func TestLayers(t *testing.T) {
	window := func(kh, kw, sh, sw int) bcnn.Window {
		return bcnn.Window{KH: kh, KW: kw, StrideH: sh, StrideW: sw, DilationH: 1, DilationW: 1}
	}
	padded := window(3, 3, 2, 2)
	padded.Pad = bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 2}
	for name, c := range map[string]struct {
		make func(g *graph)
		want []bcnn.Op
	}{
		"a global maximum": {func(g *graph) {
			g.op("Pooling", attributes2("global_pool", "True", "kernel", "(2, 2)", "stride", "(2, 2)"))
		}, []bcnn.Op{bcnn.MaxPool{Window: window(5, 6, 1, 1)}}},
		"a global mean": {func(g *graph) { g.op("Pooling", attributes2("pool_type", "avg", "global_pool", 1)) }, []bcnn.Op{
			bcnn.AvgPool{Window: window(5, 6, 1, 1), CountPadding: true}}},
		"a pool by default": {func(g *graph) { g.op("Pooling", attributes2("kernel", "(2, 3)")) }, []bcnn.Op{bcnn.MaxPool{Window: window(2, 3, 1, 1)}}},
		"a mean that reaches on": {func(g *graph) {
			g.op("Pooling", attributes2("pool_type", "avg", "kernel", "(3, 3)", "stride", "(2, 2)", "pad", "(1, 1)", "count_include_pad", 0, "pooling_convention", "full"))
		}, []bcnn.Op{bcnn.AvgPool{Window: padded}}},
		"means of channels":     {func(g *graph) { g.op("mean", attributes2("axis", "(2, 3)", "keepdims", 1)) }, []bcnn.Op{bcnn.AvgPool{Window: bcnn.Window{KH: 5, KW: 6}}}},
		"a limit by default":    {func(g *graph) { g.op("clip", nil) }, []bcnn.Op{bcnn.Clip{}}},
		"a limit of one number": {func(g *graph) { g.op("clip", attributes2("a_min", 2, "a_max", 2)) }, []bcnn.Op{bcnn.Clip{Min: 2, Max: 2}}},
		"a slope by default":    {func(g *graph) { g.op("LeakyReLU", nil) }, []bcnn.Op{bcnn.PReLU{Slope: []float32{0.25}}}},
		"a mean of slopes": {func(g *graph) {
			g.op("LeakyReLU", attributes2("act_type", "rrelu", "lower_bound", 0.5, "upper_bound", 1))
		}, []bcnn.Op{bcnn.PReLU{Slope: []float32{0.75}}}},
		"a sum by default": {func(g *graph) { g.op("_plus_scalar", nil) }, []bcnn.Op{bcnn.Affine{Bias: []float32{0}}}},
		"a softmax": {func(g *graph) {
			g.op("Pooling", attributes2("global_pool", 1))
			g.op("softmax", attributes2("axis", 1, "temperature", 4))
		}, []bcnn.Op{bcnn.MaxPool{Window: window(5, 6, 1, 1)}, bcnn.Affine{Scale: []float32{0.25}}, bcnn.Softmax{}}},
		"a softmax of temperature 1": {func(g *graph) {
			g.op("Pooling", attributes2("global_pool", 1))
			g.op("log_softmax", attributes2("axis", 1))
		}, []bcnn.Op{bcnn.MaxPool{Window: window(5, 6, 1, 1)}, bcnn.Softmax{Log: true}}},
		"what does nothing": {func(g *graph) {
			for _, op := range []string{"Dropout", "_copy", "identity", "BlockGrad", "_contrib_gradcancel", "LinearRegressionOutput", "relu"} {
				g.op(op, nil)
			}
		}, []bcnn.Op{bcnn.ReLU{}}},
		"logistic regression": {func(g *graph) { g.op("LogisticRegressionOutput", nil) }, []bcnn.Op{bcnn.Function{Name: bcnn.Sigmoid}}},
		"functions by name": {func(g *graph) {
			g.op("sigmoid", nil)
			g.op("tanh", nil)
		}, []bcnn.Op{bcnn.Function{Name: bcnn.Sigmoid}, bcnn.Function{Name: bcnn.Tanh}}},
		"numbers under old names": {func(g *graph) {
			for _, op := range []string{"_PlusScalar", "_MinusScalar", "_RMinusScalar", "_MulScalar", "_DivScalar"} {
				g.op(op, attributes2("scalar", 2))
			}
		}, []bcnn.Op{bcnn.Affine{Bias: []float32{2}}, bcnn.Affine{Bias: []float32{-2}}, bcnn.Affine{Scale: []float32{-1}, Bias: []float32{2}}, bcnn.Affine{Scale: []float32{2}}, bcnn.Affine{Scale: []float32{0.5}}}},
		"a normalisation by default": {func(g *graph) {
			g.norm(4)
			for i := range g.params {
				g.params[i].values = []float64{1, 2, 3, 4}
			}
		}, []bcnn.Op{bcnn.BatchNorm{Epsilon: 1e-3, Gamma: []float32{1, 1, 1, 1}, Beta: []float32{1, 2, 3, 4}, Mean: []float32{1, 2, 3, 4}, Var: []float32{1, 2, 3, 4}}}},
		"a normalisation with a factor": {func(g *graph) {
			g.norm(4, "fix_gamma", "False", "eps", 0.5, "axis", 1)
			for i := range g.params {
				g.params[i].values = []float64{1, 2, 3, 4}
			}
		}, []bcnn.Op{bcnn.BatchNorm{Epsilon: 0.5, Gamma: []float32{1, 2, 3, 4}, Beta: []float32{1, 2, 3, 4}, Mean: []float32{1, 2, 3, 4}, Var: []float32{1, 2, 3, 4}}}},
		"the first channels":  {func(g *graph) { g.op("slice_axis", attributes2("axis", 1, "end", 2)) }, []bcnn.Op{bcnn.Channels{Index: []int32{0, 1}}}},
		"beyond all channels": {func(g *graph) { g.op("slice_axis", attributes2("axis", 1, "begin", -9, "end", 9)) }, []bcnn.Op{bcnn.Channels{Index: []int32{0, 1, 2, 3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			c.make(g)
			layers, _ := imported(t, g)
			var got []bcnn.Op
			for _, l := range layers {
				got = append(got, l.Op)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// Layers read their operands in the order of the graph, or the larger one first.
func TestOperandsOfLayers(t *testing.T) {
	for _, op := range []string{"elemwise_add", "elemwise_mul", "broadcast_mul"} {
		g := newGraph()
		a, b := g.op("relu", nil, 0), g.op("tanh", nil, 0)
		g.op(op, nil, b, a)
		layers, _ := imported(t, g)
		require.Equal(t, []int{1, 0}, layers[2].Inputs, op)
	}
	g := newGraph()
	a, b := g.op("Pooling", attributes2("global_pool", 1), 0), g.op("tanh", nil, 0)
	g.op("broadcast_mul", nil, a, b)
	layers, _ := imported(t, g)
	require.Equal(t, []int{1, 0}, layers[2].Inputs)
	// Products with one channel, and of one pixel, but no others.
	for _, c := range []struct {
		attrs []any
		ok    bool
	}{
		{[]any{"axis", 1, "end", 1}, true}, {[]any{"axis", 1, "end", 2}, false}, {[]any{"axis", 1}, true},
	} {
		g := newGraph()
		g.op("broadcast_mul", nil, g.op("slice_axis", attributes2(c.attrs...), 0), 0)
		_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
		require.Equal(t, c.ok, err == nil, "%v", err)
	}
}

// A sign is taken once of what several layers read, and never of what is ±1 already.
func TestSignsOnce(t *testing.T) {
	pad := func(mode string, fill any) map[string]string {
		return attributes2("mode", mode, "pad_width", "(0, 0, 0, 0, 1, 1, 1, 1)", "constant_value", fill)
	}
	for name, c := range map[string]struct {
		make func(g *graph)
		want []string
	}{
		"around it −1":       {func(g *graph) { g.op("Pad", pad("constant", -1), g.op("det_sign", nil)) }, []string{"sign", "pixels"}},
		"around it 1":        {func(g *graph) { g.op("Pad", pad("constant", 1), g.op("det_sign", nil)) }, []string{"sign", "pixels"}},
		"around it its edge": {func(g *graph) { g.op("Pad", pad("edge", 0), g.op("det_sign", nil)) }, []string{"sign", "pixels"}},
		"around it 0":        {func(g *graph) { g.op("Pad", pad("constant", 0), g.op("det_sign", nil)) }, []string{"sign", "pixels", "sign"}},
		"around it ½":        {func(g *graph) { g.op("Pad", pad("constant", 0.5), g.op("det_sign", nil)) }, []string{"sign", "pixels", "sign"}},
		"numbers, around −1": {func(g *graph) { g.op("Pad", pad("constant", -1)) }, []string{"pixels", "sign"}},
		"the largest":        {func(g *graph) { g.op("Pooling", attributes2("kernel", "(2, 2)"), g.op("det_sign", nil)) }, []string{"sign", "maxpool"}},
		"the mean": {func(g *graph) {
			g.op("Pooling", attributes2("kernel", "(2, 2)", "pool_type", "avg"), g.op("det_sign", nil))
		}, []string{"sign", "avgpool", "sign"}},
		"joined":              {func(g *graph) { s := g.op("det_sign", nil); g.op("Concat", nil, s, s) }, []string{"sign", "concat"}},
		"joined with numbers": {func(g *graph) { g.op("Concat", nil, g.op("det_sign", nil), 0) }, []string{"sign", "concat", "sign"}},
		"numbers and it":      {func(g *graph) { g.op("Concat", nil, 0, g.op("det_sign", nil)) }, []string{"sign", "concat", "sign"}},
		"a sum":               {func(g *graph) { s := g.op("det_sign", nil); g.op("elemwise_add", nil, s, s) }, []string{"sign", "add", "sign"}},
		"a difference":        {func(g *graph) { s := g.op("det_sign", nil); g.op("elemwise_sub", nil, s, s) }, []string{"sign", "affine", "add", "sign"}},
		"a product":           {func(g *graph) { s := g.op("det_sign", nil); g.op("elemwise_mul", nil, s, s) }, []string{"sign", "mul", "sign"}},
		"some channels":       {func(g *graph) { g.op("slice_axis", attributes2("axis", 1, "end", 2), g.op("det_sign", nil)) }, []string{"sign", "channels"}},
		"a function":          {func(g *graph) { g.op("relu", nil, g.op("det_sign", nil)) }, []string{"sign", "relu", "sign"}},
		"once more":           {func(g *graph) { g.op("det_sign", nil); g.op("QActivation", nil); g.op("_copy", nil) }, []string{"sign"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			c.make(g)
			g.op("det_sign", nil)
			_, got := imported(t, g)
			require.Equal(t, c.want, got)
		})
	}
	g := newGraph()
	a, b := g.op("det_sign", nil, 0), g.op("det_sign", nil, 0)
	g.op("elemwise_add", nil, a, b)
	_, got := imported(t, g)
	require.Equal(t, []string{"sign", "add"}, got)
	// Levels are taken once for each number of bits.
	g = newGraph()
	two, again, three := g.op("QActivation", attributes2("act_bit", 2), 0), g.op("QActivation", attributes2("act_bit", 2), 0), g.op("QActivation", attributes2("act_bit", 3), 0)
	g.op("add_n", nil, two, again, three)
	_, got = imported(t, g)
	require.Equal(t, []string{"quantize", "affine", "affine", "quantize", "affine", "add", "add"}, got)
}

// Paddings that are no rows and columns of an image.
func TestPadWidths(t *testing.T) {
	for width, want := range map[string]string{
		"(0, 0, 0, 0, 1, 0, 0, 0)": "", "(0, 0, 0, 0, 0, 1, 0, 0)": "", "(0, 0, 0, 0, 0, 0, 1, 0)": "", "(0, 0, 0, 0, 0, 0, 0, 1)": "",
		"(1, 0, 0, 0, 0, 0, 0, 0)": "is not supported", "(0, 1, 0, 0, 0, 0, 0, 0)": "is not supported", "(0, 0, 1, 0, 0, 0, 0, 0)": "is not supported",
		"(0, 0, 0, 1, 0, 0, 0, 0)": "is not supported", "(0, 0, 0, 0, 1, 1, 1)": "is not supported", "(0, 0, 0, 0, 1, 1, 1, 1, 1)": "is not supported",
		"(0, 0, 0, 0, -1, 1, 1, 1)": "want numbers from 0",
	} {
		for _, mode := range []string{"edge", "constant", "reflect"} {
			g := newGraph()
			g.op("Pad", attributes2("mode", mode, "pad_width", width))
			_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
	for size, ok := range map[int]bool{4: true, 5: false} { // of 5 rows
		for _, before := range []bool{false, true} {
			list, err := try.Do(func() []int32 {
				if before {
					return padded("reflect", 5, size, 0)
				}
				return padded("reflect", 5, 0, size)
			})
			require.Equal(t, ok, err == nil)
			if ok && before {
				require.Equal(t, []int32{4, 3, 2, 1, 0, 1, 2, 3, 4}, list)
			} else if ok {
				require.Equal(t, []int32{0, 1, 2, 3, 4, 3, 2, 1, 0}, list)
			}
		}
	}
	for mode, want := range map[string][]int32{"edge": {0, 0, 0, 1, 2, 2}, "constant": {-1, -1, 0, 1, 2, -1}, "reflect": {2, 1, 0, 1, 2, 1}} {
		require.Equal(t, want, padded(mode, 3, 2, 1), mode)
	}
}

// What is added to the end of a side so that windows reach it.
func TestExtend(t *testing.T) {
	for _, c := range []struct{ end, size, begin, kernel, stride, more int }{
		{0, 5, 0, 3, 2, 0}, {0, 6, 0, 3, 2, 1}, {1, 6, 1, 3, 2, 1}, {1, 5, 1, 3, 2, 0}, {0, 5, 0, 2, 4, 1}, {0, 5, 0, 5, 3, 0}, {0, 5, 0, 7, 3, 0}, {0, 6, 0, 5, 3, 2}, {0, 5, 0, 4, 1, 0},
	} {
		end := c.end
		require.Equal(t, c.more, extend(&end, c.size, c.begin, c.kernel, c.stride), "%+v", c)
		require.Equal(t, c.end+c.more, end)
	}
}

// fmtWidth is the pad_width of rows and columns.
func fmtWidth(top, bottom, left, right int) string {
	return fmt.Sprintf("(0, 0, 0, 0, %d, %d, %d, %d)", top, bottom, left, right)
}

// charged is what the nodes of a graph are charged, besides the reading of the files.
func charged(t *testing.T, g *graph, opts Options) int64 {
	t.Helper()
	symbol, params := g.symbol(), g.file()
	im, err := begin(t.Context(), int64(len(symbol)), int64(len(params)), opts)
	require.NoError(t, err)
	require.Equal(t, int64(len(symbol)+len(params)), im.budget.Used())
	require.NoError(t, im.read(symbol, params))
	before := im.budget.Used()
	im.opts.Name = "n"
	_, err = im.network()
	require.NoError(t, err)
	return im.budget.Used() - before
}

// Each more value or node is charged what the cost model says: 4 for each float32 that is
// allocated, 1 for each time that a loop runs, and what these are estimated at. Whoever
// changes a charge changes it here.
func TestCharges(t *testing.T) {
	const floats = 4 + 1 // of an array of the file
	for _, c := range []struct {
		name string
		make func(g *graph, n int)
		each int64
	}{
		{"nodes", func(g *graph, n int) {
			for range n {
				g.op("relu", nil)
			}
		}, 1 + layerUnits},
		{"summands", func(g *graph, n int) { g.op("add_n", nil, make([]int, n)...) }, 1 + 64 + layerUnits},
		{"parts", func(g *graph, n int) { g.op("Concat", nil, make([]int, n)...) }, 1 + 64},
		{"slopes", func(g *graph, n int) { g.weighted("LeakyReLU", attributes2("act_type", "prelu"), 0, n) }, floats},
		{"signs of weights", func(g *graph, n int) {
			w := g.op("det_sign", nil, g.param("arg:", 1, 1, n, 4))
			g.op("Convolution", attributes2("kernel", "(1, 1)", "num_filter", n, "no_bias", 1), 0, w)
			g.array(w - 1).dims = []int{n, 4, 1, 1}
		}, 4*(floats+8) + 8 + 4*floats + 4*moveUnits},
		{"real filters of one pixel", func(g *graph, n int) {
			g.weighted("Convolution", attributes2("kernel", "(1, 1)", "num_filter", n, "no_bias", 1), 0, n, 4, 1, 1)
		}, 4 * floats},
		{"real filters of two", func(g *graph, n int) {
			g.weighted("Convolution", attributes2("kernel", "(1, 2)", "num_filter", n), n, n, 4, 1, 2)
		}, 8*floats + 8*4 + 8*moveUnits + floats},
		{"binary filters", func(g *graph, n int) {
			g.weighted("QConvolution", attributes2("kernel", "(1, 2)", "num_filter", n), 0, n, 4, 1, 2)
		}, 2*8 + 8*floats + 8*moveUnits},
		{"binary outputs", func(g *graph, n int) {
			g.weighted("QFullyConnected", attributes2("num_hidden", n), 0, n, 120)
		}, 2*8 + 120*floats + 120*moveUnits},
		{"filters of two bits", func(g *graph, n int) {
			g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", n, "weight_bit", 2), 0, n, 4, 1, 1)
		}, 4*floats + 4*16 + 4*moveUnits},
		{"means", func(g *graph, n int) {
			s := g.op("mean", attributes2("axis", 0, "exclude", 1, "keepdims", 1), g.param("arg:", n, 2))
			s = g.op("abs", nil, s)
			g.op("FullyConnected", attributes2("num_hidden", n, "no_bias", 1), 0, s)
			g.op("Flatten", nil)
		}, 2*floats + 8 + floats + 8 + floats},
		{"channels of a slice", func(g *graph, n int) { g.op("slice_axis", attributes2("axis", 1)) }, 4},
		{"values of a vector", func(g *graph, n int) { g.op("Flatten", nil) }, 2 * (4 + 1)},
		{"rows inside a border", func(g *graph, n int) { g.op("Pad", attributes2("mode", "edge", "pad_width", fmtWidth(1, 0, 0, 0))) }, 4},
		{"columns inside a border", func(g *graph, n int) { g.op("Pad", attributes2("mode", "edge", "pad_width", fmtWidth(1, 0, 0, 0))) }, 4},
		{"rows of a border", func(g *graph, n int) {
			g.op("Pad", attributes2("mode", "edge", "pad_width", fmtWidth(n, 0, 0, 0)))
		}, 4},
		{"rows of a border behind", func(g *graph, n int) {
			g.op("Pad", attributes2("mode", "edge", "pad_width", fmtWidth(0, n, 0, 0)))
		}, 4},
		{"columns of a border", func(g *graph, n int) {
			g.op("Pad", attributes2("mode", "edge", "pad_width", fmtWidth(0, 0, n, 0)))
		}, 4},
		{"columns of a border behind", func(g *graph, n int) {
			g.op("Pad", attributes2("mode", "edge", "pad_width", fmtWidth(0, 0, 0, n)))
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			used := func(n int) int64 {
				g := newGraph()
				c.make(g, n)
				opts := shape
				switch c.name {
				case "rows inside a border":
					opts.InputShape = bcnn.Shape{H: n, W: 1, C: 1}
				case "columns inside a border":
					opts.InputShape = bcnn.Shape{H: 1, W: n, C: 1}
				case "values of a vector":
					opts.InputShape = bcnn.Shape{H: n, W: 1, C: 2}
				case "slopes", "channels of a slice":
					opts.InputShape = bcnn.Shape{H: 1, W: 1, C: n}
				case "means":
					opts.InputShape = bcnn.Shape{H: 1, W: 1, C: 1}
				}
				return charged(t, g, opts)
			}
			few, more := used(10), used(30)
			require.Equal(t, c.each, (more-few)/20, more-few)
			require.Zero(t, (more-few)%20)
		})
	}
	levels := func(bits int) int64 {
		g := newGraph()
		g.op("QActivation", attributes2("act_bit", bits))
		return charged(t, g, shape)
	}
	require.EqualValues(t, 64*(255-15), levels(8)-levels(4))
}
