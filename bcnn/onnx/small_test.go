package onnx

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// The file of the example is what it says. BCNN_UPDATE=1 writes it anew.
func TestExampleFile(t *testing.T) {
	weights := make([]float64, 4*64*3*3)
	for i := range weights {
		weights[i] = float64(1 - i%3%2*2)
	}
	m := testModel{
		input:  testInput{"x", pb.Float, []any{"batch", 64, 8, 8}},
		nodes:  []testNode{op("GreaterOrEqual", "x zero", "c"), op("Where", "c one minus", "y"), op("Conv", "y w", "z")},
		inits:  []testTensor{floats("w", []int{4, 64, 3, 3}, weights...), number("zero", 0), number("one", 1), number("minus", -1)},
		output: "z",
	}
	const file = "testdata/small.onnx"
	if os.Getenv("BCNN_UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, m.encode(), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, m.encode(), got)
}
