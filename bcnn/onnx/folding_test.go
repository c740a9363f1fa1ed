package onnx

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
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
	for op := range folds {
		if op != "Swish" && op != "CenterCropPad" { // see TestFoldOthers
			require.Contains(t, operators, op)
		}
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

// Of an operator set that the file of TestFolding is not of, and one that ONNX Runtime does not
// have.
func TestFoldOthers(t *testing.T) {
	for _, test := range []struct {
		name string
		node testNode
		in   testTensor
		with []testTensor
		want testTensor
	}{
		{"Swish", op("Swish", "c", "y", "alpha", 2.0), floats("c", []int{3}, -0.5, 0, 1), nil, floats("want", []int{3}, -0.1344707, 0, 0.8807971)},
		{"CenterCropPad", op("CenterCropPad", "c s", "y"), floats("c", []int{2, 3}, 1, 2, 3, 4, 5, 6), []testTensor{ints("s", 3, 2)}, floats("want", []int{3, 2}, 1, 2, 4, 5, 0, 0)},
		{"CenterCropPad of an axis", op("CenterCropPad", "c s", "y", "axes", []int{-1}), floats("c", []int{1, 3}, 1, 2, 3), []testTensor{ints("s", 6)},
			floats("want", []int{1, 6}, 0, 1, 2, 3, 0, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := testModel{opset: 24, input: testInput{"x", pb.Float, []any{1, 1}}, output: "y", nodes: []testNode{test.node}, inits: append(test.with, test.in, test.want)}
			s := &source{}
			require.NoError(t, s.begin(t.Context(), bcnn.Limits{}))
			require.NoError(t, s.add(1<<10))
			model, err := pb.Decode(m.encode(), s.budget)
			require.NoError(t, err)
			im := newImporter(model, Options{}, s)
			require.NoError(t, im.node(model.Graph.Nodes[0]))
			requireSame(t, im.lookup("want").Constant, im.lookup("y").Constant, true)
		})
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

// TestEveryOperator puts every operator of the standard on constants: it is evaluated or
// refused, by its name.
func TestEveryOperator(t *testing.T) {
	inits := []testTensor{floats("a", []int{1, 1, 2, 2}, 1, -2, 3, 0.5), floats("b", []int{2}, 1, 2), ints("i", 1)}
	refused := map[string]bool{}
	for name := range signatures() {
		for _, in := range []string{"a", "a b", "a i", "i", "i i", "a b b", "a a a a a"} {
			m := testModel{opset: 23, input: image(1, 2, 2), output: "y", inits: inits, nodes: []testNode{op(name, in, "c"), op("Cast", "c", "d", "to", int(pb.Float)), op("Mul", "x d", "e"), op("Neg", "e", "y")}}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			var obstacles *bcnn.ObstaclesError
			switch {
			case err == nil: // or an empty or large constant
			case errors.As(err, &obstacles) && obstacles.Obstacles[0].Op == name:
				if errors.Is(err, errNotFolded) {
					refused[name] = true
				}
			default:
				require.NotNil(t, obstacles, "%s %s: %v", name, in, err)
				require.Contains(t, []string{"Cast", "Mul"}, obstacles.Obstacles[0].Op, "%s %s: %v", name, in, err)
			}
		}
	}
	// Those of random numbers, signals, recurrences, text and others that do not make weights.
	for _, name := range []string{"LSTM", "RandomNormalLike", "STFT", "HannWindow", "Det", "RoiAlign", "NonMaxSuppression"} {
		require.True(t, refused[name], name)
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(folds)), eval.Reductions(), slices.Collect(maps.Keys(eval.UnaryOps))) {
		require.False(t, refused[name], name)
	}
	require.Less(t, len(refused), 80)
	t.Log(slices.Sorted(maps.Keys(refused)))
}

// TestRotatedWeights imports weights that the graph multiplies by rotations from both sides, as RBNN
// ("Rotated Binary Neural Network", Lin et al., NeurIPS 2020) exports them: 137 products for each.
func TestRotatedWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	const channels = 512
	m := testModel{opset: 13, input: testInput{"x", pb.Float, []any{1, channels, 1, 1}}, output: "y",
		nodes: []testNode{
			op("Reshape", "w matrices", "a"), op("MatMul", "left a", "b"), op("MatMul", "b right", "c"), op("Reshape", "c filters", "d"),
			op("Conv", "x d", "y", "pads", []int{1, 1, 1, 1}),
		},
		inits: []testTensor{
			randomTensor(r, "w", []int{channels, channels, 3, 3}, -1, 1), randomTensor(r, "left", []int{64, 64}, -1, 1), randomTensor(r, "right", []int{72, 72}, -1, 1),
			ints("matrices", channels, 64, 72), ints("filters", channels, channels, 3, 3),
		}}
	_, _, err := Load(t.Context(), write(t, m.encode()), Options{})
	require.NoError(t, err)
}
