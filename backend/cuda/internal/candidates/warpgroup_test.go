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
		"bits":                 func(s Spec) bool { return s.Name == "conv_wgmma_bits" },
		"floats":               func(s Spec) bool { return s.Name == "conv_wgmma_floats" },
		"pooled":               func(s Spec) bool { return s.G.PoolLog2 == 2 },
		"corrected at borders": func(s Spec) bool { return s.G.Border == 1 },
		"one tap":              func(s Spec) bool { return s.G.Kh*s.G.Kw == 1 },
		"odd number of chunks": func(s Spec) bool { return s.G.Kh*s.G.Kw*s.G.InWords/chunkWords%chunksOfPlane == 1 },
		"several chunks":       func(s Spec) bool { return s.G.InWords > chunkWords },
		"several columns":      func(s Spec) bool { return s.Grid[1] > 1 },
		"several tiles":        func(s Spec) bool { return s.Items > 1 },
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
		net := backendtest.OneConv(c.size, c.k, c.in, c.out)
		specs := wgmmaOf(t, net, c.batch, hopper())
		if c.blocks == 0 {
			require.Empty(t, specs, c)
			continue
		}
		require.Len(t, specs, 1, c)
		s := specs[0]
		require.Equal(t, []int{c.blocks, c.columns, c.planes},
			[]int{num.CeilDiv(c.batch*s.Items, s.ItemsOfBlock), s.Grid[1], int(s.G.Planes)}, c)
		require.LessOrEqual(t, c.blocks*c.columns, hopper().Processors)
	}
}
