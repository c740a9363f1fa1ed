package onnx

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

func image(c, h, w int) testInput { return testInput{"x", pb.Float, []any{"batch", c, h, w}} }

func bytesImage(c, h, w int) testInput { return testInput{"x", pb.Uint8, []any{"batch", c, h, w}} }

func perm(p ...int) []any { return []any{"perm", p} }

// TestFeatures compares models that use single features with the interpreter.
func TestFeatures(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	real := []float64{-1, -0.5, 0.25, 1}
	w := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, -1, 1) }
	f := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, real...) }
	constants := slices.Clip([]testTensor{number("zero", 0), number("one", 1), number("minus", -1), number("two", 2), number("half", 0.5)})
	toFloat := func(in, out string) testNode { return op("Cast", in, out, "to", int(pb.Float)) }
	same := func(n int) []any { return []any{"pads", []int{n, n, n, n}} }
	tests := []struct {
		name   string
		model  testModel
		opts   Options
		nhwc   bool
		binary int // layers with binary weights on exact integers
	}{
		{name: "Keras, NHWC", nhwc: true, model: testModel{
			input: testInput{"x", pb.Float, []any{"batch", 6, 5, 3}},
			nodes: []testNode{
				op("Transpose", "x", "a", perm(0, 3, 1, 2)...),
				op("Conv", "a w", "b"), op("Transpose", "b", "c", perm(0, 2, 3, 1)...),
				op("Add", "c bias", "d"), op("Greater", "d zero", "e"), op("Where", "e one minus", "g"),
				op("Pad", "g pads minus", "h"), // NHWC
				op("Transpose", "h", "i", perm(0, 3, 1, 2)...),
				op("Conv", "i v", "j"), op("Transpose", "j", "k", perm(0, 2, 3, 1)...),
				op("Reshape", "k shape", "l"), op("MatMul", "l d1", "m"), op("Add", "m d2", "n"),
			},
			inits: append(constants,
				w("w", 4, 3, 3, 3), f("bias", 4), w("v", 2, 4, 3, 3), ints("shape", -1, 24),
				ints("pads", 0, 1, 1, 0, 0, 1, 1, 0), f("d1", 24, 5), f("d2", 5),
			), output: "n"}, binary: 1},
		{name: "sequence with channels last, padded", nhwc: true, model: testModel{
			input: testInput{"x", pb.Float, []any{"batch", 9, 3}},
			nodes: []testNode{
				op("Unsqueeze", "x first", "a"), op("Transpose", "a", "b", perm(0, 3, 1, 2)...), op("Conv", "b u", "c"), op("Squeeze", "c second", "d"),
				op("Transpose", "d", "e", perm(0, 2, 1)...), op("GreaterOrEqual", "e zero", "f"), op("Where", "f one minus", "g"), op("Pad", "g sides zero", "h"),
				op("Unsqueeze", "h first", "i"), op("Transpose", "i", "j", perm(0, 3, 1, 2)...), op("Conv", "j v2", "k"), op("Squeeze", "k second", "y"),
			},
			inits: append(constants, f("u", 4, 3, 1, 2), w("v2", 5, 4, 1, 3), ints("first", 1), ints("second", 2), ints("sides", 0, 2, 0, 0, 0, 0)), output: "y"}, binary: 1},
		{name: "output with channels last", nhwc: true, model: testModel{
			input: testInput{"x", pb.Float, []any{"batch", 6, 5, 3}},
			nodes: []testNode{op("Transpose", "x", "a", perm(0, 3, 1, 2)...), op("Conv", "a w", "b"), op("Softmax", "b", "c", "axis", 1), op("Transpose", "c", "y", perm(0, 2, 3, 1)...)},
			inits: []testTensor{w("w", 4, 3, 3, 3)}, output: "y"}},
		{name: "quantisation between transpositions", model: testModel{
			input: image(3, 4, 5), rounds: true,
			nodes: []testNode{op("Clip", "x zero two", "a"), op("Transpose", "a", "b", perm(0, 2, 3, 1)...), op("Round", "b", "c"), op("Mul", "c half", "d"),
				op("Transpose", "d", "e", perm(0, 3, 1, 2)...), op("Conv", "e w", "y")},
			inits: append(constants, w("w", 4, 3, 3, 3)), output: "y"}, binary: 1},
		{name: "vector to NCHW", model: testModel{
			input: testInput{"x", pb.Float, []any{"batch", 25}},
			nodes: []testNode{op("Reshape", "x shape", "a"), op("Conv", "a w", "y")},
			inits: []testTensor{ints("shape", -1, 1, 5, 5), f("w", 2, 1, 3, 3)}, output: "y"}},
		{name: "vector to NHWC", nhwc: true, model: testModel{
			input: testInput{"x", pb.Float, []any{"batch", 50}},
			nodes: []testNode{op("Constant", "", "shape", "value", ints("", -1, 5, 5, 2)), op("Reshape", "x shape", "a"),
				op("Transpose", "a", "b", perm(0, 3, 1, 2)...), op("Conv", "b w", "y")},
			inits: []testTensor{f("w", 2, 2, 3, 3)}, output: "y"}},
		{name: "grey images", model: testModel{
			input: testInput{"x", pb.Float, []any{1, 5, 5}},
			nodes: []testNode{op("Unsqueeze", "x axes", "a"), op("Conv", "a w", "y")},
			inits: []testTensor{ints("axes", 1), f("w", 2, 1, 3, 3)}, output: "y"}},
		{name: "squeeze", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Conv", "x w", "a"), op("Squeeze", "a axes", "b"), op("Gemm", "b v", "y")},
			inits: []testTensor{f("w", 6, 3, 4, 4), ints("axes", 2, 3), f("v", 6, 2)}, output: "y"}},
		{name: "batch norm of a flattened image", model: testModel{
			input: image(3, 4, 2),
			nodes: []testNode{op("Flatten", "x", "a"), op("BatchNormalization", "a g b m v", "c", "epsilon", 0.25),
				op("Mul", "c scale", "d"), op("GreaterOrEqual", "d t", "e"), op("Where", "e one minus", "h"), op("MatMul", "h w", "y")},
			inits: append(constants, f("g", 24), f("b", 24), f("m", 24), randomTensor(r, "v", []int{24}, 0.75, 3.75),
				f("scale", 1, 24), f("t", 24), w("w", 24, 3)), output: "y"}, binary: 1},
		{name: "a sum of three", model: testModel{
			input: image(3, 4, 5), nodes: []testNode{op("Relu", "x", "a"), op("Sum", "x b a", "y")}, inits: []testTensor{f("b", 3, 1, 1)}, output: "y"}},
		{name: "constants that were expanded", model: testModel{
			input: image(3, 4, 5),
			nodes: []testNode{op("Expand", "b shape", "c"), op("Add", "x c", "a"), op("Expand", "one shape", "d"), op("Mul", "a d", "e"),
				op("Expand", "b batches", "f"), op("Add", "f e", "y")},
			inits: append(constants, f("b", 3, 1, 1), ints("shape", 3, 4, 5), ints("batches", 2, 3, 4, 1)), output: "y"}},
		{name: "sign of a ReLU", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Relu", "x", "a"), op("Sign", "a", "b"), op("Conv", "b w", "y", same(1)...)},
			inits: []testTensor{w("w", 2, 3, 3, 3)}, output: "y"}, binary: 1},
		{name: "sign of a max-pool of a ReLU", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Relu", "x", "a"), op("MaxPool", "a", "b", "kernel_shape", []int{2, 2}), op("Sign", "b", "c"), op("Conv", "c w", "y")},
			inits: []testTensor{w("w", 2, 3, 3, 3)}, output: "y"}, binary: 1},
		{name: "sign of a sum of ReLUs", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Relu", "x", "a"), op("Neg", "x", "b"), op("Relu", "b", "c"), op("Add", "a c", "d"), op("Neg", "d", "e"), op("Sign", "e", "f"),
				op("Conv", "f w", "y")},
			inits: []testTensor{w("w", 2, 3, 3, 3)}, output: "y"}, binary: 1},
		{name: "sign of Clip from 0 on, behind a max-pool", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Clip", "x zero one", "a"), op("MaxPool", "a", "b", "kernel_shape", []int{2, 2}), op("Sign", "b", "c"), op("Conv", "c w", "y")},
			inits: append(constants, w("w", 2, 3, 3, 3)), output: "y"}, binary: 1},
		{name: "hard tanh, max-pool, sign", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Clip", "x minus one", "a"), op("MaxPool", "a", "b", "kernel_shape", []int{2, 2}), op("GreaterOrEqual", "b zero", "c"),
				op("Where", "c one minus", "d"), op("Conv", "d w", "y")},
			inits: append(constants, w("w", 2, 3, 3, 3)), output: "y"}, binary: 1},
		{name: "{0, 1} with zeros around, ±alpha and a bias", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), toFloat("a", "b"), op("Conv", "b w bias", "y", same(1)...)},
			inits: append(constants, randomTensor(r, "w", []int{2, 3, 3, 3}, -0.5, 0.5), f("bias", 2)), output: "y"}, binary: 1},
		{name: "{0, 1} with ones around", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), toFloat("a", "b"), op("Pad", "b pads one", "c"), op("Conv", "c w", "y")},
			inits: append(constants, w("w", 2, 3, 3, 3), ints("pads", 0, 0, 1, 1, 0, 0, 1, 1)), output: "y"}, binary: 1},
		{name: "{0, 1} with halves around", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), toFloat("a", "b"), op("Pad", "b pads half", "c"), op("Conv", "c w", "y")},
			inits: append(constants, w("w", 2, 3, 3, 3), ints("pads", 0, 0, 1, 1, 0, 0, 1, 1)), output: "y"}, binary: 1},
		{name: "{−1, 3} with zeros around", model: testModel{ // no value is 0 then
			input: image(3, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), op("Where", "a three minus", "b"), op("Conv", "b w", "y", same(1)...)},
			inits: append(constants, number("three", 3), w("w", 2, 3, 3, 3)), output: "y"}, binary: 1},
		{name: "{0, 1}, pooled, flattened, dense", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), toFloat("a", "b"), op("MaxPool", "b", "c", "kernel_shape", []int{2, 2}, "strides", []int{2, 2}),
				op("Flatten", "c", "d"), op("MatMul", "d w", "e"), op("Sub", "e half", "f"), op("Greater", "f zero", "g"), toFloat("g", "h"),
				op("MatMul", "h v", "y")},
			inits: append(constants, w("w", 12, 6), w("v", 6, 3)), output: "y"}, binary: 2},
		{name: "{0, 1} and a convolution of weights that are quarters", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), toFloat("a", "b"), op("Conv", "b w", "y", same(1)...)},
			inits: append(constants, f("w", 2, 3, 3, 3)), output: "y"}, binary: 1},
		{name: "scaled sign", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Relu", "x", "z"), op("Sub", "z half", "u"), op("GreaterOrEqual", "u zero", "a"), op("Where", "a one minus", "b"), op("Mul", "half b", "c"),
				op("Conv", "c w", "y", same(1)...)},
			inits: append(constants, randomTensor(r, "w", []int{2, 3, 3, 3}, -2, 2)), output: "y"}, binary: 1},
		{name: "sign of odd sums", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), op("Where", "a one minus", "b"), op("Conv", "b w", "c"), op("Sign", "c", "d"),
				op("Conv", "d v", "y")},
			inits: append(constants, w("w", 5, 3, 3, 3), w("v", 2, 5, 1, 1)), output: "y"}, binary: 2},
		{name: "sign of even sums, half a step away", model: testModel{
			input: image(2, 4, 4),
			nodes: []testNode{op("Greater", "x zero", "a"), op("Where", "a one minus", "b"), op("Conv", "b w bias", "c"), op("Sign", "c", "d"),
				op("Conv", "d v", "y")},
			inits: append(constants, w("w", 5, 2, 3, 3), randomTensor(r, "bias", []int{5}, 0.5, -1, 3), w("v", 2, 5, 1, 1)), output: "y"}, binary: 2},
		{name: "residual", model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Conv", "x w", "a", same(1)...), op("Add", "a x", "b"), op("Relu", "b", "c"),
				op("Sub", "c x", "y")},
			inits: []testTensor{f("w", 3, 3, 3, 3)}, output: "y"}},
		{name: "QONNX with scales", model: testModel{
			input: image(3, 5, 5),
			nodes: []testNode{op("onnx.brevitas/BipolarQuant", "x half", "a"), op("onnx.brevitas/BipolarQuant", "w two", "b"),
				op("MaxPool", "a", "p", "kernel_shape", []int{2, 2}),
				op("Conv", "p b bias", "c", same(1)...), op("qonnx.custom_op.general/BipolarQuant", "c half", "d"), op("Relu", "d", "e"),
				op("qonnx.custom_op.general/Quant", "e per zero one", "f", "signed", 1, "narrow", 0, "rounding_mode", "ROUND"),
				op("Conv", "f v", "y")},
			inits: append(constants, f("w", 4, 3, 3, 3), f("bias", 4), w("v", 2, 4, 2, 2),
				floats("per", []int{1, 4, 1, 1}, 0.5, 1, 2, 4)), output: "y"}, binary: 1},
		{name: "padding with the gain", opts: Options{SignOfZero: bcnn.ZeroIsPlus}, model: testModel{
			input: image(3, 5, 5),
			nodes: []testNode{op("BipolarQuant", "x half", "a"), op("Pad", "a pads minushalf", "b"), op("Conv", "b w", "y")},
			inits: []testTensor{number("half", 0.5), number("minushalf", -0.5), ints("pads", 0, 0, 1, 1, 0, 0, 2, 0), w("w", 4, 3, 3, 3)}, output: "y"}, binary: 1},
		{name: "padding of one row", model: testModel{
			input: image(3, 1, 5),
			nodes: []testNode{op("GreaterOrEqual", "x zero", "a"), op("Where", "a one minus", "b"), op("Pad", "b pads one", "c"), op("Conv", "c w", "y")},
			inits: append(constants, ints("pads", 0, 0, 1, 1, 0, 0, 1, 1), w("w", 4, 3, 3, 3)), output: "y"}, binary: 1},
		{name: "weights through sign and scale", model: testModel{
			input: image(2, 4, 4),
			nodes: []testNode{op("Less", "x zero", "a"), op("Where", "a minus one", "b"), op("Sign", "w", "c"), op("Mul", "c alpha", "d"),
				op("Conv", "b d bias", "y", "auto_pad", "SAME_UPPER")},
			inits: append(constants, f("w", 3, 2, 2, 2), floats("alpha", []int{3, 1, 1, 1}, 0.5, 4, 1), f("bias", 3)), output: "y"}, binary: 1},
		{name: "Binarize grey", model: testModel{
			input:  bytesImage(3, 6, 6),
			nodes:  []testNode{op("bitcnn/Binarize", "x", "a", "scheme", "grey", "thresholds", []int{128}), op("Conv", "a w", "y")},
			inits:  []testTensor{w("w", 4, 1, 3, 3)},
			output: "y"}, binary: 1},
		{name: "Binarize lbp", model: testModel{
			input:  bytesImage(3, 6, 6),
			nodes:  []testNode{op("bitcnn/Binarize", "x", "a", "scheme", "lbp"), op("Conv", "a w", "y")},
			inits:  []testTensor{w("w", 4, 3, 3, 3)},
			output: "y"}, binary: 1},
		{name: "Binarize threshold", model: testModel{
			input: bytesImage(3, 6, 6),
			nodes: []testNode{op("bitcnn/Binarize", "x", "a", "scheme", "threshold", "thresholds", []int{1, 128, 255}),
				op("Pad", "a", "b", "pads", []int{0, 0, 2, 2, 0, 0, 2, 2}, "value", -1.0), op("Conv", "b w", "y")},
			inits: []testTensor{w("w", 4, 3, 3, 3)}, output: "y", opset: 9}, binary: 1},
		{name: "thresholds of bytes", model: testModel{
			input: bytesImage(3, 6, 6),
			nodes: []testNode{op("Greater", "x t", "a"), toFloat("a", "b"), op("Mul", "b two", "c"), op("Sub", "c one", "d"), op("Conv", "d w", "y")},
			inits: append(constants, testTensor{name: "t", typ: pb.Uint8, dims: []int{1, 3, 1, 1}, values: []float64{64, 128, 0}},
				w("w", 4, 3, 3, 3)), output: "y"}, binary: 1},
		{name: "bytes to a binary convolution", model: testModel{
			input: bytesImage(3, 6, 6),
			nodes: []testNode{toFloat("x", "a"), op("Sub", "a mid", "b"), op("Conv", "b w", "y", same(2)...)},
			inits: []testTensor{number("mid", 128), w("w", 4, 3, 5, 5)}, output: "y"}},
		{name: "mean and scale", opts: Options{Mean: []float32{1, 2, 64}, Scale: []float32{0.5}, InputType: bcnn.Uint8}, model: testModel{
			input: image(3, 4, 4),
			nodes: []testNode{op("Conv", "x w", "y")},
			inits: []testTensor{f("w", 2, 3, 3, 3)}, output: "y"}},
		{name: "dynamic size", opts: Options{InputShape: bcnn.Shape{H: 5, W: 4}}, model: testModel{
			input: testInput{"x", pb.Float, []any{"n", 3, "h", "w"}},
			nodes: []testNode{op("Conv", "x w", "y")},
			inits: []testTensor{f("w", 2, 3, 3, 3)}, output: "y"}},
		{name: "dynamic sizes of Paddle", opts: Options{InputShape: bcnn.Shape{H: 5, W: 4}}, model: testModel{
			input: testInput{"x", pb.Float, []any{-1, 3, -1, "?"}},
			nodes: []testNode{op("Conv", "x w", "y")},
			inits: []testTensor{f("w", 2, 3, 3, 3)}, output: "y"}},
		{name: "shape arithmetic", model: testModel{
			input: image(3, 4, 2),
			nodes: []testNode{op("Shape", "x", "s"), op("Slice", "s i0 i1", "b"), op("Slice", "s i1 i9", "rest"),
				op("Cast", "rest", "rest32", "to", int(pb.Int32)), op("Cast", "rest32", "rest64", "to", int(pb.Int64)),
				op("Gather", "rest64 g0", "c"), op("Gather", "rest64 g1", "h"), op("Gather", "rest64 g2", "w"),
				op("Mul", "c h", "ch"), op("Mul", "ch w", "n"), op("Concat", "b n", "target", "axis", 0),
				op("Reshape", "x target", "a"), op("MatMul", "a v", "y")},
			inits: []testTensor{ints("i0", 0), ints("i1", 1), ints("i9", 1e9), ints("g0", 0), ints("g1", 1), ints("g2", -1), f("v", 24, 3)}, output: "y"}},
		{name: "what the output does not need", model: testModel{
			input: image(3, 4, 2),
			nodes: []testNode{op("Abs", "x", "unused"), op("Identity", "x", "a"), op("Dropout", "a", "b"), op("Relu", "b", "y")}, output: "y"}},
		{name: "softmax, identity", model: testModel{
			input: image(3, 4, 2),
			nodes: []testNode{op("Flatten", "x", "a"), op("MatMul", "a v", "b"), op("Softmax", "b", "c"), op("Identity", "c", "y")},
			inits: []testTensor{f("v", 24, 3)}, output: "y"}},
		{name: "log softmax", model: testModel{
			input: image(3, 4, 2),
			nodes: []testNode{op("Flatten", "x", "a"), op("MatMul", "a v", "b"), op("LogSoftmax", "b", "y")},
			inits: []testTensor{f("v", 24, 3)}, output: "y"}},
		{name: "constants first", model: testModel{
			input: image(3, 4, 2),
			nodes: []testNode{op("Sub", "one x", "a"), op("Mul", "two a", "b"), op("Neg", "b", "c"), op("Max", "zero c", "y")},
			inits: constants, output: "y"}},
		{name: "batch norm, unfolded", model: testModel{
			input: testInput{"x", pb.Float, []any{1, 6}},
			nodes: []testNode{op("Sub", "x mean", "a"), op("Pow", "var half", "d"), op("Div", "a d", "b"), op("Mul", "b two", "c"), op("Add", "c mean", "y")},
			inits: append(constants, f("mean", 6), floats("var", []int{1}, 4)), output: "y"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.model.nodes[0].op == "BipolarQuant" {
				test.model.nodes[0].domain = "finn.custom_op.general"
			}
			net, _ := compare(t, r, test.model, test.opts, test.nhwc)
			binary := 0
			for _, l := range summarize(t, net) {
				if l.small {
					binary++
				}
			}
			require.Equal(t, test.binary, binary)
		})
	}
}

// TestTensorEncodings loads the same ±1 weights from every element type, in
// raw_data and in typed fields.
func TestTensorEncodings(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	values := randoms(r, 4*3*3*3, -1, 1)
	for _, typ := range []pb.DataType{pb.Float, pb.Double, pb.Float16, pb.Int8, pb.Int32, pb.Int64, pb.Bool, pb.Uint8} {
		for _, typed := range []bool{false, true} {
			w := testTensor{name: "w", typ: typ, dims: []int{4, 3, 3, 3}, values: values, typed: typed}
			m := testModel{input: image(3, 4, 4), inits: []testTensor{w, number("two", 2), number("one", 1)}, output: "y"}
			switch typ {
			case pb.Float:
				m.nodes = []testNode{op("Conv", "x w", "y")}
			case pb.Bool, pb.Uint8:
				positive := make([]float64, len(values))
				for i, v := range values {
					positive[i] = (v + 1) / 2
				}
				m.inits[0].values = positive
				m.nodes = []testNode{op("Cast", "w", "a", "to", int(pb.Float)), op("Mul", "a two", "b"), op("Sub", "b one", "c"), op("Conv", "x c", "y")}
			default:
				m.nodes = []testNode{op("Cast", "w", "a", "to", int(pb.Float)), op("Conv", "x a", "y")}
			}
			net, _ := compare(t, r, m, Options{}, false)
			require.True(t, net.Layers[0].Op.(bcnn.Conv2D).Weights.Binary())
		}
	}
}

// TestLayerNames checks that names of layers are those of nodes, but unique, of a
// length that bcnn allows, and such that they can be printed.
func TestLayerNames(t *testing.T) {
	var want []string
	names := []struct{ node, layer string }{
		{"a", "a"}, {"a", "a_2"}, {"a_2", "a_2_2"}, {"a", "a_3"}, {"/b/Relu", "b"}, {"/b/Relu", "b_2"}, {"Relu", "Relu"}, {"", "Relu_7"},
		{"c\x1b[2K\xff", "c?[2K?"}, {strings.Repeat("d", 300), strings.Repeat("d", 200)},
		{strings.Repeat("e", 199) + "ä", strings.Repeat("e", 199)}, {strings.Repeat("\x80", 201), strings.Repeat("?", 1)},
	}
	m := chain(len(names), func(i int, from, to string) []testNode {
		return named(names[i].node, op("Relu", from, to))
	})
	for _, n := range names {
		want = append(want, n.layer)
	}
	net, _, err := Decode(t.Context(), m.encode(), Options{})
	require.NoError(t, err)
	var got []string
	for _, l := range net.Layers {
		got = append(got, l.Name)
	}
	require.Equal(t, want, got)
}

// TestModules names layers by the modules of PyTorch that its newer exporter lists, and by the
// operators of those that have several.
func TestModules(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	m := testModel{
		input: image(3, 4, 4),
		nodes: []testNode{
			op("Sign", "w", "s"), op("Conv", "x s", "a"), op("Relu", "a", "b"), op("Sigmoid", "b", "c"), op("Tanh", "c", "d"), op("Tanh", "d", "e"), op("Exp", "e", "f"), op("Erf", "f", "y"),
		},
		inits: []testTensor{randomTensor(r, "w", []int{4, 3, 1, 1}, 0.5, 0.25, 3)}, output: "y",
	}
	for i, scopes := range []string{
		"['', 'blocks', 'blocks.0', 'blocks.0.conv1', 'sign']", // of weights
		"['', 'blocks', 'blocks.0', 'blocks.0.conv1', 'conv2d_3']",
		"['relu']",                  // of no module
		"['', 'blocks', 'sigmoid']", // among others
		"['', 'blocks', 'tanh']",    //
		"['', 'blocks', 'tanh_1']",  //
		"['', 'exp']",               // of the whole network
		"no list, 'of', 'strings'",
	} {
		m.nodes[i].scopes = scopes
	}
	net, _, err := Load(t.Context(), write(t, m.encode()), Options{})
	require.NoError(t, err)
	var names []string
	for _, l := range net.Layers {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"blocks.0.conv1", "n_b", "blocks/Sigmoid", "blocks/Tanh", "blocks/Tanh_2", "n_f", "n_y"}, names)
}

// TestMetadata reads name, labels and size from the file, unless the options
// give them.
func TestMetadata(t *testing.T) {
	m := testModel{
		input: image(3, 4, 2),
		nodes: []testNode{op("Flatten", "x", "a"), op("MatMul", "a v", "y")}, output: "y",
		inits:    []testTensor{floats("v", []int{24, 2}, make([]float64, 48)...)},
		metadata: map[string]string{"name": "net", "labels": `["cat", "dog"]`, "resize": "10", "other": "x"},
	}
	path := write(t, m.encode())
	net, report, err := Load(t.Context(), path, Options{})
	require.NoError(t, err)
	require.Equal(t, "net", net.Name)
	require.Equal(t, []string{"cat", "dog"}, net.Labels)
	require.Equal(t, 10, net.Inputs[0].Resize)
	require.Equal(t, "test", report.Producer)

	net, _, err = Load(t.Context(), path, Options{Name: "mine", Labels: []string{"a", "b"}, Resize: 12})
	require.NoError(t, err)
	require.Equal(t, "mine", net.Name)
	require.Equal(t, []string{"a", "b"}, net.Labels)
	require.Equal(t, 12, net.Inputs[0].Resize)

	m.metadata, m.opset = map[string]string{"resize": "0"}, 7 // the oldest
	net, _, err = Load(t.Context(), write(t, m.encode()), Options{})
	require.NoError(t, err)
	require.Zero(t, net.Inputs[0].Resize)
	require.Equal(t, "model", net.Name)
	require.Empty(t, net.Labels)

	// A file may be called what a network may not.
	if runtime.GOOS == "windows" { // where files may not
		return
	}
	path = filepath.Join(t.TempDir(), "a\n\x1b[2J\xff.onnx")
	require.NoError(t, os.WriteFile(path, m.encode(), 0o644))
	net, _, err = Load(t.Context(), path, Options{})
	require.NoError(t, err)
	require.Equal(t, `a\n\x1b[2J\xff`, net.Name)
}

// TestReport checks where the nodes of a model went.
func TestReport(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	m := testModel{
		input: image(3, 4, 4),
		nodes: []testNode{
			op("Identity", "x", "i"), op("Greater", "i zero", "a"), op("Where", "a one minus", "b"),
			op("Constant", "", "w", "value", randomTensor(r, "", []int{64, 3, 4, 4}, -1, 1)), op("Conv", "b w", "c"),
			op("Flatten", "c", "d"), op("MatMul", "d v", "y"),
		},
		inits: []testTensor{number("zero", 0), number("one", 1), number("minus", -1),
			randomTensor(r, "v", []int{64, 10}, 0.5, 0.25)},
		output: "y",
	}
	net, report := compare(t, r, m, Options{}, false)
	require.Equal(t, []Folded{
		{"n_i", "Identity", "n_b"}, {"n_a", "Greater", "n_b"}, {"n_w", "Constant", ""}, {"n_d", "Flatten", "n_y"},
	}, report.Folded)
	layers := summarize(t, net)
	require.Len(t, layers, 2)
	require.True(t, layers[0].small)
	require.EqualValues(t, 4*64*48, layers[0].BytesFloat)
	require.False(t, layers[1].small)
	require.NotEmpty(t, layers[1].WhyFloat)
	require.Equal(t, 13, report.Opset)
	require.Equal(t, 7, report.Nodes)
}
