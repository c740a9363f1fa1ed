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

// maxTable bounds the entries of the tables of a wide convolution.
const maxTable = 1 << 22

// wideConv is a convolution by the kernels of a kern.Wide. A tile is a number
// of rows of the output by some blocks of output channels of an image. All
// pixels of a tile are one list to the kernels, so that rows of any width keep
// their registers busy.
type wideConv struct {
	window
	epilogue
	rows         rowSource // of the input
	filter       *kern.WideFilter
	table        wideTable
	at           []uint32 // offset of the patch of every pixel of a tile
	class        []uint32 // offset of the thresholds of every pixel of an image, nil if there is one class
	none         []uint32 // zeros, for the pixels of a tile
	runStep      int      // bytes between the runs of a patch
	outShape     bcnn.Shape
	poolH, poolW int
	inKernel     bool // pooling of 2×2 pixels, which follow each other in the lists
	poolTaps     []int
	chunk        int      // pixels of a call
	patches      *patches // that kernels read, nil where they read rows
	next         tiles.Next
	floatBlocks  int          // the blocks, from the first on, whose sums kernels end as float32
	added        *bcnn.Tensor // to the outputs, by the kernels that end them; nil for none
	then         kern.End     // of the outputs before that, and the clip of the sum
	levels       *kern.Levels // of the outputs, where the kernels make them; nil for none
	levelsOut    *bcnn.Tensor // their numbers
	tiling
}

// wideTable is what the sums of outputs are compared with or added to, for
// every border class: [class][threshold][channel], in whole blocks.
type wideTable struct {
	values []int32
	step   int // bytes of a class
	next   int // bytes of a threshold
}

func newWideTable(channels, classes, thresholds int) wideTable {
	next := num.RoundUp(channels, kern.BlockOutputs)
	return wideTable{values: make([]int32, num.Product(next, classes, thresholds)), step: 4 * next * thresholds, next: 4 * next}
}

// bitTable makes the table for sums K − 2·c + correction of taps products:
// thresholds for c, or K + correction. Where products are of planes, taps are those of
// all, times powers of 2.
func (e *epilogue) bitTable(op *plan.Conv, taps int) wideTable {
	classes := 1
	if op.Border != nil {
		classes = op.Border.Rows * op.Border.Cols
	}
	thresholds := 1<<e.outPlanes - 1
	t := newWideTable(op.Out, classes, thresholds)
	for i := range classes * thresholds {
		row := t.values[i*t.next/4:][:t.next/4]
		for o := range row {
			row[o] = -1 // never
		}
		for o := range op.Out {
			sum := taps
			if op.Border != nil {
				sum += int(op.Border.Correction[i/thresholds*op.Out+o])
			}
			if op.Threshold == nil {
				row[o] = int32(sum)
				continue
			}
			switch least := op.Threshold.I32[i%thresholds*op.Out+o]; least {
			case math.MinInt32:
				row[o] = math.MaxInt32
			case math.MaxInt32:
			default:
				// The shift rounds down, and −1 is less than any count.
				row[o] = int32(min(max((int64(sum)-int64(least))>>1, -1), math.MaxInt32))
			}
		}
	}
	return t
}

// byteTable makes the table for sums c of bytes, without the zero point and what they
// lack.
func byteTable(op *plan.Conv, taps, rowWords int, dense []uint64, lack []int32) wideTable {
	t := newWideTable(op.Out, 1, 1)
	for o := range t.values {
		t.values[o] = math.MaxInt32 // never: sums are less
	}
	for o := range op.Out {
		var fix int64
		for i := range taps {
			fix += int64(op.ZeroPoint) * int64(bits.At(dense[o*rowWords:][:rowWords], i))
		}
		if lack != nil {
			fix -= int64(lack[o])
		}
		switch {
		case op.Threshold == nil:
			t.values[o] = int32(-fix)
		case op.Threshold.I32[o] == math.MinInt32 || op.Threshold.I32[o] == math.MaxInt32:
			t.values[o] = op.Threshold.I32[o]
		default:
			t.values[o] = int32(min(max(int64(op.Threshold.I32[o])+fix, math.MinInt32), math.MaxInt32))
		}
	}
	return t
}

// wordTable is byteTable for weights of 8 or 16 bits.
func wordTable[W int8 | int16](op *plan.Conv, weights []W, lack []int32) wideTable {
	t, taps := newWideTable(op.Out, 1, 1), len(weights)/op.Out
	copy(t.values, lack)
	for o := range op.Out {
		for _, w := range weights[o*taps:][:taps] {
			t.values[o] -= int32(op.ZeroPoint) * int32(w)
		}
	}
	return t
}

// wideConv returns nil where the tables of the kernels would be too large.
func newWideConv(c *schedule.Context, op *plan.Conv, w window, in, out plan.Tensor) (*wideConv, tiles.Size) {
	v := &wideConv{window: w, outShape: out.Shape} // without planes
	v.poolH, v.poolW = poolOf(op)
	v.epilogue = newEpilogue(c, op, in.DType, kern.BlockOutputs)
	if !v.tablesFit(op) {
		return nil, tiles.Size{}
	}
	if in.DType == bcnn.Bits {
		v.packBits(c, op)
	} else {
		v.packBytes(c, op)
	}

	pixel := convTime(c, op, in.DType, w.taps()*w.planes)
	work := pixel * float64(w.rows/w.planes) * float64(w.cols)
	const lanes = 16 // no kernel has fewer
	block := pixel * float64(num.RoundUp(min(op.Out, kern.BlockOutputs), lanes)) / float64(op.Out)
	v.chunk = max(1, int(schedule.MaxTile/wideChunk/block)) * wideChunk
	pixels := func(rows int) int { return num.Product(rows, v.poolH, w.planes, w.cols) }
	var need tiles.Size
	v.tiling, need = wideTiles(c, out.Shape.H, op.Out, work,
		func(rows int) tiles.Size { return v.rows.need(rows * v.poolH * w.planes) },
		func(rows int) bool { return pixels(rows) <= maxTable })
	if v.filter.Patches {
		v.patches, need.Bytes = newPatches(c, w, v.filter.RunBytes)
		v.chunk = min(v.chunk, len(v.patches.at)/w.planes)
	}
	if max(need.Words, need.Bytes) >= 1<<28 {
		return nil, tiles.Size{} // beyond the offsets
	}
	v.inKernel = v.poolH == 2 && v.poolW == 2 && v.filter.Pools() && !v.numeric()
	if v.numeric() {
		c.Choice.Kernel += fmt.Sprintf(", %d to %d planes", w.planes, v.outPlanes)
	}
	if v.inKernel {
		c.Choice.Kernel += ", pooled"
	} else if op.Pool != nil {
		need.Row, v.poolTaps = pixels(v.tiling.rows), poolOffsets(v.poolH, v.poolW, v.cols, 1)
	}
	if v.outPlanes > 1 && op.Pool != nil {
		need.Row = w.cols * v.outPlanes
	}
	if op.Threshold == nil && !v.numeric() {
		v.floatBlocks = v.filter.FloatBlocks()
	}
	if op.Threshold == nil && !v.ends() {
		need.Sums = sumsChunk * kern.BlockOutputs
	}
	if c.Reserve(num.Product(pixels(v.tiling.rows), 8)) && (op.Border == nil || c.Reserve(num.Product(w.rows, w.cols, 4))) {
		v.fillOffsets(op.Border)
	}
	return v, need
}

// tablesFit reports whether the tables of a convolution are no larger than they may be.
func (v *wideConv) tablesFit(op *plan.Conv) bool {
	classes, positions := 1, 0
	if op.Border != nil {
		classes, positions = op.Border.Rows*op.Border.Cols, num.Product(v.window.rows, v.cols)
	}
	values := num.Product(classes, 1<<v.outPlanes-1, num.RoundUp(op.Out, kern.BlockOutputs))
	return num.Product(v.poolH, v.planes, v.cols) <= maxTable && values <= maxTable && positions <= maxTable
}

// poolOffsets returns where the values of a window of a pool lie, from its first one on, in rows of so many columns
// that are step apart.
func poolOffsets(height, width, columns, step int) (offsets []int) {
	for ky := range height {
		for kx := range width {
			offsets = append(offsets, (ky*columns+kx)*step)
		}
	}
	return offsets
}

// packBits packs the weights of a convolution of bits, and makes its table.
func (v *wideConv) packBits(c *schedule.Context, op *plan.Conv) {
	c.Choice.Kernel = "wide bits"
	v.rows, v.filter = wideBits(c, op, v.window, true)
	v.table = v.bitTable(op, v.taps()*(1<<v.planes-1))
	if v.filter.Form != "" {
		c.Choice.Kernel += ", " + v.filter.Form
	}
	if v.filter.Why != "" {
		c.Choice.Why += "; " + v.filter.Why
	}
}

// packBytes is packBits of a convolution of bytes.
func (v *wideConv) packBytes(c *schedule.Context, op *plan.Conv) {
	c.Choice.Kernel = "wide bytes"
	joined := groupsOfBlocks(op)
	v.groups, v.group = op.Groups/joined, v.group*joined
	v.rows, v.filter = wideBytes(c, op, v.window)
	switch {
	case op.Int16 != nil:
		c.Choice.Kernel += ", 16-bit weights"
		if v.filter.Form != "" {
			c.Choice.Kernel += " in " + v.filter.Form
		}
		v.table = wordTable(op, op.Int16, v.filter.Fix)
	case op.Int8 != nil:
		c.Choice.Kernel += ", 8-bit weights"
		v.table = wordTable(op, op.Int8, v.filter.Fix)
	default:
		dense := packTaps(c, op.Bits, op.Out, v.KH*v.KW, v.group)
		v.table = byteTable(op, v.taps(), bits.Words(v.taps()), dense, v.filter.Fix)
	}
}

// wideChunk is the number of pixels whose outputs are computed at a time, if others wait for
// them, and sumsChunk that of those whose sums are in memory meanwhile: they and what
// becomes of them are a part of the first-level cache.
const wideChunk, sumsChunk = 64, 32

func (c *wideConv) fillOffsets(border *plan.Border) {
	c.runStep = c.rows.run()
	tile := c.tiling.rows * c.poolH * c.planes
	c.at = make([]uint32, tile*c.cols)
	for y := range tile {
		for x := range c.cols {
			c.at[c.index(y, x)] = uint32(c.rows.offset(y, x))
		}
	}
	if border == nil || border.Rows*border.Cols == 1 {
		c.none = make([]uint32, tile*c.cols)
		return
	}
	c.class = make([]uint32, c.window.rows*c.cols)
	for y := range c.window.rows {
		for x := range c.cols {
			c.class[c.index(y, x)] = uint32((border.Row[y/c.planes]*border.Cols + border.Col[x]) * c.table.step)
		}
	}
}

// numeric reports whether input or output have bit planes.
func (c *wideConv) numeric() bool { return c.planes > 1 || c.outPlanes > 1 }

// index returns the place of a pixel in the lists, in which the planes of a pixel follow
// each other.
func (c *wideConv) index(y, x int) int {
	if c.planes > 1 {
		return (y/c.planes*c.cols+x)*c.planes + y%c.planes
	}
	if c.inKernel {
		return y/2*2*c.cols + x/2*4 + y%2*2 + x%2
	}
	return y*c.cols + x
}

// Lead is that of a tiles.Leader. A tile must have all channels of float32 outputs.
func (c *wideConv) Lead(_, _ int, next tiles.Next) bool {
	if c.blockTiles > 1 || c.groups > 1 || c.thresholds != nil || c.numeric() {
		return false
	}
	c.next = next
	return true
}

// ends reports whether kernels end the sums of all blocks as float32.
func (c *wideConv) ends() bool { return c.floatBlocks > 0 && c.filter.EndsFloats() }

// take is that of an ender.
func (c *wideConv) take(e schedule.End) (why string, overlaid bool) {
	switch {
	case e.Bytes != nil:
		return noBytes, false
	case e.Then.Slope != nil:
		return noSlopes, false
	case e.Levels != nil && (!c.ends() || !c.filter.EndsLevels()):
		return noLevels, false
	case compared(e):
		return comparedLevels, false
	case c.ends() && !e.Then.None():
		return noScaledSums, false
	case c.thresholds != nil || !c.ends() && c.set.ScaleAdd == nil:
		return throughMemory, false
	}
	c.added, c.then, c.levels, c.levelsOut = e.Floats, e.Then, e.Levels, e.Out
	c.dropClip(e.Levels)
	return "", true
}

func (c *wideConv) Tiles(n int) int { return n * c.rowTiles * c.blockTiles }

func (c *wideConv) Run(tile int, s *tiles.Scratch) {
	image, y0, y1, block, end := c.tile(tile)
	c.compute(s, image, y0, y1, block, end)
}

// tile returns the image of a tile, its output rows and channels from a block on.
func (c *wideConv) tile(tile int) (image, y0, y1, block, end int) {
	image, tile = tile/(c.rowTiles*c.blockTiles), tile%(c.rowTiles*c.blockTiles)
	block = tile % c.blockTiles * c.blocks
	end = min((block+c.blocks)*kern.BlockOutputs, c.channels)
	y0 = tile / c.blockTiles * c.tiling.rows
	return image, y0, min(y0+c.tiling.rows, c.outShape.H), block, end
}

// most returns the number of rows of a tile.
func (c *wideConv) most() int { return c.tiling.rows }

func (c *wideConv) makesFloats() bool { return c.thresholds == nil }

// compute computes output rows of the channels from a block on.
func (c *wideConv) compute(s *tiles.Scratch, image, y0, y1, block, end int) {
	first, rows := y0*c.poolH, (y1-y0)*c.poolH
	pixel := (image*c.outShape.H + y0) * c.outShape.W
	var src unsafe.Pointer
	group := -1
	class := c.none
	if c.class != nil {
		class = c.class[first*c.planes*c.cols:]
	}
	if c.next != nil {
		c.lead(s, image, y0, y1-y0, class)
		return
	}
	for take := 1; block*kern.BlockOutputs < end; block += take {
		if g := block * kern.BlockOutputs / (c.channels / c.groups); g != group {
			group = g
			src = c.rows.load(s, image, first*c.planes, rows*c.planes, group)
		}
		if c.outPlanes > 1 {
			c.codes(s, src, class, image, y0, rows, block)
			continue
		}
		if c.patches != nil && !c.pools() { // patches are made for all blocks that read them
			take = num.CeilDiv(min(end, (group+1)*(c.channels/c.groups)), kern.BlockOutputs) - block
		}
		for p := 0; p < rows*c.cols; p += c.chunk {
			if p > 0 && s.Ended() {
				break
			}
			pixels := min(c.chunk, rows*c.cols-p)
			from, at := c.source(s, src, p, pixels)
			for b := block; b < block+take; b++ {
				s.Job = kern.ConvJob{
					Src: from, At: at, Class: &class[p*c.planes],
					Table:  unsafe.Pointer(&c.table.values[b*kern.BlockOutputs]),
					Pixels: uintptr(pixels * c.planes),
				}
				c.write(s, class[p*c.planes:], pixel, p, b)
			}
		}
		if c.pools() {
			c.pooled(s, pixel, y1-y0, block)
		}
	}
	s.Job = kern.ConvJob{}
}

// lead computes a tile for which all blocks of a few pixels are computed before those
// of others, because the next step waits for them.
func (c *wideConv) lead(s *tiles.Scratch, image, first, rows int, class []uint32) {
	src := c.rows.load(s, image, first, rows, 0)
	pixels := rows * c.cols
	chunk := min(c.chunk, wideChunk)
	for p := 0; p < pixels; p += chunk {
		take := min(chunk, pixels-p)
		from, at := c.source(s, src, p, take)
		for block := range c.tiling.blocks {
			if s.Ended() {
				return
			}
			s.Job = kern.ConvJob{
				Src: from, At: at, Class: &class[p],
				Table: unsafe.Pointer(&c.table.values[block*kern.BlockOutputs]), Pixels: uintptr(take),
			}
			c.floats(s, class[p:], p, (image*c.outShape.H+first)*c.outShape.W, block)
		}
		s.Job = kern.ConvJob{}
		pixel := first*c.cols + p
		c.next(s, image, pixel, pixel+take)
	}
}

// write does the job for a block of channels of the pixels from p on of a tile,
// whose first output pixel has the index pixel.
func (c *wideConv) write(s *tiles.Scratch, class []uint32, pixel, p, block int) {
	switch {
	case c.thresholds == nil:
		c.floats(s, class, p, pixel, block)
		return
	case c.pools():
		s.Job.Dst, s.Job.DstStep = unsafe.Pointer(&s.Row[p]), 8
		c.bits(s, block)
		return
	}
	if c.flip != nil {
		s.Job.Flip = c.flip[block]
	}
	s.Job.DstStep = uintptr(8 * c.words)
	if c.inKernel {
		s.Job.Dst = unsafe.Pointer(&c.out.Words[(pixel+p/4)*c.words+block])
		c.filter.ConvPooled(&s.Job, block, c.runStep, c.class == nil)
	} else {
		s.Job.Dst = unsafe.Pointer(&c.out.Words[(pixel+p)*c.words+block])
		c.bits(s, block)
	}
}

// bits does the job for thresholds of one bit.
func (c *wideConv) bits(s *tiles.Scratch, block int) {
	if c.planes > 1 {
		c.filter.ConvPlanes(&s.Job, c.planes, 1, block, c.runStep)
	} else {
		c.filter.Conv(&s.Job, block, c.runStep)
	}
}

// codes computes a block of planes of rows before pooling, for output rows from y0 on.
func (c *wideConv) codes(s *tiles.Scratch, src unsafe.Pointer, class []uint32, image, y0, rows, block int) {
	width := c.outShape.W
	var flip uint64
	if c.flip != nil {
		flip = c.flip[block]
	}
	pooled := c.poolH*c.poolW > 1
	for y := range rows {
		out := c.out.Words[(image*c.outShape.H+y0+y/c.poolH)*c.outPlanes*width*c.words+block:]
		for x := 0; x < c.cols; x += c.chunk {
			if x+y > 0 && s.Ended() {
				return
			}
			pixels := min(c.chunk, c.cols-x)
			from, at := c.source(s, src, y*c.cols+x, pixels)
			s.Job = kern.ConvJob{
				Src: from, At: at, Class: &class[(y*c.cols+x)*c.planes],
				Table:  unsafe.Pointer(&c.table.values[block*kern.BlockOutputs]),
				Next:   uintptr(c.table.next),
				Pixels: uintptr(pixels * c.planes),
			}
			if pooled {
				s.Job.Dst, s.Job.DstStep, s.Job.DstPlane = unsafe.Pointer(&s.Row[x]), 8, uintptr(8*c.cols)
			} else {
				s.Job.Dst, s.Job.DstStep, s.Job.DstPlane = unsafe.Pointer(&out[x*c.words]), uintptr(8*c.words), uintptr(8*width*c.words)
				s.Job.Flip = flip
			}
			c.filter.ConvPlanes(&s.Job, c.planes, c.outPlanes, block, c.runStep)
		}
		if !pooled {
			continue
		}
		if y%c.poolH == 0 {
			for x := range c.outPlanes * width {
				out[x*c.words] = 0
			}
		}
		bits.MaxPlanesOfRow(out, c.words, width*c.words, s.Row[:c.outPlanes*c.cols], c.poolW, c.outPlanes)
		if y%c.poolH == c.poolH-1 {
			for x := range c.outPlanes * width {
				out[x*c.words] ^= flip
			}
		}
	}
}

// pools reports whether bits are pooled after the kernel.
func (c *wideConv) pools() bool { return c.thresholds != nil && c.poolH*c.poolW > 1 && !c.inKernel }

// pooled pools a block of rows of output pixels.
func (c *wideConv) pooled(s *tiles.Scratch, pixel, rows, block int) {
	var flip uint64
	if c.flip != nil {
		flip = c.flip[block]
	}
	s.Pool = kern.Pool{
		Taps: c.poolTaps, Values: 1, Step: c.poolW, DstStep: c.words, Pixels: c.outShape.W, Flip: flip,
	}
	dst := c.out.Words[pixel*c.words+block:]
	for y := range rows {
		c.set.OrPool(dst[y*c.outShape.W*c.words:], s.Row[y*c.poolH*c.cols:][:c.poolH*c.cols], &s.Pool)
	}
}

// floats computes a block of float32 outputs of the pixels of the job, the first of
// which is number first of the tile.
func (c *wideConv) floats(s *tiles.Scratch, class []uint32, first, pixel, block int) {
	job, pixels := s.Job, int(s.Job.Pixels)/c.planes
	channel := block * kern.BlockOutputs
	n := min(c.channels-channel, kern.BlockOutputs)
	end := c.end.From(channel)
	if block < c.floatBlocks && (c.added == nil || c.then.None()) {
		at := (pixel+first)*c.channels + channel
		if c.levels != nil {
			levels := c.levels.From(channel)
			s.Job.Dst, s.Job.DstStep = unsafe.Pointer(&c.levelsOut.U8[at]), uintptr(c.channels)
			c.filter.ConvLevels(&s.Job, block, c.runStep, &end, &levels)
			return
		}
		s.Job.Dst, s.Job.DstStep = unsafe.Pointer(&s.Out(c.out.F32, at)[0]), uintptr(4*c.channels)
		var added unsafe.Pointer
		if c.added != nil {
			added = unsafe.Pointer(&c.added.F32[at])
		}
		c.filter.ConvFloats(&s.Job, block, c.runStep, &end, added)
		return
	}
	for p := 0; p < pixels; p += sumsChunk {
		take := min(sumsChunk, pixels-p)
		s.Job = job
		s.Job.At = &unsafe.Slice(job.At, job.Pixels)[p*c.planes]
		s.Job.Class, s.Job.Pixels = &class[p*c.planes], uintptr(take*c.planes)
		s.Job.Dst, s.Job.DstStep = unsafe.Pointer(&s.Sums[0]), 4*kern.BlockOutputs
		if c.planes > 1 {
			c.filter.ConvPlanes(&s.Job, c.planes, 0, block, c.runStep)
		} else {
			c.filter.ConvSums(&s.Job, block, c.runStep)
		}
		at := (pixel+first+p)*c.channels + channel
		if c.added != nil {
			c.set.ScaleAdd(c.out.F32[at:], c.channels, s.Sums, kern.BlockOutputs, n, take, end, c.then.From(channel), c.added.F32[at:])
		} else {
			c.set.Scale(s.Out(c.out.F32, at), c.channels, s.Sums, kern.BlockOutputs, n, take, end)
		}
	}
}
