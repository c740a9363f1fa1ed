package candidates

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/testenv"
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
	testenv.Long(t)
	kinds := map[string]func(s Spec) bool{
		"bits":                  func(s Spec) bool { return s.Name == "conv_wgmma_bits" },
		"floats":                func(s Spec) bool { return s.Name == "conv_wgmma_floats" },
		"pooled":                func(s Spec) bool { return s.G.PoolLog2 == 2 },
		"corrected at borders":  func(s Spec) bool { return s.G.Border == 1 },
		"one tap":               func(s Spec) bool { return s.G.Kh*s.G.Kw == 1 },
		"odd number of chunks":  func(s Spec) bool { return s.G.Kh*s.G.Kw*s.G.InWords/chunkWords%chunksOfPlane == 1 },
		"several chunks":        func(s Spec) bool { return s.G.InWords > chunkWords },
		"several columns":       func(s Spec) bool { return s.Grid[1] > 1 },
		"several tiles":         func(s Spec) bool { return s.G.TileY > 1 && s.Items > 1 },
		"sequences":             func(s Spec) bool { return s.G.TileY == 1 && s.Items > warpgroupSequence },
		"sequences, corrected":  func(s Spec) bool { return s.G.TileY == 1 && s.G.Border == 1 },
		"sequences of bytes":    func(s Spec) bool { return s.G.TileY == 1 && s.File == "conv_wgmma_bytes" },
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
// pixels do not fit into shared memory there is no such kernel. The shape with fewer tiles comes first.
func TestWarpgroupTiles(t *testing.T) {
	bits := func(size, k, in, out int) *bcnn.Network { return backendtest.OneConv(size, k, in, out) }
	bytes := func(size, k, in, out int) *bcnn.Network { return backendtest.OneByteConv(size, k, in, out) }
	type shape struct {
		tiles           string
		blocks, columns int
		planes          int
	}
	for _, c := range []struct {
		net   *bcnn.Network
		batch int
		want  []shape
	}{
		{bits(56, 3, 256, 256), 64, []shape{{"bits 8×8", 66, 2, 9}, {"bits 1×64", 65, 2, 9}}},
		{bits(28, 3, 512, 512), 64, []shape{{"bits 1×64", 33, 4, 18}, {"bits 8×8", 32, 4, 18}}},
		{bits(14, 3, 512, 512), 1, []shape{{"bits 8×8", 4, 4, 18}, {"bits 1×64", 4, 4, 18}}},
		{bits(13, 3, 256, 128), 64, []shape{{"bits 1×64", 98, 1, 9}, {"bits 8×8", 128, 1, 9}}},
		{bits(14, 1, 1024, 130), 3, []shape{{"bits 1×64", 10, 2, 4}, {"bits 8×8", 12, 2, 4}}},
		{bits(7, 3, 128, 128), 1000, []shape{{"bits 8×8", 125, 1, 5}, {"bits 1×64", 125, 1, 5}}},
		{bits(7, 3, 1024, 128), 64, nil},
		{bits(14, 3, 64, 64), 64, nil}, // half chunks
		{bytes(56, 3, 64, 64), 64, []shape{{"bytes_floats 8×8", 131, 1, 18}, {"bytes_floats 1×64", 130, 1, 18}}},
		{bytes(28, 3, 128, 128), 64, []shape{{"bytes_floats_w2 1×64", 121, 1, 36}, {"bytes_floats_w2 8×8", 128, 1, 36}}},
		{bytes(28, 1, 256, 256), 64, []shape{{"bytes_floats 1×64", 66, 2, 8}, {"bytes_floats 8×8", 64, 2, 8}}},
		{bytes(14, 3, 256, 256), 64, nil},
		{bytes(14, 3, 24, 64), 64, nil}, // half chunks
	} {
		var got []shape
		for _, s := range wgmmaOf(t, c.net, c.batch, hopper()) {
			blocks := num.CeilDiv(c.batch*s.Items, s.ItemsOfBlock)
			require.LessOrEqual(t, blocks*s.Grid[1], hopper().Processors)
			tiles := fmt.Sprintf("%s %d×%d", strings.TrimPrefix(s.Name, "conv_wgmma_"), s.G.TileY, s.G.TileX)
			got = append(got, shape{tiles, blocks, s.Grid[1], int(s.G.Planes)})
		}
		require.Equal(t, c.want, got, "%v, batch %d", c.net.Inputs, c.batch)
	}
}

// TestWarpgroupSequences: whatever the window, a pixel of the sequence that a tap of an output
// reaches is that of its image, or none where there is padding, and quotients are exact.
func TestWarpgroupSequences(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sequences := 0
	for range 300 {
		at := func(n int) int { return rng.IntN(n) }
		h, w, images := 1+at(12), 1+at(12), 1+at(70)
		kh, kw, dh, dw := 1+at(4), 1+at(4), 1+at(3), 1+at(3)
		g := gpu.Geometry{}
		g.InH, g.InW, g.Kh, g.Kw, g.DilationH, g.DilationW = int32(h), int32(w), int32(kh), int32(kw), int32(dh), int32(dw)
		g.PadT, g.PadL = int32(at(4)), int32(at(4))
		g.ConvH = g.InH + g.PadT + int32(at(4)) - (g.Kh-1)*g.DilationH
		g.ConvW = g.InW + g.PadL + int32(at(4)) - (g.Kw-1)*g.DilationW
		if g.ConvH < 1 || g.ConvW < 1 {
			continue
		}
		c := planner{limits: hopper()}
		c.Batch = images
		tiles, ok := c.sequenceTiles(g)
		require.True(t, ok)
		g = tiles.g
		// What the kernel does with a number of the sequence.
		place := func(number int) (image, y, x int) {
			row := int(uint64(number) * uint64(uint32(g.PerRow)) >> 32)
			image = int(uint64(row) * uint64(uint32(g.PerImage)) >> 32)
			return image, row - image*int(g.ImageRows), number - row*int(g.RowPixels)
		}
		for range 50 {
			image, y, x := at(images), at(int(g.ConvH)), at(int(g.ConvW))
			number := (image*int(g.ImageRows)+y)*int(g.RowPixels) + x
			i, py, px := place(number)
			require.Equal(t, []int{image, y, x}, []int{i, py, px})
			ky, kx := at(kh)*dh, at(kw)*dw
			i, py, px = place(number + ky*int(g.RowPixels) + kx)
			py, px = py-int(g.PadT), px-int(g.PadL)
			iy, ix := y+ky-int(g.PadT), x+kx-int(g.PadL)
			inside := func(y, x int) bool { return y >= 0 && y < h && x >= 0 && x < w }
			if inside(iy, ix) {
				require.Equal(t, []int{image, iy, ix}, []int{i, py, px})
			} else {
				require.False(t, inside(py, px), "%+v: tap %d, %d of pixel %d, %d", g, ky, kx, y, x)
			}
			sequences++
		}
	}
	require.Greater(t, sequences, 5000)
}
