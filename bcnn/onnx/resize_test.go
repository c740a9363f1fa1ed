package onnx

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
)

// TestNearestPixels compares with ONNX Runtime: train/onnx_resize.py.
func TestNearestPixels(t *testing.T) {
	file, err := os.Open("testdata/resize.npz")
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := npy.Open(file, info.Size())
	require.NoError(t, err)
	require.Len(t, f.Names(), 6*4)
	for _, name := range f.Names() {
		a, err := f.Read(name)
		require.NoError(t, err)
		values := make([]float64, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		coordinates, nearest, _ := strings.Cut(name, " ")
		r := resizing{mode: "nearest", coordinates: coordinates, nearest: nearest}
		for from := 1; from <= a.Shape[0]; from++ {
			for to := 1; to <= a.Shape[1]; to++ {
				want := make([]int32, to)
				for i := range want {
					want[i] = int32(values[i])
				}
				require.Equal(t, want, r.positions(from, to, float32(to)/float32(from)), "%s, %d to %d", name, from, to)
				values = values[a.Shape[2]:]
			}
		}
	}
}
