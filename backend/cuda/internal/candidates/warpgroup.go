package candidates

import (
	"cmp"
	"fmt"
	"math"
	mathbits "math/bits"
	"slices"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// What conv_wgmma.cu calls by the same names.
const (
	warpgroupThreads  = 128
	warpgroupSide     = 8  // of a square tile in pixels before pooling
	warpgroupSequence = 64 // pixels of a tile that is none
	warpgroupColumns  = 128
	chunkWords        = 4
	chunksOfPlane     = planeWords / chunkWords
)

// warpgroupKernel mirrors the instantiations of conv_wgmma.cu and conv_wgmma_bytes.cu.
type warpgroupKernel struct {
	name   string
	groups int // warpgroups of a block
}

// warpgroups lists the kernels of variant gpu.Warpgroup: products of Hopper's warpgroups, at
// stride 1, of one group, whose pixels are whole chunks of 128 bits.
func (c *planner) warpgroups(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	rows, cols, correction, offset := w.PaddedBorder()
	kernels := []warpgroupKernel{{"conv_wgmma_floats", 3}}
	if w.G.ToBits == 1 {
		kernels = []warpgroupKernel{{"conv_wgmma_bits", 4}}
	}
	if !c.limits.Warpgroups {
		return nil
	}
	return c.warpgroupCandidates(op, &w, "conv_wgmma", kernels, func(chunks int) []any {
		weights, ones := chunkWeights(w.Sizes, op.Bits, chunks)
		base, limits := countConstants(w.G, w.ThresholdsI32(w.Stride()), ones, offset, true)
		scale, shift, slope := floatConstants(op, &w)
		return []any{c.X, c.Y, weights, base, limits, scale, shift, slope, w.Mask(), rows, cols, correction}
	})
}

// warpgroupsOfBytes is warpgroups for bytes, of which 16 channels are a chunk.
func (c *planner) warpgroupsOfBytes(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	if !c.limits.WarpgroupBytes || w.In%(chunkWords*wordBytes) != 0 || tooManyBytes(w.Taps*w.In) {
		return nil
	}
	w.G.InWords = int32(w.In / wordBytes)
	kernels := []warpgroupKernel{{"conv_wgmma_bytes_floats", 3}, {"conv_wgmma_bytes_floats_w2", 2}}
	if w.G.ToBits == 1 {
		kernels = []warpgroupKernel{{"conv_wgmma_bytes_bits", 4}, {"conv_wgmma_bytes_bits_w2", 2}}
	}
	return c.warpgroupCandidates(op, &w, "conv_wgmma_bytes", kernels, func(chunks int) []any {
		word, base, limits := byteConstants(&w)
		scale, shift, slope := floatConstants(op, &w)
		return []any{c.X, c.Y, chunksOf(w.Sizes, chunks, word), base, limits, scale, shift, slope, w.Mask(), nil, nil, nil}
	})
}

// warpgroupCandidates are the first of the kernels that fits, given arguments for so many
// chunks of a pixel, for each shape of tiles; those of which there are fewer come first.
func (c *planner) warpgroupCandidates(op *plan.Conv, w *gpu.Conv, file string, kernels []warpgroupKernel, args func(chunks int) []any) []Candidate {
	g := w.G
	if op.Groups != 1 || op.StrideH != 1 || op.StrideW != 1 || g.InWords%chunkWords != 0 ||
		g.PoolH != g.PoolW || g.PoolH > 2 {
		return nil
	}
	if max(c.Batch*c.In.Shape.Pixels()*int(g.InWords), c.Batch*c.Out.Shape.Pixels()) > math.MaxInt32/2 {
		return nil
	}
	g.PoolLog2 = int32(mathbits.Len(uint(g.PoolH*g.PoolW)) - 1)
	chunks := int(g.InWords) / chunkWords
	g.Planes = int32(num.CeilDiv(w.Taps*chunks, chunksOfPlane))
	columns := num.CeilDiv(op.Out, warpgroupColumns)
	if columns > c.limits.GridY {
		return nil
	}

	var all []Candidate
	given := args(chunks)
	shapes := []warpgroupTiles{squareTiles(g)}
	if t, ok := c.sequenceTiles(g); ok {
		shapes = append(shapes, t)
	}
	slices.SortStableFunc(shapes, func(a, b warpgroupTiles) int { return cmp.Compare(a.ofBatch(c.Batch), b.ofBatch(c.Batch)) })
	for _, t := range shapes {
		const words = 4 // of 16 bytes
		up := func(n int) int { return num.CeilDiv(n, words) * words }
		tile := int(t.g.TileH * t.g.TileW)
		shared := func(groups int) int {
			return 4 * (int(g.Planes)*planeWords*warpgroupColumns + up(int(g.Planes)) + up(w.Taps) +
				chunks*tile*chunkWords + groups*(2*chunks*tile*chunkWords+up(tile)))
		}
		fits := slices.IndexFunc(kernels, func(k warpgroupKernel) bool {
			return shared(k.groups) <= c.limits.Shared && k.groups*warpgroupThreads <= c.limits.Threads
		})
		if fits < 0 {
			continue
		}
		// A block to a multiprocessor: each goes over as many tiles as that takes.
		name, groups := kernels[fits].name, kernels[fits].groups
		blocks := max(c.limits.Processors/columns, 1)
		spec := Spec{
			Kernel: gpu.Kernel{File: file, Name: name, G: t.g, Args: given},
			Grid:   [2]int{0, columns}, Items: t.items, ItemsOfBlock: t.itemsOfTile * num.CeilDiv(t.ofBatch(c.Batch), blocks),
			Block: groups * warpgroupThreads, Shared: shared(groups),
		}
		all = append(all, Candidate{Variant: gpu.Warpgroup, Name: fmt.Sprintf("%s %d×%d", name, t.g.TileY, t.g.TileX), Specs: []Spec{spec}})
	}
	return all
}

// warpgroupTiles are tiles of a shape, see conv_wgmma.cu.
type warpgroupTiles struct {
	g                  gpu.Geometry
	items, itemsOfTile int // of an image
}

// ofBatch is the number of tiles.
func (t warpgroupTiles) ofBatch(images int) int { return num.CeilDiv(images*t.items, t.itemsOfTile) }

// squareTiles divides each image.
func squareTiles(g gpu.Geometry) warpgroupTiles {
	tilesX := num.CeilDiv(int(g.ConvW), warpgroupSide)
	g.TileY, g.TileX, g.TilesX = warpgroupSide, warpgroupSide, int32(tilesX)
	g.TileH = warpgroupSide + (g.Kh-1)*g.DilationH
	g.TileW = warpgroupSide + (g.Kw-1)*g.DilationW
	g.RowPixels = g.TileW
	return warpgroupTiles{g, tilesX * num.CeilDiv(int(g.ConvH), warpgroupSide), 1}
}

// sequenceTiles divides all images as one row of pixels; false where they are pooled or too many.
func (c *planner) sequenceTiles(g gpu.Geometry) (warpgroupTiles, bool) {
	// What is padded behind a row lies in front of the next one, too. Pixels of padding are as
	// many as are on the side that has more.
	length := func(in, conv, pad, reach int32) int32 {
		behind := conv - 1 + reach - pad - in + 1
		return max(in+max(pad, behind), conv, 2) // 2, as 2^32 has no 32 bits
	}
	reachH, reachW := (g.Kh-1)*g.DilationH, (g.Kw-1)*g.DilationW
	g.RowPixels = length(g.InW, g.ConvW, g.PadL, reachW)
	g.ImageRows = length(g.InH, g.ConvH, g.PadT, reachH)
	g.TileY, g.TileX = 1, warpgroupSequence
	g.TileH, g.TileW = 1, warpgroupSequence+reachH*g.RowPixels+reachW
	g.TilesX = math.MaxInt32 / warpgroupSide // the row has no end
	pixels := int(g.RowPixels) * int(g.ImageRows)
	// Quotients of the numbers of pixels, and of rows, are exact where they times the error of
	// the reciprocal are below 2^32.
	most := int64(c.Batch)*int64(pixels) + int64(g.TileW) + int64(c.limits.Processors*c.limits.Threads) // tiles beyond the last are none
	perRow, errorOfRow := reciprocal(g.RowPixels)
	perImage, errorOfImage := reciprocal(g.ImageRows)
	if g.PoolLog2 != 0 || most > math.MaxInt32/2 || most*errorOfRow > math.MaxUint32 || most*errorOfImage > math.MaxUint32 {
		return warpgroupTiles{}, false
	}
	g.PerRow, g.PerImage = perRow, perImage
	return warpgroupTiles{g, pixels, warpgroupSequence}, true
}

// reciprocal is 2^32 / n, rounded up, and n times what that adds.
func reciprocal(n int32) (rounded int32, added int64) {
	up := (1<<32 + int64(n) - 1) / int64(n)
	return int32(uint32(up)), up*int64(n) - 1<<32
}

// chunkWeights orders packed weights as [block of columns][plane][half][column][word]: of
// chunks of channels the first, with all taps, come first. Columns hold channels in the order
// that conv_mma.cu wants. ones counts the bits of each output.
func chunkWeights(s gpu.Sizes, weights []uint64, chunks int) (out []uint32, ones []int) {
	words := bits.Words(s.In)
	ones = make([]int, s.Out)
	out = chunksOf(s, chunks, func(o int, r rowWord) uint32 {
		v := gpu.Half(weights[(o*s.Taps+r.tap)*words:], r.word)
		ones[o] += mathbits.OnesCount32(v)
		return v
	})
	return out, ones
}

// chunksOf orders the words of every output's weights as chunkWeights does.
func chunksOf(s gpu.Sizes, chunks int, word func(o int, r rowWord) uint32) []uint32 {
	planes := num.CeilDiv(s.Taps*chunks, chunksOfPlane)
	out := make([]uint32, num.CeilDiv(s.Out, warpgroupColumns)*planes*warpgroupColumns*planeWords)
	for o := range s.Out {
		column := columnOf(o)
		for chunk := range chunks {
			for tap := range s.Taps {
				half := chunk*s.Taps + tap
				at := ((column/warpgroupColumns*planes*chunksOfPlane+half)*warpgroupColumns + column%warpgroupColumns) * chunkWords
				for k := range chunkWords {
					out[at+k] = word(o, rowWord{tap, chunk*chunkWords + k})
				}
			}
		}
	}
	return out
}
