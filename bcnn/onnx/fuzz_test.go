package onnx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// FuzzLoad imports arbitrary bytes: an error or a network that can be lowered
// and, if it is small, run.
func FuzzLoad(f *testing.F) {
	weights := floats("w", []int{2, 1, 3, 3}, 1, -1, 1, 1, 1, -1, -1, 1, 1, 1, 1, -1, -1, 1, 1, 1, -1, 1)
	per := func(name string, v float64) testTensor { return floats(name, []int{2}, v, v) }
	f.Add(testModel{
		opset: 9, input: image(1, 4, 4), output: "y",
		nodes: []testNode{
			op("Greater", "x zero", "a"), op("Where", "a one minus", "b"), op("Pad", "b", "c", "pads", []int{0, 0, 1, 1, 0, 0, 1, 1}, "value", -1.0),
			op("Conv", "c w", "d", "strides", []int{1, 1}), op("MaxPool", "d", "e", "kernel_shape", []int{2, 2}, "strides", []int{2, 2}),
			op("BatchNormalization", "e g b0 m v", "g0"), op("Relu", "g0", "h"), op("Shape", "h", "s"), op("Gather", "s i", "i0"),
			op("Unsqueeze", "i0", "i1", "axes", []int{0}), op("Concat", "i1 free", "i2", "axis", 0), op("Reshape", "h i2", "j"), op("MatMul", "j k", "l"),
			op("Softmax", "l", "y"),
		},
		inits: []testTensor{weights, number("zero", 0), number("one", 1), number("minus", -1), per("g", 1), per("b0", 0), per("m", 0.5), per("v", 1),
			{name: "i", typ: pb.Int64, dims: []int{}, values: []float64{0}}, ints("free", -1), floats("k", []int{8, 2}, make([]float64, 16)...)},
	}.encode())
	f.Add(testModel{
		input: bytesImage(3, 3, 3), output: "y",
		nodes:    []testNode{op("bitcnn/Binarize", "x", "a", "scheme", "grey", "thresholds", []int{7}), op("Conv", "a w bias", "y", "auto_pad", "SAME_LOWER")},
		inits:    []testTensor{{name: "w", typ: pb.Float, dims: weights.dims, values: weights.values, typed: true}, per("bias", 1)},
		metadata: map[string]string{"name": "n", "resize": "9"},
	}.encode())
	f.Add(testModel{
		input: image(3, 4, 4), nodes: []testNode{op("Conv", "x w", "y")}, output: "y", inits: []testTensor{floats("w", []int{6, 3, 1, 1}, make([]float64, 18)...)},
		metadata: map[string]string{
			"detection": `{"classes": 1, "threshold": 0.1, "overlap": 0.45, "heads": [{"kind": "yolo", "params": {"anchors": [[8, 9.5]], "class": "softmax"}}]}`,
			"photo":     `{"fit": "stretch"}`,
		},
	}.encode())
	f.Add(testModel{
		input: testInput{"x", pb.Float, []any{1, 4}}, output: "y",
		nodes: []testNode{op("Mul", "x two", "a"), op("Sub", "a one", "b"), op("onnx.brevitas/BipolarQuant", "b one", "c"),
			op("onnx.brevitas/BipolarQuant", "w one", "d"), op("Transpose", "d", "e", "perm", []int{1, 0}), op("MatMul", "c e", "f"),
			op("Clip", "f minus one", "g"), op("Sign", "g", "h"), op("Add", "h tenth", "i"), op("Sign", "i", "j"), op("Gemm", "j w", "y", "transB", 1, "alpha", 0.5)},
		inits: []testTensor{number("two", 2), number("one", 1), number("minus", -1), number("tenth", 0.1), floats("w", []int{4, 4}, make([]float64, 16)...)},
	}.encode())
	// Windows and their product, a branch, a power and a mean over channels.
	f.Add(testModel{
		input: image(2, 4, 4), output: "y",
		nodes: []testNode{
			op("LRN", "x", "l", "size", 3), op("Sign", "l", "s"), op("Gather", "s rows", "a", "axis", 2), op("Gather", "a rows", "b", "axis", 4),
			op("Transpose", "b", "c", "perm", []int{0, 1, 2, 4, 3, 5}), op("Reshape", "c i", "d"), op("MatMul", "u d", "e"), op("Reshape", "e j", "g"),
			op("Equal", "two two", "t"), op("If", "t", "k", "then_branch", testModel{nodes: []testNode{op("Pow", "g two", "h")}, output: "h"}),
			op("Transpose", "k", "k2", "perm", []int{0, 2, 3, 1}), op("qonnx.custom_op.general/Im2Col", "k2", "m", "kernel_size", []int{2, 1}, "stride", []int{1, 1}, "pad_amount", []int{0, 1, 0, 1}), op("MatMul", "m v", "y"),
		},
		inits: []testTensor{{name: "rows", typ: pb.Int64, dims: []int{2, 3}, values: []float64{0, 1, 2, 1, 2, 3}}, ints("i", 0, 8, 9), ints("j", 0, 2, 3, 3), number("two", 2),
			floats("u", []int{2, 8}, 1, -1, 1, 1, -1, -1, 1, 1, 1, 1, 1, -1, 1, -1, 1, 1), floats("v", []int{4, 2}, 1, -1, 1, 1, -1, -1, 1, 1)},
	}.encode())
	// A straight-through sum of values and one of weights, {0, 1}, and sums that are 0.
	f.Add(testModel{
		input: image(2, 4, 4), output: "y",
		nodes: []testNode{
			op("Relu", "x", "a"), op("MaxPool", "a", "b", "kernel_shape", []int{2, 2}), op("Sign", "b", "s"), op("Clip", "b", "p", "min", -1.0, "max", 1.0),
			op("Sub", "s p", "c"), op("Add", "p c", "d"), op("Abs", "w", "e"), op("ReduceMean", "e axes", "h"), op("Sign", "w", "i"), op("Mul", "i h", "j"),
			op("Sub", "j w", "k"), op("Add", "w k", "l"), op("Conv", "d l", "m", "pads", []int{1, 1, 1, 1}), op("Sign", "m", "n"), op("Conv", "n l", "y"),
		},
		inits: []testTensor{floats("w", []int{2, 2, 2, 2}, 1, -1, 1, 1, 1, -1, -1, 1, 1, 1, 1, -1, -1, 1, 1, 1), ints("axes", 1, 2, 3)},
		opset: 18,
	}.encode())
	// Levels in three forms, and weights of a few bits.
	f.Add(testModel{
		input: image(2, 4, 4), output: "y",
		nodes: []testNode{
			op("qonnx.custom_op.general/Quant", "x half zero two", "a", "signed", 0, "narrow", 0), op("Conv", "a w", "b", "pads", []int{1, 1, 1, 1}),
			op("Clip", "b minus two", "c"), op("Round", "c", "d"), op("Div", "d two", "e"), op("MaxPool", "e", "f", "kernel_shape", []int{2, 2}), op("Conv", "f w", "g"),
			op("QuantizeLinear", "g half u1", "h"), op("Clip", "h u1 u3", "i"), op("DequantizeLinear", "i half u1", "j"), op("Conv", "j v", "k"), op("Sign", "k", "y"),
		},
		inits: []testTensor{number("zero", 0), number("two", 2), number("half", 0.5), number("minus", -1), floats("w", []int{2, 2, 2, 2}, 1, -1, 0, 1, 1, -1, 2, 1, 1, 1, 1, 0, -1, 1, 1, 1),
			floats("v", []int{2, 2, 1, 1}, 0.5, -1.5, 1, 0), {name: "u1", typ: pb.Uint8, dims: []int{}, values: []float64{1}}, {name: "u3", typ: pb.Uint8, dims: []int{}, values: []float64{3}}},
		opset: 18,
	}.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		opts := Options{SignOfZero: bcnn.ZeroIsPlus, OverrideZeros: true, WeightTolerance: 0.005}
		if len(data)%2 == 0 {
			opts = Options{}
		}
		net, report, err := Decode(t.Context(), data, opts)
		if err != nil {
			require.NotErrorIs(t, err, try.ErrPanic)
			require.Nil(t, net)
			return
		}
		require.NoError(t, net.Check())
		require.LessOrEqual(t, len(report.Folded), report.Nodes)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		macs := int64(0)
		for _, l := range plan.Summarize(net, p) {
			macs += l.MACs
		}
		for _, tensor := range p.Tensors {
			macs += int64(tensor.Shape.Values())
		}
		if macs < 1<<16 {
			_, err := ref.Run(t.Context(), p, bcnn.NewTensor(net.Inputs[0].DType, 1, net.Inputs[0].Shape), nil)
			require.NoError(t, err)
		}
	})
}
