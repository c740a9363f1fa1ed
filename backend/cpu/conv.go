package cpu

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// compiler compiles one step.
type compiler struct {
	set            *kern.Set
	batch, threads int
	in, other, out *bcnn.Tensor // other is the second input of an add
}

const (
	// minTile is the work in nanoseconds that is worth a hand-over to another
	// thread.
	minTile = 4000
	// tilesPerThread evens out threads that do not get a whole CPU.
	tilesPerThread = 4
	// rowBytes bounds the bordered rows of a tile, so that they stay in the
	// first-level cache as far as the image allows it.
	rowBytes = 32 << 10
	// sumBytes bounds the sums of the pixels that are computed at a time.
	sumBytes = 16 << 10
)

// split returns the number of tiles for an amount of work in nanoseconds.
func (c *compiler) split(work float64) int {
	if c.threads == 1 {
		return 1
	}
	return int(max(1, min(work/minTile, float64(tilesPerThread*c.threads))))
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(n, to int) int { return ceilDiv(n, to) * to }

// window is the geometry of a convolution, without what cannot matter.
type window struct {
	bcnn.Window
	image      bcnn.Shape // input
	groups     int
	group      int // input channels of a group
	rows, cols int // output positions that are needed
}

// span returns the number of input rows and columns that outputs consecutive
// rows and all columns need.
func (w *window) span(outputs int) (rows, cols int) {
	return (outputs-1)*w.StrideH + (w.KH-1)*w.DilationH + 1, (w.cols-1)*w.StrideW + (w.KW-1)*w.DilationW + 1
}

// padded reports whether any needed output has a padded tap.
func (w *window) padded() bool {
	return w.Window.ReadsPadding(w.image, bcnn.Shape{H: w.rows, W: w.cols})
}

// taps returns the taps of a patch.
func (w *window) taps() int { return w.KH * w.KW * w.group }

// source computes the sums of a convolution.
type source interface {
	// size is the memory that tiles of the given number of rows need.
	size(rows, pixels int) scratchSize
	// prepare gets ready for rows output rows of an image, from row first on.
	prepare(s *scratch, image, first, rows int)
	// sums computes the sums of n output channels from channel on, of pixels
	// from (y, x) on, y counted from the first prepared row, into s.sums or
	// s.floats.
	sums(s *scratch, y, x, pixels, channel, n int)
}

// conv is a convolution with what is fused into it. A tile is a number of rows
// of the output by a block of output channels of an image.
type conv struct {
	source
	window
	epilogue
	outShape     bcnn.Shape
	poolH, poolW int // 1 for no pooling
	tileRows     int
	rowTiles     int // of an image
	block        int // output channels
	blocks       int
	chunk        int // pixels at a time
}

func (c *compiler) conv(op *bcnn.ConvStep, in, out bcnn.PlanTensor) (step, scratchSize) {
	v := &conv{outShape: out.Shape, poolH: 1, poolW: 1}
	if op.Pool != nil {
		v.poolH, v.poolW = op.Pool.KH, op.Pool.KW
	}
	w := window{Window: op.Window, image: in.Shape, groups: op.Groups, group: in.Shape.C / op.Groups}
	w.rows, w.cols = out.Shape.H*v.poolH, out.Shape.W*v.poolW
	if w.KH == 1 {
		w.DilationH = 1
	}
	if w.KW == 1 {
		w.DilationW = 1
	}
	v.window = w
	if wide, need := c.wideConv(op, w, in, out); wide != nil {
		return wide, need
	}

	// Rows first; blocks of channels repeat the preparation of a row.
	nanoseconds := sumTime(op, in.DType, w.taps())
	work := nanoseconds * float64(w.rows) * float64(w.cols)
	tiles := c.split(work)
	v.tileRows = ceilDiv(out.Shape.H, tiles)
	v.block = op.Out
	if tiles > out.Shape.H && op.Groups == 1 {
		v.block = roundUp(ceilDiv(op.Out, ceilDiv(tiles, out.Shape.H)), bits.WordBits)
	}
	v.blocks = ceilDiv(op.Out, v.block)
	stride := (op.Groups-1)*(op.Out/op.Groups) + roundUp(min(v.block, op.Out/op.Groups), c.set.Block)
	v.chunk = min(max(sumBytes/4/stride, 4)&^3, 64, roundUp(w.cols, 4))

	switch in.DType {
	case bcnn.Bits:
		v.source = c.bitSource(op, w, stride)
	case bcnn.Uint8:
		v.source = c.byteSource(op, w, stride)
	default:
		v.source = c.floatSource(op, w, stride)
	}
	var need scratchSize
	for {
		need = v.size(v.tileRows*v.poolH, v.chunk)
		if v.tileRows == 1 || max(need.words*8, need.bytes) <= rowBytes {
			break
		}
		v.tileRows = ceilDiv(v.tileRows, 2)
	}
	v.rowTiles = ceilDiv(out.Shape.H, v.tileRows)
	v.epilogue = c.epilogue(op, in.DType, stride)
	if op.Pool != nil {
		need.row = v.chunk * bits.Words(v.block)
	}
	return v, need
}

// sumTime estimates the time for the sums of one pixel, in nanoseconds.
func sumTime(op *bcnn.ConvStep, d bcnn.DType, taps int) float64 {
	perTap := 2.5
	switch d {
	case bcnn.Bits:
		perTap = 0.5 / bits.WordBits
	case bcnn.Uint8:
		perTap = 0.03
	}
	return float64(op.Out) * (float64(taps)*perTap + 1)
}

func (c *conv) tiles(n int) int { return n * c.rowTiles * c.blocks }

func (c *conv) run(tile int, s *scratch) {
	image, tile := tile/(c.rowTiles*c.blocks), tile%(c.rowTiles*c.blocks)
	channel := tile % c.blocks * c.block
	n := min(c.block, c.channels-channel)
	y0 := tile / c.blocks * c.tileRows
	y1 := min(y0+c.tileRows, c.outShape.H)
	first := y0 * c.poolH
	rows := (y1 - y0) * c.poolH
	pooled := c.poolH*c.poolW > 1
	pixel := (image*c.outShape.H + y0) * c.outShape.W // first output pixel

	c.prepare(s, image, first, rows)
	if pooled {
		c.clear(pixel, (y1-y0)*c.outShape.W, channel, n)
	}
	for y := range rows {
		for x := 0; x < c.cols; x += c.chunk {
			pixels := min(c.chunk, c.cols-x)
			c.sums(s, y, x, pixels, channel, n)
			if pooled {
				c.pool(s, pixel+y/c.poolH*c.outShape.W, c.poolW, first+y, x, pixels, channel, n)
			} else {
				c.write(s, pixel+y*c.outShape.W+x, first+y, x, pixels, channel, n)
			}
		}
	}
	if pooled && c.flip != nil {
		c.flipPixels(pixel, (y1-y0)*c.outShape.W, channel, n)
	}
}
