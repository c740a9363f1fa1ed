package onnx

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestFolding evaluates operators on constants and compares with onnxruntime, to
// the last bit where the result does not depend on the order of sums or on a
// library of mathematical functions. train/onnx_folding.py makes the file.
func TestFolding(t *testing.T) {
	data := gunzip(t, "testdata/folding.onnx.gz")
	s := &source{}
	require.NoError(t, s.begin(t.Context(), bcnn.Limits{}))
	require.NoError(t, s.add(int64(len(data))))
	m, err := pb.Decode(data, s.budget)
	require.NoError(t, err)
	im := newImporter(m, Options{}, s)
	operators := map[string]bool{}
	for _, n := range m.Graph.Nodes {
		operators[n.OpType] = true
		t.Run(n.Name, func(t *testing.T) {
			require.NoError(t, im.node(n))
			require.True(t, im.folded[n.Index])
			for _, name := range n.Outputs {
				got, want := im.lookup(name), im.lookup("want "+name)
				requireSame(t, want.Constant, got.Constant, strings.HasPrefix(n.Name, "~"))
			}
		})
	}
	for _, op := range eval.Reductions() {
		require.Contains(t, operators, op)
	}
	for op := range eval.UnaryOps {
		require.Contains(t, operators, op)
	}
	for op := range eval.BinaryOps {
		if op != "BipolarQuant" && op != "FMod" { // Mod with an attribute
			require.Contains(t, operators, op)
		}
	}
}

// requireSame compares tensors. onnxruntime returns BFLOAT16 as FLOAT.
func requireSame(t *testing.T, want, got *eval.Tensor, rounded bool) {
	t.Helper()
	require.Equal(t, append([]int{}, want.Dims...), append([]int{}, got.Dims...))
	if got.Type != pb.BFloat16 {
		require.Equal(t, want.Type, got.Type)
	}
	for i := range want.Len() {
		w, g := want.At(i), got.At(i)
		switch {
		case math.IsNaN(w):
			require.True(t, math.IsNaN(g), "value %d: want NaN, got %v", i, g)
		case rounded && !math.IsInf(w, 0):
			require.InDelta(t, w, g, 4e-6*math.Abs(w)+1e-7, "value %d", i)
		default:
			require.Equal(t, w, g, "value %d", i)
		}
	}
}
