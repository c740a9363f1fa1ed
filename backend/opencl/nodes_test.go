package opencl

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestHasGPUNode(t *testing.T) {
	for file, want := range map[string]bool{
		"dev/null":             false,
		"dev/dri/card0":        false, // shows pictures, computes nothing
		"dev/dri/renderD128":   true,
		"dev/mali0":            true,
		"dev/nvidiactl":        true,
		"dev/kgsl-3d0":         true,
		"dev/dxg":              true,
		"etc/OpenCL/vendors/x": false,
	} {
		require.Equal(t, want, hasGPUNode(fstest.MapFS{file: {}}), file)
	}
	require.False(t, hasGPUNode(fstest.MapFS{}))
}
