package tflite

import (
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// with returns a graph of one operator on an input of 1×4×4×2, whose output has the
// dimensions, changed by f.
func with(name string, options map[int]any, dims []int32, f func(g *testGraph, o *testOperator)) *testGraph {
	g := newGraph(1, 4, 4, 2)
	g.tensors[1].dims = dims
	g.operators = []testOperator{{name: name, inputs: []int32{0}, outputs: []int32{1}, options: options}}
	if f != nil {
		f(g, &g.operators[0])
	}
	return g
}

// pool are the options of a pool.
func pool(padding uint8, stride, filter int) map[int]any {
	return map[int]any{0: padding, 1: stride, 2: stride, 3: filter, 4: filter}
}

// convOptions are those of CONV_2D without padding.
func convOptions(stride, dilation int) map[int]any {
	return map[int]any{0: uint8(1), 1: stride, 2: stride, 3: uint8(0), 4: dilation, 5: dilation}
}

// transposedOf is TRANSPOSE_CONV of an image of 4×4×2 with SAME padding.
func transposedOf(stride int, out, filter []int32) *testGraph {
	return with("TRANSPOSE_CONV", map[int]any{0: uint8(0), 1: stride, 2: stride}, out, func(g *testGraph, o *testOperator) {
		n := 1
		for _, d := range filter {
			n *= int(d)
		}
		o.inputs = []int32{g.ints(out...), g.floats(filter, make([]float32, n)...), 0}
	})
}

// Files that contradict themselves, or that ask for what is not supported, are errors
// that name the sub-graph and the operator. Those of LCE are none of these.
func TestHostile(t *testing.T) {
	for _, f := range lceFiles(t) {
		_, _, err := Decode(t.Context(), f.data, Options{Name: "net"})
		require.NoError(t, err, f.name)
	}
	for _, c := range int8Cases(t) {
		_, _, err := Decode(t.Context(), c.data, Options{Name: "net"})
		require.NoError(t, err, c.name)
	}
	same := []int32{1, 4, 4, 2}
	huge := int32(math.MaxInt32)
	for name, c := range map[string]struct {
		g    *testGraph
		want string
	}{
		"version":          {func() *testGraph { g := with("RELU", nil, same, nil); g.version = 2; return g }(), "version 2 of the schema"},
		"no such operator": {with("x", nil, same, func(_ *testGraph, o *testOperator) { o.code = 9999 }), "(operator code 9999, index 0): this operator is not supported"},
		"unknown":          {with("LSTM", nil, same, nil), `sub-graph 0: node "y" (LSTM, index 0): this operator is not supported; a network has no layer for it`},
		"custom":           {with("mine", nil, same, nil), "(mine, index 0): this operator is not supported"},
		"at the end":       {with("TOPK_V2", nil, same, nil), "python -m tf2onnx.convert"},
		"8 bits at the end": {with("TOPK_V2", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[0].typ, g.tensors[0].scale, g.tensors[0].zero = schema.Int8, []float32{0.5}, []int64{3}
			g.tensors[1].typ, g.tensors[1].scale, g.tensors[1].zero = schema.Int8, []float32{0.5}, []int64{3}
		}), "compute it from the output"},
		"no output":     {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.outputs = nil }), "it has no output"},
		"no input":      {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.inputs = nil }), "it has no input"},
		"output tensor": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.outputs[0] = 7 }), "its outputs: there is no tensor 7, the sub-graph has 2 tensors"},
		"input tensor":  {with("RELU", nil, same, func(_ *testGraph, o *testOperator) { o.inputs[0] = -2 }), "operator 0: its inputs: there is no tensor -2, the sub-graph has 2 tensors"},
		"of a constant": {with("RELU", nil, same, func(g *testGraph, o *testOperator) { o.inputs = []int32{g.floats(nil, 1), 0} }), "input 0 must be computed, not constant"},
		"left out":      {with("RELU", nil, same, func(_ *testGraph, o *testOperator) { o.inputs[0] = -1 }), "input 0 is missing"},
		"reads itself":  {with("RELU", nil, same, func(_ *testGraph, o *testOperator) { o.inputs[0] = 1 }), "tensor 1 \"y\" is neither constant nor computed by an earlier operator"},
		"a loop": {with("RELU", nil, same, func(g *testGraph, o *testOperator) {
			a, b := g.tensor(testTensor{name: "a", dims: same}), g.tensor(testTensor{name: "b", dims: same})
			g.operators = []testOperator{
				{name: "ADD", inputs: []int32{0, b}, outputs: []int32{a}}, {name: "RELU", inputs: []int32{a}, outputs: []int32{b}},
				{name: "RELU", inputs: []int32{b}, outputs: []int32{1}},
			}
		}), "neither constant nor computed by an earlier operator"},
		"written twice": {with("RELU", nil, same, func(g *testGraph, o *testOperator) {
			g.operators = append(g.operators, *o)
		}), "operator 1 (RELU) and operator 0 both write tensor 1"},
		"output is the input": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.outputs[0] = 0 }), "no layer computes it: it is an input of the model"},
		"constant output":     {with("RELU", nil, same, func(g *testGraph, o *testOperator) { o.inputs[0] = g.floats([]int32{1}, 1) }), "it is constant"},
		"dimension 0":         {with("RELU", nil, []int32{1, 0, 4, 2}, nil), "tensor 1: it has a dimension of 0, which is not positive, or too large"},
		"dimension -1":        {with("RELU", nil, []int32{1, -1, 4, 2}, nil), "it has a dimension of -1, which is not positive, or too large"},
		"product overflows":   {with("RELU", nil, []int32{1 << 16, 1 << 16, 1 << 16, 1 << 16}, nil), "a dimension of"},
		"nine dimensions":     {with("RELU", nil, make([]int32, 9), nil), "9 dimensions"},
		"another shape":       {with("RELU", nil, []int32{1, 4, 4, 3}, nil), "its output has shape 4×4×3 in the file, but its inputs give 4×4×2"},
		"another batch":       {with("RELU", nil, []int32{2, 4, 4, 2}, nil), "do not begin with the batch size, 1"},
		"five dimensions":     {with("RELU", nil, []int32{1, 1, 4, 4, 2}, nil), "5 dimensions, want"},
		"another type":        {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.tensors[1].typ = schema.Int8 }), "its output has type INT8, want FLOAT32"},
		"sparse":              {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.tensors[0].sparse = true }), "sparse tensors are not supported"},
		"input of INT64":      {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.tensors[0].typ = schema.Int64 }), "elements of INT64 are not supported"},
		"input without scale": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.tensors[0].typ = schema.Int8 }), "its quantisation has 0 scales, want 1"},
		"scales and zeros": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[0].scale, g.tensors[0].zero = []float32{1}, []int64{1, 2}
		}), "1 scales and 2 zero points"},
		"zero beyond INT8": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[0].typ = schema.Int8
			g.tensors[0].scale, g.tensors[0].zero = []float32{1}, []int64{128}
		}), "its zero point, 128,"},
		"zero below INT8": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[0].typ = schema.Int8
			g.tensors[0].scale, g.tensors[0].zero = []float32{1}, []int64{-129}
		}), "its zero point, -129,"},
		"zero beyond 32 bits": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[0].typ = schema.Int8
			g.tensors[0].scale, g.tensors[0].zero = []float32{1}, []int64{1 << 32}
		}), "its zero point, 4294967296,"},
		"zero of another tensor": {with("RESHAPE", nil, same, func(g *testGraph, o *testOperator) {
			for i := range 2 {
				g.tensors[i].typ = schema.Int8
				g.tensors[i].scale, g.tensors[i].zero = []float32{1}, []int64{int64(i)}
			}
			o.inputs = append(o.inputs, g.ints(same...))
		}), "its output has scales [1] and zero points [1] in the file, want 1 and 0"},
		"scale is no number": {with("RELU", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[0].typ = schema.Int8
			g.tensors[0].scale, g.tensors[0].zero = []float32{float32(math.NaN())}, []int64{0}
		}), "its scale, NaN,"},
		"scale is infinite": {with("QUANTIZE", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[1].typ = schema.Int8
			g.tensors[1].scale, g.tensors[1].zero = []float32{float32(math.Inf(1))}, []int64{0}
		}), "its scale, +Inf,"},
		"scale is tiny": {with("QUANTIZE", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[1].typ = schema.Int8
			g.tensors[1].scale, g.tensors[1].zero = []float32{1e-40}, []int64{0}
		}), "its scale, 1e-40,"},
		"8-bit values inside": {with("NEG", nil, same, func(g *testGraph, _ *testOperator) {
			g.tensors[0].typ = schema.Int8
			g.tensors[0].scale, g.tensors[0].zero = []float32{1}, []int64{0}
		}), "8-bit values are not supported here"},
		"dynamic size":                     {with("RELU", nil, same, func(g *testGraph, _ *testOperator) { g.tensors[0].signature = []int32{-1, -1, 4, 2} }), "dimension 1 is dynamic"},
		"transposed to another size":       {transposedOf(2, []int32{1, 9, 8, 2}, []int32{2, 3, 3, 2}), "4 rows or columns of the input cannot become 9 of the output"},
		"transposed by stride 0":           {transposedOf(0, []int32{1, 8, 8, 2}, []int32{2, 3, 3, 2}), "stride 0×0: want values from 1"},
		"transposed by a huge stride":      {transposedOf(1<<16, []int32{1, 1 << 16, 1 << 16, 2}, []int32{2, 1, 1, 2}), "4 rows or columns of the input cannot become 65536 of the output"},
		"transposed to an image too large": {transposedOf(1<<14, []int32{1, 1 << 16, 1 << 16, 2}, []int32{2, 1, 1, 2}), "too large"},
		"transposed to other channels":     {transposedOf(2, []int32{1, 8, 8, 3}, []int32{2, 3, 3, 2}), "do not fit an output of [1 8 8 3]"},
		"transposed other channels":        {transposedOf(2, []int32{1, 8, 8, 2}, []int32{2, 3, 3, 3}), "do not fit an output of [1 8 8 2]"},
		"joined images of several widths": {with("CONCATENATION", map[int]any{0: 1}, []int32{1, 8, 4, 2}, func(g *testGraph, o *testOperator) {
			second := g.tensor(testTensor{name: "second", dims: []int32{1, 4, 3, 2}})
			g.inputs, o.inputs = append(g.inputs, second), append(o.inputs, second)
		}), "inputs of 4×4×2 and 4×3×2"},
		"joined batches":       {with("CONCATENATION", map[int]any{0: 0}, []int32{2, 4, 4, 2}, func(_ *testGraph, o *testOperator) { o.inputs = []int32{0, 0} }), "a concatenation along the batch"},
		"short constant":       {with("ADD", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.floats([]int32{3}, 1)) }), "it has 4 bytes of data, which do not fit 3 values of FLOAT32"},
		"constant by pixel":    {with("ADD", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.floats([]int32{4, 1}, 1, 2, 3, 4)) }), "with different values per pixel"},
		"constant of integers": {with("MUL", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(1)) }), "constants of INT32 are not supported here"},
		"three summands":       {with("ADD", nil, same, func(_ *testGraph, o *testOperator) { o.inputs = []int32{0, 0, 0} }), "it has 3 inputs, want 2"},
		"activation":           {with("ADD", map[int]any{0: uint8(4)}, same, func(_ *testGraph, o *testOperator) { o.inputs = []int32{0, 0} }), "the fused activation 4 is not supported"},
		"no stride":            {with("MAX_POOL_2D", nil, same, nil), "kernel 0×0, stride 0×0"},
		"negative kernel":      {with("MAX_POOL_2D", pool(0, 1, -1), same, nil), "kernel -1×-1"},
		"huge kernel":          {with("AVERAGE_POOL_2D", pool(0, 1, math.MaxInt32), same, nil), "kernel 2147483647×2147483647"},
		"kernel beyond image":  {with("AVERAGE_POOL_2D", pool(1, 1, 5), same, nil), "the window is larger than its padded input"},
		"pool of the padding":  {with("MAX_POOL_2D", pool(1, 1, 2), []int32{1, 3, 5, 2}, nil), "its output has shape 3×5×2 in the file, but its inputs give 3×3×2"},
		"no filter":            {with("CONV_2D", convOptions(1, 1), same, nil), "input 1 is missing"},
		"filter of a vector":   {with("CONV_2D", convOptions(1, 1), same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.floats([]int32{2}, 1, 2)) }), "its filters have 1 dimensions, want 4"},
		"channels of a filter": {with("CONV_2D", convOptions(1, 1), same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.floats([]int32{1, 1, 1, 3}, 1, 2, 3))
		}), "filters of shape [1 1 1 3] do not fit an input of 2 channels"},
		"biases": {with("CONV_2D", convOptions(1, 1), same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.floats([]int32{1, 1, 1, 2}, 1, 2), g.floats([]int32{3}, 1, 2, 3))
		}), "it has 3 biases, want one for each of 1 channels"},
		"8-bit weights": {with("CONV_2D", convOptions(1, 1), same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.tensor(testTensor{typ: schema.Int8, dims: []int32{2, 1, 1, 2}, data: make([]byte, 4), scale: []float32{1, 2}, zero: []int64{0, 0}}))
		}), "8-bit weights"},
		"weights are no numbers": {with("CONV_2D", convOptions(1, 1), []int32{1, 4, 4, 1}, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.floats([]int32{1, 1, 1, 2}, 1, float32(math.Inf(1))))
		}), "weights[1] is +Inf"},
		"dense weights": {with("FULLY_CONNECTED", nil, []int32{1, 1}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.floats([]int32{1, 3}, 1, 2, 3)) }), "weights of shape [1 3] do not fit an input of 32 values"},
		"slopes":        {with("PRELU", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.floats([]int32{3}, 1, 2, 3)) }), "a constant of shape [3] does not fit values of 4×4×2"},
		"axis":          {with("MEAN", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(9)) }), "there is no dimension 9, its input has 4 dimensions"},
		"mean of all":   {with("MEAN", nil, []int32{1}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(1, 2, 4)) }), "there is no dimension 4, its input has 4 dimensions"},
		"many axes":     {with("MEAN", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(make([]int32, 65)...)) }), "65 integers is too long, at most 64"},
		"other values":  {with("RESHAPE", nil, []int32{1, 33}, nil), "shape 1×1×33 does not have as many values as its input, 4×4×2"},
		"transposed":    {with("TRANSPOSE", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(1, 0, 2, 3)) }), "its dimensions [4 1 4 2] do not begin with the batch size, 1"},
		"permutation":   {with("TRANSPOSE", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 1, 1, 3)) }), "the permutation [0 1 1 3] must have each dimension once"},
		"parts": {with("SPLIT", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs, o.outputs = []int32{g.ints(3), 0}, []int32{1, g.tensor(testTensor{dims: same}), g.tensor(testTensor{dims: same})}
		}), "a split into sizes [0 0 0] does not fit 2 channels"},
		"part sizes": {with("SPLIT_V", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs = []int32{0, g.ints(huge, huge), g.ints(3)}
			o.outputs = []int32{1, g.tensor(testTensor{dims: same})}
		}), "a split into sizes [2147483647 2147483647] does not fit 2 channels"},
		"slice": {with("SLICE", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(0, 0, 0, 1), g.ints(1, 4, 4, huge))
		}), "positions 1 to 2147483648 are not a slice of a dimension of 2"},
		"backwards": {with("STRIDED_SLICE", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(0, 0, 0, 0), g.ints(1, 4, 4, 2), g.ints(1, 1, -1, 1))
		}), "a step of -1 is not supported, want 1 up to the size of the dimension"},
		"part of rows": {with("SLICE", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(0, 1, 0, 0), g.ints(1, 4, 4, 2))
		}), "positions 1 to 5 are not a slice of a dimension of 4"},
		"infinite padding": {with("PADV2", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(0, 0, 0, 1, 0, 0, 0, 0), g.floats([]int32{1}, float32(math.Inf(1))))
		}), "the padding value must be one finite number"},
		"channels of ones": {with("PADV2", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(0, 0, 0, 0, 0, 0, 0, 1), g.floats([]int32{1}, 1))
		}), "padding of the channels is supported only with 0"},
		"huge padding":        {with("PAD", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 0, 0, huge, 0, 0, 0, 0)) }), "padding of 2147483647 is negative or too large"},
		"padded batch":        {with("PAD", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 1, 0, 0, 0, 0, 0, 0)) }), "padding of the batch"},
		"reflected twice":     {with("MIRROR_PAD", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 0, 0, 4, 0, 0, 0, 0)) }), "padding of 0 before and 4 after does not fit a dimension of 4"},
		"reflected channels":  {with("MIRROR_PAD", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 0, 0, 0, 0, 0, 1, 0)) }), "only of the height and width"},
		"resized to nothing":  {with("RESIZE_BILINEAR", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 4)) }), "the new size [0 4] is not a valid height and width"},
		"resized to too much": {with("RESIZE_NEAREST_NEIGHBOR", nil, same, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(huge, huge)) }), "the new size"},
		"blocks":              {with("DEPTH_TO_SPACE", map[int]any{0: 2}, same, nil), "a block size of 2 does not fit 2 channels: its square must divide them"},
		"no FlexBuffer":       {bconv(32, 1, nil), "the custom options have 0 bytes, too few for a FlexBuffer"},
		"not a map":           {bconv(32, 1, []byte{1, 4, 1}), "not a map"},
		"without keys":        {bconv(32, 1, flexMap([]string{"channels_in"}, []int32{32})), "its options lack fused_activation_function"},
		"channels":            {bconv(32, 1, bconvOptions(33, 1)), "it takes 33 channels, its input has 32"},
		"-1 channels":         {bconv(32, 1, bconvOptions(-1, 1)), "its option channels_in is -1"},
		"kind of padding":     {bconv(32, 1, bconvOptions(32, 7)), "its option padding is 7, want 0 to 1"},
		"signs as floats": {func() *testGraph {
			g := with("SIGN", nil, same, nil)
			g.operators[0].outputs = []int32{g.tensor(testTensor{name: "s", dims: same})}
			g.operators = append(g.operators, testOperator{name: "LceDequantize", inputs: g.operators[0].outputs, outputs: []int32{1}})
			return g
		}(), "input 0 is FLOAT32, want packed bits"},
		"no positions": {with("STRIDED_SLICE", nil, same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(0, 2, 0, 0), g.ints(1, 2, 4, 2), g.ints(1, 1, 1, 1))
		}), "positions 2 to 2 are not a slice of a dimension of 4"},
		"groups of filters": {with("CONV_2D", convOptions(1, 1), same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.floats([]int32{3, 1, 1, 1}, 1, 1, 1), -1)
		}), "filters of shape [3 1 1 1] do not fit an input of 2 channels"},
		"channels of filters": {with("CONV_2D", convOptions(1, 1), same, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.floats([]int32{2, 1, 1, 3}, 1, 1, 1, 1, 1, 1), -1)
		}), "filters of shape [2 1 1 3] do not fit an input of 2 channels"},
		"blocks of channels": {with("DEPTH_TO_SPACE", map[int]any{0: 2}, same, nil), "a block size of 2 does not fit 2 channels: its square must divide them"},
		"words":              {bconv(32, 3, bconvOptions(32, 1)), "do not fit an input of 32 channels"},
		"many entries":       {bconv(32, 1, flexMap(strings.Split(strings.Repeat("k ", 70), " ")[:70], make([]int32, 70))), "the custom options have 70 entries"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.g.encode(), c.want) })
	}
	// What is next to it is not refused.
	for _, f := range []func(*testing.T){TestPixels, TestOptionsLeftOut, TestPools, TestPaddings, TestReductions, TestReshapes} {
		f(t)
	}
}

// bconv is a graph of one LceBconv2d of 4 filters of 3×3 and so many words.
func bconv(channels, words int32, options []byte) *testGraph {
	g := newGraph(1, 3, 3, (channels+31)/32)
	g.tensors[0].typ = schema.Int32
	filter := g.tensor(testTensor{name: "w", typ: schema.Int32, dims: []int32{4, 3, 3, words}, data: make([]byte, 4*4*9*words)})
	numbers := g.floats([]int32{4}, 1, 1, 1, 1)
	g.outputs[0] = g.tensor(testTensor{name: "y", dims: []int32{1, 1, 1, 4}})
	if options == nil {
		options = []byte{}
	}
	g.operators = []testOperator{{name: "LceBconv2d", inputs: []int32{0, filter, numbers, numbers, -1}, outputs: g.outputs, custom: options}}
	return g
}

// refused requires an error, and that little memory is taken until then.
func refused(t *testing.T, data []byte, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	net, _, err := Decode(t.Context(), data, Options{Name: "net"})
	runtime.ReadMemStats(&after)
	require.Nil(t, net)
	require.ErrorContains(t, err, want)
	require.NotErrorIs(t, err, try.ErrPanic)
	require.LessOrEqual(t, int64(after.TotalAlloc-before.TotalAlloc), int64(len(data))+64<<20)
}

// A file of which any word is damaged, or that ends anywhere, is read without a panic,
// and what comes of it is in order.
func TestDamaged(t *testing.T) {
	files := map[string]bool{
		"op_bconv_00_int32": true, "op_bconv_10_int8": true, "op_quantize_33_int8_125": true, "op_dequantize_70_int8_128": true,
		"op_bmaxpool_05": true, "net_joined": !testing.Short(),
	}
	for _, f := range lceFiles(t) {
		if !files[f.name] {
			continue
		}
		read := func(data []byte) {
			net, _, err := Decode(t.Context(), data, Options{Name: "net"})
			if err != nil {
				require.NotErrorIs(t, err, try.ErrPanic)
				return
			}
			require.NoError(t, net.Check(), f.name)
		}
		step := 1 + len(f.data)/2000
		for n := 0; n < len(f.data); n += step {
			read(f.data[:n])
		}
		for at := 0; at+4 <= len(f.data); at += 4 * step {
			for _, v := range []uint32{0, 1, 5, 1 << 16, math.MaxInt32, 1 << 31, math.MaxUint32, math.MaxUint32 - 3} {
				damaged := append([]byte(nil), f.data...)
				binary.LittleEndian.PutUint32(damaged[at:], v)
				read(damaged)
			}
		}
	}
}

// FuzzLoad imports arbitrary bytes: an error or a network that can be lowered and, if it
// is small, run.
func FuzzLoad(f *testing.F) {
	for _, file := range lceFiles(f) {
		if strings.HasSuffix(file.name, "_00_int32") || strings.HasPrefix(file.name, "op_bmaxpool_00") ||
			strings.HasPrefix(file.name, "op_quantize_1") || strings.HasPrefix(file.name, "net_") {
			f.Add(file.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		net, report, err := Decode(t.Context(), data, Options{Name: "net"})
		if err != nil {
			require.NotErrorIs(t, err, try.ErrPanic)
			require.Nil(t, net)
			return
		}
		require.LessOrEqual(t, report.Folded, report.Operators)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		if err != nil {
			return // its sums or its constants are too large
		}
		work := int64(0)
		for _, l := range plan.Summarize(net, p) {
			work += l.MACs
		}
		for _, tensor := range p.Tensors {
			work += int64(tensor.Shape.Values())
		}
		if work < 1<<18 {
			var in []bcnn.Tensor
			for _, i := range net.Inputs {
				in = append(in, bcnn.NewTensor(i.DType, 1, i.Shape))
			}
			_, err := ref.RunAll(t.Context(), p, in, nil)
			require.NoError(t, err)
		}
	})
}
