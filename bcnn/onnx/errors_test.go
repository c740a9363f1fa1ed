package onnx

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// nestedIf is an If whose branch is an If, and so on.
func nestedIf(depth int) []testNode {
	branch := testModel{nodes: []testNode{op("Relu", "x", "t")}, output: "t"}
	for range depth - 1 {
		branch = testModel{nodes: []testNode{op("If", "c", "t", "then_branch", branch)}, output: "t"}
	}
	return []testNode{op("Cast", "one", "c", "to", int(pb.Bool)), op("If", "c", "y", "then_branch", branch)}
}

// TestErrors checks that what cannot be represented is an error that names the
// file, the node and the cause.
// What is wrong is said of the way that a graph's input lies in memory, not of another one
// that fits nowhere, though one node says so there.
func TestObstaclesOfTheRightLayout(t *testing.T) {
	m := testModel{input: testInput{"x", pb.Float, []any{"batch", 3, 5, 4}}, output: "y", nodes: []testNode{
		op("Conv", "x w", "c"), op("Transpose", "c", "d", "perm", []int{0, 2, 3, 1}), op("Cast", "d", "a", "to", pb.Double), op("Cast", "d", "b", "to", pb.Double), op("Add", "a b", "y"),
	}, inits: []testTensor{randomTensor(rand.New(rand.NewPCG(13, 14)), "w", []int{4, 3, 3, 3}, -1, 1)}}
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 2)
	for _, o := range obstacles.Obstacles {
		require.Equal(t, "Cast", o.Op)
	}
}

func TestErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	f := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, -1, -0.5, 0.25, 1) }
	w := f("w", 4, 3, 3, 3)
	zero, one := number("zero", 0), number("one", 1)
	tests := []struct {
		name  string
		nodes []testNode
		inits []testTensor
		want  []string
	}{
		{"unknown operator", []testNode{op("LSTM", "x", "y")}, nil, []string{`node "n_y" (LSTM, index 0)`, "not supported"}},
		{"operators that ONNX Runtime has fused", []testNode{op("com.microsoft/FusedConv", "x w", "y")}, []testTensor{w}, []string{"com.microsoft.FusedConv", "ORT_ENABLE_BASIC"}},
		{"unknown domain", []testNode{op("com.example/Conv", "x w", "y")}, []testTensor{w}, []string{"com.example.Conv"}},
		{"operators of integers", []testNode{op("QLinearConv", "x", "y")}, nil, []string{"(QLinearConv, index 0)", "QuantFormat.QDQ"}},
		{"hard maximum", []testNode{op("Flatten", "x", "a"), op("Hardmax", "a", "y")}, nil, []string{"(Hardmax, index 1)"}},
		{"softmax of rows", []testNode{op("Reshape", "x s", "a"), op("Softmax", "a", "y", "axis", 2)}, []testTensor{ints("s", -1, 3, 2, 2, 2, 2)}, []string{"only the softmax of a vector or of all channels"}},
		{"log-softmax inside", []testNode{op("Flatten", "x", "a"), op("MatMul", "a v", "b"), op("LogSoftmax", "b", "c"), op("Relu", "c", "y")},
			[]testTensor{f("v", 48, 5)}, []string{"softmax, which must be the last layer"}},
		{"undefined input", []testNode{op("Relu", "nothing", "y")}, nil, []string{`"nothing"`}},
		{"missing input", []testNode{op("Conv", "x", "y")}, nil, []string{"input 1 is missing"}},
		{"computed weights", []testNode{op("Conv", "x x", "y")}, nil, []string{"input 1", "must be constant"}},
		{"one-dimensional convolution", []testNode{op("Conv", "x v", "y")}, []testTensor{f("v", 4, 3, 3)}, []string{"two-dimensional"}},
		{"channels", []testNode{op("Conv", "x v", "y")}, []testTensor{f("v", 4, 2, 3, 3)}, []string{"[4 2 3 3] in 1 groups for 3 channels"}},
		{"large kernel", []testNode{op("Conv", "x v", "y")}, []testTensor{f("v", 4, 3, 5, 3)}, []string{"larger than its padded input"}},
		{"kernel_shape", []testNode{op("Conv", "x w", "y", "kernel_shape", []int{3, 2})}, []testTensor{w}, []string{"kernel_shape"}},
		{"negative pads", []testNode{op("Conv", "x w", "y", "pads", []int{0, 0, -1, 0})}, []testTensor{w}, []string{`"pads"`}},
		{"auto_pad", []testNode{op("Conv", "x w", "y", "auto_pad", "SAME")}, []testTensor{w}, []string{`auto_pad "SAME"`}},
		{"attribute type", []testNode{op("Conv", "x w", "y", "group", 1.0)}, []testTensor{w}, []string{`"group"`}},
		{"pad channels", []testNode{op("Pad", "x p one", "a"), op("Conv", "a w", "y")}, []testTensor{w, one, ints("p", 0, 1, 0, 0, 0, 0, 0, 0)}, []string{"padding of dimension 1"}},
		{"pad the batch", []testNode{op("Pad", "x p", "a"), op("Conv", "a w", "y")}, []testTensor{w, ints("p", 1, 0, 0, 0, 0, 0, 0, 0)}, []string{"padding of dimension 0"}},
		{"pad mode", []testNode{op("Pad", "x p", "a", "mode", "mirror"), op("Conv", "a w", "y")}, []testTensor{w, ints("p", 0, 0, 1, 1, 0, 0, 1, 1)}, []string{`mode "mirror"`}},
		{"reflected twice", []testNode{op("Pad", "x p", "y", "mode", "reflect")}, []testTensor{ints("p", 0, 0, 4, 1, 0, 0, 1, 1)}, []string{"reflect a size of 4 more than once"}},
		{"all cropped", []testNode{op("Pad", "x p", "y")}, []testTensor{ints("p", 0, 0, -2, 0, 0, 0, -2, 0)}, []string{"leave nothing of 4"}},
		{"cropped channels", []testNode{op("Pad", "x p", "y")}, []testTensor{ints("p", 0, -1, 0, 0, 0, 0, 0, 0)}, []string{"dimension 1"}},
		{"reflected channels", []testNode{op("Pad", "x p", "y", "mode", "reflect")}, []testTensor{ints("p", 0, 1, 0, 0, 0, 0, 0, 0)}, []string{"dimension 1", "reflect"}},
		{"resized channels", []testNode{op("Resize", "x e s", "y")}, []testTensor{floats("e", []int{0}), floats("s", []int{4}, 1, 2, 1, 1)}, []string{"more than height and width"}},
		{"resized to nothing", []testNode{op("Resize", "x e s", "y")}, []testTensor{floats("e", []int{0}), floats("s", []int{4}, 1, 1, 0.1, 1)}, []string{"scale 0.1 of a size of 4"}},
		{"resized to too much", []testNode{op("Resize", "x e s", "y")}, []testTensor{floats("e", []int{0}), floats("s", []int{4}, 1, 1, 1e20, 1)}, []string{"scale 1e+20 of a size of 4"}},
		{"resized by two numbers", []testNode{op("Resize", "x e s", "y")}, []testTensor{floats("e", []int{0}), floats("s", []int{2}, 2, 2)}, []string{"2 scales or sizes for 4 dimensions"}},
		{"resized to a negative size", []testNode{op("Resize", "x e e s", "y")}, []testTensor{floats("e", []int{0}), ints("s", 1, 3, -4, 4)}, []string{"sizes [1 3 -4 4]"}},
		{"resized by floats", []testNode{op("Resize", "x e e s", "y")}, []testTensor{floats("e", []int{0}), floats("s", []int{4}, 1, 3, 4, 4)}, []string{"which the operator does not take"}},
		{"resized to a region", []testNode{op("Resize", "x e s", "y", "coordinate_transformation_mode", "tf_crop_and_resize")}, []testTensor{floats("e", []int{0}), floats("s", []int{4}, 1, 1, 2, 2)}, []string{`"tf_crop_and_resize"`}},
		{"resized with antialias", []testNode{op("Resize", "x e s", "y", "mode", "linear", "antialias", 1, "coordinate_transformation_mode", "align_corners")}, []testTensor{floats("e", []int{0}), floats("s", []int{4}, 1, 1, 0.5, 0.5)}, []string{"antialias with", "align_corners"}},
		{"transposed channels", []testNode{op("ConvTranspose", "x w", "y")}, []testTensor{w}, []string{"[4 3 3 3] in 1 groups for 3 channels"}},
		{"transposed to nothing", []testNode{op("ConvTranspose", "x w3", "y", "pads", []int{3, 0, 3, 0})}, []testTensor{f("w3", 3, 3, 3, 3)}, []string{"leave nothing"}},
		{"transposed stride", []testNode{op("ConvTranspose", "x w3", "y", "strides", []int{0, 1})}, []testTensor{f("w3", 3, 3, 3, 3)}, []string{"strides [0 1]"}},
		{"depth to space", []testNode{op("DepthToSpace", "x", "y", "blocksize", 2)}, nil, []string{"blocksize 2", "3 channels"}},
		{"space to depth", []testNode{op("SpaceToDepth", "x", "y", "blocksize", 3)}, nil, []string{"blocksize 3 does not divide the height and width of 4×4×3"}},
		{"largest image", []testNode{op("ArgMax", "x", "y", "axis", 0)}, nil, []string{"(ArgMax, index 0)", "dimension 0"}},
		{"last of the largest images", []testNode{op("ArgMax", "x", "y", "axis", 0, "select_last_index", 1)}, nil, []string{"images of the batch"}},
		{"more than all", []testNode{op("TopK", "x k", "y", "axis", 1)}, []testTensor{ints("k", 4)}, []string{"the 4 largest of 3 values"}},
		{"values of a softmax", []testNode{op("Flatten", "x", "a"), op("Softmax", "a", "b"), op("TopK", "b k", "y")}, []testTensor{ints("k", 4)}, []string{"softmax"}},
		{"dilated pool in padding", []testNode{op("MaxPool", "x", "y", "kernel_shape", []int{1, 2}, "dilations", []int{1, 2}, "pads", []int{1, 0, 0, 0})}, nil, []string{"n_y", "a window lies in the padding"}},
		{"pool in padding", []testNode{op("MaxPool", "x", "y", "kernel_shape", []int{1, 1}, "pads", []int{1, 0, 0, 0})}, nil, []string{"n_y", "padding"}},
		{"dilated average pool with padding", []testNode{op("AveragePool", "x", "y", "kernel_shape", []int{2, 2}, "dilations", []int{2, 1}, "pads", []int{1, 0, 0, 0})}, nil, []string{"dilated windows with padding"}},
		{"slopes of pixels", []testNode{op("PRelu", "x s", "y")}, []testTensor{floats("s", []int{1, 1, 4}, 1, 2, 3, 4)}, []string{"n_y", "varies over the height or width"}},
		{"computed slopes", []testNode{op("PRelu", "x x", "y")}, nil, []string{"n_y"}},
		{"clip", []testNode{op("Clip", "x one nan", "a"), op("Conv", "a w", "y")}, []testTensor{w, number("nan", math.NaN()), one}, []string{`node "n_a" (Clip, index 0)`, "limits 1 and NaN"}},
		{"quotient by more values", []testNode{op("GlobalAveragePool", "x", "a"), op("Div", "a x", "y")}, nil, []string{"(Div, index 1)", "the divisor has the dimensions of the dividend"}},
		{"product of an image and a vector", []testNode{op("Flatten", "x", "a"), op("MatMul", "x a", "y")}, nil, []string{"(MatMul, index 1)", "two computed tensors of 4 and 2 dimensions"}},
		{"product of other sizes", []testNode{op("MaxPool", "x", "a", "kernel_shape", []int{2, 2}), op("MatMul", "x a", "y")}, nil, []string{"(MatMul, index 1)", "matrices of dimensions [3 4 4] and [3 3 3]"}},
		{"matrix product of the rows", []testNode{op("MatMul", "v x", "y")}, []testTensor{f("v", 2, 2, 4)}, []string{"(MatMul, index 0)", "is a constant of dimensions"}},
		{"einsum of two dimensions", []testNode{op("Einsum", "x v", "y", "equation", "nchw,chw->n")}, []testTensor{f("v", 3, 4, 4)}, []string{"(Einsum, index 0)", "at most one dimension in common"}},
		{"einsum of an image with itself", []testNode{op("Einsum", "x x", "y", "equation", "nchw,nchw->nchw")}, nil, []string{"(Einsum, index 0)", "two computed matrices"}},
		{"groups that do not divide", []testNode{op("GroupNormalization", "x v v", "y", "num_groups", 2)}, []testTensor{f("v", 3)}, []string{"(GroupNormalization, index 0)", "num_groups must divide"}},
		{"norm of the batch", []testNode{op("LayerNormalization", "x v", "y", "axis", 0)}, []testTensor{f("v", 3)}, []string{"(LayerNormalization, index 0)", "must not include the batch"}},
		{"norm with other channels", []testNode{op("InstanceNormalization", "x v v", "y")}, []testTensor{f("v", 2)}, []string{"(InstanceNormalization, index 0)", "one value for each channel"}},
		{"norm of order 3", []testNode{op("LpNormalization", "x", "y", "axis", 1, "p", 3)}, nil, []string{"(LpNormalization, index 0)", "order"}},
		{"largest of many groups", []testNode{op("Reshape", "x i", "a"), op("ReduceMax", "a", "y", "axes", []int{1, 2})}, []testTensor{ints("i", 0, 3, 2, 2, 4)}, []string{"not windows"}},
		{"product of other dimensions", []testNode{op("ReduceMax", "x", "a", "axes", []int{2}), op("ReduceMax", "x", "b", "axes", []int{3}), op("Max", "b a", "y")}, nil, []string{"(Max, index 2)", "maximum of tensors of 4×1×3 and 1×4×3"}},
		{"concat of rows", []testNode{op("MaxPool", "x", "a", "kernel_shape", []int{1, 2}), op("Concat", "x a", "y", "axis", 2)}, nil, []string{"(Concat, index 1)", "4×4×3 and 4×3×3", "joined"}},
		{"concat of other sizes", []testNode{op("MaxPool", "x", "a", "kernel_shape", []int{2, 2}), op("Concat", "x a", "y", "axis", 1)}, nil, []string{"same height and width"}},
		{"concat with a constant", []testNode{op("Concat", "x v", "y", "axis", 1)}, []testTensor{f("v", 1, 3, 4, 5)}, []string{"(Concat, index 0)", "does not fit"}},
		{"slice of the batch", []testNode{op("Slice", "x p q i", "y")}, []testTensor{ints("p", 0), ints("q", 1), ints("i", 0)}, []string{"images of the batch"}},
		{"slice of nothing", []testNode{op("Slice", "x p q i", "y")}, []testTensor{ints("p", 3), ints("q", 9), ints("i", 1)}, []string{"nothing is left"}},
		{"gather of the batch", []testNode{op("Gather", "x i", "y")}, []testTensor{ints("i", 0)}, []string{"images of the batch"}},
		{"gather outside", []testNode{op("Gather", "x i", "y", "axis", 1)}, []testTensor{ints("i", 3)}, []string{"index 3 lies outside a dimension of 3"}},
		{"mean over the batch", []testNode{op("ReduceMean", "x", "y")}, nil, []string{"join the batch"}},
		{"mean over strides", []testNode{op("Reshape", "x i", "a"), op("ReduceMean", "a", "y", "axes", []int{2})}, []testTensor{ints("i", -1, 3, 2, 2, 4)}, []string{"not windows"}},
		{"product over pixels", []testNode{op("ReduceProd", "x i", "y")}, []testTensor{ints("i", 2, 3)}, []string{"(ReduceProd, index 0)", "not supported"}},
		{"division by 0", []testNode{op("Div", "x zero", "y")}, []testTensor{zero}, []string{"division by 0"}},
		{"power", []testNode{op("Pow", "x v", "y")}, []testTensor{floats("v", []int{1}, 0.3)}, []string{"(Pow, index 0)", "multiples of ¼ from −4 to 4"}},
		{"constant of another size", []testNode{op("Add", "x v", "y")}, []testTensor{f("v", 5, 1, 1)}, []string{"does not fit"}},
		{"infinite constant", []testNode{op("Log", "zero", "a"), op("Add", "x a", "y")}, []testTensor{zero}, []string{"-Inf"}},
		{"types", []testNode{op("Add", "x i", "y")}, []testTensor{ints("i", 1)}, []string{"INT64"}},
		{"reshape of the batch", []testNode{op("Reshape", "x i", "y")}, []testTensor{ints("i", 16, -1)}, []string{"[16 -1]"}},
		{"reshape to another size", []testNode{op("Reshape", "x i", "y")}, []testTensor{ints("i", -1, 47)}, []string{"[-1 47]"}},
		{"reshape with zero", []testNode{op("Reshape", "x i", "y")}, []testTensor{ints("i", -1, 0, 0, 0, 0)}, []string{"copies a dimension"}},
		{"batch norm weights", []testNode{op("BatchNormalization", "x v v v v", "y")}, []testTensor{f("v", 4)}, []string{"want 3 FLOAT values"}},
		{"training", []testNode{op("BatchNormalization", "x v v v v", "y", "training_mode", 1)}, []testTensor{f("v", 3)}, []string{"training_mode"}},
		{"second output", []testNode{op("MaxPool", "x", "a b", "kernel_shape", []int{2, 2}), op("Relu", "b", "y")}, nil, []string{`"b"`}},
		{"transposed batch", []testNode{op("Flatten", "x", "a"), op("Gemm", "a v", "y", "transA", 1)}, []testTensor{f("v", 48, 2)}, []string{"transA"}},
		{"many bits", []testNode{op("onnx.brevitas/Quant", "x one zero nine", "y", "rounding_mode", "FLOOR")}, []testTensor{zero, one, number("nine", 9)}, []string{"at most 256 levels"}},
		{"late Binarize", []testNode{op("Relu", "x", "a"), op("bitcnn/Binarize", "a", "y", "scheme", "lbp")}, nil, []string{"graph's input"}},
		{"constant output", []testNode{op("Relu", "one", "y")}, []testTensor{one}, []string{"constant"}},
		{"branch by what is computed", []testNode{op("Less", "x zero", "c"), op("If", "c", "y")}, []testTensor{zero}, []string{"(If, index 1)", "its condition is computed"}},
		{"branch that is not there", []testNode{op("Cast", "one", "c", "to", int(pb.Bool)), op("If", "c", "y")}, []testTensor{one}, []string{"(If, index 1)", "then_branch does not give its 1 outputs"}},
		{"branch with an obstacle", []testNode{op("Cast", "one", "c", "to", int(pb.Bool)), op("If", "c", "y", "then_branch", testModel{nodes: []testNode{op("LSTM", "x", "t")}, output: "t"})},
			[]testTensor{one}, []string{`node "n_t" (LSTM, index 1)`, "not supported"}},
		{"branch without outputs", []testNode{op("Cast", "one", "c", "to", int(pb.Bool)), op("If", "c", "y", "then_branch", testModel{nodes: []testNode{op("Relu", "x", "")}, output: "x"})},
			[]testTensor{one}, []string{"(If, index 1)", "has no output"}},
		{"branches in branches", nestedIf(9), []testTensor{one}, []string{"(If, index 1)", "more than 8 If nodes are nested"}},
		{"incomplete file", []testNode{op("Relu", "nowhere", "y")}, nil, []string{"is neither an initialiser", "optimize=False"}},
		{"windows that overlap", []testNode{op("Reshape", "x i", "a"), op("Col2Im", "a j k", "y")}, []testTensor{ints("i", 0, 3, 16), ints("j", 5, 5), ints("k", 2, 2)}, []string{"(Col2Im, index 1)", "only windows of one pixel"}},
		{"windows of other pixels", []testNode{op("Reshape", "x i", "a"), op("Col2Im", "a j k", "y")}, []testTensor{ints("i", 0, 3, 16), ints("j", 5, 5), ints("k", 1, 1)}, []string{"16 windows for 5×5 pixels"}},
		{"windows larger than the image", []testNode{op("Transpose", "x", "a", "perm", []int{0, 2, 3, 1}), op("qonnx.custom_op.general/Im2Col", "a", "y", "kernel_size", []int{5, 5})}, nil, []string{"larger than its padded input"}},
		{"response of no channels", []testNode{op("LRN", "x", "y")}, nil, []string{"(LRN, index 0)", "a size of 0"}},
		{"remainder of values", []testNode{op("Mod", "x one", "y")}, []testTensor{one}, []string{"(Mod, index 0)", "not supported"}},
		{"cycle", []testNode{op("Relu", "b", "a"), op("Relu", "a", "b"), op("Relu", "b", "y")}, nil, []string{`"b"`}},
		{"two writers", []testNode{op("Relu", "x", "a"), op("Relu", "x", "a"), op("Relu", "a", "y")}, nil, []string{"too"}},
		{"element type", []testNode{op("Conv", "x v", "y")}, []testTensor{{name: "v", typ: 99, dims: []int{1}, values: []float64{1}}}, []string{"type 99"}},
		{"short data", []testNode{op("Conv", "x v", "y")}, []testTensor{{name: "v", typ: pb.Float, dims: []int{1, 3, 1, 1}, values: []float64{1}}}, []string{"4 bytes of data"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 4), nodes: test.nodes, inits: test.inits, output: "y"}
			net, report, err := Load(t.Context(), write(t, m.encode()), Options{})
			require.Error(t, err)
			require.Nil(t, net)
			require.Nil(t, report)
			for _, want := range append(test.want, "model.onnx: ") {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// TestInputErrors checks inputs, options and files as a whole.
func TestInputErrors(t *testing.T) {
	good := testModel{input: image(3, 4, 4), nodes: []testNode{op("Relu", "x", "y")}, output: "y"}
	change := func(f func(m *testModel)) []byte {
		m := good
		f(&m)
		return m.encode()
	}
	input := func(typ pb.DataType, dims ...any) []byte {
		return change(func(m *testModel) { m.input.typ, m.input.dims = typ, dims })
	}
	tests := []struct {
		name string
		data []byte
		opts Options
		want string
	}{
		{"empty", nil, Options{}, "no graph"},
		{"text", []byte("this is not a model"), Options{}, "not a valid ONNX file"},
		{"truncated", good.encode()[:40], Options{}, "not a valid ONNX file"},
		{"old", change(func(m *testModel) { m.opset = 6 }), Options{}, "operator set 6"},
		{"two inputs", change(func(m *testModel) { m.extra = []testInput{{"z", pb.Float, []any{1, 2, 3, 4, 5, 6}}} }), Options{}, `input "z": it has 6 dimensions`},
		{"no such output", change(func(m *testModel) { m.output = "z" }), Options{}, `output "z"`},
		{"input type", input(pb.Int64, 1, 3, 4, 4), Options{}, "INT64"},
		{"rank", input(pb.Float, 1, 3, 4, 4, 4, 4), Options{}, "6 dimensions"},
		{"an open depth", input(pb.Float, 1, 3, "depth", 4, 4), Options{}, `"depth" is dynamic`},
		{"a huge volume", input(pb.Float, 1, 3, 1<<20, 1<<20, 4), Options{}, "1099511627776"},
		{"dynamic", input(pb.Float, 1, 3, "height", 4), Options{}, `"height" is dynamic`},
		{"negative", input(pb.Float, 1, 3, -4, 4), Options{}, "-4"},
		{"huge", input(pb.Float, 1, 1<<20, 1<<20, 1<<20), Options{}, "more than"},
		{"another size", good.encode(), Options{InputShape: bcnn.Shape{H: 5}}, "InputShape says 5"},
		{"means", good.encode(), Options{Mean: []float32{1, 2}}, "Mean has 2 values, the input has "},
		{"means and scales", good.encode(), Options{Mean: []float32{1, 2}, Scale: []float32{1, 2}}, " has 2 values, the input has "},
		{"means of bytes", input(pb.Uint8, 1, 3, 4, 4), Options{Mean: []float32{1}}, "takes UINT8"},
		{"relu of bytes", input(pb.Uint8, 1, 3, 4, 4), Options{}, "UINT8"},
		{"labels", change(func(m *testModel) { m.metadata = map[string]string{"labels": "cat"} }), Options{}, "JSON"},
		{"number of labels", good.encode(), Options{Labels: []string{"cat"}}, "1 labels"},
		{"resize", change(func(m *testModel) { m.metadata = map[string]string{"resize": "big"} }), Options{}, `"big"`},
		{"input type option", good.encode(), Options{InputType: bcnn.Bits}, "bits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := Load(t.Context(), write(t, test.data), test.opts)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "model.onnx")
		})
	}
	_, _, err := Load(t.Context(), filepath.Join(t.TempDir(), "absent.onnx"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "absent.onnx")
	_, _, err = Load(t.Context(), t.TempDir(), Options{})
	require.ErrorContains(t, err, "is a directory")
}

// TestLimits holds nodes, layers and tensors against the limits of the options: the
// least that suffices, and one less.
func TestLimits(t *testing.T) {
	relus := chain(3, func(_ int, from, to string) []testNode { return []testNode{op("Relu", from, to)} })
	// Two nodes that become a threshold, a sign and a scale.
	sign := testModel{input: image(2, 2, 2), output: "y", inits: []testTensor{number("one", 1), number("two", 2)},
		nodes: []testNode{op("Greater", "x one", "a"), op("Where", "a two one", "y")}}
	conv := testModel{input: image(2, 2, 2), output: "y", inits: []testTensor{weightsOf("w", 5, 2, 1, 1)}, nodes: []testNode{op("Conv", "x w", "y")}}
	wide := testModel{input: image(4, 2, 2), output: "y", inits: []testTensor{weightsOf("w", 1, 4, 1, 1)}, nodes: []testNode{op("Conv", "x w", "y")}}
	fold := testModel{input: image(2, 2, 2), output: "y", inits: []testTensor{weightsOf("a", 10, 1), ints("s", 1, 3)},
		nodes: []testNode{op("Gather", "a s", "b"), op("Cast", "b", "c", "to", int(pb.Double)), op("Slice", "c", "d", "starts", []int{0}, "ends", []int{1}),
			op("Cast", "d", "e", "to", int(pb.Float)), op("Add", "x e", "y")}}
	for _, test := range []struct {
		name  string
		m     testModel
		least bcnn.Limits
		want  string
	}{
		{"nodes", relus, bcnn.Limits{Layers: 3}, "the graph has 3 nodes, at most 2 are allowed"},
		{"layers", sign, bcnn.Limits{Layers: 3}, "more than the 2 layers that are allowed"},
		{"input", wide, bcnn.Limits{TensorBytes: 4 * 16}, `input "x": a feature map of 2×2×4 takes 64 bytes, at most 63 are allowed`},
		{"feature map", conv, bcnn.Limits{TensorBytes: 4 * 20}, `node "n_y" (Conv, index 0): a feature map of 2×2×5 takes 80 bytes, at most 79 are allowed`},
		{"constant", fold, bcnn.Limits{TensorBytes: 4 * 10}, `tensor "a": dimensions [10 1] of FLOAT take 40 bytes, at most 39 are allowed`},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := test.m.encode()
			_, _, err := Decode(t.Context(), data, Options{Limits: test.least})
			require.NoError(t, err)
			less := test.least
			less.Layers, less.TensorBytes = max(less.Layers-1, 0), max(less.TensorBytes-1, 0)
			_, _, err = Decode(t.Context(), data, Options{Limits: less})
			require.ErrorContains(t, err, test.want)
		})
	}
	twice := fold
	twice.nodes = append([]testNode{op("Concat", "a a", "twice", "axis", 0)}, fold.nodes...)
	twice.nodes[1] = op("Gather", "twice s", "b")
	_, _, err := Decode(t.Context(), twice.encode(), Options{Limits: bcnn.Limits{TensorBytes: 79}})
	require.ErrorContains(t, err, `node "n_twice" (Concat, index 0): dimensions [20 1] of FLOAT take 80 bytes`)
}

// TestHostileSizes checks that small files do not make large allocations.
func TestHostileSizes(t *testing.T) {
	claim := testTensor{name: "w", typ: pb.Float, dims: []int{1 << 20, 1 << 8}, values: nil}
	wrap := testTensor{name: "w", typ: pb.Float, dims: []int{1 << 28, 1 << 28, 1 << 8, 1}, values: nil}
	shape := ints("s", 1<<14, 1<<14)
	var empty []byte // a graph of nothing but empty nodes
	for range 1 << 19 {
		empty = append(empty, 1<<3|2, 0)
	}
	manyDims := bytes.Repeat([]byte{1 << 3, 1}, 1<<20)
	reuse := testModel{input: image(1, 1, 1), inits: []testTensor{randomTensor(rand.New(rand.NewPCG(1, 1)), "w", []int{1 << 18, 1, 1, 1}, 0.5, 1)}, output: "y"}
	chain := testModel{input: image(1, 1, 1), inits: []testTensor{floats("a", []int{1 << 12, 1}, make([]float64, 1<<12)...), floats("b", []int{1, 1 << 12}, make([]float64, 1<<12)...)}, output: "y"}
	for i := range 500 {
		reuse.nodes = append(reuse.nodes, op("Conv", "x w", fmt.Sprint("c", i)), op("MaxPool", fmt.Sprint("c", i), fmt.Sprint("d", i), "kernel_shape", []int{1, 1}))
		chain.nodes = append(chain.nodes, op("Add", "a b", fmt.Sprint("c", i)))
	}
	last := "c0"
	for i := range 499 {
		sum, fold := fmt.Sprint("s", i), fmt.Sprint("t", i)
		reuse.nodes = append(reuse.nodes, op("Add", fmt.Sprintf("%s c%d", last, i+1), sum))
		chain.nodes = append(chain.nodes, op("Add", fmt.Sprintf("%s c%d", last, i+1), fold))
		last = sum
	}
	reuse.output, chain.output = "s498", "t0"
	wide := testModel{input: testInput{"x", pb.Float, []any{1, 1 << 28}}, output: "y", inits: []testTensor{number("zero", 0), number("one", 1), number("minus", -1)},
		nodes: []testNode{op("Less", "x zero", "a"), op("Where", "a minus one", "y")}}
	high := wide
	high.input = image(1, 1<<28, 1)
	high.nodes = append(slices.Clip(wide.nodes), op("Conv", "y w", "z", "pads", []int{1, 1, 1, 1}))
	high.inits, high.output = append(slices.Clip(wide.inits), floats("w", []int{1, 1, 3, 3}, 1, 1, 1, 1, 1, 1, 1, 1, 1)), "z"
	often := testModel{input: testInput{"x", pb.Float, []any{1, 1 << 16}}, inits: []testTensor{floats("v", []int{1 << 16}, make([]float64, 1<<16)...)}}
	for i := range 1 << 15 {
		often.output = fmt.Sprint("x", i)
		often.nodes = append(often.nodes, op("Add", "v "+map[bool]string{true: "x", false: fmt.Sprint("x", i-1)}[i == 0], often.output))
	}
	tests := []struct {
		name string
		data []byte
	}{
		{"claimed channels", wide.encode()},
		{"claimed rows", high.encode()},
		{"a constant used often", often.encode()},
		{"claimed dimensions", testModel{input: image(3, 4, 4), nodes: []testNode{op("Conv", "x w", "y")}, inits: []testTensor{claim}, output: "y"}.encode()},
		{"dimensions that wrap", testModel{input: image(3, 4, 4), nodes: []testNode{op("Conv", "x w", "y")}, inits: []testTensor{wrap}, output: "y"}.encode()},
		{"ConstantOfShape", testModel{input: image(3, 4, 4), nodes: []testNode{op("ConstantOfShape", "s", "a"), op("Add", "x a", "y")}, inits: []testTensor{shape}, output: "y"}.encode()},
		{"outer sum", chain.encode()},
		{"weights used often", reuse.encode()},
		{"empty nodes", message(nil, 7, empty)},
		{"dimensions", message(nil, 7, message(nil, 5, manyDims))},
		{"a varint of ten bytes as a length", append(protowire.AppendTag(nil, 7, protowire.BytesType), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := Decode(t.Context(), test.data, Options{})
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
		})
	}
}
