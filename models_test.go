package bitcnn

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// The network of FINN for CIFAR-10 knows 96 of 100 of its images: with any bit of its weights in
// another place it knows no more than chance has it.
func TestCIFAR10(t *testing.T) {
	dir := testenv.SharedData(t, "cifar10")
	images, err := os.ReadFile(filepath.Join(dir, "first100_32x32x3_hwc_u8.bin"))
	require.NoError(t, err)
	labels, err := os.ReadFile(filepath.Join(dir, "first100_labels_u8.bin"))
	require.NoError(t, err)
	s := open(t, bundled(t, "cifar10"), Options{Device: "cpu", MaxBatch: 100})
	defer s.Close()
	out := NewTensor(Float32, 100, s.Outputs()[0].Shape)
	in := Tensor{DType: Uint8, N: 100, Shape: s.Inputs()[0].Shape, U8: images}
	require.NoError(t, s.Run(t.Context(), []Tensor{out}, []Tensor{in}))
	right := 0
	for i, label := range labels {
		logits := out.F32[10*i : 10*i+10]
		if slices.Index(logits, slices.Max(logits)) == int(label) {
			right++
		}
	}
	require.Equal(t, 96, right)
}
