package candidates

import (
	"fmt"
	"slices"
	"sort"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// direct is a kernel with a warp for every block of channels of so many pixels.
func (c *planner) direct(k gpu.Kernel, pixels int) Candidate {
	spec := perItem(k, num.CeilDiv(c.Out.Shape.Pixels(), pixels)*int(k.G.Blocks), Lanes)
	return Candidate{Variant: gpu.Direct, Name: k.Name, Specs: []Spec{spec}}
}

func (c *planner) convBits(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	tail := w.Epilogue()
	args := func(first ...any) []any { return append(append([]any{c.X, c.Y}, first...), tail...) }
	if w.MixedLanes {
		weights, masks := w.Mixed(op.Bits)
		return []Candidate{c.direct(gpu.Kernel{File: "conv_bits", Name: "conv_bits_mixed", G: w.G, Args: args(weights, masks)}, 1)}
	}
	weights := w.Bits(op.Bits, 1)
	var all []Candidate
	if op.Groups == 1 {
		vector := 1
		for vector < 4 && w.Words%(2*vector) == 0 {
			vector *= 2
		}
		pitch := 1 // see conv_bits_tile.cu
		if w.Words > 1 {
			pitch = int(w.G.InWords)
		}
		vectors := args(w.Bits(op.Bits, vector))
		for _, t := range c.tiles(w.G, w.Taps*w.Words/vector, pitch) {
			name := fmt.Sprintf("conv_bits_v%d_%s", vector, t.suffix())
			all = append(all, c.tiled(gpu.Kernel{File: "conv_bits_tile", Name: name, G: w.G, Args: vectors}, t))
		}
		all = c.windows(all, gpu.Kernel{File: "conv_bits_tile", Name: "conv_bits", G: w.G, Args: args(weights)}, op, pitch)
	}
	for _, pixels := range []int{4, 1} {
		name := fmt.Sprintf("conv_bits_p%d", pixels)
		all = append(all, c.direct(gpu.Kernel{File: "conv_bits", Name: name, G: w.G, Args: args(weights, nil)}, pixels))
	}
	return slices.Concat(all, c.gemm(op), c.warpgroups(op), c.patches(op))
}

// convPlanes is a convolution or a dense layer on bit planes.
func (c *planner) convPlanes(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	tail := w.Epilogue()
	c.Out.Shape.H = int(w.G.OutH)
	made := func(name string, pixels int, weights, masks []uint32) Candidate {
		return c.direct(gpu.Kernel{File: gpu.Planes, Name: name, G: w.G, Args: append([]any{c.X, c.Y, weights, masks}, tail...)}, pixels)
	}
	if w.MixedLanes {
		weights, masks := w.Mixed(op.Bits)
		return []Candidate{made("conv_planes_mixed", 1, weights, masks)}
	}
	weights := w.Bits(op.Bits, 1)
	all := []Candidate{made("conv_planes_p4", 4, weights, nil), made("conv_planes_p1", 1, weights, nil)}
	if c.Out.Shape.Pixels() == 1 {
		return all[1:]
	}
	return all
}

func (c *planner) convBytes(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	thresholds := w.ThresholdsI32(w.Stride())
	var all []Candidate
	if op.Groups == 1 && op.Int16 == nil {
		words := num.CeilDiv(w.In, 4)
		weights, sums := w.Bytes(w.Int8())
		k := gpu.Kernel{File: "conv_bytes", G: w.G, Args: append([]any{c.X, c.Y, weights, w.ByteBias(sums), thresholds}, w.Tail()...)}
		k.G.Words = int32(words)
		all = c.byteProducts(k, weights)
		for _, t := range c.tiles(k.G, w.Taps*words, words) {
			k.Name = "conv_bytes_" + t.suffix()
			all = append(all, c.tiled(k, t))
		}
		k.Name = "conv_bytes"
		all = c.windows(all, k, op, words)
	}
	args := append([]any{c.X, c.Y, w.Int32Weights(), make([]int32, w.Stride()), thresholds}, w.Tail()...)
	all = append(all, c.direct(gpu.Kernel{File: "conv_values", Name: "conv_values_bytes", G: w.G, Args: args}, 1))
	if op.Int16 != nil {
		return all
	}
	return slices.Concat(all, c.gemmOfBytes(op), c.warpgroupsOfBytes(op))
}

// denseBytes is a dense layer on bytes.
func (c *planner) denseBytes(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	words := num.CeilDiv(int(w.G.Taps), 4)
	w.G.Vector, w.G.RowWords = 1, int32(words)
	if w.G.Taps%16 == 0 {
		w.G.Vector = 4
	}
	weights, sums := w.ByteRows(w.Int8(), words)
	all := c.denseWarps(w, "dense_bytes", append([]any{c.X, c.Y, weights, w.ByteBias(sums)}, denseTail(w)...))
	return append(all, c.gemmOfBytes(op)...)
}

// hasByteProducts reports whether the PTX for an architecture multiplies bytes in tensor
// cores.
func hasByteProducts(arch int) bool { return arch >= 75 }

// byteProducts lists the kernels of variant gpu.TensorCore for a convolution of bytes; k
// is the kernel, of whose name the end is missing, and weights those of Sizes.Bytes.
func (c *planner) byteProducts(k gpu.Kernel, weights []uint32) []Candidate {
	if !hasByteProducts(c.arch) {
		return nil
	}
	words := int(k.G.Kh * k.G.Kw * k.G.Words)
	k.Args = slices.Clone(k.Args)
	k.Args[2] = gpu.Fragments(weights, words)
	pitch := int(k.G.Words)
	if pitch > 3 {
		pitch = (pitch+3)/8*8 + 4
	}
	k.G.InWords = int32(pitch)
	var all []Candidate
	for _, t := range c.divisions(k.G, num.CeilDiv(words, planeWords)*planeWords, pitch, []tile{
		{pixels: 16, h: 8, w: 16}, {pixels: 16, h: 4, w: 16}, {pixels: 8, h: 8, w: 8}, {pixels: 8, h: 4, w: 8}}) {
		k.Name = "conv_bytes_mma_" + t.suffix()
		made := c.tiled(k, t)
		made.Variant = gpu.TensorCore
		all = append(all, made)
	}
	return all
}

func (c *planner) convFloat(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	args := append([]any{c.X, c.Y, w.Floats(op.F32), gpu.PadTo(op.Bias, w.Stride(), 0), w.ThresholdsF32(w.Stride())}, w.Tail()...)
	var all []Candidate
	for _, pixels := range []int{4, 1} {
		name := fmt.Sprintf("conv_values_float_p%d", pixels)
		all = append(all, c.direct(gpu.Kernel{File: "conv_values", Name: name, G: w.G, Args: args}, pixels))
	}
	if c.Out.Shape.Pixels() == 1 {
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
// guess: with few words, reading from shared memory is what takes the time. k is the
// kernel, of whose name the end is missing.
func (c *planner) windows(all []Candidate, k gpu.Kernel, op *plan.Conv, pitch int) []Candidate {
	g := k.G
	if op.KH != op.KW || op.KH != 3 && op.KH != 5 || op.StrideH*op.StrideW*op.DilationH*op.DilationW != 1 || g.Words > 4 {
		return all
	}
	k.Name += fmt.Sprintf("_k%d", op.KH)
	if g.PoolH > 1 {
		k.Name += fmt.Sprintf("_pool%d", g.PoolH)
	}
	var some []Candidate
	for _, t := range c.divisions(g, op.KH*op.KW*int(g.Words), pitch, []tile{
		{pixels: 4, h: 8, w: 16}, {pixels: 4, h: 8, w: 8}, {pixels: 4, h: 4, w: 8}}) {
		some = append(some, c.tiled(k, t))
	}
	if g.Words == 1 {
		return append(some, all...)
	}
	return append(all, some...)
}

// tiles lists the divisions for a sum of so many steps, the best guess first. pitch
// is the words of a pixel in shared memory.
func (c *planner) tiles(g gpu.Geometry, steps, pitch int) []tile {
	sizes := []tile{{pixels: 8, h: 8, w: 16}, {pixels: 8, h: 8, w: 8}, {pixels: 4, h: 8, w: 8}, {pixels: 4, h: 4, w: 8}}
	if g.PoolH*g.PoolW == 1 {
		sizes = append(sizes, tile{pixels: 1, h: 4, w: 8}, tile{pixels: 1, h: 4, w: 4})
	}
	return c.divisions(g, steps, pitch, sizes)
}

// divisions completes tiles of the given sizes and drops what does not fit.
func (c *planner) divisions(g gpu.Geometry, steps, pitch int, sizes []tile) []tile {
	pool := int(g.PoolH)
	if g.PoolH != g.PoolW || pool > 2 || int(g.Blocks) > c.limits.GridY || c.limits.Threads < maxWarps*Lanes {
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
		if t.shared <= c.limits.Shared && !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	// Few warps leave multiprocessors idle, few pixels of a warp read weights often:
	// first come the most pixels of those with some warps for each multiprocessor.
	warps := func(t tile) int {
		return num.CeilDiv(int(g.ConvH), t.h) * num.CeilDiv(int(g.ConvW), t.w) * t.h * t.w / t.pixels * int(g.Blocks) * c.Batch
	}
	enough := 4 * c.limits.Processors
	sort.SliceStable(all, func(i, j int) bool {
		a, b := warps(all[i]) >= enough, warps(all[j]) >= enough
		if a != b {
			return a
		}
		return !a && warps(all[i]) > warps(all[j])
	})
	return all
}

func (c *planner) tiled(k gpu.Kernel, t tile) Candidate {
	g := &k.G
	tilesY, tilesX := num.CeilDiv(int(g.ConvH), t.h), num.CeilDiv(int(g.ConvW), t.w)
	g.TileY, g.TileX, g.TileH, g.TileW, g.TilesX = int32(t.h), int32(t.w), int32(t.inH), int32(t.inW), int32(tilesX)
	return Candidate{Variant: gpu.Direct, Name: fmt.Sprintf("%s %d×%d", k.Name, t.h, t.w), Specs: []Spec{{
		Kernel: k, Grid: [2]int{tilesY * tilesX, int(g.Blocks)}, Block: t.warps * Lanes, Shared: t.shared,
	}}}
}

const (
	denseOutputs = 8  // of a block, see dense.cu
	denseThreads = 64 // per output in variant gpu.Patches
)

func (c *planner) dense(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	w.G.RowWords = int32(2 * len(op.Bits) / op.Out)
	args := append([]any{c.X, c.Y, gpu.Rows(op.Bits)}, denseTail(w)...)
	all := c.denseWarps(w, "dense_warp", args)
	if c.limits.Threads >= denseOutputs*denseThreads {
		all = append(all, denseCandidate(w, gpu.Patches, "dense_block", denseOutputs*denseThreads, 1, args))
	}
	return append(all, c.gemm(op)...)
}

// denseBlocks is the number of blocks that make the outputs of an image.
func denseBlocks(w gpu.Conv) int {
	if w.G.ToBits == 1 {
		return 4 * int(w.G.OutWords) // each writes a byte, those of padding, too
	}
	return num.CeilDiv(w.Out, denseOutputs)
}

// denseTail are the last arguments, from the thresholds on.
func denseTail(w gpu.Conv) []any {
	return append([]any{w.ThresholdsI32(denseBlocks(w) * denseOutputs)}, w.Tail()...)
}

// denseWarps are kernels with a warp for each output, of one image or four.
func (c *planner) denseWarps(w gpu.Conv, name string, args []any) []Candidate {
	all := []Candidate{denseCandidate(w, gpu.Direct, name+"_i1", denseOutputs*Lanes, 1, args)}
	if c.Batch > 1 {
		all = append(all, denseCandidate(w, gpu.Direct, name+"_i4", denseOutputs*Lanes, 4, args))
	}
	return all
}

func denseCandidate(w gpu.Conv, variant, name string, threads, images int, args []any) Candidate {
	return Candidate{Variant: variant, Name: name, Specs: []Spec{{
		Kernel: gpu.Kernel{File: "dense", Name: name, G: w.G, Args: args}, Grid: [2]int{denseBlocks(w), 1}, Block: threads, Images: images,
	}}}
}
