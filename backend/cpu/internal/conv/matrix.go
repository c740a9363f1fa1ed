package conv

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// matrixConv is a convolution by the kernels of a kern.Matrix. A tile is a number of rows of the
// output by some blocks of 64 output channels of an image.
//
// Bits of ±1 become bytes of 0 and 1, and weights stay ±1. Of c, the bits in which a patch and
// weights differ, w, those of the weights that are set, and s, the sum of products, c = w − s: no
// sum of the patch is needed.
type matrixConv struct {
	epilogue
	lines        *matrixLines
	filter       *kern.MatrixFilter
	table        wideTable
	parts        matrixParts        // of weights of 16 bits; filter is the first
	pixels       []kern.MatrixPixel // of an image before pooling, tile by tile
	inSums       []kern.MatrixPixel // the same for parts that are added to the sums in memory
	taps         []uint32
	whole, fewer matrixTiles // of a tile of all rows, and of the last one
	outShape     bcnn.Shape
	poolH, poolW int
	poolTaps     []int
	group        int // bytes from the lines of a group to those of the next
	doubled      uint32
	inMemory     bool // sums are, before they become outputs
	partial      bool // those of the last panel are, which float32 outputs do not fill
	noFlip       []uint64
	perCall      int // blocks of a call, so that it can be interrupted
	added        *bcnn.Tensor
	then         kern.End           // of the outputs before that, and the clip of the sums
	levels       *kern.Levels       // of the outputs, where these are nothing else; nil for none
	levelsOut    *bcnn.Tensor       // their numbers
	bytes        *bcnn.Tensor       // that are added before, by then; nil for none
	fake         *kern.FakeQuantize // of the outputs before that; nil for none
	next         tiles.Next
	tiling
}

// matrixParts are the filters of the parts of weights of 16 bits: sums of the first count 256 times.
type matrixParts []*kern.MatrixFilter

// matrixTiles divides rows of pixels into the tiles of a kern.Matrix.
type matrixTiles struct {
	blocks     []kern.MatrixBlock
	rows, last int  // lines of a tile, and of the last one of all
	inRows     bool // tiles end where rows of pixels do
}

// leastRows is the number of rows of a tile below which its products take no less time.
const leastRows = 9

// newMatrixTiles returns the tiles of rows of cols pixels, pitch lines apart, that take the least
// time: those that end where rows do, or those of all lines in order. It also returns how many
// rows of tiles are multiplied, and the number of tiles.
func newMatrixTiles(rows, cols, pitch int) (t matrixTiles, multiplied, count int) {
	lines := (rows-1)*pitch + cols
	multiplied, count = lines/kern.TileRows*kern.TileRows, num.CeilDiv(lines, kern.TileRows)
	t.rows, t.last = kern.TileRows, kern.TileRows
	if left := lines % kern.TileRows; left > 0 {
		t.last = left
		multiplied += max(left, leastRows)
	}
	for n := kern.TileRows; n >= leastRows; n-- {
		if cols%n == 0 && rows*cols < multiplied {
			multiplied, count = rows*cols, rows*cols/n
			t.rows, t.last, t.inRows = n, n, true
		}
	}
	return t, multiplied, count
}

// fill makes the blocks of the tiles, of lines that are so many bytes apart, and says where the sums of each
// pixel are.
func (t *matrixTiles) fill(pixels []kern.MatrixPixel, rows, cols, pitch, line, count int) {
	start := func(i int) int {
		if t.inRows {
			return i*t.rows/cols*pitch + i*t.rows%cols
		}
		return i * t.rows
	}
	done := 0
	for at := 0; at < count; at += kern.BlockTiles {
		b := kern.MatrixBlock{First: uint32(done), Tiles: uint32(min(kern.BlockTiles, count-at))}
		for i := range int(b.Tiles) {
			first, n := start(at+i), t.rows
			b.Lines[i] = uint32(first * line)
			if at+i == count-1 {
				n = t.last
			}
			for k := range n {
				if q := first + k; q%pitch < cols && q/pitch < rows {
					pixels[done].Sums = uint32((i*kern.TileRows + k) * kern.LineBytes)
					done++
				}
			}
		}
		b.Pixels = uint32(done) - b.First
		t.blocks = append(t.blocks, b)
	}
}

// lineMemory bounds the lines of a tile, in bytes: a part of the second-level cache of the
// processors that have a kern.Matrix.
const lineMemory = 768 << 10

// nibbles is the number of weights from which on they take less time as 4 bits than as bytes, which would
// come from a cache that others share, or wait for the second-level one.
const nibbles = 256 << 10

// newMatrixConv returns nil where other kernels take less time, or compute what these do not.
func newMatrixConv(c *schedule.Context, op *plan.Conv, in, out plan.Tensor) (*matrixConv, tiles.Size) {
	fill := in.Shape.C/op.Groups%kern.LineBytes == 0 && op.Out/op.Groups%kern.BlockOutputs == 0
	if c.Set.Matrix == nil || op.Groups > 1 && !fill {
		return nil, tiles.Size{}
	}
	v := &matrixConv{outShape: out.Shape}
	v.poolH, v.poolW = poolOf(op)
	v.epilogue = newEpilogue(c, op, in.DType, kern.BlockOutputs)
	v.inMemory = op.Int16 != nil || v.outPlanes > 1 || op.Threshold == nil && !v.rest.None()
	v.partial = op.Threshold == nil && op.Out%kern.PanelOutputs != 0
	cols := out.Shape.W * v.poolW
	height := out.Shape.H * v.poolH
	classes := 1
	if op.Border != nil && in.DType == bcnn.Bits {
		classes = op.Border.Rows * op.Border.Cols
	}
	if num.Product(height, cols) > maxTable || num.Product(classes, num.RoundUp(op.Out, kern.BlockOutputs)) > maxTable {
		return nil, tiles.Size{}
	}
	matrix, other := v.pickLines(c, op, in, height, cols)
	// Threads of one core share the unit that multiplies matrices, and it slows the core down, so that a
	// small gain is none.
	const least = 1.15
	if least*matrix > other && !c.Set.Matrix.Always {
		return nil, tiles.Size{}
	}
	why := v.divide(c, op.Out, matrix, out.Shape.H)
	rows := v.tiling.rows * v.poolH
	need := v.memory(rows)
	if need.Bytes >= 1<<30 {
		return nil, tiles.Size{}
	}
	c.Choice.Kernel = "products of matrices"
	c.Choice.Why = fmt.Sprintf("%.1f µs by count, %.1f without; %s", matrix/1e3, other/1e3, why)
	v.pack(c, op, in.DType)
	c.Choice.Kernel += v.form()
	if op.Pool != nil {
		v.poolTaps = poolOffsets(v.poolH, v.poolW, cols, v.tiling.blocks)
	}
	v.noFlip = make([]uint64, v.words)
	v.perCall = max(1, int(schedule.MaxTile/matrix*float64(num.CeilDiv(height*cols, kern.BlockTiles*kern.TileRows))))
	v.taps, v.group = v.lines.taps(rows), v.lines.group(rows)
	lists := 1
	if v.parts != nil {
		lists = 2
	}
	if c.Reserve(num.Product(8, lists, height, cols)) {
		v.fill(op.Border, in.DType, height, cols)
	}
	return v, need
}

// form says for people in what way sums become outputs.
func (c *matrixConv) form() (form string) {
	switch {
	case c.inMemory:
		form = ", sums in memory"
	case c.partial:
		form = ", sums of the last outputs in memory"
	}
	if c.poolH*c.poolW > 1 {
		form += ", pooled"
	}
	return form
}

// memory returns what a worker needs for tiles of so many rows before pooling.
func (c *matrixConv) memory(rows int) tiles.Size {
	need := tiles.Size{Bytes: num.Sum(kern.MatrixMemory, c.lines.memory(rows), kern.LineBytes)}
	switch {
	case c.throughSums():
		need.Sums = chunkPixels * kern.BlockOutputs
		need.Row = chunkPixels * (1 + c.outPlanes)
	case c.poolH*c.poolW > 1:
		need.Row = num.Product(rows, c.lines.cols, c.tiling.blocks)
	}
	return need
}

// pickLines takes the layout of lines with which the kernels of a kern.Matrix take the least time. It
// estimates that, in nanoseconds for an image, and the time of the kernels that count bits or multiply bytes
// side by side.
func (c *matrixConv) pickLines(ctx *schedule.Context, op *plan.Conv, in plan.Tensor, height, cols int) (matrix, other float64) {
	matrix = math.Inf(1)
	for _, lines := range newMatrixLines(op, in, ctx.In, cols) {
		if t := lines.time(op, height); t < matrix {
			c.lines, matrix = lines, t
		}
	}
	const (
		width   = 16  // outputs that other kernels have side by side
		faster  = 2.9 // cycles of a nanosecond
		ofBits  = 1.7 // cycles for a piece of 32 taps of width outputs
		ofBytes = 0.6 // for a piece of 4 taps
		rare    = 0.6 // of two planes, of which the lower one is mostly empty
	)
	row := c.lines.KW * in.Shape.C / op.Groups
	pieces, cycles := c.lines.KH*num.CeilDiv(row, 4), ofBytes
	switch {
	case in.DType == bcnn.Bits:
		pieces, cycles = c.lines.planes*c.lines.KH*num.CeilDiv(row, pieceBits), ofBits
		if ctx.RareZeros {
			cycles *= rare
		}
	case op.Int16 != nil:
		cycles *= 2
	}
	return matrix, float64(height*cols) * math.Ceil(float64(op.Out)/width) * float64(pieces) * cycles / faster
}

// time estimates the nanoseconds for an image by the kernels of a kern.Matrix.
func (l *matrixLines) time(op *plan.Conv, height int) float64 {
	const (
		clock  = 2.1  // cycles of a nanosecond where matrices are multiplied, which takes much power
		expand = 24   // cycles at least for a step of a block, whose weights become bytes
		ends   = 200  // for the sums of a block and a panel
		start  = 1500 // for a call
	)
	_, multiplied, count := newMatrixTiles(height, l.cols, l.pitch)
	panels := float64(num.CeilDiv(op.Out, kern.PanelOutputs))
	steps, blocks := float64(l.steps()), math.Ceil(float64(count)/kern.BlockTiles)
	if op.Int16 != nil {
		panels *= 2.5 // parts, and what adds them
	}
	perPanel := max(steps*float64(multiplied), steps*expand*blocks) + ends*blocks
	return (panels*perPanel + l.cost(height) + start) / clock
}

// pack packs the weights, and makes the table.
func (c *matrixConv) pack(ctx *schedule.Context, op *plan.Conv, d bcnn.DType) {
	switch {
	case op.Int16 != nil:
		ctx.Choice.Kernel += ", 16-bit weights in parts of 8 bits"
		c.parts = schedule.Share(ctx, func() (parts matrixParts) {
			for _, part := range kern.PartsOfInt16(op.Int16) {
				parts = append(parts, kern.PackMatrixBytes(ctx.Set.Matrix, c.lines.bytes(op.Out, part), op.Out, c.lines.steps()))
			}
			return parts
		})
		c.filter = c.parts[0]
		c.table = wordTable(op, op.Int16, nil)
		return
	case op.Int8 != nil:
		ctx.Choice.Kernel += ", 8-bit weights"
		c.filter = schedule.Share(ctx, func() *kern.MatrixFilter {
			m, weights, steps := ctx.Set.Matrix, c.lines.bytes(op.Out, op.Int8), c.lines.steps()
			if len(weights) >= nibbles || m.Always {
				if filter := kern.PackMatrixNibbles(m, weights, op.Out, steps); filter != nil {
					return filter
				}
			}
			return kern.PackMatrixBytes(m, weights, op.Out, steps)
		})
		c.table = wordTable(op, op.Int8, nil)
		return
	default:
		c.filter = schedule.Share(ctx, func() *kern.MatrixFilter { return c.lines.signs(ctx.Set.Matrix, op) })
	}
	channels := c.lines.image.C / op.Groups
	taps := c.lines.KH * c.lines.KW * channels
	if d != bcnn.Bits {
		ctx.Choice.Kernel += " of bytes"
		dense := packTaps(ctx, op.Bits, op.Out, c.lines.KH*c.lines.KW, channels)
		if c.inMemory {
			plain := *op
			plain.Threshold = nil
			op = &plain
		}
		c.table = byteTable(op, taps, bits.Words(taps), dense, nil)
		return
	}
	c.doubled = 1
	most := 1<<c.lines.planes - 1          // of a byte
	if c.inMemory && op.Threshold != nil { // thresholds include the border
		plain := *op
		plain.Threshold, plain.Border = nil, nil
		op = &plain
	}
	c.table = c.bitTable(op, taps*most)
	filter := len(op.Bits) / op.Out
	for o := range op.Out {
		set := int64(most * onesOf(op.Bits[o*filter:][:filter]))
		for i := o; i < len(c.table.values); i += c.table.next / 4 {
			v := &c.table.values[i]
			if op.Threshold != nil {
				*v = int32(max(set-int64(*v), math.MinInt32))
			} else {
				*v -= int32(2 * set)
			}
		}
	}
	for o := op.Out; op.Threshold != nil && o < c.table.next/4; o++ {
		for i := o; i < len(c.table.values); i += c.table.next / 4 {
			c.table.values[i] = math.MaxInt32 // never
		}
	}
}

// divide divides the output into tiles: of rows where there are enough pixels for some blocks each,
// else of channels. Float32 outputs stay together, for the steps behind. It returns why.
func (c *matrixConv) divide(ctx *schedule.Context, channels int, work float64, height int) (why string) {
	blocks := num.CeilDiv(channels, kern.BlockOutputs)
	t := &c.tiling
	t.rows, t.blocks, why = ctx.Split(work, height, blocks)
	const fewest = 2 * kern.BlockTiles * kern.TileRows // pixels of a tile
	least := num.CeilDiv(fewest, c.poolH*c.lines.cols)
	if t.rows < least && c.thresholds == nil {
		t.rows = min(least, max(num.CeilDiv(height, ctx.Threads), t.rows))
	} else if t.rows < least && blocks > 1 {
		tiles := num.CeilDiv(height, t.rows) * num.CeilDiv(blocks, t.blocks)
		t.rows = min(least, height)
		t.blocks = num.CeilDiv(blocks, num.CeilDiv(tiles, num.CeilDiv(height, t.rows)))
	}
	if _, many := c.lines.lineLayout.(*channelLines); !many && c.thresholds == nil { // a pool may read the rows while they are in the cache
		const bytes = 128 << 10
		t.rows = min(t.rows, max(least, bytes/num.Product(4, c.lines.cols, channels)))
	}
	for t.rows > 1 && c.lines.memory(t.rows*c.poolH) > lineMemory {
		t.rows = num.CeilDiv(t.rows, 2)
		why = fmt.Sprintf("lines that fit into %d KiB of cache", lineMemory>>10)
	}
	t.blockTiles, t.rowTiles = num.CeilDiv(blocks, t.blocks), num.CeilDiv(height, t.rows)
	ctx.Choice.Tile = fmt.Sprintf("%s × %s, %s", schedule.Count(t.rows, "row"),
		schedule.Count(min(t.blocks*kern.BlockOutputs, channels), "channel"), schedule.Count(t.rowTiles*t.blockTiles, "tile"))
	return why
}

// fill makes the lists of pixels and blocks.
func (c *matrixConv) fill(border *plan.Border, d bcnn.DType, height, cols int) {
	c.pixels = make([]kern.MatrixPixel, height*cols)
	rows := c.tiling.rows * c.poolH
	for y := 0; y < height; y += rows {
		take, t := min(rows, height-y), &c.whole
		if take < rows {
			t = &c.fewer
		}
		var count int
		*t, _, count = newMatrixTiles(take, cols, c.lines.pitch)
		own := c.pixels[y*cols:][:take*cols]
		t.fill(own, take, cols, c.lines.pitch, c.lines.line, count)
		if c.parts == nil {
			continue
		}
		for i := range t.blocks {
			b, chunk := &t.blocks[i], t.blocks[i/chunkBlocks*chunkBlocks].First
			for p := b.First; p < b.First+b.Pixels; p++ {
				c.inSums = append(c.inSums, kern.MatrixPixel{Sums: own[p].Sums, Table: 4 * kern.BlockOutputs * (p - chunk)})
			}
		}
	}
	if border == nil || d != bcnn.Bits || border.Rows*border.Cols == 1 || c.inMemory && c.thresholds != nil {
		return
	}
	for y := range height {
		for x := range cols {
			c.pixels[y*cols+x].Table = uint32((border.Row[y]*border.Cols + border.Col[x]) * c.table.step)
		}
	}
}
