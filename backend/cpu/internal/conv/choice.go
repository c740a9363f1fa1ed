package conv

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// This file decides which kernel a convolution gets, how its input is laid out for
// it, and how much of it is a tile.

const (
	// sumBytes bounds the sums of the pixels that are computed at a time, where
	// they go through memory.
	sumBytes = 16 << 10
	// denseImages is the number of images for which weights are read once.
	denseImages = 16
)

// convTime estimates the time for one pixel of a convolution, in nanoseconds.
func convTime(c *schedule.Context, op *plan.Conv, d bcnn.DType, taps int) float64 {
	perTap := c.Set.Cost.Floats
	switch d {
	case bcnn.Bits:
		perTap = c.Set.Cost.Bits
	case bcnn.Uint8:
		perTap = c.Set.Cost.Bytes
	}
	return float64(op.Out) * (float64(taps)*perTap + c.Set.Cost.Value/2)
}

// kernel is a way to compute a convolution.
type kernel int

const (
	// wideKernel has many output channels side by side in registers.
	wideKernel kernel = iota
	// slicedKernel counts the taps of 64 channels at once, one bit of all counts
	// in a word.
	slicedKernel
	// wideSums has the sums of wide kernels go through memory.
	wideSums
	// sumsKernel computes sums into memory and makes outputs of them after.
	sumsKernel
)

// pickKernel picks the kernel for a convolution, and says why.
func pickKernel(c *schedule.Context, op *plan.Conv, w window, in bcnn.DType) (kernel, string) {
	onePlane := in == bcnn.Bits && w.planes == 1 && op.OutPlanes < 2
	if onePlane && w.group == 1 && op.Groups > 1 && op.Out == op.Groups && w.taps() < 1<<maxPlanes {
		return slicedKernel, "depthwise: 64 channels in a word"
	}
	if why := lacksWide(c.Set.Wide, op, w, in); why != "" {
		return sumsKernel, why
	}
	switch {
	case op.Groups == 1 && max(w.planes, op.OutPlanes) > max(c.Set.Wide.MaxPlanes, 1):
		return wideSums, "sums of planes are added up in memory"
	case op.Groups == 1 && w.planes > 1 && w.taps()*(1<<w.planes-1) > c.Set.Wide.MaxTaps:
		return wideSums, "sums of planes are added up in memory, where they have more bits"
	case op.Groups == 1:
		return wideKernel, "all channels read the same inputs"
	case onePlane && w.group%pieceBits == 0 && op.Out/op.Groups%kern.BlockOutputs == 0:
		return wideKernel, fmt.Sprintf("groups of whole blocks of %d channels", kern.BlockOutputs)
	case in == bcnn.Uint8 && groupsOfBlocks(op) > 0:
		return wideKernel, fmt.Sprintf("the outputs of %s fill blocks of %d channels", schedule.Count(groupsOfBlocks(op), "group"), kern.BlockOutputs)
	}
	return sumsKernel, fmt.Sprintf("groups of %d to %d channels fill no block", w.group, op.Out/op.Groups)
}

// lacksWide returns why there are no wide kernels for a convolution, empty if there may be.
func lacksWide(wide *kern.Wide, op *plan.Conv, w window, in bcnn.DType) string {
	switch {
	case in == bcnn.Float32:
		return "float32 sums, in the order of the taps"
	case op.Int8 != nil && (wide == nil || wide.PackInt8 == nil):
		return "no wide kernels of 8-bit weights"
	case op.Int16 != nil && (wide == nil || wide.PackInt16 == nil):
		return "no wide kernels of 16-bit weights"
	case wide == nil:
		return "the instruction set has no wide registers"
	case in == bcnn.Bits && w.taps() > wide.MaxTaps:
		return fmt.Sprintf("more than %d taps overflow the sums of wide kernels", wide.MaxTaps)
	}
	return ""
}

// groupsOfBlocks is plan.GroupsOfBlocks of a convolution on bytes.
func groupsOfBlocks(op *plan.Conv) int {
	return plan.GroupsOfBlocks(op.Groups, op.Out/op.Groups, !op.Integer())
}

// patchTimes returns how often a wide convolution makes the patches of a pixel: once for
// all blocks of a group, but for each where bits are pooled after the kernel, or planes
// written.
func patchTimes(op *plan.Conv) int {
	if op.OutPlanes > 1 || op.Pool != nil && (op.Pool.KH != 2 || op.Pool.KW != 2 || op.InPlanes > 1) {
		return num.CeilDiv(op.Out, kern.BlockOutputs)
	}
	return op.Groups
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

// pickLayout picks the layout of the input for a wide convolution on bits.
func pickLayout(c *schedule.Context, w window) (rowLayout, string) {
	padded, packed := num.CeilDiv(w.group, pieceBits), num.CeilDiv(w.KW*w.group, pieceBits)
	oneRow := w.KW*w.group <= pieceBits // of a window in a piece
	switch {
	case w.groups == 1 && w.group <= pieceBits && w.KH*w.KW > 1 && (oneRow || w.group <= pieceBits/2 && w.DilationH == 1):
		return joinedLayout, fmt.Sprintf("%d taps of %s share pieces of %d bits", w.KH*w.KW, bitCount(w.group), pieceBits)
	case w.groups == 1 && w.DilationW == 1 && 3*w.KW*padded > 4*packed:
		return cutLayout, fmt.Sprintf("%d pieces of %d bits for a row of a window, not %d", packed, pieceBits, w.KW*padded)
	case !w.pads && w.each == 1 && w.DilationW == 1 && 2*bits.Words(w.group) == padded && !c.Set.Wide.Nibbles && w.groups == 1:
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
func wideTiles(c *schedule.Context, height, channels int, work float64, need func(rows int) tiles.Size, fits func(rows int) bool) (tiling, tiles.Size) {
	blocks := num.CeilDiv(channels, kern.BlockOutputs)
	var t tiling
	var why string
	t.rows, t.blocks, why = c.Split(work, height, blocks)
	t.blockTiles = num.CeilDiv(blocks, t.blocks)
	var size tiles.Size
	for {
		size = need(t.rows)
		if t.rows == 1 || max(size.Words*8, size.Bytes) <= c.L1 && fits(t.rows) {
			break
		}
		t.rows = num.CeilDiv(t.rows, 2)
		why = fmt.Sprintf("rows that fit into %d KiB of cache", c.L1>>10)
	}
	t.rowTiles = num.CeilDiv(height, t.rows)
	c.Choice.Tile = fmt.Sprintf("%s × %s, %s",
		schedule.Count(t.rows, "row"), schedule.Count(min(t.blocks*kern.BlockOutputs, channels), "channel"), schedule.Count(t.rowTiles*t.blockTiles, "tile"))
	c.Choice.Why += "; " + why
	return t, size
}

// sumTiles divides a convolution whose sums go through memory. It returns the
// rows and the output channels of a tile.
func sumTiles(c *schedule.Context, op *plan.Conv, w window, in bcnn.DType, height int, work float64) (rows, block int) {
	blocks := 1
	if op.Groups == 1 {
		blocks = bits.Words(op.Out)
	}
	rows, block, why := c.Split(work, height, blocks)
	// Weights of float32 are read anew for each row: those of a tile should stay in the cache.
	of64 := num.Product(4*bits.WordBits, w.taps())
	if most := max(schedule.L2()/2/of64, 1); in == bcnn.Float32 && rows > 1 && blocks > 1 && block > most {
		block = most
		why += fmt.Sprintf("; weights of %s in %d KiB of cache", schedule.Count(block*bits.WordBits, "channel"), schedule.L2()>>10)
	}
	c.Choice.Why += "; " + why
	block *= bits.WordBits
	if blocks == 1 {
		block = op.Out
	}
	return rows, block
}

// denseTiles divides a dense layer into chunks of images and blocks of outputs.
func denseTiles(c *schedule.Context, op *plan.Conv, taps int) (images, outputs int) {
	outputs, _, why := c.Split(convTime(c, op, bcnn.Bits, taps), bits.Words(op.Out), 1)
	outputs *= bits.WordBits
	stride := num.RoundUp(min(outputs, op.Out), c.Set.Block)
	images = min(max(sumBytes/4/stride, 4), denseImages, c.Batch)
	for images > 1 && float64(images)*convTime(c, op, bcnn.Bits, taps)*float64(min(outputs, op.Out))/float64(op.Out) > schedule.MaxTile {
		images = num.CeilDiv(images, 2)
	}
	c.Choice = driver.Choice{
		Kernel: fmt.Sprintf("packed words, %d outputs in lanes", c.Set.Block),
		Tile:   fmt.Sprintf("%s × %s", schedule.Count(images, "image"), schedule.Count(min(outputs, op.Out), "output")),
		Why:    "weights are read once for the images of a tile; " + why,
	}
	return images, outputs
}
