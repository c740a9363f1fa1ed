package cpu

import (
	"context"
	"fmt"
	"math"

	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// This file is the scheduler: from the shape of a step, the instruction set, the
// cache and the number of threads it picks the kernel and the tile, once, at
// Compile. BitFlow has the same under the name of vector execution scheduler (Hu
// et al., "BitFlow: Exploiting Vector Parallelism for Binary Neural Networks on
// CPU", IPDPS 2018), where it is the number of channels alone that decides.

const (
	// minTile is the work in nanoseconds that is worth a hand-over to another
	// thread.
	minTile = 4000
	// handOver is the time in nanoseconds for taking a tile and loading its
	// border once more.
	handOver = 500
	// maxTile bounds a tile in nanoseconds, since a Run whose context has ended
	// goes on until the tiles in hand are done.
	maxTile = 4e6
	// tilesPerThread evens out threads that do not get a whole CPU.
	tilesPerThread = 4
	// sumBytes bounds the sums of the pixels that are computed at a time, where
	// they go through memory.
	sumBytes = 16 << 10
	// denseImages is the number of images for which weights are read once.
	denseImages = 16
	// minL1 is the smallest first-level cache of any processor in question.
	minL1 = 32 << 10
)

// l1Bytes returns the size of the first-level data cache.
func l1Bytes() int { return max(cpuid.CPU.Cache.L1D, minL1) }

// compiler compiles one step.
type compiler struct {
	ctx            context.Context
	room           int // bytes of memory that are left for tables
	tables         int // bytes of those of the step
	set            *kern.Set
	batch, threads int
	l1             int // bytes
	in, out        *bcnn.Tensor
	others         []*bcnn.Tensor // the inputs behind the first
	choice         driver.Choice  // what was picked
}

// reserve reports whether there is room for a table of so many bytes, which a
// step needs beside its weights.
func (c *compiler) reserve(bytes int) bool {
	c.tables = num.Sum(c.tables, bytes)
	return c.tables <= c.room
}

// ended reports whether the compilation is not wanted any more. What has been made
// of the step by then is dropped.
func (c *compiler) ended() bool { return c.ctx.Err() != nil }

// split divides work, in nanoseconds, on rows and blocks of channels into tiles
// of so many of each. Threads that do not get a whole CPU need several tiles
// each, to share them unequally; among such divisions it takes the one that
// threads which do get one finish first. Tiles of some blocks only load the same
// rows again, so blocks are divided only where there are too few rows.
func (c *compiler) split(work float64, rows, blocks int) (tileRows, tileBlocks int, why string) {
	want := int(min(work/minTile, float64(tilesPerThread*c.threads)))
	if c.threads == 1 {
		want = 1
	}
	want = max(want, int(min(math.Ceil(work/maxTile), float64(rows)*float64(blocks))))
	switch {
	case want <= 1 && c.threads == 1:
		return rows, blocks, "one thread"
	case want <= 1:
		return rows, blocks, "too little work to share"
	}
	tileBlocks = num.CeilDiv(blocks, num.CeilDiv(want, rows))
	blockTiles := num.CeilDiv(blocks, tileBlocks)
	best := math.Inf(1)
	for n := 1; n <= num.CeilDiv(rows, num.CeilDiv(want, blockTiles)); n++ {
		turns := num.CeilDiv(num.CeilDiv(rows, n)*blockTiles, c.threads)
		took := float64(turns) * (handOver + work*float64(n*tileBlocks)/float64(rows*blocks))
		if took <= best {
			best, tileRows = took, n
		}
	}
	tiles := count(num.CeilDiv(rows, tileRows)*blockTiles, "tile")
	if c.threads == 1 {
		return tileRows, tileBlocks, tiles + " for one thread, so that it can be interrupted"
	}
	return tileRows, tileBlocks, fmt.Sprintf("%s shared by %d threads", tiles, c.threads)
}

// convTime estimates the time for one pixel of a convolution, in nanoseconds.
func (c *compiler) convTime(op *bcnn.ConvStep, d bcnn.DType, taps int) float64 {
	perTap := c.set.Cost.Floats
	switch d {
	case bcnn.Bits:
		perTap = c.set.Cost.Bits
	case bcnn.Uint8:
		perTap = c.set.Cost.Bytes
	}
	return float64(op.Out) * (float64(taps)*perTap + c.set.Cost.Value/2)
}

// convKernel is a way to compute a convolution.
type convKernel int

const (
	// wideKernel has many output channels side by side in registers.
	wideKernel convKernel = iota
	// slicedKernel counts the taps of 64 channels at once, one bit of all counts
	// in a word.
	slicedKernel
	// sumsKernel computes sums into memory and makes outputs of them after.
	sumsKernel
)

// convKernel picks the kernel for a convolution, and says why.
func (c *compiler) convKernel(op *bcnn.ConvStep, w window, in bcnn.DType) (convKernel, string) {
	switch {
	case in == bcnn.Float32:
		return sumsKernel, "float32 sums, in the order of the taps"
	case in == bcnn.Bits && w.group == 1 && op.Groups > 1 && op.Out == op.Groups && w.taps() < 1<<maxPlanes:
		return slicedKernel, "depthwise: 64 channels in a word"
	case c.set.Wide == nil:
		return sumsKernel, "the instruction set has no wide registers"
	case in == bcnn.Bits && w.taps() > c.set.Wide.MaxTaps:
		return sumsKernel, fmt.Sprintf("more than %d taps overflow the sums of wide kernels", c.set.Wide.MaxTaps)
	case op.Groups == 1:
		return wideKernel, "all channels read the same inputs"
	case in == bcnn.Bits && w.group%pieceBits == 0 && op.Out/op.Groups%kern.BlockOutputs == 0:
		return wideKernel, fmt.Sprintf("groups of whole blocks of %d channels", kern.BlockOutputs)
	}
	return sumsKernel, fmt.Sprintf("groups of %d to %d channels fill no block", w.group, op.Out/op.Groups)
}

// rowLayout is how the bits of the input are laid out for wide kernels.
type rowLayout int

const (
	// paddedRows have whole pieces of 32 bits for every pixel.
	paddedRows rowLayout = iota
	// rowsInPlace are those of the tensor.
	rowsInPlace
	// joinedLayout has the taps of several neighbours in a piece (joinedRows).
	joinedLayout
	// cutLayout has a run of its own for every position, packed densely.
	cutLayout
)

// rowLayout picks the layout of the input for a wide convolution on bits.
func (c *compiler) rowLayout(w window) (rowLayout, string) {
	padded, packed := num.CeilDiv(w.group, pieceBits), num.CeilDiv(w.KW*w.group, pieceBits)
	oneRow := w.KW*w.group <= pieceBits // of a window in a piece
	switch {
	case w.groups == 1 && w.group <= pieceBits && w.KH*w.KW > 1 && (oneRow || w.group <= pieceBits/2 && w.DilationH == 1):
		return joinedLayout, fmt.Sprintf("%d taps of %s share pieces of %d bits", w.KH*w.KW, bitCount(w.group), pieceBits)
	case w.groups == 1 && w.DilationW == 1 && 3*w.KW*padded > 4*packed:
		return cutLayout, fmt.Sprintf("%d pieces of %d bits for a row of a window, not %d", packed, pieceBits, w.KW*padded)
	case !w.padded() && w.DilationW == 1 && 2*bits.Words(w.group) == padded && !c.set.Wide.Nibbles && w.groups == 1:
		return rowsInPlace, "no padding"
	case w.DilationW > 1:
		return paddedRows, fmt.Sprintf("every %d-th column side by side", w.DilationW)
	}
	return paddedRows, "pixels of whole pieces"
}

func bitCount(n int) string {
	if n == 1 {
		return "1 bit"
	}
	return fmt.Sprintf("%d bits", n)
}

// tiling is a division of a convolution into tiles.
type tiling struct {
	rows, rowTiles     int // output rows of a tile, tiles of an image
	blocks, blockTiles int // blocks of 64 channels of a tile, tiles
}

// wideTiles divides a convolution of height output rows and some channels:
// as many tiles as the threads want, of rows first, because tiles of channels
// load the same rows again, and of no more rows than the cache holds. need
// returns the scratch for rows of output, which it is called for last.
func (c *compiler) wideTiles(height, channels int, work float64, need func(rows int) scratchSize, fits func(rows int) bool) (tiling, scratchSize) {
	blocks := num.CeilDiv(channels, kern.BlockOutputs)
	var t tiling
	var why string
	t.rows, t.blocks, why = c.split(work, height, blocks)
	t.blockTiles = num.CeilDiv(blocks, t.blocks)
	var size scratchSize
	for {
		size = need(t.rows)
		if t.rows == 1 || max(size.words*8, size.bytes) <= c.l1 && fits(t.rows) {
			break
		}
		t.rows = num.CeilDiv(t.rows, 2)
		why = fmt.Sprintf("rows that fit into %d KiB of cache", c.l1>>10)
	}
	t.rowTiles = num.CeilDiv(height, t.rows)
	c.choice.Tile = fmt.Sprintf("%s × %s, %s",
		count(t.rows, "row"), count(min(t.blocks*kern.BlockOutputs, channels), "channel"), count(t.rowTiles*t.blockTiles, "tile"))
	c.choice.Why += "; " + why
	return t, size
}

// sumTiles divides a convolution whose sums go through memory. It returns the
// rows and the output channels of a tile.
func (c *compiler) sumTiles(op *bcnn.ConvStep, w window, height int, work float64) (rows, block int) {
	blocks := 1
	if op.Groups == 1 {
		blocks = bits.Words(op.Out)
	}
	rows, block, why := c.split(work, height, blocks)
	block *= bits.WordBits
	if blocks == 1 {
		block = op.Out
	}
	c.choice.Why += "; " + why
	return rows, block
}

// denseTiles divides a dense layer into chunks of images and blocks of outputs.
func (c *compiler) denseTiles(op *bcnn.ConvStep, taps int) (images, outputs int) {
	outputs, _, why := c.split(c.convTime(op, bcnn.Bits, taps), bits.Words(op.Out), 1)
	outputs *= bits.WordBits
	stride := num.RoundUp(min(outputs, op.Out), c.set.Block)
	images = min(max(sumBytes/4/stride, 4), denseImages, c.batch)
	for images > 1 && float64(images)*c.convTime(op, bcnn.Bits, taps)*float64(min(outputs, op.Out))/float64(op.Out) > maxTile {
		images = num.CeilDiv(images, 2)
	}
	c.choice = driver.Choice{
		Kernel: fmt.Sprintf("packed words, %d outputs in lanes", c.set.Block),
		Tile:   fmt.Sprintf("%s × %s", count(images, "image"), count(min(outputs, op.Out), "output")),
		Why:    "weights are read once for the images of a tile; " + why,
	}
	return images, outputs
}

// rows divides an image of the given height, which takes so many nanoseconds.
func (c *compiler) rows(kernel string, height int, work float64, do func(s *scratch, image, y0, y1 int)) *rangeStep {
	tile, _, why := c.split(work, height, 1)
	r := &rangeStep{size: height, tile: tile, do: do}
	c.chooseRange(r, kernel, "row", why)
	return r
}

// pixels divides an image of so many pixels, where rows do not matter.
func (c *compiler) pixels(kernel string, pixels int, work float64, do func(s *scratch, image, from, to int)) *rangeStep {
	return c.items(kernel, "pixel", pixels, work, do)
}

// items divides an image of n parts of some kind.
func (c *compiler) items(kernel, kind string, n int, work float64, do func(s *scratch, image, from, to int)) *rangeStep {
	const units = 1024 // enough to divide evenly, and few to try
	unit := num.CeilDiv(n, units)
	tile, _, why := c.split(work, num.CeilDiv(n, unit), 1)
	r := &rangeStep{size: n, tile: min(tile*unit, n), do: do}
	c.chooseRange(r, kernel, kind, why)
	return r
}

func (c *compiler) chooseRange(r *rangeStep, kernel, kind, why string) {
	c.choice = driver.Choice{Kernel: kernel, Tile: count(r.tile, kind) + ", " + count(r.perImage(), "tile"), Why: why}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
