package onnx

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// twoEnds is a model that gates an image by a vector, and has five outputs: two of them
// are the same values in other dimensions.
func twoEnds() testModel {
	return testModel{
		input: testInput{"image", pb.Float, []any{"n", 3, 4, 5}}, output: "y", also: []string{"gated", "mean", "flat", "logits"},
		extra: []testInput{{"gate", pb.Float, []any{"n", 2}}},
		nodes: []testNode{
			op("Conv", "image w", "sums"), op("Reshape", "gate shape", "g"), op("Mul", "sums g", "gated"),
			op("MaxPool", "gated", "pool", "kernel_shape", []int{4, 5}), op("Relu", "pool", "mean"), op("Flatten", "mean", "flat"),
			op("Gemm", "flat k", "logits"), op("Softmax", "logits", "y"),
		},
		inits: []testTensor{
			floats("w", []int{2, 3, 1, 1}, 1, -1, 1, -1, -1, 1), ints("shape", 0, 2, 1, 1), floats("k", []int{2, 4}, 1, 2, -1, 0.5, 3, 0, 1, -2),
		},
	}
}

func TestSeveralEnds(t *testing.T) {
	m := twoEnds()
	net, _, err := Decode(t.Context(), m.encode(), Options{})
	require.NoError(t, err)
	require.Equal(t, &bcnn.Source{Name: "image", Dims: []int{3, 4, 5}, ChannelsFirst: true}, net.Inputs[0].Source)
	require.Len(t, net.Inputs, 2)
	require.Equal(t, &bcnn.Source{Name: "gate", Dims: []int{2}}, net.Inputs[1].Source)
	require.Len(t, net.Outputs, 5)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)

	r := rand.New(rand.NewPCG(1, 2))
	image, x := batchOf(r, m, net.Inputs[0], false)
	second := m
	second.input = m.extra[0]
	gate, g := batchOf(r, second, net.Inputs[1], false)
	gate.dims = []int{2, 2}
	want := m.tensors(image, gate)
	got, err := ref.RunAll(t.Context(), plan, []bcnn.Tensor{x, g}, nil)
	require.NoError(t, err)
	for i, name := range append([]string{"logits"}, m.also...) { // the softmax is no step
		layer := net.Layers[net.Outputs[i]]
		if i == 0 {
			require.Equal(t, "softmax", layer.Op.Kind())
			require.Equal(t, &bcnn.Source{Name: "y", Dims: []int{4}}, layer.Source)
		} else {
			require.Equal(t, &bcnn.Source{Name: name, Dims: want[name].dims[1:], ChannelsFirst: name == "gated"}, layer.Source)
		}
		s := got[i].Shape
		out := newArray(got[i].N, s.H, s.W, s.C)
		for k, v := range got[i].F32 {
			out.v[k] = float64(v) + 0
		}
		if name == "gated" {
			out = transpose(out, []int{0, 3, 1, 2})
		}
		for k := range want[name].v {
			want[name].v[k] += 0
		}
		require.Equal(t, want[name].v, out.v, name)
	}
}

// Options are about the first input; of the second, everything must be in the file.
func TestSeveralEndsErrors(t *testing.T) {
	for _, c := range []struct {
		change func(m *testModel)
		want   string
	}{
		{func(m *testModel) { m.extra[0].dims = []any{"n", "k"} }, `dimension "k" is dynamic`},
		{func(m *testModel) { m.extra[0].name = "image" }, `two inputs of the graph are called "image"`},
		{func(m *testModel) { m.also[2] = "w" }, `output "w": it is constant`},
		{func(m *testModel) { m.also[2] = "nowhere" }, `output "nowhere": "nowhere" is neither an initialiser`},
	} {
		m := twoEnds()
		c.change(&m)
		_, _, err := Decode(t.Context(), m.encode(), Options{InputShape: bcnn.Shape{H: 4, W: 5, C: 3}})
		require.ErrorContains(t, err, c.want)
	}
	m := twoEnds()
	net, _, err := Decode(t.Context(), m.encode(), Options{InputType: bcnn.Uint8, Mean: []float32{1, 2, 3}})
	require.NoError(t, err)
	require.Equal(t, bcnn.Uint8, net.Inputs[0].DType)
	require.Equal(t, bcnn.Float32, net.Inputs[1].DType)
}
