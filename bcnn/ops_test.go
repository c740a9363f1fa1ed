package bcnn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// All tensors of an operation count, wherever it holds them.
func TestParameterBytes(t *testing.T) {
	for _, c := range []struct {
		op           bcnn.Op
		sum, largest int64
	}{
		{nil, 0, 0},
		{(*bcnn.Channels)(nil), 0, 0},
		{bcnn.Add{}, 0, 0},
		{bcnn.Function{Name: bcnn.Tanh}, 0, 0},
		{bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: make([]int32, 3)}, 12, 12},
		{bcnn.Conv2D{Weights: bcnn.Weights{Bits: make([]uint64, 5)}, Bias: make([]float32, 11)}, 84, 44},
		{bcnn.Dense{Weights: bcnn.Weights{Int8: make([]int8, 5)}, Bias: make([]float32, 1)}, 9, 5},
		{bcnn.Dense{Weights: bcnn.Weights{F32: make([]float32, 5)}}, 20, 20},
		{bcnn.BatchNorm{Gamma: make([]float32, 1), Beta: make([]float32, 1), Mean: make([]float32, 1), Var: make([]float32, 1)}, 16, 4},
		{bcnn.Resample{Rows: bcnn.Taps{N: 1, Index: make([]int32, 3), Weight: make([]float32, 3)}, Cols: bcnn.Taps{N: 1, Index: make([]int32, 1), Weight: make([]float32, 1)}}, 32, 12},
	} {
		sum, largest := bcnn.ParameterBytes(c.op)
		require.Equal(t, []int64{c.sum, c.largest}, []int64{sum, largest}, "%T", c.op)
	}
}

// Layers with weights give them, and take others.
func TestWeighted(t *testing.T) {
	w, bias := bcnn.Weights{Int8: []int8{1, 2}}, []float32{3, 4}
	for _, op := range []bcnn.Weighted{bcnn.Conv2D{PadValue: 1, Out: 1}, bcnn.Dense{Out: 1, Bias: []float32{9}}} {
		out, got, b := op.With(2, w, bias).Filters()
		require.Equal(t, 2, out)
		require.Equal(t, w, got)
		require.Equal(t, bias, b)
		out, got, _ = op.Filters()
		require.Equal(t, 1, out)
		require.Equal(t, bcnn.Weights{}, got)
	}
	require.Equal(t, 1, bcnn.Conv2D{PadValue: 1}.With(2, w, bias).(bcnn.Conv2D).PadValue)
}
