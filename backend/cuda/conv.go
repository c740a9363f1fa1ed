//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"sort"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/layout"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/kernels"
)

// conv starts the geometry of a convolution or dense layer.
func (c *stepCompiler) conv(op *bcnn.ConvStep) (kernels.Geometry, convGeometry) {
	g := c.shapes()
	setWindow(&g, op.Window)
	conv := c.out.Shape
	g.PoolH, g.PoolW = 1, 1
	if op.Pool != nil {
		g.PoolH, g.PoolW = int32(op.Pool.KH), int32(op.Pool.KW)
		// Rows and columns that fill no window are not needed.
		conv.H, conv.W = conv.H*op.Pool.KH, conv.W*op.Pool.KW
	}
	g.ConvH, g.ConvW = int32(conv.H), int32(conv.W)
	w := convGeometry{taps: op.KH * op.KW, in: c.in.Shape.C / op.Groups, out: op.Out, perGroup: op.Out / op.Groups}
	w.blocks = num.CeilDiv(op.Out, lanes)
	w.words = num.CeilDiv(w.in, 32)
	g.Blocks = int32(w.blocks)
	if c.out.DType == bcnn.Bits {
		g.Blocks = int32(words32(op.Out))
	}
	g.Words, g.GroupIn, g.GroupOut = int32(w.words), int32(w.in), int32(w.perGroup)
	g.Taps, g.ZeroPoint = int32(w.taps*w.in), int32(op.ZeroPoint)
	g.Scaled, g.Relu = flag(op.Scale != nil), flag(op.ReLU)
	g.Flip = flag(op.Threshold != nil && op.Threshold.Flip != nil)
	return g, w
}

// mask is what is XORed to the packed outputs.
func mask(op *bcnn.ConvStep) []uint32 {
	if op.Threshold == nil {
		return nil
	}
	return rowWeights(op.Threshold.Flip)
}

// direct is a kernel with a warp for every block of channels of so many pixels.
func (c *stepCompiler) direct(file, kernel string, g kernels.Geometry, pixels int, args ...any) candidate {
	made := perItem(file, kernel, g, num.CeilDiv(c.out.Shape.Pixels(), pixels)*int(g.Blocks), lanes, args...)
	return made[0]
}

func (c *stepCompiler) convBits(op *bcnn.ConvStep) []candidate {
	g, w := c.conv(op)
	stride := int(g.Blocks) * lanes
	rows, cols, correction := blockCorrection(op.Border, op.Out, stride)
	if op.Border != nil {
		g.Border, g.Cols = 1, int32(op.Border.Cols)
	}
	thresholds := thresholdsI32(op.Threshold, stride)
	tail := []any{thresholds, op.Scale, op.Shift, mask(op), rows, cols, correction}
	args := func(first ...any) []any { return append(append([]any{c.x, c.y}, first...), tail...) }
	if op.Groups > 1 && (w.perGroup%lanes != 0 || w.in%32 != 0) {
		w.words = layout.MixedWords(w.in, op.Groups)
		g.Words = int32(w.words)
		weights, masks := w.sizes().Mixed(op.Bits)
		return []candidate{c.direct("conv_bits", "conv_bits_mixed", g, 1, args(weights, masks)...)}
	}
	weights := w.blockWeights(op.Bits, 1)
	var all []candidate
	if op.Groups == 1 {
		vector := 1
		for vector < 4 && w.words%(2*vector) == 0 {
			vector *= 2
		}
		pitch := 1 // see conv_bits_tile.cu
		if w.words > 1 {
			pitch = int(g.InWords)
		}
		vectors := w.blockWeights(op.Bits, vector)
		for _, t := range c.tiles(g, w.taps*w.words/vector, pitch) {
			kernel := fmt.Sprintf("conv_bits_v%d_%s", vector, t.suffix())
			all = append(all, c.tiled("conv_bits_tile", kernel, g, t, args(vectors)))
		}
		all = c.windows(all, "conv_bits_tile", "conv_bits", op, g, pitch, args(weights))
	}
	for _, pixels := range []int{4, 1} {
		all = append(all, c.direct("conv_bits", fmt.Sprintf("conv_bits_p%d", pixels), g, pixels, args(weights, nil)...))
	}
	return append(append(all, c.gemm(op)...), c.patches(op)...)
}

func (c *stepCompiler) convBytes(op *bcnn.ConvStep) []candidate {
	g, w := c.conv(op)
	stride := int(g.Blocks) * lanes
	thresholds := thresholdsI32(op.Threshold, stride)
	var all []candidate
	if op.Groups == 1 {
		words := num.CeilDiv(w.in, 4)
		weights, sums := w.byteWeights(op.Bits)
		bias := make([]int32, stride)
		for o, sum := range sums {
			bias[o] = -int32(op.ZeroPoint) * sum
		}
		args := []any{c.x, c.y, weights, bias, thresholds, op.Scale, op.Shift, mask(op)}
		tg := g
		tg.Words = int32(words)
		for _, t := range c.tiles(tg, w.taps*words, words) {
			all = append(all, c.tiled("conv_bytes", "conv_bytes_"+t.suffix(), tg, t, args))
		}
		all = c.windows(all, "conv_bytes", "conv_bytes", op, tg, words, args)
	}
	return append(all, c.direct("conv_values", "conv_values_bytes", g, 1,
		c.x, c.y, w.signWeights(op.Bits), make([]int32, stride), thresholds, op.Scale, op.Shift, mask(op)))
}

func (c *stepCompiler) convFloat(op *bcnn.ConvStep) []candidate {
	g, w := c.conv(op)
	stride := int(g.Blocks) * lanes
	weights, bias, thresholds := w.sizes().Floats(op.F32), padTo(op.Bias, stride, 0), thresholdsF32(op.Threshold, stride)
	var all []candidate
	for _, pixels := range []int{4, 1} {
		all = append(all, c.direct("conv_values", fmt.Sprintf("conv_values_float_p%d", pixels), g, pixels,
			c.x, c.y, weights, bias, thresholds, op.Scale, op.Shift, mask(op)))
	}
	if c.out.Shape.Pixels() == 1 {
		return all[1:]
	}
	return all
}

// tile is how a convolution is divided among blocks and warps (see tile.cuh).
type tile struct {
	pixels, pool int // of a warp at a time; side of the pooling window
	h, w         int // pixels before pooling
	inH, inW     int // under them
	shared       int // bytes
	warps        int
}

func (t tile) suffix() string {
	if t.pool > 1 {
		return fmt.Sprintf("p%d_pool%d", t.pixels, t.pool)
	}
	return fmt.Sprintf("p%d", t.pixels)
}

// maxWarps is the number of warps of a block.
const maxWarps = 8

// windows adds the kernels for certain sizes of windows, first if they are the best
// guess: with few words, reading from shared memory is what takes the time.
func (c *stepCompiler) windows(all []candidate, file, prefix string, op *bcnn.ConvStep, g kernels.Geometry, pitch int, args []any) []candidate {
	if op.KH != op.KW || op.KH != 3 && op.KH != 5 || op.StrideH*op.StrideW*op.DilationH*op.DilationW != 1 || g.Words > 4 {
		return all
	}
	kernel := fmt.Sprintf("%s_k%d", prefix, op.KH)
	if g.PoolH > 1 {
		kernel += fmt.Sprintf("_pool%d", g.PoolH)
	}
	var some []candidate
	for _, t := range c.divisions(g, op.KH*op.KW*int(g.Words), pitch, []tile{
		{pixels: 4, h: 8, w: 16}, {pixels: 4, h: 8, w: 8}, {pixels: 4, h: 4, w: 8}}) {
		some = append(some, c.tiled(file, kernel, g, t, args))
	}
	if g.Words == 1 {
		return append(some, all...)
	}
	return append(all, some...)
}

// tiles lists the divisions for a sum of so many steps, the best guess first. pitch
// is the words of a pixel in shared memory.
func (c *stepCompiler) tiles(g kernels.Geometry, steps, pitch int) []tile {
	sizes := []tile{{pixels: 8, h: 8, w: 16}, {pixels: 8, h: 8, w: 8}, {pixels: 4, h: 8, w: 8}, {pixels: 4, h: 4, w: 8}}
	if g.PoolH*g.PoolW == 1 {
		sizes = append(sizes, tile{pixels: 1, h: 4, w: 8}, tile{pixels: 1, h: 4, w: 4})
	}
	return c.divisions(g, steps, pitch, sizes)
}

// divisions completes tiles of the given sizes and drops what does not fit.
func (c *stepCompiler) divisions(g kernels.Geometry, steps, pitch int, sizes []tile) []tile {
	pool := int(g.PoolH)
	if g.PoolH != g.PoolW || pool > 2 || int(g.Blocks) > c.limits.gridY || c.limits.threads < maxWarps*lanes {
		return nil
	}
	var all []tile
	seen := make(map[tile]bool)
	up := func(n, to int) int { return num.CeilDiv(n, to) * to }
	for _, t := range sizes {
		t.pool = pool
		across := t.pixels / pool
		t.h = min(t.h, up(int(g.ConvH), pool))
		t.w = min(t.w, up(int(g.ConvW), across))
		t.inH = (t.h-1)*int(g.StrideH) + int(g.Kh-1)*int(g.DilationH) + 1
		t.inW = (t.w-1)*int(g.StrideW) + int(g.Kw-1)*int(g.DilationW) + 1
		t.shared = 4 * (up(steps, 4) + t.inH*t.inW*pitch)
		t.warps = min(maxWarps, t.h/pool*(t.w/across))
		if t.shared <= c.limits.shared && !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	// Few warps leave multiprocessors idle, few pixels of a warp read weights often:
	// first come the most pixels of those with some warps for each multiprocessor.
	warps := func(t tile) int {
		return num.CeilDiv(int(g.ConvH), t.h) * num.CeilDiv(int(g.ConvW), t.w) * t.h * t.w / t.pixels * int(g.Blocks) * c.batch
	}
	enough := 4 * c.limits.processors
	sort.SliceStable(all, func(i, j int) bool {
		a, b := warps(all[i]) >= enough, warps(all[j]) >= enough
		if a != b {
			return a
		}
		return !a && warps(all[i]) > warps(all[j])
	})
	return all
}

func (c *stepCompiler) tiled(file, kernel string, g kernels.Geometry, t tile, args []any) candidate {
	tilesY, tilesX := num.CeilDiv(int(g.ConvH), t.h), num.CeilDiv(int(g.ConvW), t.w)
	g.TileY, g.TileX, g.TileH, g.TileW, g.TilesX = int32(t.h), int32(t.w), int32(t.inH), int32(t.inW), int32(tilesX)
	return candidate{variant: "b", name: fmt.Sprintf("%s %d×%d", kernel, t.h, t.w), specs: []spec{{
		file: file, kernel: kernel, g: g, args: args,
		grid: [2]int{tilesY * tilesX, int(g.Blocks)}, block: t.warps * lanes, shared: t.shared,
	}}}
}

const (
	denseOutputs = 8  // of a block, see dense.cu
	denseThreads = 64 // per output in variant a
)

func (c *stepCompiler) dense(op *bcnn.ConvStep) []candidate {
	g, _ := c.conv(op)
	g.RowWords = int32(2 * len(op.Bits) / op.Out)
	blocks := num.CeilDiv(op.Out, denseOutputs)
	if g.ToBits == 1 {
		blocks = 4 * int(g.OutWords) // each writes a byte, those of padding, too
	}
	args := []any{c.x, c.y, rowWeights(op.Bits), thresholdsI32(op.Threshold, blocks*denseOutputs), op.Scale, op.Shift, mask(op)}
	made := func(variant, kernel string, threads, images int) candidate {
		return candidate{variant: variant, name: kernel, specs: []spec{{
			file: "dense", kernel: kernel, g: g, args: args, grid: [2]int{blocks, 1}, block: threads, images: images,
		}}}
	}
	all := []candidate{made("b", "dense_warp_i1", denseOutputs*lanes, 1)}
	if c.batch > 1 {
		all = append(all, made("b", "dense_warp_i4", denseOutputs*lanes, 4))
	}
	if c.limits.threads >= denseOutputs*denseThreads {
		all = append(all, made("a", "dense_block", denseOutputs*denseThreads, 1))
	}
	return append(all, c.gemm(op)...)
}
