package candidates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
)

// wgmmaOf are the specs of variant gpu.Warpgroup of a network.
func wgmmaOf(t *testing.T, net *bcnn.Network, batch int, limits Limits) (specs []Spec) {
	all, _ := of(t, net, batch, limits, 90)
	for _, of := range all {
		for _, c := range of {
			if c.Variant == gpu.Warpgroup {
				specs = append(specs, c.Specs...)
			}
		}
	}
	return specs
}

// TestWarpgroupCases: the table has steps of the kinds that conv_wgmma.cu treats apart. Others
// are those of TestWarpgroupShapes.
func TestWarpgroupCases(t *testing.T) {
	kinds := map[string]func(s Spec) bool{
		"bits":                  func(s Spec) bool { return s.Name == "conv_wgmma_bits" },
		"floats":                func(s Spec) bool { return s.Name == "conv_wgmma_floats" },
		"pooled":                func(s Spec) bool { return s.G.PoolLog2 == 2 },
		"corrected at borders":  func(s Spec) bool { return s.G.Border == 1 },
		"one tap":               func(s Spec) bool { return s.G.Kh*s.G.Kw == 1 },
		"odd number of chunks":  func(s Spec) bool { return s.G.Kh*s.G.Kw*s.G.InWords/chunkWords%chunksOfPlane == 1 },
		"several chunks":        func(s Spec) bool { return s.G.InWords > chunkWords },
		"several columns":       func(s Spec) bool { return s.Grid[1] > 1 },
		"several tiles":         func(s Spec) bool { return s.Items > 1 },
		"bytes to bits":         func(s Spec) bool { return s.Name == "conv_wgmma_bytes_bits" },
		"bytes to bits, pooled": func(s Spec) bool { return s.Name == "conv_wgmma_bytes_bits_w2" && s.G.PoolLog2 == 2 },
		"bytes to floats, wide": func(s Spec) bool { return s.Name == "conv_wgmma_bytes_floats_w2" },
		"bytes to floats":       func(s Spec) bool { return s.Name == "conv_wgmma_bytes_floats" },
		"odd number of chunks of bytes": func(s Spec) bool {
			return s.File == "conv_wgmma_bytes" && s.G.Kh*s.G.Kw*s.G.InWords/chunkWords%chunksOfPlane == 1
		},
		"bytes of zero point": func(s Spec) bool { return s.File == "conv_wgmma_bytes" && s.G.ZeroPoint > 0 && s.G.PadT > 0 },
	}
	count := make(map[string]int)
	for _, c := range parity.Cases() {
		for _, s := range wgmmaOf(t, c.Network(), c.Batch, hopper()) {
			for kind, is := range kinds {
				if is(s) {
					count[kind]++
				}
			}
		}
		require.Empty(t, wgmmaOf(t, c.Network(), c.Batch, large), "a driver that does not know it")
	}
	for kind := range kinds {
		require.Positive(t, count[kind], kind)
	}
}

// TestWarpgroupTiles: blocks fill the device once, none is without tiles, and where weights and
// pixels do not fit into shared memory there is no such kernel.
func TestWarpgroupTiles(t *testing.T) {
	for _, c := range []struct{ size, k, in, out, batch, blocks, columns, planes int }{
		{56, 3, 256, 256, 64, 66, 2, 9},
		{28, 3, 512, 512, 64, 32, 4, 18},
		{14, 3, 512, 512, 1, 1, 4, 18},
		{14, 1, 1024, 130, 3, 3, 2, 4},
		{7, 3, 128, 128, 1000, 125, 1, 5},
		{7, 3, 1024, 128, 64, 0, 0, 0},
		{14, 3, 64, 64, 64, 0, 0, 0}, // half chunks
	} {
		requireTiles(t, backendtest.OneConv(c.size, c.k, c.in, c.out), "conv_wgmma_bits", c.batch, c.blocks, c.columns, c.planes)
	}
	for _, c := range []struct {
		size, k, in, out, batch, blocks, columns, planes int
		kernel                                           string
	}{
		{56, 3, 64, 64, 64, 131, 1, 18, "conv_wgmma_bytes_floats"},
		{28, 3, 128, 128, 64, 128, 1, 36, "conv_wgmma_bytes_floats_w2"},
		{28, 1, 256, 256, 64, 57, 2, 8, "conv_wgmma_bytes_floats"},
		{14, 3, 256, 256, 64, 0, 0, 0, ""},
		{14, 3, 24, 64, 64, 0, 0, 0, ""}, // half chunks
	} {
		requireTiles(t, backendtest.OneByteConv(c.size, c.k, c.in, c.out), c.kernel, c.batch, c.blocks, c.columns, c.planes)
	}
}

func requireTiles(t *testing.T, net *bcnn.Network, kernel string, batch, blocks, columns, planes int) {
	specs := wgmmaOf(t, net, batch, hopper())
	if blocks == 0 {
		require.Empty(t, specs, net.Inputs)
		return
	}
	require.Len(t, specs, 1, net.Inputs)
	s := specs[0]
	require.Equal(t, kernel, s.Name)
	require.Equal(t, []int{blocks, columns, planes}, []int{num.CeilDiv(batch*s.Items, s.ItemsOfBlock), s.Grid[1], int(s.G.Planes)}, net.Inputs)
	require.LessOrEqual(t, blocks*columns, hopper().Processors)
}
