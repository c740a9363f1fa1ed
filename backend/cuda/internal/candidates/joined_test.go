package candidates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// TestJoin: what binarises an image and extracts its patches is one kernel of variant
// gpu.Patches, where there is such.
func TestJoin(t *testing.T) {
	there := entries(t, 90)
	for _, scheme := range vehiclenet.InputSchemes {
		net, err := vehiclenet.Topology(scheme, 6, 1)
		require.NoError(t, err)
		all, plan := of(t, net, 1, large, 90)
		require.Nil(t, Join(plan, all), "%s: direct kernels come first", scheme)
		for i := range all {
			all[i] = OfVariant(all[i], gpu.Patches)
		}
		before := Join(plan, all)
		if scheme == "none" {
			require.Nil(t, before)
			continue
		}
		require.NotNil(t, before)
		require.Equal(t, "binarize", before.Name)
		require.Equal(t, "patches: pack_image", names(all[0]))
		require.Equal(t, "patches: patches", names(all[1]))
		require.Len(t, all[0][0].Specs, 1)
		var kernels []string
		for _, s := range append(all[0][0].Specs, all[1][0].Specs...) {
			kernels = append(kernels, s.Name)
			require.Len(t, s.Args, there(s.File)[s.Name]-1, s.Name) // the geometry is the first
		}
		require.Equal(t, []string{"pack_image", "xor_gemm", "finish"}, kernels)
	}
}
