package conv

import (
	"fmt"
	"math"
	"unsafe"

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
	pixels       []kern.MatrixPixel // of an image before pooling, tile by tile
	taps         []uint32
	whole, fewer matrixTiles // of a tile of all rows, and of the last one
	outShape     bcnn.Shape
	poolH, poolW int
	poolTaps     []int
	doubled      uint32
	inMemory     bool // sums are, before they become outputs
	noFlip       []uint64
	added        *bcnn.Tensor
	then         kern.End     // of the outputs before that, and the clip of the sums
	levels       *kern.Levels // of the outputs, where these are nothing else; nil for none
	levelsOut    *bcnn.Tensor // their numbers
	next         tiles.Next
	tiling
}

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

// fill makes the blocks of the tiles, and says where the sums of each pixel are.
func (t *matrixTiles) fill(pixels []kern.MatrixPixel, rows, cols, pitch, count int) {
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
			b.Lines[i] = uint32(first * kern.LineBytes)
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

// newMatrixConv returns nil where other kernels take less time, or compute what these do not.
func newMatrixConv(c *schedule.Context, op *plan.Conv, in, out plan.Tensor) (*matrixConv, tiles.Size) {
	v := &matrixConv{outShape: out.Shape, poolH: 1, poolW: 1}
	v.epilogue = newEpilogue(c, op, in.DType, kern.BlockOutputs)
	if c.Set.Matrix == nil || op.Groups > 1 || op.Int16 != nil {
		return nil, tiles.Size{}
	}
	v.inMemory = v.outPlanes > 1 || op.Threshold == nil && (op.Out%kern.PanelOutputs != 0 || !v.rest.None())
	if op.Pool != nil {
		v.poolH, v.poolW = op.Pool.KH, op.Pool.KW
	}
	cols := out.Shape.W * v.poolW
	v.lines = newMatrixLines(op, in, c.In, cols)
	height := out.Shape.H * v.poolH
	classes := 1
	if op.Border != nil && in.DType == bcnn.Bits {
		classes = op.Border.Rows * op.Border.Cols
	}
	if num.Product(height, cols) > maxTable || num.Product(classes, num.RoundUp(op.Out, kern.BlockOutputs)) > maxTable {
		return nil, tiles.Size{}
	}
	matrix, other := v.times(op, in, height)
	if matrix > other && !c.Set.Matrix.Always {
		return nil, tiles.Size{}
	}
	c.Choice.Kernel = "products of matrices"
	c.Choice.Why = fmt.Sprintf("%.1f µs by count, %.1f without", matrix/1e3, other/1e3)
	v.pack(c, op, in.DType)
	v.divide(c, op.Out, matrix, out.Shape.H)
	v.noFlip = make([]uint64, v.words)
	rows := v.tiling.rows * v.poolH
	need := tiles.Size{Bytes: kern.MatrixMemory + v.lines.size(rows)*kern.LineBytes + kern.LineBytes}
	if v.inMemory {
		c.Choice.Kernel += ", sums in memory"
		need.Sums = chunkPixels * kern.BlockOutputs
		need.Row = chunkPixels * (1 + v.outPlanes)
	}
	if op.Pool != nil {
		c.Choice.Kernel += ", pooled"
	}
	if op.Pool != nil && !v.inMemory {
		need.Row = num.Product(rows, cols, v.tiling.blocks)
		for ky := range v.poolH {
			for kx := range v.poolW {
				v.poolTaps = append(v.poolTaps, (ky*cols+kx)*v.tiling.blocks)
			}
		}
	}
	if need.Bytes >= 1<<30 {
		return nil, tiles.Size{}
	}
	v.taps = v.lines.taps(rows)
	if c.Reserve(num.Product(8, height, cols)) {
		v.fill(op.Border, in.DType, height, cols)
	}
	return v, need
}

// times estimates the nanoseconds for an image by the kernels of a kern.Matrix, and by those that count
// bits or multiply bytes side by side.
func (c *matrixConv) times(op *plan.Conv, in plan.Tensor, height int) (matrix, other float64) {
	const (
		clock    = 2.1  // cycles of a nanosecond where matrices are multiplied, which takes much power
		expand   = 24   // cycles at least for a step of a block, whose weights become bytes
		ends     = 200  // for the sums of a block and a panel
		makeLine = 2    // for a line
		start    = 1500 // for a call
		width    = 16   // outputs that other kernels have side by side
		clock2   = 2.9  // cycles of a nanosecond elsewhere
		bits     = 1.7  // cycles for a piece of 32 taps of width outputs
		bytes    = 0.6  // for a piece of 4 taps
	)
	_, multiplied, count := newMatrixTiles(height, c.lines.cols, c.lines.pitch)
	panels := float64(num.CeilDiv(op.Out, kern.PanelOutputs))
	steps, blocks := float64(c.lines.steps()), math.Ceil(float64(count)/kern.BlockTiles)
	perPanel := max(steps*float64(multiplied), steps*expand*blocks) + ends*blocks
	matrix = (panels*perPanel + makeLine*float64(c.lines.size(height)) + start) / clock
	pixels, vectors := float64(height*c.lines.cols), math.Ceil(float64(op.Out)/width)
	if in.DType == bcnn.Bits {
		pieces := c.lines.planes * c.lines.KH * num.CeilDiv(c.lines.KW*in.Shape.C, pieceBits)
		other = pixels * vectors * float64(pieces) * bits / clock2
	} else {
		pieces := c.lines.KH * num.CeilDiv(c.lines.KW*in.Shape.C, 4)
		other = pixels * vectors * float64(pieces) * bytes / clock2
	}
	return matrix, other
}

// pack packs the weights, and makes the table.
func (c *matrixConv) pack(ctx *schedule.Context, op *plan.Conv, d bcnn.DType) {
	switch {
	case op.Int8 != nil:
		ctx.Choice.Kernel += ", 8-bit weights"
		c.filter = schedule.Share(ctx, func() *kern.MatrixFilter {
			return kern.PackMatrixBytes(ctx.Set.Matrix, c.lines.bytes(op), op.Out, c.lines.steps())
		})
		c.table = wordTable(op, op.Int8, nil)
		return
	default:
		c.filter = schedule.Share(ctx, func() *kern.MatrixFilter {
			return kern.PackMatrixSigns(ctx.Set.Matrix, c.lines.signs(op), op.Out, c.lines.steps())
		})
	}
	taps := c.lines.KH * c.lines.KW * c.lines.image.C
	if d != bcnn.Bits {
		ctx.Choice.Kernel += " of bytes"
		dense := packTaps(ctx, op.Bits, op.Out, c.lines.KH*c.lines.KW, c.lines.image.C)
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
// else of channels. Float32 outputs stay together, for the steps behind.
func (c *matrixConv) divide(ctx *schedule.Context, channels int, work float64, height int) {
	blocks := num.CeilDiv(channels, kern.BlockOutputs)
	t := &c.tiling
	var why string
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
	for t.rows > 1 && c.lines.size(t.rows*c.poolH)*kern.LineBytes > lineMemory {
		t.rows = num.CeilDiv(t.rows, 2)
		why = fmt.Sprintf("lines that fit into %d KiB of cache", lineMemory>>10)
	}
	t.blockTiles, t.rowTiles = num.CeilDiv(blocks, t.blocks), num.CeilDiv(height, t.rows)
	ctx.Choice.Tile = fmt.Sprintf("%s × %s, %s", schedule.Count(t.rows, "row"),
		schedule.Count(min(t.blocks*kern.BlockOutputs, channels), "channel"), schedule.Count(t.rowTiles*t.blockTiles, "tile"))
	ctx.Choice.Why += "; " + why
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
		t.fill(c.pixels[y*cols:][:take*cols], take, cols, c.lines.pitch, count)
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

// Lead is that of a tiles.Leader. A tile must have all channels of float32 outputs.
func (c *matrixConv) Lead(_, _ int, next tiles.Next) bool {
	if c.blockTiles > 1 || c.thresholds != nil || c.inMemory {
		return false
	}
	c.next = next
	return true
}

// Add is that of a wideConv.
func (c *matrixConv) Add(t *bcnn.Tensor, then kern.End) (can, overlaid bool) {
	if c.added != nil || c.levels != nil || c.thresholds != nil || c.inMemory || then.Slope != nil {
		return false, false
	}
	c.added, c.then = t, then
	return true, false
}

// Levels makes the outputs the numbers of their levels, as bytes of another tensor. It reports whether
// the kernels can.
func (c *matrixConv) Levels(l *kern.Levels, t *bcnn.Tensor) bool {
	if c.thresholds != nil || c.added != nil || c.inMemory || !l.Usual() {
		return false
	}
	c.levels, c.levelsOut = l, t
	if needless(c.end.Activation, l, c.channels) {
		c.end.Activation = kern.Activation{}
	}
	return true
}

func (c *matrixConv) Tiles(n int) int { return n * c.rowTiles * c.blockTiles }

func (c *matrixConv) Run(tile int, s *tiles.Scratch) {
	image, tile := tile/(c.rowTiles*c.blockTiles), tile%(c.rowTiles*c.blockTiles)
	block := tile % c.blockTiles * c.blocks
	end := min((block+c.blocks)*kern.BlockOutputs, c.channels)
	y0 := tile / c.blockTiles * c.tiling.rows
	rows, t := c.tiling.rows, &c.whole
	if y0+rows > c.outShape.H {
		rows, t = c.outShape.H-y0, &c.fewer
	}
	memory := s.Bytes[kern.MatrixMemory:]
	lines := lineBuffer(memory)
	c.lines.load(s, c.set, lines, image, y0*c.poolH, rows*c.poolH, c.tiling.rows*c.poolH)
	first := y0 * c.poolH * c.lines.cols
	s.Matrix = kern.MatrixJob{
		Src: unsafe.Pointer(&lines[0]), Pixels: &c.pixels[first], Doubled: c.doubled,
		Table: unsafe.Pointer(&c.table.values[block*kern.BlockOutputs]),
	}
	channel := block * kern.BlockOutputs
	part := &s.Part
	*part = kern.MatrixPart{Taps: c.taps, Rows: t.rows, Panel: channel / kern.PanelOutputs, Memory: s.Bytes[:kern.MatrixMemory]}
	pixel := (image*c.outShape.H + y0) * c.outShape.W
	if c.inMemory {
		c.throughMemory(s, part, t, pixel*c.outPlanes, y0, rows, channel, end)
	} else if c.thresholds == nil {
		part.Panels = (end - channel) / kern.PanelOutputs
		c.floats(s, part, t, image, pixel, channel)
	} else {
		part.Panels = num.CeilDiv(end-channel, kern.PanelOutputs)
		c.bits(s, part, t, pixel, rows, block)
	}
	s.Matrix, s.Part = kern.MatrixJob{}, kern.MatrixPart{}
}

// parts calls do for the blocks of a tile, so many at a time. The last tile of the last block may have
// fewer lines than others.
func (t *matrixTiles) parts(s *tiles.Scratch, part *kern.MatrixPart, blocks int, do func()) {
	for at := 0; at < len(t.blocks) && !s.Ended(); {
		end := min(at+blocks, len(t.blocks))
		part.Last = t.rows
		if end == len(t.blocks) && t.last < t.rows {
			if at < end-1 {
				end--
			} else {
				part.Last = t.last
			}
		}
		part.Blocks = t.blocks[at:end]
		at = end
		do()
	}
}

// bits computes packed outputs of a tile of rows.
func (c *matrixConv) bits(s *tiles.Scratch, part *kern.MatrixPart, t *matrixTiles, pixel, rows, block int) {
	j, blocks := &s.Matrix, num.CeilDiv(part.Panels*kern.PanelOutputs, kern.BlockOutputs)
	pooled := c.poolH*c.poolW > 1
	j.Flip = unsafe.Pointer(&c.noFlip[0])
	if pooled {
		j.Dst, j.DstStep = unsafe.Pointer(&s.Row[0]), uintptr(8*c.tiling.blocks)
	} else {
		j.Dst, j.DstStep = unsafe.Pointer(&c.out.Words[pixel*c.words+block]), uintptr(8*c.words)
	}
	if c.flip != nil && !pooled {
		j.Flip = unsafe.Pointer(&c.flip[block])
	}
	if part.Panels*kern.PanelOutputs < blocks*kern.BlockOutputs { // of the last words, no panel writes all
		pixels := rows * c.poolH * c.lines.cols
		words, step := s.Row, c.tiling.blocks
		if !pooled {
			words, step = c.out.Words[pixel*c.words+block:], c.words
		}
		for p := range pixels {
			words[p*step+blocks-1] = 0
		}
	}
	t.parts(s, part, len(t.blocks), func() { c.filter.Bits(j, part) })
	if !pooled {
		return
	}
	width := c.outShape.W
	for b := range blocks {
		s.Pool = kern.Pool{Taps: c.poolTaps, Values: 1, Step: c.poolW * c.tiling.blocks, DstStep: c.words, Pixels: width}
		if c.flip != nil {
			s.Pool.Flip = c.flip[block+b]
		}
		for y := range rows {
			from := y*c.poolH*c.lines.cols*c.tiling.blocks + b
			c.set.OrPool(c.out.Words[(pixel+y*width)*c.words+block+b:], s.Row[from:], &s.Pool)
		}
	}
}

// floats computes float32 outputs of a tile of rows.
func (c *matrixConv) floats(s *tiles.Scratch, part *kern.MatrixPart, t *matrixTiles, image, pixel, channel int) {
	j, end, then := &s.Matrix, c.end.From(channel), c.then.From(channel)
	at := pixel*c.channels + channel
	if c.levels != nil {
		levels := c.levels.From(channel)
		j.Dst, j.DstStep = unsafe.Pointer(&c.levelsOut.U8[at]), uintptr(c.channels)
		t.parts(s, part, len(t.blocks), func() { c.filter.Levels(j, part, &end, &levels) })
		return
	}
	j.Dst, j.DstStep = unsafe.Pointer(&c.out.F32[at]), uintptr(4*c.channels)
	var added unsafe.Pointer
	if c.added != nil {
		added = unsafe.Pointer(&c.added.F32[at])
	}
	blocks := len(t.blocks)
	if c.next != nil {
		blocks = 2 // others wait for the pixels
	}
	t.parts(s, part, blocks, func() {
		c.filter.Floats(j, part, &end, &then, added)
		if c.next != nil {
			from := pixel - image*c.outShape.H*c.outShape.W + int(part.Blocks[0].First)
			last := part.Blocks[len(part.Blocks)-1]
			c.next(s, image, from, pixel-image*c.outShape.H*c.outShape.W+int(last.First+last.Pixels))
		}
	})
}

// chunkPixels is how many pixels have their sums in memory at a time: those of two blocks.
const chunkPixels = 2 * kern.BlockTiles * kern.TileRows

// throughMemory computes the outputs of a tile of rows from sums in memory, 64 channels at a time.
// pixel is the index of the first pixel of the output, those of planes apart.
func (c *matrixConv) throughMemory(s *tiles.Scratch, part *kern.MatrixPart, t *matrixTiles, pixel, y0, rows, channel, end int) {
	j, width := &s.Matrix, c.outShape.W*c.outPlanes
	pooled := c.poolH*c.poolW > 1
	table, first := j.Table, channel
	j.Dst, j.DstStep = unsafe.Pointer(&s.Sums[0]), 4*kern.BlockOutputs
	for ; channel < end; channel += kern.BlockOutputs {
		n := min(kern.BlockOutputs, end-channel)
		if pooled {
			c.clear(pixel, rows*width, channel, n)
		}
		part.Panel, part.Panels = channel/kern.PanelOutputs, num.CeilDiv(n, kern.PanelOutputs)
		j.Table = unsafe.Add(table, 4*(channel-first))
		t.parts(s, part, chunkPixels/(kern.BlockTiles*kern.TileRows), func() {
			from, last := int(part.Blocks[0].First), &part.Blocks[len(part.Blocks)-1]
			j.Before = uintptr(from) * j.DstStep
			c.filter.Sums32(j, part)
			c.endSums(s, pixel, y0, from, int(last.First+last.Pixels), channel, n)
		})
		if pooled && c.flip != nil {
			c.flipPixels(pixel, rows*width, channel, n)
		}
	}
}

// endSums makes outputs of the sums of pixels of a tile of rows, of n channels from channel on.
func (c *matrixConv) endSums(s *tiles.Scratch, pixel, y0, from, to, channel, n int) {
	cols := c.lines.cols
	for p := from; p < to; {
		y, x := p/cols, p%cols
		take := min(cols-x, to-p)
		if c.thresholds != nil {
			row := pixel + y/c.poolH*c.outPlanes*c.outShape.W
			c.codes(s, p-from, row, c.poolH*c.poolW > 1, c.poolW, y0*c.poolH+y, x, take, channel, n)
		} else {
			dst := c.out.F32[(pixel+p)*c.channels+channel:]
			c.set.Scale(dst, c.channels, s.Sums[(p-from)*kern.BlockOutputs:], kern.BlockOutputs, n, take, c.end.From(channel))
			c.rest.Do(dst, c.channels, n, take)
		}
		p += take
	}
}
