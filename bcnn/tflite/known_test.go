package tflite

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// SIGN makes two levels of what is known to be no less than 0, and three of all else.
func TestNoLessThanZero(t *testing.T) {
	d := []int32{1, 2, 2, 3}
	one := []int32{1, 1, 1, 3}
	type build = func(g *testGraph) int32
	x := func(*testGraph) int32 { return 0 }
	on := func(name string, options map[int]any, dims []int32, of ...build) build {
		return func(g *testGraph) int32 {
			var inputs []int32
			for _, f := range of {
				inputs = append(inputs, f(g))
			}
			return g.add(name, options, dims, inputs...)
		}
	}
	relu := on("RELU", nil, d, x)
	number := func(v float32) build { return func(g *testGraph) int32 { return g.floats(nil, v) } }
	ints := func(list ...int32) build { return func(g *testGraph) int32 { return g.ints(list...) } }
	filter := func(g *testGraph) int32 { return g.floats([]int32{3, 1, 1, 3}, 1, 2, 3, -4, -5, 6, 7, 8, 9.5) }
	act := func(slot int, kind uint8) map[int]any { return map[int]any{0: uint8(1), 1: 1, 2: 1, slot: kind} }
	fused := func(kind uint8) map[int]any { return map[int]any{0: kind} }
	for name, c := range map[string]struct {
		of     build
		dims   []int32
		levels int
	}{
		"RELU": {relu, d, 2}, "RELU6": {on("RELU6", nil, d, x), d, 2}, "RELU_N1_TO_1": {on("RELU_N1_TO_1", nil, d, x), d, 3},
		"ABS": {on("ABS", nil, d, x), d, 2}, "NEG": {on("NEG", nil, d, relu), d, 3}, "EXP": {on("EXP", nil, d, x), d, 2},
		"LOGISTIC": {on("LOGISTIC", nil, d, x), d, 2}, "TANH": {on("TANH", nil, d, relu), d, 3}, "ELU": {on("ELU", nil, d, relu), d, 3},
		"LEAKY_RELU":                     {on("LEAKY_RELU", map[int]any{0: float32(0.5)}, d, relu), d, 2},
		"MAXIMUM with 0":                 {on("MAXIMUM", nil, d, x, number(0)), d, 2},
		"MAXIMUM with -1":                {on("MAXIMUM", nil, d, x, number(-1)), d, 3},
		"MINIMUM with 5":                 {on("MINIMUM", nil, d, x, number(5)), d, 3},
		"MAXIMUM with RELU":              {on("MAXIMUM", nil, d, x, relu), d, 2},
		"MAXIMUM of RELU":                {on("MAXIMUM", nil, d, relu, x), d, 2},
		"MAXIMUM of two":                 {on("MAXIMUM", nil, d, on("NEG", nil, d, x), x), d, 3},
		"MINIMUM with RELU":              {on("MINIMUM", nil, d, x, relu), d, 3},
		"MINIMUM of RELU":                {on("MINIMUM", nil, d, relu, x), d, 3},
		"MINIMUM of two":                 {on("MINIMUM", nil, d, relu, on("EXP", nil, d, x)), d, 2},
		"ADD":                            {on("ADD", nil, d, relu, relu), d, 2},
		"ADD with a number":              {on("ADD", nil, d, relu, number(1)), d, 2},
		"ADD of RELU":                    {on("ADD", nil, d, relu, x), d, 3},
		"ADD with RELU":                  {on("ADD", nil, d, x, relu), d, 3},
		"ADD and RELU":                   {on("ADD", fused(1), d, x, x), d, 2},
		"ADD and RELU6":                  {on("ADD", fused(3), d, x, number(1)), d, 2},
		"ADD and RELU1":                  {on("ADD", fused(2), d, x, number(1)), d, 3},
		"SUB":                            {on("SUB", nil, d, relu, relu), d, 3},
		"SUB and RELU":                   {on("SUB", fused(1), d, relu, relu), d, 2},
		"MUL":                            {on("MUL", nil, d, relu, relu), d, 2},
		"MUL with a number":              {on("MUL", nil, d, relu, number(-1)), d, 3},
		"MUL of RELU":                    {on("MUL", nil, d, relu, x), d, 3},
		"MUL with RELU":                  {on("MUL", nil, d, x, relu), d, 3},
		"MUL and RELU":                   {on("MUL", fused(1), d, x, x), d, 2},
		"AVERAGE_POOL_2D":                {on("AVERAGE_POOL_2D", pool(1, 1, 2), one, relu), one, 2},
		"AVERAGE_POOL_2D of x":           {on("AVERAGE_POOL_2D", pool(1, 1, 2), one, x), one, 3},
		"MAX_POOL_2D":                    {on("MAX_POOL_2D", pool(1, 1, 2), one, relu), one, 2},
		"MAX_POOL_2D of x":               {on("MAX_POOL_2D", pool(1, 1, 2), one, x), one, 3},
		"MEAN":                           {on("MEAN", keepDims(true), one, relu, ints(1, 2)), one, 2},
		"MEAN of x":                      {on("MEAN", keepDims(true), one, x, ints(1, 2)), one, 3},
		"CONV_2D":                        {on("CONV_2D", act(3, 0), d, relu, filter), d, 3},
		"CONV_2D and RELU":               {on("CONV_2D", act(3, 1), d, x, filter), d, 2},
		"TRANSPOSE_CONV":                 {on("TRANSPOSE_CONV", map[int]any{0: uint8(1), 1: 2, 2: 2}, []int32{1, 3, 3, 3}, ints(1, 3, 3, 3), filter, relu), []int32{1, 3, 3, 3}, 3},
		"TRANSPOSE_CONV and RELU":        {on("TRANSPOSE_CONV", map[int]any{0: uint8(1), 1: 2, 2: 2, 3: uint8(1)}, []int32{1, 3, 3, 3}, ints(1, 3, 3, 3), filter, x), []int32{1, 3, 3, 3}, 2},
		"RESIZE_BILINEAR":                {on("RESIZE_BILINEAR", nil, []int32{1, 4, 4, 3}, relu, ints(4, 4)), []int32{1, 4, 4, 3}, 2},
		"RESIZE_BILINEAR of x":           {on("RESIZE_BILINEAR", nil, []int32{1, 4, 4, 3}, x, ints(4, 4)), []int32{1, 4, 4, 3}, 3},
		"RESIZE_NEAREST_NEIGHBOR":        {on("RESIZE_NEAREST_NEIGHBOR", nil, []int32{1, 4, 4, 3}, relu, ints(4, 4)), []int32{1, 4, 4, 3}, 2},
		"PADV2 of 1":                     {on("PADV2", nil, []int32{1, 3, 2, 3}, relu, ints(0, 0, 1, 0, 0, 0, 0, 0), number(1)), []int32{1, 3, 2, 3}, 2},
		"PADV2 of -1":                    {on("PADV2", nil, []int32{1, 3, 2, 3}, relu, ints(0, 0, 1, 0, 0, 0, 0, 0), number(-1)), []int32{1, 3, 2, 3}, 3},
		"channels of PAD":                {on("PAD", nil, []int32{1, 2, 2, 4}, relu, ints(0, 0, 0, 0, 0, 0, 0, 1)), []int32{1, 2, 2, 4}, 2},
		"MIRROR_PAD":                     {on("MIRROR_PAD", nil, []int32{1, 3, 2, 3}, relu, ints(0, 0, 1, 0, 0, 0, 0, 0)), []int32{1, 3, 2, 3}, 2},
		"CONCATENATION":                  {on("CONCATENATION", map[int]any{0: 1}, []int32{1, 4, 2, 3}, relu, relu), []int32{1, 4, 2, 3}, 2},
		"CONCATENATION of RELU":          {on("CONCATENATION", map[int]any{0: 1}, []int32{1, 4, 2, 3}, relu, x), []int32{1, 4, 2, 3}, 3},
		"CONCATENATION with RELU":        {on("CONCATENATION", map[int]any{0: 1}, []int32{1, 4, 2, 3}, x, relu), []int32{1, 4, 2, 3}, 3},
		"unlike CONCATENATION":           {on("CONCATENATION", map[int]any{0: 3}, []int32{1, 2, 2, 6}, relu, on("SIGN", nil, d, relu)), []int32{1, 2, 2, 6}, 2},
		"unlike CONCATENATION of x":      {on("CONCATENATION", map[int]any{0: 3}, []int32{1, 2, 2, 6}, x, on("SIGN", nil, d, relu)), []int32{1, 2, 2, 6}, 3},
		"unlike CONCATENATION with SIGN": {on("CONCATENATION", map[int]any{0: 3}, []int32{1, 2, 2, 6}, relu, on("SIGN", nil, d, x)), []int32{1, 2, 2, 6}, 3},
		"SIGN of RELU":                   {on("SIGN", nil, d, relu), d, 2},
		"SIGN of x":                      {on("SIGN", nil, d, x), d, 3},
		"SLICE":                          {on("SLICE", nil, one, relu, ints(0, 0, 0, 0), ints(1, 1, 1, 3)), one, 2},
		"ROUND of RELU6":                 {on("ROUND", nil, d, on("RELU6", nil, d, x)), d, 2},
		"ROUND of RELU_N1_TO_1":          {on("ROUND", nil, d, on("RELU_N1_TO_1", nil, d, x)), d, 3},
		"RESHAPE":                        {on("RESHAPE", nil, []int32{1, 12}, relu), []int32{1, 12}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(d...)
			y := c.of(g)
			g.outputs = []int32{g.add("SIGN", nil, c.dims, y)}
			net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
			require.NoError(t, err)
			require.Equal(t, c.levels, net.Layers[len(net.Layers)-1].Op.(bcnn.Quantize).Levels)
		})
	}
}

// Bits that a file takes have the channels that what reads them says, if that many need as
// many words, and else all of their words.
func TestPackedInputs(t *testing.T) {
	dequantized := func(channels int32) *testGraph {
		g := newGraph(1, 1, 1, 2)
		g.tensors[0].typ = schema.Int32
		g.outputs[0] = g.add("LceDequantize", nil, []int32{1, 1, 1, channels}, 0)
		return g
	}
	convolved := func(channels int32, pooled bool) *testGraph {
		g := bconv(channels, (channels+31)/32, bconvOptions(channels, 1))
		if pooled {
			p := g.tensor(testTensor{name: "pool", typ: schema.Int32, dims: []int32{1, 3, 3, (channels + 31) / 32}})
			g.operators[0].inputs[0] = p
			g.operators = slices.Insert(g.operators, 0, testOperator{name: "LceBMaxPool2d", inputs: []int32{0}, outputs: []int32{p}, custom: flexMap(
				[]string{"filter_height", "filter_width", "padding", "stride_height", "stride_width"}, []int32{1, 1, 1, 1, 1})})
		}
		return g
	}
	alone := newGraph(1, 1, 1, 2)
	alone.tensors[0].typ = schema.Int32
	alone.outputs[0] = alone.add("SLICE", nil, []int32{1, 1, 1, 2}, 0, alone.ints(0, 0, 0, 0), alone.ints(1, 1, 1, 2))
	for _, c := range []struct {
		g        *testGraph
		channels int
		err      string
	}{
		{dequantized(40), 40, ""}, {dequantized(64), 64, ""}, {dequantized(33), 33, ""},
		{dequantized(32), 0, "its output has shape 1×1×32 in the file, but its inputs give 1×1×64"}, {dequantized(65), 0, "its output has shape 1×1×65 in the file, but its inputs give 1×1×64"},
		{convolved(33, false), 33, ""}, {convolved(33, true), 33, ""}, {convolved(32, true), 32, ""}, {convolved(64, false), 64, ""},
		{alone, 0, "its input is packed bits, which this operator does not support"},
	} {
		if c.err != "" {
			refused(t, c.g.encode(), c.err)
			continue
		}
		net, _, err := Decode(t.Context(), c.g.encode(), Options{Name: "net"})
		require.NoError(t, err)
		require.Equal(t, c.channels, net.Inputs[0].Shape.C)
	}
}

// Tensors of files, and what a network takes and gives for them.
func TestTensorsOfFiles(t *testing.T) {
	bits := Tensor{channels: 33}
	words := []int32{-0x7ffffffe, 1, 0x10, -2, 7}
	signs := bits.Signs(words)
	require.Len(t, signs, 66, "of two pixels, and a word that is none")
	for i, v := range signs {
		require.Equal(t, 1-2*float32(uint32(words[2*(i/33)+i%33/32])>>(i%33%32)&1), v)
	}
	require.Equal(t, []int32{-0x7ffffffe, 1, 0x10, 0}, bits.Words(append(signs, -1)))
	require.Equal(t, []int32{}, bits.Words(nil))
	whole := Tensor{channels: 32}
	require.Equal(t, []int32{-1, 0}, whole.Words(slices.Concat(slices.Repeat(of(-1), 32), slices.Repeat(of(1), 32))))
	q := Tensor{offset: -128}
	require.Equal(t, []uint8{0, 128, 255}, q.Bytes([]int8{-128, 0, 127}))
	shifted := Tensor{offset: 3}
	require.Equal(t, []int8{-125, 3, 127}, shifted.Int8(of(-128, 0, 124)))
	require.Equal(t, []int{0, 1, 1, 2, 2, 3}, []int{wordsOf(0), wordsOf(1), wordsOf(32), wordsOf(33), wordsOf(64), wordsOf(65)})
}

// What computes a shape alone is not looked at, and what no output needs neither.
func TestWhatIsNeeded(t *testing.T) {
	d := []int32{1, 2, 3}
	for name, out := range map[string][]int32{"RESHAPE": {1, 6}, "EXPAND_DIMS": {1, 2, 1, 3}} {
		g := newGraph(d...)
		shape := g.add("SHAPE", nil, []int32{3}, 0)
		g.tensors[shape].typ = schema.Int32
		g.add("LSTM", nil, d, 0)
		y := g.add(name, nil, out, 0, shape)
		g.outputs[0] = g.add("NEG", nil, out, y)
		require.Equal(t, of(-0, -1, -2, -3, -4, -5), runInputs(t, g, counted(6))[0])
	}
	g := newGraph(d...)
	a := g.add("LSTM", nil, d, 0)
	b := g.add("RELU", nil, d, a)
	c := g.add("LSTM", nil, d, b)
	e := g.add("HASHTABLE", nil, d, 0)
	g.outputs[0] = g.add("ADD", nil, d, c, e)
	_, _, err := Decode(t.Context(), g.encode(), Options{})
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	var got []string
	for _, o := range obstacles.Obstacles {
		got = append(got, o.Node+" "+o.Op+" "+o.Err.Error())
	}
	require.Equal(t, []string{"lstm LSTM this operator is not supported", "lstm LSTM this operator is not supported", "hashtable HASHTABLE this operator is not supported"}, got)
	require.Equal(t, []int{0, 2, 3}, []int{obstacles.Obstacles[0].Index, obstacles.Obstacles[1].Index, obstacles.Obstacles[2].Index})

	// Behind an obstacle of a shape that there is not, nothing is said of what reads it.
	g = newGraph(d...)
	a = g.add("LSTM", nil, []int32{5, 2, 3}, 0)
	g.outputs[0] = g.add("SLICE", nil, d, a, g.ints(9), g.ints(9))
	_, _, err = Decode(t.Context(), g.encode(), Options{})
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 1)
	require.Equal(t, 1, strings.Count(err.Error(), "this operator is not supported"))
}

// Constants of channels become a value of one pixel, of what there is.
func TestPixelOfConstants(t *testing.T) {
	for _, c := range []struct {
		dims []int32
		want []string
	}{
		{[]int32{1, 2}, []string{"maximum/zeros", "maximum/constant", "maximum"}},
		{[]int32{1, 1, 2, 2}, []string{"maximum/pixel", "maximum/zeros", "maximum/constant", "maximum"}},
	} {
		g := newGraph(c.dims...)
		g.outputs[0] = g.add("MAXIMUM", nil, c.dims, 0, g.floats([]int32{2}, 1, 2))
		names, _, _ := layersOf(t, g)
		require.Equal(t, c.want, names)
	}
}

// Constants beside a tensor are one, or one for each channel, however they are written.
func TestConstantsOfChannels(t *testing.T) {
	x := counted(12)
	for _, c := range []struct {
		in, dims []int32
		values   []float32
		err      string
	}{
		{[]int32{1, 2, 2, 3}, []int32{3}, of(1, 2, 3), ""},
		{[]int32{1, 2, 2, 3}, nil, of(7), ""},
		{[]int32{1, 2, 2, 3}, []int32{1, 1, 1, 3}, of(1, 2, 3), ""},
		{[]int32{1, 2, 2, 3}, []int32{1, 1, 1, 1, 1, 3}, of(1, 2, 3), ""},
		{[]int32{1, 2, 2, 3}, []int32{2, 3}, of(1, 2, 3, 1, 2, 3), ""},
		{[]int32{1, 2, 2, 3}, []int32{2, 1, 3}, of(1, 2, 3, 1, 2, 3), ""},
		{[]int32{1, 2, 2, 3}, []int32{2, 1}, of(4, 4), ""},
		{[]int32{1, 12}, []int32{12}, counted(12), ""},
		{[]int32{1, 2, 2, 3}, []int32{2, 3}, of(1, 2, 3, 1, 2, 4), "a constant of shape [2 3] with different values per pixel"},
		{[]int32{1, 2, 2, 3}, []int32{2, 1}, of(4, 5), "a constant of shape [2 1] with different values per pixel"},
		{[]int32{1, 2, 2, 3}, []int32{2}, of(1, 2), "a constant of shape [2] does not fit values of 2×2×3"},
		{[]int32{1, 2, 2, 3}, []int32{3, 3}, counted(9), "a constant of shape [3 3] does not fit values of 2×2×3"},
		{[]int32{1, 12}, []int32{2, 12}, counted(24), "a constant of shape [2 12] does not fit values of 1×1×12"},
		{[]int32{1, 12}, []int32{2, 1, 12}, counted(24), "a constant of shape [2 1 12] does not fit values of 1×1×12"},
	} {
		for _, name := range []string{"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "PRELU"} {
			for _, swapped := range []bool{false, true} {
				if swapped && name == "PRELU" {
					continue
				}
				g := newGraph(c.in...)
				inputs := []int32{g.add("NEG", nil, c.in, 0), g.floats(c.dims, c.values...)}
				if swapped {
					slices.Reverse(inputs)
				}
				g.outputs[0] = g.add(name, nil, c.in, inputs...)
				if c.err != "" {
					refused(t, g.encode(), c.err)
					continue
				}
				want := make([]float32, 12)
				n := int(c.in[len(c.in)-1])
				for i := range want {
					a, b := -x[i], c.values[i%n%len(c.values)]
					if c.dims != nil && c.dims[len(c.dims)-1] == 1 {
						b = c.values[0]
					}
					if swapped {
						a, b = b, a
					}
					switch name {
					case "ADD":
						want[i] = a + b
					case "SUB":
						want[i] = a - b
					case "MUL":
						want[i] = a * b
					case "MAXIMUM":
						want[i] = max(a, b)
					case "MINIMUM":
						want[i] = min(a, b)
					case "PRELU":
						if want[i] = a; a < 0 {
							want[i] = a * b
						}
					}
				}
				require.InDeltaSlice(t, want, runInputs(t, g, x)[0], 0, "%s %+v", name, c)
			}
		}
	}
}
