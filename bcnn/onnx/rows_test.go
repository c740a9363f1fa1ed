package onnx

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestRows imports networks that join the points of all images to rows of a matrix, and compares
// with the executor of the tests, for which a batch is one image.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	points := testInput{"x", pb.Float, []any{"n", 5, 6}}
	planes := testInput{"x", pb.Float, []any{"n", 3, 5, 7}}
	inits := func() []testTensor {
		return []testTensor{
			randomTensor(r, "w", []int{3, 4}, -1, 1), randomTensor(r, "v", []int{4, 2}, -1, 1), randomTensor(r, "six", []int{4, 6}, -1, 1), randomTensor(r, "bias", []int{4}, -1, 1),
			randomTensor(r, "row", []int{1, 4}, -1, 1), randomTensor(r, "two", []int{2}, -1, 1), floats("plus", []int{}, 1), floats("minus", []int{}, -1), floats("zero", []int{}, 0),
			ints("rows", -1, 3), ints("back", -1, 10, 4), ints("back2", -1, 10, 2), ints("rows6", -1, 6), ints("back5", -1, 5, 4), ints("column", -1, 1), ints("keep", 0, 2, 2), ints("grid", -1, 5, 7, 4), ints("some", -1, 20),
			randomTensor(r, "var", []int{4}, 0.5, 1), randomTensor(r, "v64", []int{64, 2}, -1, 1), ints("odd", -1, 7), ints("three", 3, 10, 1), ints("first", 0), ints("ten", 10), ints("open", -1), randomTensor(r, "many", []int{10, 4}, -1, 1),
		}
	}
	ten := testInput{"x", pb.Float, []any{"n", 10, 3}}
	rows := []testNode{op("Reshape", "x rows", "a"), op("Gemm", "a w bias", "b")}
	tests := []struct {
		name  string
		input testInput
		nodes []testNode
		err   string
	}{
		{"Gemm", ten, append(rows, op("Reshape", "b back", "y")), ""},
		{"Gemm of the transpose, scaled", points, []testNode{op("Reshape", "x rows6", "a"), op("Gemm", "a six row", "b", "transB", 1, "alpha", 0.5, "beta", 2.0), op("Reshape", "b back5", "y")}, ""},
		{"MatMul", ten, []testNode{op("Reshape", "x rows", "a"), op("MatMul", "a w", "b"), op("Add", "b bias", "c"), op("Reshape", "c back", "y")}, ""},
		{"signs between", ten, append(rows, op("BatchNormalization", "b bias bias bias var", "c"), op("Greater", "c zero", "d"), op("Where", "d plus minus", "e"), op("MatMul", "e v", "f"),
			op("Reshape", "f back2", "y")), ""},
		{"clips, a row of constants and a shortcut", ten, append(rows, op("Mul", "b row", "c"), op("Clip", "c minus plus", "d"), op("PRelu", "d row", "e"), op("Add", "e b", "f"),
			op("LeakyRelu", "f", "g", "alpha", 0.25), op("Reshape", "g back", "y")), ""},
		{"an image with the channels last", planes, []testNode{op("Transpose", "x", "t", perm(0, 2, 3, 1)...), op("Reshape", "t rows", "a"), op("Gemm", "a w bias", "b"), op("Reshape", "b grid", "c"),
			op("Transpose", "c", "y", perm(0, 3, 1, 2)...)}, ""},
		{"rows taken apart anew", ten, append(rows, op("Reshape", "b some", "c"), op("Reshape", "c back", "y")), ""},
		{"a product of sizes", ten, []testNode{op("Shape", "x", "shape"), op("Gather", "shape first", "b1"), op("Mul", "b1 ten", "n1"), op("Concat", "n1 open", "s", "axis", 0), op("Reshape", "x s", "a"),
			op("Gemm", "a w bias", "b"), op("Concat", "b1 ten open", "s2", "axis", 0), op("Reshape", "b s2", "y")}, ""},

		{"signs times the mean of each row", ten, append(rows, op("Abs", "b", "c"), op("ReduceMean", "c", "d", "axes", []int{-1}, "keepdims", 0), op("Reshape", "d column", "e"), op("Sign", "b", "f"),
			op("Mul", "f e", "g"), op("MatMul", "g v", "h"), op("Reshape", "h back2", "y")), ""},
		{"squares", ten, append(rows, op("Mul", "b b", "c"), op("Reshape", "c back", "y")), ""},
		{"sums, kept", ten, append(rows, op("ReduceL1", "b", "c", "axes", []int{1}), op("Sub", "b c", "d"), op("Reshape", "d back", "y")), ""},

		{"an output of rows", ten, rows, "its first dimension must be the batch"},
		{"another product of sizes", ten, []testNode{op("Shape", "x", "shape"), op("Gather", "shape first", "b1"), op("Mul", "b1 three", "n1"), op("Concat", "n1 open", "s", "axis", 0), op("Reshape", "x s", "y")},
			"does not cancel"},
		{"no number of rows", ten, []testNode{op("Reshape", "x odd", "y")}, "shape [-1 7] does not fit images of 30 values: its first dimension must be the batch (0 or -1), or the batch times positions"},
		{"another number of images", ten, []testNode{op("Reshape", "x three", "y")}, "shape [3 10 1] does not fit images of 30 values: its first dimension must be the batch (0 or -1), or the batch times positions"},
		{"a convolution of rows", ten, append(rows, op("Reshape", "b keep", "c"), op("MaxPool", "c", "y", "kernel_shape", []int{2})), "joins the batch with positions"},
		{"weights of each image", ten, append(rows, op("Reshape", "b keep", "c"), op("Conv", "x c", "y")), "input 1 (\"c\") must be constant, but is computed from the network's input"},
		{"constants of each row", ten, append(rows, op("Add", "b many", "c"), op("Reshape", "c back", "y")), "a constant of shape [10 4] does not fit an input whose first dimension joins the batch"},
		{"all in a line", ten, append(rows, op("Reshape", "b open", "c"), op("Mul", "c minus", "d"), op("Sub", "d plus", "e"), op("Reshape", "e back", "y")), ""},
		{"a softmax of a line", ten, append(rows, op("Reshape", "b open", "c"), op("Softmax", "c", "d", "axis", -1), op("Reshape", "d back", "y")), "joins the batch with positions"},
		{"a product of a line", testInput{"x", pb.Float, []any{"n", 4, 1}}, []testNode{op("Reshape", "x open", "a"), op("MatMul", "a v", "b"), op("Reshape", "b rows", "y")}, "joins the batch with positions"},
		{"a line and a list", testInput{"x", pb.Float, []any{"n", 4, 1}}, []testNode{op("Reshape", "x open", "a"), op("Add", "a bias", "b"), op("Reshape", "b column", "y")}, "a constant of shape [4] does not fit"},
		{"a sum over a line", ten, append(rows, op("Reshape", "b open", "c"), op("ReduceSum", "c", "d"), op("Reshape", "d back", "y")), "joins the batch with positions"},
		{"a sum over rows", ten, append(rows, op("ReduceSum", "b", "y", "axes", []int{0})), "joins the batch with positions"},
		{"other weights", ten, []testNode{op("Reshape", "x rows", "a"), op("Gemm", "a v64", "y")}, "weights of 64 inputs do not fit rows of 3 values"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := testModel{opset: 13, input: test.input, nodes: test.nodes, inits: inits(), output: test.nodes[len(test.nodes)-1].out[0]}
			if test.err == "" {
				compare(t, r, m, Options{}, false)
				return
			}
			_, _, err := Load(t.Context(), write(t, m.encode()), Options{})
			require.ErrorContains(t, err, test.err)
		})
	}
}
