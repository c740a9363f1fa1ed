package candidates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// TestJoin: what binarises an image and extracts its patches is one kernel of variant
// gpu.Patches, where there is such.
func TestJoin(t *testing.T) {
	there := entries(t)
	for _, scheme := range vehiclenet.InputSchemes {
		net, err := vehiclenet.Topology(scheme, 6, 1)
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		require.Nil(t, Join(plan, of(t, net, 1, local, gpu.Direct)))
		all := of(t, net, 1, local, gpu.Patches)
		before := Join(plan, all)
		if scheme == "none" {
			require.Nil(t, before)
			continue
		}
		require.NotNil(t, before)
		require.Equal(t, "binarize", before.Specs[0].Name)
		require.Equal(t, "patches: pack_image", names(all[0]))
		require.Equal(t, "patches: xor_gemm finish", names(all[1]))
		for _, s := range append(all[0][0].Specs, all[1][0].Specs...) {
			require.Len(t, s.Args, there[s.File][s.Name]-1, s.Name) // the geometry is the last
		}
	}
}
