package conv

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// byteDepthwise is a depthwise convolution of 3×3 whose inputs are bytes of levels, and whose outputs become
// such. All its numbers are integers below 2²⁴, so integer sums are the float32 sums of the numeric contract.
type byteDepthwise struct {
	kernels  *kern.Depthwise
	filter   *kern.DepthwiseFilter
	in, out  *bcnn.Tensor // out are the levels
	image    bcnn.Shape
	pad      bcnn.Padding
	zero     uint8 // the byte of 0, which surrounds the image
	strideH  int
	strideW  int
	width    int // of the output
	height   int
	channels int
	end      kern.End    // in the order of kern.InDepthwiseOrder, as levels
	levels   kern.Levels // once taken
	tiling
	chunk int // rows of the output at a time
}

// newByteDepthwise returns nil for convolutions that the kernels do not compute, and where none of the ends makes
// levels of their outputs.
func newByteDepthwise(c *schedule.Context, op *plan.Conv, w window, in, out plan.Tensor) (*byteDepthwise, tiles.Size) {
	switch {
	case c.Set.Depthwise == nil || in.DType != bcnn.Uint8 || op.F32 == nil || op.Groups != in.Shape.C || op.Out != in.Shape.C,
		w.KH != 3 || w.KW != 3 || w.DilationH != 1 || w.DilationW != 1 || w.StrideW > len(c.Set.Depthwise.Kernels),
		op.Pool != nil || op.Threshold != nil || out.Shape.W < kern.LeastDepthwise,
		w.pads && (c.Least > 0 || c.Least < -math.MaxUint8),
		!slices.ContainsFunc(c.Ends, func(e schedule.End) bool { return levelsAlone(e) == "" }):
		return nil, tiles.Size{}
	}
	if slices.ContainsFunc(op.F32, func(v float32) bool { return v != float32(int8(v)) }) || slices.ContainsFunc(op.Bias, notInteger) {
		return nil, tiles.Size{}
	}
	if !c.Reserve(kern.DepthwiseBytes(op.Out)) {
		return nil, tiles.Size{}
	}
	v := &byteDepthwise{
		kernels: c.Set.Depthwise, in: c.In, image: in.Shape, pad: op.Pad, zero: uint8(-c.Least), strideH: w.StrideH, strideW: w.StrideW,
		width: out.Shape.W, height: out.Shape.H, channels: op.Out,
	}
	least := int32(c.Least)
	v.filter = schedule.Share(c, func() *kern.DepthwiseFilter { return packDepthwise(op, least) })
	e := newEpilogue(c, op, bcnn.Uint8, op.Out)
	if v.end = e.end; !e.rest.None() {
		return nil, tiles.Size{}
	}
	const perPixel = 11 // nanoseconds for a block of a pixel
	blocks := v.filter.Blocks()
	var why string
	v.tiling.rows, v.blocks, why = c.Split(perPixel*float64(blocks*v.width*v.height), v.height, blocks)
	v.rowTiles, v.blockTiles = num.CeilDiv(v.height, v.tiling.rows), num.CeilDiv(blocks, v.blocks)
	v.chunk = v.tiling.rows
	for v.chunk > 1 && v.bordered() > c.L1 {
		v.chunk = num.CeilDiv(v.chunk, 2)
	}
	c.Choice.Kernel, c.Choice.Why = "depthwise, bytes", why
	c.Choice.Tile = fmt.Sprintf("%s × %s, %s", schedule.Count(v.tiling.rows, "row"),
		schedule.Count(min(v.blocks*kern.BlockOutputs, v.channels), "channel"), schedule.Count(v.rowTiles*v.blockTiles, "tile"))
	return v, tiles.Size{Bytes: v.bordered()}
}

// notInteger reports whether a sum that begins with v may be another in float32 than in integers.
func notInteger(v float32) bool {
	return v != float32(math.Trunc(float64(v))) || max(v, -v) > 1<<23 || v == 0 && math.Signbit(float64(v))
}

// packDepthwise lays out the weights. Sums begin with the bias and with what the least level, for which a byte
// of 0 stands, adds to each tap.
func packDepthwise(op *plan.Conv, least int32) *kern.DepthwiseFilter {
	weights, first := make([]int8, len(op.F32)), make([]int32, op.Out)
	taps := len(op.F32) / op.Out
	for o := range first {
		first[o] = int32(op.Bias[o])
		for k := range taps {
			v := int8(op.F32[o*taps+k])
			weights[o*taps+k] = v
			first[o] += least * int32(v)
		}
	}
	return kern.PackDepthwise(weights, first)
}

// levelsAlone returns why an end is not one that makes levels of the outputs and nothing else, empty if it is.
func levelsAlone(e schedule.End) string {
	switch {
	case e.Bytes != nil:
		return noBytes
	case e.Fake != nil || e.Floats != nil || !e.Then.None():
		return noScaledSums
	case e.Levels == nil:
		return noFloats
	case compared(e):
		return comparedLevels
	}
	return ""
}

// take is that of an ender.
func (c *byteDepthwise) take(e schedule.End) (why string, overlaid bool) {
	if why := levelsAlone(e); why != "" {
		return why, false
	}
	if needless(c.end.Activation, e.Levels, c.channels) {
		c.end.Activation = kern.Activation{}
	}
	c.end.Scale, c.end.Shift, c.end.Slope = kern.InDepthwiseOrder(c.end.Scale), kern.InDepthwiseOrder(c.end.Shift), kern.InDepthwiseOrder(c.end.Slope)
	c.levels, c.out = *e.Levels, e.Out
	c.levels.Scale, c.levels.Shift, c.levels.Rest = kern.InDepthwiseOrder(c.levels.Scale), kern.InDepthwiseOrder(c.levels.Shift), kern.InDepthwiseOrder(c.levels.Rest)
	return "", false
}

func (c *byteDepthwise) Tiles(n int) int { return n * c.rowTiles * c.blockTiles }

func (c *byteDepthwise) Run(tile int, s *tiles.Scratch) {
	image, tile := tile/(c.rowTiles*c.blockTiles), tile%(c.rowTiles*c.blockTiles)
	block := tile % c.blockTiles * c.blocks
	end := min(block+c.blocks, c.filter.Blocks())
	y := tile / c.blockTiles * c.tiling.rows
	last := min(y+c.tiling.rows, c.height)
	for ; y < last && !s.Ended(); y += c.chunk {
		rows := min(c.chunk, last-y)
		c.load(s, image, y, rows)
		for r := range rows {
			c.row(s, r, (image*c.height+y+r)*c.width*c.channels, block, end)
		}
	}
	s.Depthwise = kern.DepthwiseJob{}
}

// columns returns those of a row with its border.
func (c *byteDepthwise) columns() int { return (c.width-1)*c.strideW + 3 }

// bordered returns the bytes of the rows of a chunk with their border.
func (c *byteDepthwise) bordered() int {
	return num.Product((c.chunk-1)*c.strideH+3, c.columns(), c.image.C)
}

// load copies what rows of an image read, from row y on, with its border.
func (c *byteDepthwise) load(s *tiles.Scratch, image, y, rows int) {
	row := c.columns() * c.image.C
	for r := range (rows-1)*c.strideH + 3 {
		borderRow(s.Bytes[r*row:][:row], c.in.U8, c.image, image, y*c.strideH-c.pad.Top+r, c.pad.Left, c.zero)
	}
}

// row computes row r of those that are loaded, whose outputs begin at the given place.
func (c *byteDepthwise) row(s *tiles.Scratch, r, at, block, last int) {
	columns := c.columns()
	for b := block; b < last; b++ {
		channel := b * kern.BlockOutputs
		j := &s.Depthwise
		*j = kern.DepthwiseJob{Row: uintptr(columns * c.channels), Column: uintptr(c.channels)}
		j.Src, j.Pixels = unsafe.Pointer(&s.Bytes[r*c.strideH*columns*c.channels+channel]), uintptr(c.width)
		j.Dst, j.DstStep = unsafe.Pointer(&c.out.U8[at+channel]), uintptr(c.channels)
		end, levels := c.end.From(channel), c.levels.From(channel)
		c.kernels.Levels(j, c.filter, b, c.strideW, &end, &levels)
	}
}
