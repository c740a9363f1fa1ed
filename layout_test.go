package bitcnn

import (
	"compress/gzip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
)

// A network of PyTorch gives what PyTorch gives for values in PyTorch's layout, which Inputs names;
// and something else for the same values in the other one.
func TestLayoutOfPyTorch(t *testing.T) {
	f, err := os.Open("bcnn/onnx/testdata/bireal.old.onnx.gz")
	require.NoError(t, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	model, err := Read(t.Context(), unzipped, LoadOptions{})
	require.NoError(t, err)
	s := open(t, model, Options{Device: "cpu", MaxBatch: 3})
	in := s.Inputs()[0]
	require.Equal(t, NHWC, in.Layout)
	require.Equal(t, NCHW, in.FileLayout)
	require.Equal(t, []int{in.Shape.C, in.Shape.H, in.Shape.W}, in.FileDims)
	require.Equal(t, []int{s.Outputs()[0].Shape.C}, s.Outputs()[0].FileDims)

	reference, err := os.Open("cmd/bcnn/testdata/bireal.old.npz") // of testdata/reference.py
	require.NoError(t, err)
	defer reference.Close()
	arrays, err := npy.OpenStream(reference)
	require.NoError(t, err)
	read := func(name string) []float32 {
		a, err := arrays.Read(name)
		require.NoError(t, err)
		values := make([]float32, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		return values
	}
	x, want := read("input"), read("output")
	difference := func(l Layout) (largest float64) {
		input, err := TensorOf(3, in.Shape, l, x)
		require.NoError(t, err)
		out, err := s.Predict(t.Context(), input)
		require.NoError(t, err)
		got, err := out[0].Floats(l)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i, v := range got {
			largest = max(largest, max(float64(v-want[i]), float64(want[i]-v)))
		}
		return largest
	}
	require.Less(t, difference(in.FileLayout), 1e-5)
	require.Greater(t, difference(NHWC), 1e-2)

	// A shape that is one of the other order is told.
	wrong := NewTensor(Float32, 1, Shape{H: in.Shape.C, W: in.Shape.H, C: in.Shape.W})
	_, err = s.Predict(t.Context(), wrong)
	require.ErrorIs(t, err, ErrShape)
	require.ErrorContains(t, err, "that is the order of NCHW")
}
