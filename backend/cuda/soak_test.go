//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// TestSoak launches a network in one launch, and one whose sums are in parts, over and
// over, with two images in turn, and compares every result: barriers of the grid and sums
// by atomics leave the device as they found it. BCNN_TEST_LAUNCHES says how often, 8 times if it is not set.
func TestSoak(t *testing.T) {
	launches := 8
	if s := os.Getenv("BCNN_TEST_LAUNCHES"); s != "" {
		var err error
		launches, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	for _, variant := range []string{gpu.Fused, gpu.SplitK} {
		t.Run(variant, func(t *testing.T) { soak(t, variant, launches) })
	}
}

func soak(t *testing.T, variant string, launches int) {
	d := testDevice(t)
	plan, err := lower.Network(t.Context(), backendtest.VehicleNet(3, 8), lower.Options{})
	require.NoError(t, err)
	exe := compiled(t, d, plan, backend.Options{Kernels: variant}, 1)
	requireRun(t, exe, 1, 1)
	var in, want [2]bcnn.Tensor
	for i := range in {
		in[i] = backendtest.RandomImages(uint64(i), 1, plan.Inputs[0])
		want[i] = bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
		require.NoError(t, exe.run(t.Context(), want[i], in[i]))
		requireRun(t, exe, uint64(i), 1)
	}
	require.Error(t, compare.Tensors(want[0], want[1]), "the images have the same result")
	out := bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
	for i := range launches {
		if err := exe.run(t.Context(), out, in[i%2]); err != nil {
			t.Fatalf("launch %d: %v", i, err)
		}
		if err := compare.Tensors(want[i%2], out); err != nil {
			t.Fatalf("launch %d: %v", i, err)
		}
	}
}
