package candidates

import (
	"math"
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// What conv_wgmma.cu calls by the same names.
const (
	warpgroupThreads = 128
	warpgroupSide    = 8 // of a tile in pixels before pooling
	warpgroupColumns = 128
	chunkWords       = 4
	chunksOfPlane    = planeWords / chunkWords
)

// warpgroups lists the kernel of variant gpu.Warpgroup: products of Hopper's warpgroups, at
// stride 1, of one group, whose pixels are whole chunks of 128 bits.
func (c *planner) warpgroups(op *bcnn.ConvStep) []Candidate {
	w := c.Conv(op, Lanes)
	rows, cols, correction := w.Border()
	g := w.G
	if !c.limits.Warpgroups || op.Groups != 1 || op.StrideH != 1 || op.StrideW != 1 || g.InWords%chunkWords != 0 ||
		g.PoolH != g.PoolW || g.PoolH > 2 {
		return nil
	}
	if max(c.Batch*c.In.Shape.Pixels()*int(g.InWords), c.Batch*c.Out.Shape.Pixels()) > math.MaxInt32/2 {
		return nil
	}
	g.PoolLog2 = int32(mathbits.Len(uint(g.PoolH*g.PoolW)) - 1)
	chunks := int(g.InWords) / chunkWords
	g.Planes = int32(num.CeilDiv(w.Taps*chunks, chunksOfPlane))
	g.TileY, g.TileX = warpgroupSide, warpgroupSide
	g.TileH = warpgroupSide + (g.Kh-1)*g.DilationH
	g.TileW = warpgroupSide + (g.Kw-1)*g.DilationW
	tilesX := num.CeilDiv(int(g.ConvW), warpgroupSide)
	g.TilesX = int32(tilesX)

	name, groups := "conv_wgmma_floats", 3
	if g.ToBits == 1 {
		name, groups = "conv_wgmma_bits", 4
	}
	const words = 4 // of 16 bytes
	up := func(n int) int { return num.CeilDiv(n, words) * words }
	tile := int(g.TileH * g.TileW)
	shared := 4 * (int(g.Planes)*planeWords*warpgroupColumns + up(int(g.Planes)) + up(w.Taps) +
		chunks*tile*chunkWords + groups*(2*chunks*tile*chunkWords+up(tile)))
	columns := num.CeilDiv(op.Out, warpgroupColumns)
	if shared > c.limits.Shared || groups*warpgroupThreads > c.limits.Threads || columns > c.limits.GridY {
		return nil
	}

	weights, ones := chunkWeights(w.Sizes, op.Bits, chunks)
	stride := w.Stride()
	base, limits := countConstants(g, w.ThresholdsI32(stride), ones, stride, true)
	scale, shift, slope := floatConstants(op, &w)
	// A block to a multiprocessor: each goes over as many tiles as that takes.
	tiles := tilesX * num.CeilDiv(int(g.ConvH), warpgroupSide)
	blocks := max(c.limits.Processors/columns, 1)
	spec := Spec{
		Kernel: gpu.Kernel{File: "conv_wgmma", Name: name, G: g, Args: []any{
			c.X, c.Y, weights, base, limits, scale, shift, slope, w.Mask(), rows, cols, correction}},
		Grid: [2]int{0, columns}, Items: tiles, ItemsOfBlock: groups * num.CeilDiv(c.Batch*tiles, groups*blocks),
		Block: groups * warpgroupThreads, Shared: shared,
	}
	return []Candidate{{Variant: gpu.Warpgroup, Name: name, Specs: []Spec{spec}}}
}

// chunkWeights orders packed weights as [block of columns][plane][half][column][word]: of
// chunks of channels the first, with all taps, come first. Columns hold channels in the order
// that conv_mma.cu wants. ones counts the bits of each output.
func chunkWeights(s gpu.Sizes, weights []uint64, chunks int) (out []uint32, ones []int) {
	words := bits.Words(s.In)
	planes := num.CeilDiv(s.Taps*chunks, chunksOfPlane)
	out = make([]uint32, num.CeilDiv(s.Out, warpgroupColumns)*planes*warpgroupColumns*planeWords)
	ones = make([]int, s.Out)
	for o := range s.Out {
		column := columnOf(o)
		for chunk := range chunks {
			for tap := range s.Taps {
				half := chunk*s.Taps + tap
				at := ((column/warpgroupColumns*planes*chunksOfPlane+half)*warpgroupColumns + column%warpgroupColumns) * chunkWords
				for k := range chunkWords {
					v := gpu.Half(weights[(o*s.Taps+tap)*words:], chunk*chunkWords+k)
					out[at+k] = v
					ones[o] += mathbits.OnesCount32(v)
				}
			}
		}
	}
	return out, ones
}
