package onnx

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// What is near to a form that an operator or a rule takes, and is not it, or is its smallest case.
func TestNearForms(t *testing.T) {
	r := rand.New(rand.NewPCG(131, 132))
	f := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, 0.5, -1, 2) }
	w := f("w", 2, 3, 2, 2)
	conv := op("Conv", "a w", "y")
	windows := func(name string, n int) testTensor { // of two
		t := testTensor{name: name, typ: pb.Int64, dims: []int{2, n}}
		for i := range 2 * n {
			t.values = append(t.values, float64(i/n+i%n))
		}
		return t
	}
	for _, c := range []struct {
		name  string
		input testInput
		nodes []testNode
		inits []testTensor
	}{
		{"zeros of a shape", image(3, 4, 5), []testNode{op("ConstantOfShape", "s", "b"), op("Add", "x b", "a"), conv}, []testTensor{ints("s", 3, 1, 1), w}},
		{"two windows apart", image(3, 4, 5), []testNode{op("Gather", "x rows", "a", "axis", 2), op("Gather", "a cols", "b", "axis", 4), op("Transpose", "b", "c", perm(0, 3, 5, 1, 2, 4)...), op("Reshape", "c s", "d"), op("MatMul", "d v", "y")},
			[]testTensor{{name: "rows", typ: pb.Int64, dims: []int{2, 2}, values: []float64{0, 2, 1, 3}}, {name: "cols", typ: pb.Int64, dims: []int{2, 4}, values: []float64{0, 1, 2, 3, 1, 2, 3, 4}}, ints("s", 0, 8, 12), f("v", 12, 2)}},
		{"windows of windows of rows", image(3, 4, 5), []testNode{op("Gather", "x wide", "c", "axis", 2), op("Gather", "c narrow", "b", "axis", 3), op("Reshape", "b s", "a"), conv}, []testTensor{windows("wide", 3), windows("narrow", 2), ints("s", 0, 3, 8, 5), w}},
		{"windows of windows of columns", image(3, 4, 5), []testNode{op("Gather", "x wide", "c", "axis", 3), op("Gather", "c narrow", "b", "axis", 4), op("Reshape", "b s", "a"), conv}, []testTensor{windows("wide", 3), windows("narrow", 2), ints("s", 0, 3, 4, 8), w}},
		{"x by what x becomes in the other direction", image(3, 4, 4), []testNode{op("Sigmoid", "x", "a"), op("Transpose", "a", "b", perm(0, 1, 3, 2)...), op("Mul", "x b", "y")}, nil},
		{"a gate with a factor for each channel behind it", image(3, 4, 5), []testNode{op("Sigmoid", "x", "a"), op("Mul", "a k", "b"), op("Mul", "x b", "y")}, []testTensor{floats("k", []int{3, 1, 1}, 1, 2, 3)}},
		{"a gate with a number for each channel behind it", image(3, 4, 5), []testNode{op("Sigmoid", "x", "a"), op("Add", "a k", "b"), op("Mul", "x b", "y")}, []testTensor{floats("k", []int{3, 1, 1}, 1, 2, 3)}},
		{"nearly the clip of PACT", image(3, 4, 5), []testNode{op("Abs", "x", "p"), op("Sub", "x one", "m"), op("LeakyRelu", "m", "q", "alpha", 0.5), op("Sub", "p q", "y")}, []testTensor{number("one", 1)}},
		{"one group of a constant vector", testInput{"x", pb.Float, []any{"batch", 4}}, []testNode{op("GroupNormalization", "k s b", "n", "num_groups", 1), op("Add", "x n", "y")},
			[]testTensor{floats("k", []int{1, 4}, 1, 2, 4, 3), floats("s", []int{4}, 0.5, -1.25, 1, 2), floats("b", []int{4}, 0, 1, -1, 0.5)}},
		{"blocks of one pixel", image(3, 4, 5), []testNode{op("SpaceToDepth", "x", "a", "blocksize", 1), conv}, []testTensor{w}},
		{"thresholds and one more", image(3, 4, 5), []testNode{op("qonnx.custom_op.general/MultiThreshold", "x t", "a", "out_bias", 1.), conv}, []testTensor{floats("t", []int{1, 2}, -0.5, 0.75), w}},
		{"a sign in two steps, the other first", image(3, 4, 5), []testNode{op("Less", "x zero", "c"), op("Where", "c x one", "b"), op("Less", "b zero", "d"), op("Where", "d minus b", "a"), conv},
			[]testTensor{number("zero", 0), number("one", 1), number("minus", -1), w}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: c.input, nodes: c.nodes, inits: c.inits, output: "y", rounds: true}
			compare(t, r, m, Options{}, false)
		})
	}
}

// What is one step beyond those forms, and refused.
func TestNearFormsRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(133, 134))
	f := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, 0.5, 1) }
	mean := func(before, after float64) []testNode {
		return []testNode{op("Unsqueeze", "x i", "a"), op("AveragePool", "a", "b", "kernel_shape", []int{2, 1, 1}, "pads", []int{int(before), 0, 0, int(after), 0, 0}), op("Squeeze", "b i", "y")}
	}
	bytes := func(name string, v float64) testTensor {
		return testTensor{name: name, typ: pb.Uint8, dims: []int{}, values: []float64{v}}
	}
	binarize := op("bitcnn/Binarize", "a", "y", "scheme", "threshold", "thresholds", []int{1, 2, 3})
	for _, c := range []struct {
		name  string
		nodes []testNode
		inits []testTensor
		want  string
	}{
		{"an equation that joins the batch", []testNode{op("Einsum", "x w", "y", "equation", "nchw,no->ochw")}, []testTensor{f("w", 1, 2)}, "at most one dimension in common"},
		{"an equation of weights of three dimensions", []testNode{op("Einsum", "x w", "y", "equation", "nchw,coz->nhwoz")}, []testTensor{f("w", 3, 2, 2)}, "at most one dimension in common"},
		{"a mean in front of the channels", mean(2, 0), []testTensor{ints("i", 1)}, "a window of 2 over 3 channels with pads of 2 and 0"},
		{"a mean behind the channels", mean(0, 2), []testTensor{ints("i", 1)}, "a window of 2 over 3 channels with pads of 0 and 2"},
		{"bytes with padding", []testNode{op("Pad", "x p", "a"), binarize}, []testTensor{ints("p", 0, 0, 1, 0, 0, 0, 0, 0)}, "(Pad, index 0): its input is UINT8"},
		{"bytes between limits", []testNode{op("Clip", "x least most", "a"), binarize}, []testTensor{bytes("least", 1), bytes("most", 200)}, "(Clip, index 0)"},
		{"no blocks", []testNode{op("SpaceToDepth", "x", "y")}, nil, "blocksize 0 does not divide"},
		{"blocks that leave a column", []testNode{op("SpaceToDepth", "x", "y", "blocksize", 2)}, nil, "blocksize 2 does not divide"},
		{"windows of three dimensions", []testNode{op("Reshape", "x i", "a"), op("Col2Im", "a j k", "y")}, []testTensor{ints("i", 0, 3, 20), ints("j", 4, 5), ints("k", 1, 1, 1)}, "only windows of one pixel"},
		{"two numbers of largest", []testNode{op("TopK", "x k", "y", "axis", 1)}, []testTensor{ints("k", 1, 2)}, "K is INT64 of shape [2]"},
		{"images and channels that are open", []testNode{op("Reshape", "x s", "y")}, []testTensor{ints("s", -1, -1, 20)}, "shape [-1 -1 20]"},
		{"a constant that is flattened behind its dimensions", []testNode{op("Flatten", "k", "a", "axis", 3), op("Add", "x a", "y")}, []testTensor{f("k", 1, 5)}, "axis 3 lies outside the 2 dimensions"},
		{"a quotient by almost 0", []testNode{op("Div", "x k", "y")}, []testTensor{number("k", 1e-40)}, "(Div, index 0)"},
		{"parts that leave a channel", []testNode{op("Split", "x k", "a b", "axis", 1), op("Add", "a b", "y")}, []testTensor{ints("k", 1, 1)}, "parts [1 1] do not add up to a dimension of 3"},
		{"a norm without variances", []testNode{op("BatchNormalization", "x s b m ?", "y")}, []testTensor{f("s", 3), f("b", 3), f("m", 3)}, "(BatchNormalization, index 0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 5), nodes: c.nodes, inits: c.inits, output: "y"}
			if c.nodes[len(c.nodes)-1].op == "Binarize" {
				m.input = bytesImage(3, 4, 5)
			}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			require.ErrorContains(t, err, c.want)
		})
	}
}
