package onnx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestBatchCancels computes with the number of values of a tensor, as code of quantisers does:
// what is left must not depend on the batch size.
func TestBatchCancels(t *testing.T) {
	count := []testNode{op("Shape", "x", "shape"), op("ReduceProd", "shape", "n", "keepdims", 0)}
	first := []testNode{op("Shape", "x", "shape"), op("Gather", "shape zero", "b", "axis", 0)}
	real := op("Cast", "n", "f", "to", int(pb.Float))
	inits := []testTensor{
		{name: "zero", typ: pb.Int64, dims: []int{}, values: []float64{0}}, {name: "five", typ: pb.Int64, dims: []int{}, values: []float64{5}},
		floats("s", []int{}, 0.375), floats("half", []int{}, 0.5), floats("two", []int{}, 2), ints("at", 0), ints("all", 48), ints("rows", -1),
	}
	tests := []struct {
		name  string
		nodes []testNode
		want  []testNode // in a network without it; none where it is refused
		err   string
	}{
		{"a step and its gradient", append(count, real, op("Sqrt", "f", "r"), op("Reciprocal", "r", "g"), op("Mul", "s g", "sg"), op("Sub", "s sg", "d"), op("Add", "d sg", "e"),
			op("Mul", "x e", "y")), []testNode{op("Mul", "x s", "y")}, ""},
		{"the gradient first", append(count, real, op("Pow", "f half", "r"), op("Div", "s r", "sg"), op("Add", "sg s", "d"), op("Sub", "d sg", "e"), op("Add", "x e", "y")),
			[]testNode{op("Add", "x s", "y")}, ""},
		{"values of an image", append(count, op("Gather", "shape zero", "b", "axis", 0), op("Div", "n b", "k"), op("Unsqueeze", "b", "b1", "axes", []int{0}), op("Unsqueeze", "k", "k1", "axes", []int{0}),
			op("Concat", "b1 k1", "to", "axis", 0), op("Reshape", "x to", "y")), []testNode{op("Flatten", "x", "y")}, ""},
		{"Size", []testNode{op("Size", "x", "n"), op("Shape", "x", "shape"), op("Gather", "shape zero", "b", "axis", 0), op("Div", "n b", "k"), op("Cast", "k", "f", "to", int(pb.Float)),
			op("Div", "x f", "y")}, []testNode{op("Cast", "all", "f", "to", int(pb.Float)), op("Div", "x f", "y")}, ""},
		{"as a real number and back", append(count, real, op("Gather", "shape zero", "b", "axis", 0), op("Cast", "b", "c", "to", int(pb.Float)), op("Mul", "c two", "cc"), op("Div", "f cc", "k"),
			op("Sub", "x k", "y")), []testNode{op("Cast", "all", "f", "to", int(pb.Float)), op("Mul", "f half", "h"), op("Sub", "x h", "y")}, ""},
		{"equal powers", append(count, real, op("Mul", "f two", "g"), op("Sub", "g f", "d"), op("Div", "d f", "e"), op("Abs", "e", "o"), op("Neg", "o", "m"), op("Mul", "x m", "y")),
			[]testNode{op("Neg", "x", "y")}, ""},

		{"a value", append(count, real, op("Mul", "x f", "y")), nil, "depends on the batch size, which does not cancel"},
		{"of different powers", append(count, real, op("Mul", "f f", "g"), op("Add", "g f", "h"), op("Div", "h f", "k"), op("Mul", "x k", "y")), nil, "does not cancel"},
		{"a quotient that is rounded", append(first, op("Div", "b five", "c"), op("Div", "c b", "k"), op("Cast", "k", "f", "to", int(pb.Float)), op("Mul", "x f", "y")), nil, "does not cancel"},
		{"rows of all images", append(first, op("Mul", "b five", "c"), op("Unsqueeze", "c", "d", "axes", []int{0}), op("Concat", "d rows", "to", "axis", 0), op("Reshape", "x to", "y")), nil,
			"its first dimension must be the batch (0 or -1), or the batch times positions"},
		{"an operator without values", append(count, real, op("Sqrt", "f", "r"), op("Relu", "r", "g"), op("Mul", "x g", "y")), nil, "does not cancel"},
		{"another one cancels", append(count, real, op("Sub", "s f", "d"), op("Add", "d two", "e"), op("Mul", "x e", "y")), nil, "does not cancel"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 4), nodes: test.nodes, inits: inits, output: "y"}
			if test.want == nil {
				_, _, err := Load(t.Context(), write(t, m.encode()), Options{})
				require.ErrorContains(t, err, test.err)
				return
			}
			same := m
			same.nodes = test.want
			want, _, err := Load(t.Context(), write(t, same.encode()), Options{})
			require.NoError(t, err)
			net, _, err := Load(t.Context(), write(t, m.encode()), Options{})
			require.NoError(t, err)
			require.Len(t, net.Layers, len(want.Layers))
			for i := range net.Layers { // but for the names
				require.Equal(t, want.Layers[i].Op, net.Layers[i].Op)
				require.Equal(t, want.Layers[i].Inputs, net.Layers[i].Inputs)
			}
		})
	}
}
