package candidates

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

const (
	patchThreads = 256 // of a block that packs patches
	xorTile      = 32  // GEMM_TILE of patches.cu
	finishBlock  = 256
)

// patches is variant gpu.Patches, the paper's convolution, for activations of all channels in
// one group; nothing where scratch or shared memory would be too small.
func (c *planner) patches(op *plan.Conv) []Candidate {
	if op.Groups != 1 {
		return nil
	}
	w := c.Conv(op, Lanes)
	tail := w.Epilogue()
	g := w.G
	// S×W: rows as wide as the image, up to 64 pixels, as many as a block has threads for.
	tileY, tileX, bytes := 0, min(int(g.ConvW), 64), math.MaxInt
	for tileY = min(int(g.ConvH), patchThreads/tileX); ; {
		g.TileH = int32((tileY-1)*op.StrideH + (op.KH-1)*op.DilationH + 1)
		g.TileW = int32((tileX-1)*op.StrideW + (op.KW-1)*op.DilationW + 1)
		if bytes = int(g.TileH) * int(g.TileW) * w.Words * 4; bytes <= c.limits.SharedDefault || tileX*tileY == 1 {
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
	packed := gpu.Scratch{Which: gpu.PatchMemory, Bytes: c.Batch * pixels * int(g.PatchWords) * 4}
	counts := gpu.Scratch{Which: gpu.SumMemory, Bytes: c.Batch * pixels * op.Out * 4}
	outputs := num.CeilDiv(op.Out, xorTile)
	if bytes > c.limits.SharedDefault || max(packed.Bytes, counts.Bytes) > math.MaxInt32 || outputs > c.limits.GridY || c.limits.Threads < xorTile*xorTile {
		return nil
	}
	g.TileY, g.TileX = int32(tileY), int32(tileX)
	g.TilesX = int32(num.CeilDiv(int(g.ConvW), tileX))
	warps := c.Out.Shape.Pixels() * int(g.Blocks)
	kernel := func(name string, args ...any) gpu.Kernel {
		return gpu.Kernel{File: "patches", Name: name, G: g, Args: args}
	}
	return []Candidate{{Variant: gpu.Patches, Name: "patches", Specs: []Spec{
		{Kernel: kernel(gpu.PackPatches, c.X, packed),
			Grid: [2]int{num.CeilDiv(int(g.ConvH), tileY) * int(g.TilesX), 1}, Block: tileX * tileY, Shared: bytes},
		{Kernel: kernel("xor_gemm", packed, w.Patches(op.Bits), counts),
			Grid: [2]int{0, outputs}, Items: pixels, ItemsOfBlock: xorTile, Block: xorTile * xorTile},
		{Kernel: kernel("finish", append([]any{counts, c.Y}, tail...)...),
			Grid: [2]int{num.CeilDiv(warps*Lanes, finishBlock), 1}, Block: finishBlock},
	}}}
}
