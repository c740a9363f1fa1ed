// Package conv compiles convolutions and dense layers, with what is fused into them.
package conv

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// window is the geometry of a convolution, without what cannot matter.
type window struct {
	bcnn.Window
	image      bcnn.Shape // input
	groups     int
	group      int // input channels of a group
	rows, cols int // output positions that are needed, rows of each plane
	// planes of the input are rows of the image, which are taken as outputs of their
	// own: row y·planes + j is that of plane j. Padding and dilation count such rows.
	planes int
	pads   bool // any needed output has a padded tap
	// each and plane say where the rows of the image are in the tensor: row y is row
	// y·each + plane.
	each, plane int
}

// long reports whether a row takes a while to prepare.
func (w *window) long() bool { return w.cols*w.KW*w.group > 1<<15 }

// newWindow returns the geometry of a convolution of outputs of the given size.
func newWindow(op *plan.Conv, in bcnn.Shape, rows, cols int) window {
	w := window{Window: op.Window, image: in, groups: op.Groups, group: in.C / op.Groups, cols: cols, planes: max(op.InPlanes, 1), each: 1}
	w.pads = op.Window.ReadsPadding(op.Image(in), bcnn.Shape{H: rows, W: cols})
	w.rows = rows * w.planes
	if w.KH == 1 {
		w.DilationH = 1
	}
	if w.KW == 1 {
		w.DilationW = 1
	}
	w.DilationH *= w.planes
	w.Pad.Top *= w.planes
	return w
}

// row returns the input row of the first tap of an output row, padding included.
func (w *window) row(y int) int { return (y/w.planes*w.StrideH)*w.planes + y%w.planes }

// tensorRow returns the row of the tensor that is row y of an image.
func (w *window) tensorRow(image, y int) int { return (image*w.image.H+y)*w.each + w.plane }

// interrupted reports whether the preparation of input rows is not wanted any
// more. It asks where rows are long.
func (w *window) interrupted(s *tiles.Scratch) bool { return w.long() && s.Ended() }

// readsFullRows reports whether the rows that windows read are those of the image, side by
// side, from the first column to the last, and may be prepared in one go.
func (w *window) readsFullRows() bool {
	rows, cols := w.span(w.rows)
	return w.Pad == (bcnn.Padding{}) && w.DilationW == 1 && rows <= w.image.H && cols == w.image.W && !w.long()
}

// span returns the number of input rows and columns that outputs consecutive
// rows and all columns need.
func (w *window) span(outputs int) (rows, cols int) {
	return w.row(outputs-1) + (w.KH-1)*w.DilationH + 1, (w.cols-1)*w.StrideW + (w.KW-1)*w.DilationW + 1
}

// taps returns the taps of a patch.
func (w *window) taps() int { return w.KH * w.KW * w.group }

// source computes the sums of a convolution.
type source interface {
	// size is the memory that tiles of the given number of rows need.
	size(rows, pixels int) tiles.Size
	// prepare gets ready for rows output rows of an image, from row first on, those
	// of planes apart.
	prepare(s *tiles.Scratch, image, first, rows int)
	// sums computes the sums of n output channels from channel on, of pixels
	// from (y, x) on, y counted from the first prepared row, those of planes
	// apart, into s.Sums or s.Floats.
	sums(s *tiles.Scratch, y, x, pixels, channel, n int)
}

// sumsConv is a convolution with what is fused into it. A tile is a number of rows
// of the output by a block of output channels of an image.
type sumsConv struct {
	source
	window
	epilogue
	outShape     bcnn.Shape
	poolH, poolW int // 1 for no pooling
	tileRows     int
	rowTiles     int // of an image
	block        int // output channels
	blocks       int
	chunk        int  // pixels at a time
	long         bool // a row takes longer than a tile should
	next         tiles.Next
	half         int // where the sums of planes before are kept
}

// Compile compiles an operation that has passed the check of the plan, and makes its kernels do the first of
// c.Ends that they can.
func Compile(c *schedule.Context, op *plan.Conv, in, out plan.Tensor) (tiles.Step, tiles.Size) {
	step, need := compile(c, op, in, out)
	takeEnd(c, step)
	return step, need
}

func compile(c *schedule.Context, op *plan.Conv, in, out plan.Tensor) (tiles.Step, tiles.Size) {
	// A dense layer with a pool, which is an odd 1×1 one, is a convolution.
	if op.Dense && in.DType == bcnn.Bits && op.Pool == nil && (op.Border == nil || len(op.Border.Correction) == op.Out) {
		return newDense(c, op, in)
	}
	if valuesOnly(op, in, out) && c.Reserve(num.Product(8, op.InPlanes, in.Shape.C, repeats(in.Shape.C))) {
		return newPlaneValues(c, op, in, out)
	}
	reads := readAs(op, in.DType)
	poolH, poolW := poolOf(op)
	out.Shape.H /= max(op.OutPlanes, 1)
	w := newWindow(op, in.Shape, out.Shape.H*poolH, out.Shape.W*poolW)
	if depthwise, need := newByteDepthwise(c, op, w, in, out); depthwise != nil {
		return depthwise, need
	}
	kernel, why := pickKernel(c, op, w, reads)
	c.Choice.Why = why
	if kernel == wideKernel || kernel == wideSums {
		if matrix, need := newMatrixConv(c, op, in, out); matrix != nil {
			return matrix, need
		}
	}
	switch kernel {
	case slicedKernel:
		return newDepthwise(c, op, w, out)
	case wideKernel:
		if squares, need := newWinogradConv(c, op, w, out); squares != nil {
			return squares, need
		}
		if wide, need := newWideConv(c, op, w, in, out); wide != nil {
			return newRareZeros(c, op, wide, need, in, out)
		}
		c.Choice.Why = "too large for the tables of a wide kernel"
	}
	v, need := newSumsConv(c, op, w, kernel == wideSums, in, out)
	return newRareZeros(c, op, v, need, in, out)
}

// poolOf returns the height and width of the pool at the end of a convolution, 1 and 1 without one.
func poolOf(op *plan.Conv) (height, width int) {
	if op.Pool == nil {
		return 1, 1
	}
	return op.Pool.KH, op.Pool.KW
}

// newSumsConv compiles a convolution that computes the sums of a tile, and then ends them. The rows of
// out are those of one plane.
func newSumsConv(c *schedule.Context, op *plan.Conv, w window, wideKernels bool, in, out plan.Tensor) (*sumsConv, tiles.Size) {
	reads := readAs(op, in.DType)
	v := &sumsConv{window: w, outShape: out.Shape}
	v.poolH, v.poolW = poolOf(op)
	pixel := convTime(c, op, reads, w.taps()) * float64(w.planes)
	v.tileRows, v.block = sumTiles(c, op, w, reads, out.Shape.H, pixel*float64(w.rows/w.planes*w.cols))
	v.long = pixel*float64(v.poolH*w.cols) > schedule.MaxTile
	v.blocks = num.CeilDiv(op.Out, v.block)
	var wide *wideSource
	if wideKernels {
		c.Choice.Kernel = "wide bits"
		if wide = newWideSource(c, op, w, num.RoundUp(min(v.block, op.Out), kern.BlockOutputs)); wide == nil {
			c.Choice.Why = "too large for the tables of a wide kernel"
		}
	}
	stride := (op.Groups-1)*(op.Out/op.Groups) + num.RoundUp(min(v.block, op.Out/op.Groups), c.Set.Block)
	if wide != nil {
		stride = wide.stride
	}
	v.chunk = min(max(sumBytes/4/stride, 4)&^3, 64, num.RoundUp(w.cols, 4))

	v.setSource(c, op, in.DType, wide, stride, pixel)
	var need tiles.Size
	for {
		need = v.size(v.tileRows*v.poolH*w.planes, v.chunk)
		if v.tileRows == 1 || max(need.Words*8, need.Bytes) <= c.L1 && 4*need.Values <= schedule.L2()/4 {
			break
		}
		v.tileRows = num.CeilDiv(v.tileRows, 2)
	}
	v.rowTiles = num.CeilDiv(out.Shape.H, v.tileRows)
	c.Choice.Tile = fmt.Sprintf("%s × %s, %s",
		schedule.Count(v.tileRows, "row"), schedule.Count(min(v.block, op.Out), "channel"), schedule.Count(v.rowTiles*v.blocks, "tile"))
	v.epilogue = newEpilogue(c, op, reads, stride)
	if op.Pool != nil {
		need.Row = v.chunk * bits.Words(v.block)
	}
	if op.OutPlanes > 1 {
		need.Row = 2 * v.chunk * bits.Words(v.block) * op.OutPlanes
	}
	if w.planes > 1 {
		v.half = need.Sums
		need.Sums *= 2
	}
	return v, need
}

// readAs returns the type that a convolution reads its input as: with float32 weights, bytes become
// float32 values first.
func readAs(op *plan.Conv, d bcnn.DType) bcnn.DType {
	if op.F32 != nil {
		return bcnn.Float32
	}
	return d
}

// setSource sets what makes the sums: wide kernels, if there is a wideSource, or those of the type of
// the input. pixel is the time of a pixel in nanoseconds.
func (c *sumsConv) setSource(ctx *schedule.Context, op *plan.Conv, d bcnn.DType, wide *wideSource, stride int, pixel float64) {
	choice, w := &ctx.Choice, c.window
	switch {
	case wide != nil:
		c.source = wide
		choice.Kernel += ", sums of planes"
	case d == bcnn.Bits:
		c.source = newBitSource(ctx, op, w, stride)
		choice.Kernel = "sums of packed words"
	case d == bcnn.Uint8 && op.F32 == nil:
		c.source = newByteSource(ctx, op, w, stride)
		choice.Kernel = "sums of bytes"
	default:
		f := newFloatSource(ctx, op, d, w, stride)
		c.source = f
		choice.Kernel = "float32 sums"
		if f.columns != nil {
			choice.Kernel += ", column by column"
			// The first and the last rows of a tile cost what the others do, though their
			// sums are those of other tiles, too.
			each := num.CeilDiv(c.outShape.H, ctx.Threads)
			if c.tileRows < min(2*w.KH, each) && pixel*float64(each*w.cols) <= schedule.MaxTile {
				c.tileRows = each
			}
		}
	}
}

// Lead is that of a tiles.Leader. A tile must have all channels.
func (c *sumsConv) Lead(_, _ int, next tiles.Next) bool {
	if c.blocks > 1 || c.poolH*c.poolW > 1 || c.outPlanes > 1 {
		return false
	}
	c.next = next
	return true
}

func (c *sumsConv) Tiles(n int) int { return n * c.rowTiles * c.blocks }

func (c *sumsConv) Run(tile int, s *tiles.Scratch) {
	image, tile := tile/(c.rowTiles*c.blocks), tile%(c.rowTiles*c.blocks)
	channel := tile % c.blocks * c.block
	y0 := tile / c.blocks * c.tileRows
	c.rowsOf(s, image, y0, min(y0+c.tileRows, c.outShape.H), channel, min(c.block, c.channels-channel))
}

// most returns the number of rows of a tile.
func (c *sumsConv) most() int { return c.tileRows }

func (c *sumsConv) makesFloats() bool { return c.thresholds == nil && c.floatThresholds == nil }

// compute computes output rows of the channels from a block of 64 on.
func (c *sumsConv) compute(s *tiles.Scratch, image, y0, y1, block, end int) {
	for channel := block * bits.WordBits; channel < end; channel += c.block {
		c.rowsOf(s, image, y0, y1, channel, min(c.block, end-channel))
	}
}

// rowsOf computes n channels of output rows.
func (c *sumsConv) rowsOf(s *tiles.Scratch, image, y0, y1, channel, n int) {
	first := y0 * c.poolH
	rows := (y1 - y0) * c.poolH
	planes := c.outPlanes
	pooled := c.poolH*c.poolW > 1
	pixel := (image*c.outShape.H + y0) * planes * c.outShape.W // first output pixel

	c.prepare(s, image, first*c.planes, rows*c.planes)
	if pooled {
		c.clear(pixel, (y1-y0)*planes*c.outShape.W, channel, n)
	}
	for y := range rows {
		for x := 0; x < c.cols; x += c.chunk {
			if c.long && s.Ended() {
				return
			}
			pixels := min(c.chunk, c.cols-x)
			c.sumPlanes(s, y, x, pixels, channel, n)
			if planes > 1 {
				c.codes(s, 0, pixel+y/c.poolH*planes*c.outShape.W, pooled, c.poolW, first+y, x, pixels, channel, n)
			} else if pooled {
				c.pool(s, pixel+y/c.poolH*c.outShape.W, c.poolW, first+y, x, pixels, channel, n)
			} else {
				c.write(s, pixel+y*c.outShape.W+x, first+y, x, pixels, channel, n)
			}
			if c.next != nil {
				from := (first+y)*c.cols + x
				c.next(s, image, from, from+pixels)
			}
		}
	}
	if pooled && c.flip != nil {
		c.flipPixels(pixel, (y1-y0)*planes*c.outShape.W, channel, n)
	}
}

// sumPlanes computes the sums of pixels of an output row over all planes.
func (c *sumsConv) sumPlanes(s *tiles.Scratch, y, x, pixels, channel, n int) {
	before := s.Sums[c.half:]
	for j := c.planes - 1; j >= 0; j-- {
		c.sums(s, y*c.planes+j, x, pixels, channel, n)
		if c.planes == 1 {
			return
		}
		sums := s.Sums[:pixels*c.stride]
		if j < c.planes-1 {
			c.set.AddTwice(sums, before[:len(sums)])
		}
		if j > 0 {
			copy(before, sums)
		}
	}
}
