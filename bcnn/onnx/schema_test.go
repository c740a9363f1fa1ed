package onnx

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestSignatures reads the table of types, which has all operators that are imported.
func TestSignatures(t *testing.T) {
	lines := 0
	for op, list := range signatures() {
		for i, s := range list {
			lines++
			require.Positive(t, s.since, op)
			require.True(t, i == 0 || s.since > list[i-1].since, op)
			for _, in := range s.inputs {
				if in.name == "-" {
					continue
				}
				require.NotEmpty(t, in.allowed, "%s: %s", op, in.name)
				for _, typ := range in.allowed {
					require.Positive(t, typ, "%s: %s", op, in.name)
				}
			}
		}
	}
	require.Equal(t, strings.Count(schemasTable, "\n")-1, lines)
	require.GreaterOrEqual(t, newestOpset(), int64(28))
	var since []int64 // what Pow and others have changed in
	for _, s := range append(signatures()["Pow"], signatures()["ConcatFromSequence"]...) {
		since = append(since, s.since)
	}
	require.Equal(t, []int64{1, 7, 12, 13, 15, 11}, since)
	for op := range handlers[""] {
		require.Contains(t, signatures(), op)
	}
}

// TestTypes refuses inputs of types that ONNX does not have there.
func TestTypes(t *testing.T) {
	of := func(typ pb.DataType, name string, values ...float64) testTensor {
		return testTensor{name: name, typ: typ, dims: []int{len(values)}, values: values}
	}
	weights := floats("w", []int{2, 3, 1, 1}, 1, -1, 1, 1, 1, -1)
	for _, c := range []struct {
		name  string
		opset int64
		nodes []testNode
		inits []testTensor
		want  string // "" for none
	}{
		{"slopes of INT64", 13, []testNode{op("PRelu", "x a", "y")}, []testTensor{of(pb.Int64, "a", 0)}, `input 0 ("x") is FLOAT and input 1 ("a") is INT64, which must be of one type`},
		{"slopes of DOUBLE", 13, []testNode{op("PRelu", "x a", "y")}, []testTensor{of(pb.Double, "a", 0.5)}, `input 1 ("a") is DOUBLE`},
		{"a factor of DOUBLE", 13, []testNode{op("Mul", "x a", "y")}, []testTensor{of(pb.Double, "a", 0.5)}, `input 1 ("a") is DOUBLE`},
		{"a factor of DOUBLE in front", 13, []testNode{op("Mul", "a x", "y")}, []testTensor{of(pb.Double, "a", 0.5)}, `input 0 ("a") is DOUBLE and input 1 ("x") is FLOAT`},
		{"a limit of INT64", 13, []testNode{op("Clip", "x a", "y")}, []testTensor{{name: "a", typ: pb.Int64, dims: []int{}, values: []float64{0}}}, `input 1 ("a") is INT64`},
		{"the other limit of INT64", 13, []testNode{op("Clip", "x _ a", "y")}, []testTensor{{name: "a", typ: pb.Int64, dims: []int{}, values: []float64{0}}}, `input 2 ("a") is INT64`},
		{"branches of two types", 13, []testNode{op("Greater", "x a", "c"), op("Where", "c a b", "y")}, []testTensor{of(pb.Float, "a", 0), of(pb.Int64, "b", 1)}, `input 1 ("a") is FLOAT and input 2 ("b") is INT64`},
		{"a condition of FLOAT", 13, []testNode{op("Where", "x a a", "y")}, []testTensor{of(pb.Float, "a", 0)}, `input 0 ("x") is FLOAT, which the operator does not take`},
		{"a comparison of two types", 13, []testNode{op("Greater", "x a", "c"), op("Cast", "c", "y", "to", int(pb.Float))}, []testTensor{of(pb.Int32, "a", 0)}, `input 1 ("a") is INT32`},
		{"a bias of DOUBLE", 13, []testNode{op("Conv", "x w b", "y")}, []testTensor{weights, of(pb.Double, "b", 0, 1)}, `input 2 ("b") is DOUBLE`},
		{"concatenated with INT64", 13, []testNode{op("Concat", "x x a", "y", "axis", 1)}, []testTensor{{name: "a", typ: pb.Int64, dims: []int{1, 1, 4, 4}, values: make([]float64, 16)}}, `input 2 ("a") is INT64`},
		{"a sum of truth values", 13, []testNode{op("Greater", "x a", "c"), op("Add", "c c", "d"), op("Cast", "d", "y", "to", int(pb.Float))}, []testTensor{of(pb.Float, "a", 0)}, `input 0 ("c") is BOOL, which the operator does not take`},
		{"a shape of FLOAT", 13, []testNode{op("Reshape", "x a", "y")}, []testTensor{of(pb.Float, "a", 0, -1)}, `input 1 ("a") is FLOAT, which the operator does not take`},
		{"constants of INT64 alone", 13, []testNode{op("Add", "a a", "b"), op("Cast", "b", "c", "to", int(pb.Float)), op("Mul", "x c", "y")}, []testTensor{of(pb.Int64, "a", 1)}, ""},
		{"an exponent of another type", 13, []testNode{op("Pow", "x a", "y")}, []testTensor{of(pb.Int64, "a", 2)}, ""},
		{"an exponent of another type from the first on", 12, []testNode{op("Pow", "x a", "y")}, []testTensor{of(pb.Int64, "a", 2)}, ""},
		{"an exponent of another type before that", 11, []testNode{op("Pow", "x a", "y")}, []testTensor{of(pb.Int64, "a", 2)}, `input 1 ("a") is INT64, which must be`},
		{"weights of BFLOAT16 before there are such", 13, []testNode{op("Cast", "x", "b", "to", int(pb.BFloat16)), op("Cast", "w", "v", "to", int(pb.BFloat16)), op("Conv", "b v", "c"), op("Cast", "c", "y", "to", int(pb.Float))}, []testTensor{weights}, ""},
		{"weights that PyTorch has folded to FLOAT", 13, []testNode{op("Cast", "x", "b", "to", int(pb.Float16)), op("Conv", "b w", "c"), op("Cast", "c", "y", "to", int(pb.Float))}, []testTensor{weights}, ""},
		{"values of DOUBLE", 13, []testNode{op("Cast", "x", "b", "to", int(pb.Double)), op("Conv", "b w", "c"), op("Cast", "c", "y", "to", int(pb.Float))}, []testTensor{weights}, `input 0 ("b") is DOUBLE and input 1 ("w") is FLOAT`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{opset: c.opset, input: image(3, 4, 4), nodes: c.nodes, inits: c.inits, output: "y"}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			var obstacles *bcnn.ObstaclesError
			require.ErrorAs(t, err, &obstacles)
			require.ErrorContains(t, err, c.want)
		})
	}
}
