//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
)

const (
	patchThreads = 256 // of a block that packs patches
	xorTile      = 32  // GEMM_TILE of patches.cu
	finishBlock  = 256
)

// patches is variant a, the paper's convolution, for activations of all channels in
// one group; nothing where scratch or shared memory would be too small.
func (c *stepCompiler) patches(op *bcnn.ConvStep) []candidate {
	if op.Groups != 1 {
		return nil
	}
	g, w := c.conv(op)
	// S×W: rows as wide as the image, up to 64 pixels, as many as a block has threads for.
	tileY, tileX, bytes := 0, min(int(g.ConvW), 64), math.MaxInt
	for tileY = min(int(g.ConvH), patchThreads/tileX); ; {
		g.TileH = int32((tileY-1)*op.StrideH + (op.KH-1)*op.DilationH + 1)
		g.TileW = int32((tileX-1)*op.StrideW + (op.KW-1)*op.DilationW + 1)
		if bytes = int(g.TileH) * int(g.TileW) * w.words * 4; bytes <= c.limits.sharedDefault || tileX*tileY == 1 {
			break
		}
		if tileY > 1 {
			tileY = (tileY + 1) / 2
		} else {
			tileX = (tileX + 1) / 2
		}
	}
	g.PatchWords = int32(num.CeilDiv(int(g.Taps), 32))
	pixels := int(g.ConvH) * int(g.ConvW)
	packed := scratch{patches, c.batch * pixels * int(g.PatchWords) * 4}
	counts := scratch{sums, c.batch * pixels * op.Out * 4}
	outputs := num.CeilDiv(op.Out, xorTile)
	if bytes > c.limits.sharedDefault || max(packed.bytes, counts.bytes) > math.MaxInt32 || outputs > c.limits.gridY || c.limits.threads < xorTile*xorTile {
		return nil
	}
	g.TileY, g.TileX = int32(tileY), int32(tileX)
	g.TilesX = int32(num.CeilDiv(int(g.ConvW), tileX))
	stride := int(g.Blocks) * lanes
	rows, cols, correction := blockCorrection(op.Border, op.Out, stride)
	if op.Border != nil {
		g.Border, g.Cols = 1, int32(op.Border.Cols)
	}
	warps := c.out.Shape.Pixels() * int(g.Blocks)
	return []candidate{{variant: "a", name: "patches", specs: []spec{
		{file: "patches", kernel: "pack_patches", g: g, args: []any{c.x, packed},
			grid: [2]int{num.CeilDiv(int(g.ConvH), tileY) * int(g.TilesX), 1}, block: tileX * tileY, shared: bytes},
		{file: "patches", kernel: "xor_gemm", g: g, args: []any{packed, w.sizes().Patches(op.Bits), counts},
			grid: [2]int{0, outputs}, items: pixels, itemsOfBlock: xorTile, block: xorTile * xorTile},
		{file: "patches", kernel: "finish", g: g,
			args: []any{counts, c.y, thresholdsI32(op.Threshold, stride), op.Scale, op.Shift, mask(op), rows, cols, correction},
			grid: [2]int{num.CeilDiv(warps*lanes, finishBlock), 1}, block: finishBlock},
	}}}
}
