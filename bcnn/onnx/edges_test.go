package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// im2col lists the windows over images with the channels last, row by row, a window's channels
// innermost.
func (n testNode) im2col(x array) array {
	k, s, d, pads := n.list("kernel_size", 1, 1), n.list("stride", 1, 1), n.list("dilations", 1, 1), n.list("pad_amount", 0, 0, 0, 0)
	count := func(size, axis int) int {
		return (size+pads[axis]+pads[axis+2]-(k[axis]-1)*d[axis]-1)/s[axis] + 1
	}
	channels := x.dims[3]
	out := newArray(x.dims[0], count(x.dims[1], 0), count(x.dims[2], 1), k[0]*k[1]*channels)
	i := 0
	each(out.dims, func(index []int) {
		tap := index[3] / channels
		y, xx := index[1]*s[0]-pads[0]+tap/k[1]*d[0], index[2]*s[1]-pads[1]+tap%k[1]*d[1]
		out.v[i] = float64(n.int("pad_value", 0))
		if y >= 0 && xx >= 0 && y < x.dims[1] && xx < x.dims[2] {
			out.v[i] = x.at(index[0], y, xx, index[3]%channels)
		}
		i++
	})
	return out
}

// Forms of operators that are rare in files, with sizes that tell rows from columns.
func TestEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(121, 122))
	f := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, 0.5, -1, 2) }
	taps := func(name string, k, n int) testTensor { // of n windows side by side
		t := testTensor{name: name, typ: pb.Int64, dims: []int{k, n}}
		for i := range k * n {
			t.values = append(t.values, float64(i/n+i%n))
		}
		return t
	}
	three := func(strides ...int) []any {
		return []any{"kernel_shape", []int{3, 3}, "strides", strides, "ceil_mode", 1}
	}
	last, first := op("Transpose", "x", "a", perm(0, 2, 3, 1)...), perm(0, 3, 1, 2)
	im2col := func(attrs ...any) testNode { return op("qonnx.custom_op.general/Im2Col", "a", "b", attrs...) }
	for _, c := range []struct {
		name  string
		input testInput
		nodes []testNode
		inits []testTensor
	}{
		{"all dimensions of 1", testInput{"x", pb.Float, []any{2, 3, 4, 5}}, []testNode{op("GlobalMaxPool", "x", "a"), op("Squeeze", "a", "b"), op("MatMul", "b v", "y")},
			[]testTensor{randomTensor(r, "v", []int{3, 4}, 0.5, -1)}},
		{"a row above an average pool", image(2, 8, 9), []testNode{op("Pad", "x p", "a"), op("AveragePool", "a", "y", three(3, 3)...)}, []testTensor{ints("p", 0, 0, 1, 0, 0, 0, 0, 0)}},
		{"a row below it", image(2, 8, 9), []testNode{op("Pad", "x p", "a"), op("AveragePool", "a", "y", three(3, 3)...)}, []testTensor{ints("p", 0, 0, 0, 0, 0, 0, 1, 0)}},
		{"a column on the left", image(2, 9, 8), []testNode{op("Pad", "x p", "a"), op("AveragePool", "a", "y", three(3, 3)...)}, []testTensor{ints("p", 0, 0, 0, 1, 0, 0, 0, 0)}},
		{"a column on the right", image(2, 9, 8), []testNode{op("Pad", "x p", "a"), op("AveragePool", "a", "y", three(3, 3)...)}, []testTensor{ints("p", 0, 0, 0, 0, 0, 0, 0, 1)}},
		{"a flat vector as a wide image", testInput{"x", pb.Float, []any{"batch", 40}}, []testNode{op("Reshape", "x s", "a"), op("Conv", "a w", "y")},
			[]testTensor{ints("s", -1, 2, 4, 5), randomTensor(r, "w", []int{3, 2, 3, 2}, 0.5, -1)}},
		{"windows of one pixel", image(3, 4, 5), []testNode{op("Conv", "x w", "a"), op("Reshape", "a s", "b"), op("Col2Im", "b size one", "c"), op("Conv", "c v", "y")},
			[]testTensor{randomTensor(r, "w", []int{4, 3, 1, 1}, 0.5, -1), ints("s", 0, 4, 20), ints("size", 4, 5), ints("one", 1, 1), randomTensor(r, "v", []int{2, 4, 3, 2}, 0.5, -1)}},
		{"windows that are listed", image(3, 6, 5), []testNode{last, im2col("kernel_size", []int{3, 2}), op("MatMul", "b w", "c"), op("Transpose", "c", "y", first...)},
			[]testTensor{randomTensor(r, "w", []int{18, 4}, 0.5, -1)}},
		{"with strides and padding", image(3, 6, 5), []testNode{last, im2col("kernel_size", []int{3, 2}, "stride", []int{2, 1}, "pad_amount", []int{1, 0, 2, 3}), op("MatMul", "b w", "c"), op("Transpose", "c", "y", first...)},
			[]testTensor{randomTensor(r, "w", []int{18, 4}, 0.5, -1)}},
		{"with dilation", image(2, 7, 9), []testNode{last, im2col("kernel_size", []int{2, 3}, "dilations", []int{3, 2}, "pad_amount", []int{0, 2, 1, 0}), op("MatMul", "b w", "c"), op("Transpose", "c", "y", first...)},
			[]testTensor{randomTensor(r, "w", []int{12, 4}, 0.5, -1)}},
		{"windows of ones around", image(2, 4, 4), []testNode{last, im2col("kernel_size", []int{2, 2}, "pad_amount", []int{1, 0, 0, 1}, "pad_value", 1), op("MatMul", "b w", "c"), op("Transpose", "c", "y", first...)},
			[]testTensor{randomTensor(r, "w", []int{8, 3}, 0.5, -1)}},
		{"windows that stay", image(2, 4, 3), []testNode{last, im2col("kernel_size", []int{3, 2}, "pad_amount", []int{1, 0, 0, 1}), op("Relu", "b", "c"), op("Transpose", "c", "y", first...)}, nil},
		{"softmax of an image before operator set 13", image(3, 2, 4), []testNode{op("Softmax", "x", "a", "oracle.inside", 1, "oracle.axes", []int{1, 2, 3}), op("Mul", "a x", "y")}, nil},
		{"softmax of the pixels of a channel", image(3, 2, 4), []testNode{op("Softmax", "x", "a", "axis", 2, "oracle.inside", 1, "oracle.axes", []int{2, 3}), op("Mul", "a x", "y")}, nil},
		{"groups of a constant vector", testInput{"x", pb.Float, []any{"batch", 6}}, []testNode{op("GroupNormalization", "k six shift", "n", "num_groups", 3), op("Add", "x n", "y")},
			[]testTensor{floats("k", []int{1, 6}, 1, 2, 4, 3, 0.5, -1), floats("six", []int{6}, 0.5, -1.25, 1, 2, 1.5, 0.75), floats("shift", []int{6}, 0, 1, -1, 0.5, 2, 3)}},
		{"a bias of one row", image(3, 4, 5), []testNode{op("Flatten", "x", "a"), op("Gemm", "a w b", "y")}, []testTensor{f("w", 60, 2), f("b", 1, 2)}},
		{"a bias of one number", image(3, 4, 5), []testNode{op("Flatten", "x", "a"), op("Gemm", "a w b", "y")}, []testTensor{f("w", 60, 2), f("b", 1)}},
		{"a bias of one number in a row", image(3, 4, 5), []testNode{op("Flatten", "x", "a"), op("Gemm", "a w b", "y")}, []testTensor{f("w", 60, 2), f("b", 1, 1)}},
		{"a softmax of what is last", image(3, 4, 5), []testNode{op("Transpose", "x", "a", perm(0, 2, 3, 1)...), op("Softmax", "a", "b", "oracle.inside", 1), op("Mul", "a b", "c"), op("Transpose", "c", "y", first...)}, nil},
		{"an empty constant in another form", image(3, 4, 5), []testNode{op("Reshape", "none s", "a"), op("Concat", "a k", "b", "axis", 0), op("Add", "x b", "y")},
			[]testTensor{floats("none", []int{0}), ints("s", 0, 1, 1), floats("k", []int{3, 1, 1}, 1, 2, 3)}},
		{"a product along the windows", image(3, 4, 5), []testNode{op("Gather", "x rows", "a", "axis", 2), op("Gather", "a cols", "b", "axis", 4), op("Transpose", "b", "c", perm(0, 1, 2, 4, 3, 5)...), op("Reshape", "c s", "d"), op("MatMul", "d w", "y")},
			[]testTensor{taps("rows", 2, 3), taps("cols", 2, 4), ints("s", 0, 12, 12), f("w", 12, 2)}},
		{"a product of the windows", image(3, 4, 5), []testNode{op("Gather", "x rows", "a", "axis", 2), op("Gather", "a cols", "b", "axis", 4), op("Transpose", "b", "c", perm(0, 3, 5, 1, 2, 4)...), op("Reshape", "c s", "d"), op("MatMul", "d w", "y")},
			[]testTensor{taps("rows", 2, 3), taps("cols", 2, 4), ints("s", 0, 12, 12), f("w", 12, 2)}},
		{"a product of the windows with weights in another order", image(3, 4, 5), []testNode{op("Gather", "x rows", "a", "axis", 2), op("Gather", "a cols", "b", "axis", 4), op("Transpose", "b", "c", perm(0, 3, 5, 4, 1, 2)...), op("Reshape", "c s", "d"), op("MatMul", "d w", "y")},
			[]testTensor{taps("rows", 2, 3), taps("cols", 2, 4), ints("s", 0, 12, 12), f("w", 12, 2)}},
		{"one pixel", image(3, 4, 5), []testNode{op("Transpose", "x", "a", perm(2, 3, 0, 1)...), op("GatherND", "a at", "b"), op("MatMul", "b w", "y")},
			[]testTensor{ints("at", 2, -1), f("w", 3, 2)}},
		{"indices of five dimensions", image(3, 4, 5), []testNode{op("Gather", "x i", "a", "axis", 1), op("Reshape", "a s", "b"), op("Relu", "b", "y")},
			[]testTensor{{name: "i", typ: pb.Int64, dims: []int{1, 1, 1, 1, 2}, values: []float64{2, 0}}, ints("s", 0, 2, 4, 5)}},
		{"eight dimensions", image(3, 4, 5), []testNode{op("Unsqueeze", "x four", "a"), op("Squeeze", "a four", "b"), op("Relu", "b", "y")}, []testTensor{ints("four", 1, 2, 3, 4)}},
		{"parts of which the last is smaller", image(5, 4, 3), []testNode{op("Split", "x", "b c", "axis", 1), op("Concat", "c b", "d", "axis", 1), op("Conv", "d w", "y")}, []testTensor{randomTensor(r, "w", []int{2, 5, 3, 2}, 0.5, -1)}},
		{"a response to neighbouring channels", image(5, 4, 3), []testNode{op("LRN", "x", "y", "size", 3, "alpha", 0.5)}, nil},
		{"a response of all defaults", image(5, 4, 3), []testNode{op("LRN", "x", "y", "size", 5)}, nil},
		{"the largest of the last dimension", image(3, 4, 5), []testNode{op("Flatten", "x", "a"), op("TopK", "a k", "y")}, []testTensor{ints("k", 4)}},
		{"the largest of the last dimension of a constant", image(3, 4, 5), []testNode{op("TopK", "c k", "a"), op("Add", "x a", "y")}, []testTensor{f("c", 4, 7), ints("k", 5)}},
		{"dimensions of 1 in front of none", image(1, 4, 5), []testNode{op("GlobalMaxPool", "x", "a"), op("Flatten", "a", "y", "axis", 4)}, nil},
		{"windows of one row", image(2, 4, 3), []testNode{last, im2col("kernel_size", []int{1, 2}), op("MatMul", "b w", "c"), op("Transpose", "c", "y", first...)}, []testTensor{randomTensor(r, "w", []int{4, 3}, 0.5, -1)}},
		{"a gate with a bias", image(3, 4, 5), []testNode{op("Mul", "x two", "a"), op("Add", "a one", "b"), op("Sigmoid", "b", "c"), op("Mul", "x c", "y")}, []testTensor{number("two", 2), number("one", 1)}},
		{"a gate with a factor for each channel", image(3, 4, 5), []testNode{op("Mul", "x k", "a"), op("Sigmoid", "a", "c"), op("Mul", "x c", "y")}, []testTensor{floats("k", []int{3, 1, 1}, 1, 2, 3)}},
		{"the largest of channels and pairs of columns", image(3, 4, 6), []testNode{op("Reshape", "x s", "a"), op("ReduceMax", "a", "b", "axes", []int{1, 4}), op("Squeeze", "b four", "y")}, []testTensor{ints("s", 0, 3, 4, 3, 2), ints("four", 4)}},
		{"the largest of channels and pairs of rows", image(3, 6, 4), []testNode{op("Reshape", "x s", "a"), op("ReduceMax", "a", "b", "axes", []int{1, 3}), op("Squeeze", "b three", "y")}, []testTensor{ints("s", 0, 3, 3, 2, 4), ints("three", 3)}},
		{"a constant of levels without a zero point", image(3, 4, 5), []testNode{op("QuantizeLinear", "k half", "a"), op("DequantizeLinear", "a half", "b"), op("Add", "x b", "y")},
			[]testTensor{floats("k", []int{3, 1, 1}, 0.3, 1.2, 7), number("half", 0.5)}},
		{"a constant that is joined to nothing", image(3, 4, 5), []testNode{op("Concat", "k", "a", "axis", 0), op("Add", "x a", "y")}, []testTensor{f("k", 3, 1, 1)}},
		{"dropout that is off", image(3, 4, 4), []testNode{op("Dropout", "x ratio off", "a"), op("Relu", "a", "y")},
			[]testTensor{number("ratio", 0.5), {name: "off", typ: pb.Bool, dims: []int{}, values: []float64{0}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: c.input, nodes: c.nodes, inits: c.inits, output: "y", rounds: true}
			if strings.HasPrefix(c.name, "softmax") {
				m.opset = 11
			}
			compare(t, r, m, Options{}, false)
		})
	}
}

// TestRefused has what is one step beyond what the operators take.
func TestRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(123, 124))
	f := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, 0.5, 1) }
	truth := func(name string, values ...float64) testTensor {
		return testTensor{name: name, typ: pb.Bool, dims: []int{len(values)}, values: values}
	}
	trunc := func(scale, zero, in, out float64) ([]testNode, []testTensor) {
		return []testNode{op("Floor", "x", "f"), op("Clip", "f least most", "c"), op("qonnx.custom_op.general/Trunc", "c scale zero in out", "y")},
			[]testTensor{number("least", -8), number("most", 7), number("scale", scale), number("zero", zero), number("in", in), number("out", out)}
	}
	for _, c := range []struct {
		name  string
		nodes []testNode
		inits []testTensor
		want  string
	}{
		{"squeeze of one image", []testNode{op("GlobalMaxPool", "x", "a"), op("Squeeze", "a", "y")}, nil, "without axes it may drop a batch of 1"},
		{"scales of more dimensions", []testNode{op("LayerNormalization", "x s", "y", "axis", 1)}, []testTensor{f("s", 3, 1, 1, 1, 1)}, "(LayerNormalization, index 0)"},
		{"scales of a constant in two dimensions", []testNode{op("InstanceNormalization", "k s b", "n"), op("Add", "x n", "y")}, []testTensor{f("k", 1, 3, 4, 5), f("s", 3, 1), f("b", 3)}, "a constant of shape [3 1] does not fit 3 channels"},
		{"scales of other channels", []testNode{op("InstanceNormalization", "k s b", "n"), op("Add", "x n", "y")}, []testTensor{f("k", 1, 3, 4, 5), f("s", 2), f("b", 3)}, "a constant of shape [2] does not fit 3 channels"},
		{"dropout in training", []testNode{op("Dropout", "x ratio on", "y")}, []testTensor{number("ratio", 0.5), truth("on", 1)}, "it is in training mode"},
		{"dropout of two modes", []testNode{op("Dropout", "x ratio on", "y")}, []testTensor{number("ratio", 0.5), truth("on", 0, 0)}, "it is in training mode"},
		{"a choice of NaN", []testNode{op("Greater", "x half", "c"), op("Where", "c x nan", "y")}, []testTensor{number("half", 0.5), number("nan", math.NaN())}, "an operand holds NaN"},
		{"as many columns as windows", []testNode{op("Reshape", "x i", "a"), op("Col2Im", "a j k", "y")}, []testTensor{ints("i", 0, 3, 20), ints("j", 1, 20), ints("k", 1, 2)}, "only windows of one pixel"},
		{"more columns", []testNode{op("Reshape", "x i", "a"), op("Col2Im", "a j k", "y")}, []testTensor{ints("i", 0, 3, 20), ints("j", 4, 20), ints("k", 1, 1)}, "20 windows for 4×20 pixels"},
		{"more rows", []testNode{op("Reshape", "x i", "a"), op("Col2Im", "a j k", "y")}, []testTensor{ints("i", 0, 3, 20), ints("j", 20, 5), ints("k", 1, 1)}, "20 windows for 20×5 pixels"},
		{"a threshold below INT32", []testNode{op("bitcnn/Binarize", "x", "y", "scheme", "threshold", "thresholds", []int64{0, 1, math.MinInt32 - 1})}, nil, "threshold -2147483649"},
		{"a threshold above INT32", []testNode{op("bitcnn/Binarize", "x", "y", "scheme", "threshold", "thresholds", []int64{0, 1, math.MaxInt32 + 1})}, nil, "threshold 2147483648"},
		{"groups of a constant without channels", []testNode{op("GroupNormalization", "k s b", "n", "num_groups", 1), op("Add", "x n", "y")}, []testTensor{f("k", 5), f("s", 5), f("b", 5)}, "num_groups must divide"},
		{"no groups of a constant", []testNode{op("GroupNormalization", "k s b", "n", "num_groups", 0), op("Add", "x n", "y")}, []testTensor{f("k", 1, 3, 1, 1), f("s", 3), f("b", 3)}, "num_groups must divide"},
		{"a bias of three dimensions", []testNode{op("Flatten", "x", "a"), op("Gemm", "a w b", "y")}, []testTensor{f("w", 60, 2), f("b", 1, 1, 2)}, "its bias is FLOAT of shape [1 1 2]"},
		{"a bias of two rows", []testNode{op("Flatten", "x", "a"), op("Gemm", "a w b", "y")}, []testTensor{f("w", 60, 2), f("b", 2, 2)}, "its bias is FLOAT of shape [2 2]"},
		{"a bias of other columns", []testNode{op("Flatten", "x", "a"), op("Gemm", "a w b", "y")}, []testTensor{f("w", 60, 2), f("b", 1, 3)}, "its bias is FLOAT of shape [1 3]"},
		{"columns expanded to more", []testNode{op("Expand", "x s", "y")}, []testTensor{ints("s", 1, 3, 4, 6)}, "dimension 3 has size 5, which cannot be expanded to 6"},
		{"channels expanded to none", []testNode{op("GlobalMaxPool", "x", "a"), op("Expand", "a s", "y")}, []testTensor{ints("s", 1, 3, 0, 1)}, "dimension 2 has size 1, which cannot be expanded to 0"},
		{"a scale of 0", []testNode{op("qonnx.custom_op.general/Quant", "x s zero four", "y")}, []testTensor{number("s", 0), number("zero", 0), number("four", 4)}, "every scale must be above 0"},
		{"a scale below 0 of a channel", []testNode{op("qonnx.custom_op.general/Quant", "x s zero four", "y")}, []testTensor{floats("s", []int{3, 1, 1}, 1, 2, -1), number("zero", 0), number("four", 4)}, "every scale must be above 0"},
		{"a scale of no number", []testNode{op("QuantizeLinear", "x s", "a"), op("DequantizeLinear", "a s", "y")}, []testTensor{number("s", math.NaN())}, "every scale must be above 0"},
		{"indices of six dimensions", []testNode{op("Gather", "x i", "y", "axis", 1)}, []testTensor{{name: "i", typ: pb.Int64, dims: []int{1, 1, 1, 1, 1, 2}, values: []float64{2, 0}}}, "more than 8 dimensions"},
		{"nine dimensions", []testNode{op("Unsqueeze", "x five", "y")}, []testTensor{ints("five", 1, 2, 3, 4, 5)}, "more than 8 dimensions"},
		{"two dimensions that are open", []testNode{op("Reshape", "x s", "y")}, []testTensor{ints("s", 0, -1, -1)}, "shape [0 -1 -1]"},
		{"two dimensions of a constant that are open", []testNode{op("Reshape", "k s", "a"), op("Add", "x a", "y")}, []testTensor{f("k", 6), ints("s", -1, -1, 1)}, "shape [-1 -1 1]"},
		{"rows that are wrapped and cropped", []testNode{op("Pad", "x p", "y", "mode", "wrap")}, []testTensor{ints("p", 0, 0, -1, 0, 0, 0, 1, 0)}, "repeat pixels that are cropped"},
		{"a choice of NaN among others", []testNode{op("Greater", "x half", "c"), op("Where", "c x nan", "y")}, []testTensor{number("half", 0.5), floats("nan", []int{3, 1, 1}, 1, math.NaN(), 2)}, "an operand holds NaN"},
		{"indices of each image", []testNode{op("GatherND", "x i", "y", "batch_dims", 1)}, []testTensor{{name: "i", typ: pb.Int64, dims: []int{1, 1}, values: []float64{0}}}, "want a list of positions"},
		{"indices without dimensions", []testNode{op("GatherND", "x i", "y")}, []testTensor{{name: "i", typ: pb.Int64, dims: []int{}, values: []float64{0}}}, "want a list of positions"},
		{"an index behind the last column", []testNode{op("Transpose", "x", "a", perm(2, 3, 0, 1)...), op("GatherND", "a at", "y")}, []testTensor{ints("at", 1, 9)}, "index 9 lies outside a dimension of 5"},
		{"groups of a constant that are not given", []testNode{op("GroupNormalization", "k s b", "n"), op("Add", "x n", "y")}, []testTensor{f("k", 1, 3, 1, 1), f("s", 3), f("b", 3)}, "num_groups must divide"},
		{"a stride beyond all images", []testNode{op("Conv", "x w", "y", "strides", []int{1<<16 + 1, 1})}, []testTensor{f("w", 2, 3, 1, 1)}, "strides [65537 1]"},
		{"a stride of a transposed convolution beyond all images", []testNode{op("ConvTranspose", "x w", "y", "strides", []int{1, 1<<16 + 1})}, []testTensor{f("w", 3, 2, 1, 1)}, "strides [1 65537]"},
		{"one value as more channels than there may be", []testNode{op("ReduceMax", "x", "a", "axes", []int{1, 2, 3}), op("Expand", "a s", "y")}, []testTensor{ints("s", 1, 1<<30, 1, 1)}, "(Expand, index 1)"},
		{"an equation whose result has another dimension first", []testNode{op("Einsum", "x w", "y", "equation", "nchw,co->hnwo")}, []testTensor{f("w", 3, 2)}, "at most one dimension in common"},
		{"an equation whose result lacks a dimension", []testNode{op("Einsum", "x w", "y", "equation", "nchw,co->nhw")}, []testTensor{f("w", 3, 2)}, "at most one dimension in common"},
		{"an equation of a dimension of both that stays", []testNode{op("Einsum", "x w", "y", "equation", "nchw,ch->nhw")}, []testTensor{f("w", 3, 4)}, "at most one dimension in common"},
		{"an equation whose result repeats one", []testNode{op("Einsum", "x w", "y", "equation", "nchw,co->nhwoh")}, []testTensor{f("w", 3, 2)}, "at most one dimension in common"},
		{"numbers of channels, of which some are taken", []testNode{op("ArgMax", "x", "a", "axis", 1), op("Transpose", "a", "b", perm(2, 3, 0, 1)...), op("GatherND", "b at", "y")}, []testTensor{ints("at", 1, 2)}, "its input is INT64, want FLOAT"},
		{"a dimension of 0", []testNode{op("Reshape", "x s", "y", "allowzero", 1)}, []testTensor{ints("s", -1, 0, 60)}, "shape [-1 0 60]"},
		{"response of an even size", []testNode{op("LRN", "x", "y", "size", 2)}, nil, "a size of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 5), nodes: c.nodes, inits: c.inits, output: "y"}
			if strings.HasPrefix(c.name, "a threshold") {
				m.input = bytesImage(3, 4, 5)
			}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			require.ErrorContains(t, err, c.want)
		})
	}
	m := testModel{input: image(3, 4, 5), output: "y"}
	_, m.inits = trunc(0, 0, 8, 4)
	m.nodes = []testNode{op("Clip", "x least most", "c"), op("qonnx.custom_op.general/Trunc", "c scale zero in one out", "y")}
	m.inits = append(m.inits, number("one", 1))
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	require.ErrorContains(t, err, "every scale must be above 0")
	for _, c := range []struct {
		scale, zero, in, out float64
		want                 string
	}{
		{0, 0, 8, 4, "every scale must be above 0"}, {-1, 0, 8, 4, "every scale must be above 0"}, {math.NaN(), 0, 8, 4, "every scale must be above 0"},
		{1, 1, 8, 4, "the zero point must be 0"}, {1, 0, 40, 7, "a division by 2 to the power of 33"}, {1, 0, 7, 40, "a division by 2 to the power of -33"}, {1, 0, 40, 8, ""}, {1, 0, 8, 4, ""},
	} {
		t.Run(fmt.Sprint("trunc ", c), func(t *testing.T) {
			m := testModel{input: image(3, 4, 5), output: "y"}
			m.nodes, m.inits = trunc(c.scale, c.zero, c.in, c.out)
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// Of several outputs that cannot be made, the first one is named.
func TestFirstOfSeveralOutputs(t *testing.T) {
	m := twoEnds()
	m.also[1], m.also[3] = "w", "image"
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	require.ErrorContains(t, err, `output "w": it is constant`)
	require.NotContains(t, err.Error(), `output "image"`)
}

// Behind an operator that no layer does, what is known of its result is used, and nothing else:
// neither is a convolution an obstacle for dimensions that are not known, nor is it none for
// those that are.
func TestBehindObstacles(t *testing.T) {
	weights := floats("w", []int{1, 5, 1, 1}, 1, 2, 3, 4, 5) // for other channels than x has
	for _, c := range []struct {
		name     string
		node     testNode
		declared testInput
		want     int // obstacles
	}{
		{"of the same dimensions", op("Log", "x", "a"), testInput{}, 2},
		{"of two operands", op("Mod", "x two", "a"), testInput{}, 2},
		{"a function", op("Cos", "x", "a"), testInput{}, 2},
		{"of unknown dimensions", op("LSTM", "x", "a"), testInput{}, 1},
		{"of declared ones", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 3, 4, 5}}, 2},
		{"of declared ones that fit", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 5, 4, 1}}, 1},
		{"of a declared vector", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 5}}, 2},
		{"no channels", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 0, 4, 5}}, 1},
		{"no rows", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 3, 0, 5}}, 1},
		{"no columns", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 3, 4, 0}}, 1},
		{"as many rows as nobody has", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 3, int64(1 << 40), 5}}, 1},
		{"rows of a name", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 3, "h", 5}}, 1},
		{"three dimensions", op("LSTM", "x", "a"), testInput{"a", pb.Float, []any{"n", 3, 4}}, 1},
		{"of another tensor", op("LSTM", "x", "a"), testInput{"b", pb.Float, []any{"n", 3, 4, 5}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 5), nodes: []testNode{c.node, op("Conv", "a w", "y")}, inits: []testTensor{weights, number("two", 2)}, output: "y"}
			if c.declared.name != "" {
				m.infos = []testInput{c.declared}
			}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			var obstacles *bcnn.ObstaclesError
			require.ErrorAs(t, err, &obstacles)
			require.Len(t, obstacles.Obstacles, c.want, err)
			require.Equal(t, c.node.op, obstacles.Obstacles[0].Op)
		})
	}
}

// What an obstacle leaves open is no second obstacle.
func TestThresholdsBehindObstacles(t *testing.T) {
	m := testModel{input: image(3, 4, 5), output: "y", infos: []testInput{{"a", pb.Float, []any{"n", 1, 4, 5}}},
		nodes: []testNode{op("LSTM", "x", "a"), op("Greater", "a k", "c"), op("Where", "c one minus", "y")},
		inits: []testTensor{floats("k", []int{3, 1, 1}, 1, 2, 3), number("one", 1), number("minus", -1)}}
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 1)
}

// The layers that quotients by constants become: of powers of 2 a scale, of others a division by
// the root of a square, where float32 has that.
func TestConstantQuotients(t *testing.T) {
	r := rand.New(rand.NewPCG(125, 126))
	for _, c := range []struct {
		by   []float64
		want string
	}{
		{[]float64{4}, "affine"}, {[]float64{-0.5}, "affine"}, {[]float64{3}, "batchnorm"}, {[]float64{0.375}, "batchnorm"}, {[]float64{-0.75}, "batchnorm"},
		{[]float64{2, 4, 0.25}, "affine"}, {[]float64{2, 3, 0.5}, "batchnorm"}, {[]float64{0.75, 2, 4}, "batchnorm"}, {[]float64{2, 4, -3}, "batchnorm"},
		{[]float64{float64(float32(1.1))}, "affine"}, {[]float64{3, 5, float64(float32(1.1))}, "affine"}, {[]float64{float64(float32(1.1)), 3, 5}, "affine"}, {[]float64{0x3p-80}, "affine"},
	} {
		m := testModel{input: image(3, 4, 5), output: "y", nodes: []testNode{op("Div", "x by", "y")}, inits: []testTensor{floats("by", []int{len(c.by), 1, 1}, c.by...)}, rounds: true}
		net, _ := compare(t, r, m, Options{}, false)
		require.Equal(t, map[string]int{c.want: 1}, layersOf(net), c.by)
	}
}

// The clip of PACT, (|x| − |x − a| + a)/2, of an input and of what a layer makes.
func TestPACT(t *testing.T) {
	r := rand.New(rand.NewPCG(127, 128))
	for _, first := range [][]testNode{{op("Identity", "x", "v")}, {op("Conv", "x w", "v")}} {
		m := testModel{input: image(3, 4, 5), output: "y", rounds: true, nodes: append(first, op("Abs", "v", "p"), op("Sub", "v a", "m"), op("Abs", "m", "q"), op("Sub", "p q", "d"), op("Add", "d a", "e"), op("Mul", "e half", "y")),
			inits: []testTensor{randomTensor(r, "w", []int{3, 3, 1, 1}, 0.5, -1), number("a", 0.75), number("half", 0.5)}}
		net, _ := compare(t, r, m, Options{}, false)
		require.Equal(t, 1, layersOf(net)["clip"])
		require.Zero(t, layersOf(net)["prelu"])
	}
}

// A dimension that the file leaves open is an obstacle of the input, which is no node.
func TestOpenDimensions(t *testing.T) {
	m := testModel{input: testInput{"x", pb.Float, []any{"n", 3, "h", 5}}, nodes: []testNode{op("Relu", "x", "y")}, output: "y"}
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 1)
	require.Equal(t, -1, obstacles.Obstacles[0].Index)
	require.Equal(t, "x", obstacles.Obstacles[0].Node)
	require.Equal(t, "InputShape", obstacles.Obstacles[0].Option)
	for dims, want := range map[int]string{0: "it has 0 dimensions", 1: "", 2: "", 3: "", 4: "", 5: "", 6: "it has 6 dimensions"} {
		m.input.dims = []any{"n", 3, 4, 5, 6, 7}[:dims]
		_, _, err := Decode(t.Context(), m.encode(), Options{})
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}
