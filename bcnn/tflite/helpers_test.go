package tflite

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// newTestImporter returns an importer of an empty graph.
func newTestImporter(t *testing.T) *importer {
	t.Helper()
	limits, err := bcnn.Limits{}.WithDefaults()
	require.NoError(t, err)
	return newImporter(&schema.Model{Graph: &schema.Graph{}}, Options{}, limits, budget.New(t.Context(), base))
}

// sizeOf is the product of dimensions.
func sizeOf(dims []int32) int {
	n := 1
	for _, d := range dims {
		n *= int(d)
	}
	return n
}

// runInputs imports a graph of several inputs, executes it, and returns all outputs.
func runInputs(t *testing.T, g *testGraph, in ...[]float32) (out [][]float32) {
	t.Helper()
	net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.Len(t, net.Inputs, len(in))
	var list []bcnn.Tensor
	for i, x := range in {
		require.Len(t, x, net.Inputs[i].Shape.Values())
		list = append(list, bcnn.Tensor{DType: bcnn.Float32, N: 1, Shape: net.Inputs[i].Shape, F32: x})
	}
	y, err := ref.RunAll(t.Context(), plan, list, nil)
	require.NoError(t, err)
	for _, o := range y {
		out = append(out, o.F32)
	}
	return out
}

// keepDims are the options of a reduction.
func keepDims(yes bool) map[int]any {
	if yes {
		return map[int]any{0: uint8(1)}
	}
	return nil
}

// put adds an operator on one value, or "bits", which makes +1 and −1 by LceQuantize and
// LceDequantize, "half", which halves them, or "quarters" of 0 to 6.
func (g *testGraph) put(name string, dims []int32, x int32) int32 {
	switch name {
	case "bits":
	case "half":
		return g.add("MUL", nil, dims, g.put("bits", dims, x), g.floats(nil, 0.5))
	case "quarters":
		x = g.add("ROUND", nil, dims, g.add("RELU6", nil, dims, x))
		return g.add("MUL", nil, dims, x, g.floats(nil, 0.25))
	default:
		return g.add(name, nil, dims, x)
	}
	words := slices.Clone(dims)
	words[len(words)-1] = int32(wordsOf(int(words[len(words)-1])))
	x = g.add("LceQuantize", nil, words, x)
	g.tensors[x].typ = schema.Int32
	return g.add("LceDequantize", nil, dims, x)
}

// plain are what put adds, of one number.
var plain = map[string]func(x float32) float32{
	"ABS":      func(x float32) float32 { return max(x, -x) },
	"NEG":      func(x float32) float32 { return -x },
	"RELU":     func(x float32) float32 { return max(x, 0) },
	"SIGN":     func(x float32) float32 { return float32(cmp.Compare(x, 0)) },
	"bits":     func(x float32) float32 { return signsOf([]float32{x})[0] },
	"quarters": func(x float32) float32 { return float32(math.RoundToEven(float64(min(max(x, 0), 6)))) / 4 },
	"half":     func(x float32) float32 { return signsOf([]float32{x})[0] / 2 },
}
