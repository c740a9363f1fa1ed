//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// TestWithout leaves kinds of kernels out.
func TestWithout(t *testing.T) {
	all := testDevice(t)
	for _, c := range []struct {
		list, said string
		left       func(d *device) bool
	}{
		{"", "", func(d *device) bool { return d.limits.Warpgroups == all.limits.Warpgroups && d.early == all.early }},
		{"wgmma", ", without wgmma", func(d *device) bool {
			return !d.limits.Warpgroups && !d.limits.WarpgroupBytes && d.early == all.early
		}},
		{" early, fused,", ", without early, without fused", func(d *device) bool { return !d.early && !d.limits.Cooperative }},
	} {
		t.Setenv(withoutVariable, c.list)
		d, err := newDevice(0)
		require.NoError(t, err)
		require.Equal(t, all.info.Detail+c.said, d.info.Detail)
		require.True(t, c.left(d), c.list)
	}
	for _, variant := range []string{gpu.Patches, gpu.TensorCore, gpu.SplitK, gpu.Fused, gpu.Warpgroup} {
		for _, without := range []string{"", variant} {
			d := testDevice(t)
			_, err := d.leaveOut(without)
			require.NoError(t, err)
			exe := requireReference(t, d, backendtest.OneConv(6, 3, 128, 128), backend.Options{Kernels: variant}, 1)
			takes := exe.steps[1].variant == variant || exe.network != nil
			if variant != gpu.Warpgroup || all.limits.Warpgroups {
				require.Equal(t, without == "", takes, variant)
			}
			require.NoError(t, exe.Close())
		}
	}
	for _, name := range []string{gpu.Direct, "wgma", "fused early"} {
		t.Setenv(withoutVariable, name)
		_, err := newDevice(0)
		require.ErrorContains(t, err, "BCNN_CUDA_WITHOUT has \""+name+"\", want some of")
	}
}
