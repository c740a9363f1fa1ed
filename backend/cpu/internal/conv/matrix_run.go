package conv

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/internal/num"
)

// This file computes tiles of a convolution by the kernels of a kern.Matrix.

// Lead is that of a tiles.Leader. A tile must have all channels of float32 outputs.
func (c *matrixConv) Lead(_, _ int, next tiles.Next) bool {
	if c.blockTiles > 1 || c.lines.groups > 1 || c.thresholds != nil || c.throughSums() {
		return false
	}
	c.next = next
	return true
}

// throughSums reports whether sums of any outputs are in memory before they become outputs.
func (c *matrixConv) throughSums() bool { return c.inMemory || c.partial }

// take is that of an ender.
func (c *matrixConv) take(e schedule.End) (why string, overlaid bool) {
	switch {
	case c.thresholds != nil || c.throughSums():
		return throughMemory, false
	case e.Then.Slope != nil:
		return noSlopes, false
	case compared(e):
		return comparedLevels, false
	}
	c.added, c.bytes, c.then, c.fake, c.levels, c.levelsOut = e.Floats, e.Bytes, e.Then, e.Fake, e.Levels, e.Out
	if e.Bytes == nil {
		c.dropClip(e.Levels)
	}
	return "", true
}

func (c *matrixConv) Tiles(n int) int { return n * c.rowTiles * c.blockTiles }

func (c *matrixConv) Run(tile int, s *tiles.Scratch) {
	image, tile := tile/(c.rowTiles*c.blockTiles), tile%(c.rowTiles*c.blockTiles)
	y0 := tile / c.blockTiles * c.tiling.rows
	c.rows(s, image, y0, min(y0+c.tiling.rows, c.outShape.H), tile%c.blockTiles*c.blocks)
}

// tile computes a tile of rows, of all channels.
func (c *matrixConv) tile(s *tiles.Scratch, image, y0, y1 int) { c.rows(s, image, y0, y1, 0) }

// rows computes a tile of rows, of the channels from a block on.
func (c *matrixConv) rows(s *tiles.Scratch, image, y0, y1, block int) {
	end := min((block+c.blocks)*kern.BlockOutputs, c.channels)
	rows, t := y1-y0, &c.whole
	if rows < c.tiling.rows {
		t = &c.fewer
	}
	memory := s.Bytes[kern.MatrixMemory:]
	lines := lineBuffer(memory)
	c.lines.load(s, c.set, lines, image, y0*c.poolH, rows*c.poolH, c.tiling.rows*c.poolH)
	first, pixel := y0*c.poolH*c.lines.cols, (image*c.outShape.H+y0)*c.outShape.W
	outs := c.channels / c.lines.groups
	for channel := block * kern.BlockOutputs; channel < end; {
		group := channel / outs
		last := min(end, (group+1)*outs)
		s.Matrix = kern.MatrixJob{
			Src: unsafe.Pointer(&lines[group*c.group]), Pixels: &c.pixels[first], Shift: c.doubled,
			Table: unsafe.Pointer(&c.table.values[channel]),
		}
		part := &s.Part
		*part = kern.MatrixPart{
			Taps: c.taps, Rows: t.rows, Line: c.lines.line, Panel: channel / kern.PanelOutputs, Panels: num.CeilDiv(last-channel, kern.PanelOutputs),
			Memory: s.Bytes[:kern.MatrixMemory],
		}
		switch {
		case c.inMemory:
			c.throughMemory(s, part, t, pixel*c.outPlanes, y0, rows, channel, last)
		case c.partial && last == c.channels:
			if part.Panels--; part.Panels > 0 {
				c.floats(s, part, t, image, pixel, channel)
			}
			tail := last / kern.PanelOutputs * kern.PanelOutputs
			s.Matrix.Table = unsafe.Pointer(&c.table.values[tail])
			c.throughMemory(s, part, t, pixel, y0, rows, tail, last)
		case c.thresholds == nil:
			c.floats(s, part, t, image, pixel, channel)
		default:
			c.bits(s, part, t, pixel, rows, channel/kern.BlockOutputs)
		}
		channel = last
	}
	s.Matrix, s.Part = kern.MatrixJob{}, kern.MatrixPart{}
}

// parts calls do for the blocks of a tile, in chunks of so many, with the first pixel of the chunk. The
// last tile of the last block may have fewer lines than others: then that block has a call of its own.
func (t *matrixTiles) parts(s *tiles.Scratch, part *kern.MatrixPart, blocks int, do func(chunk uint32)) {
	for at := 0; at < len(t.blocks) && !s.Ended(); {
		chunk := at / blocks * blocks
		end := min(chunk+blocks, len(t.blocks))
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
		do(t.blocks[chunk].First)
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
	t.parts(s, part, c.perCall, func(uint32) { c.filter.Bits(j, part) })
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
		var fake *kern.FakeQuantize
		if c.fake != nil {
			here := c.fake.From(channel)
			fake = &here
		}
		var added unsafe.Pointer
		if c.bytes != nil {
			added = unsafe.Pointer(&c.bytes.U8[at])
		}
		t.parts(s, part, c.perCall, func(uint32) { c.filter.Levels(j, part, &end, fake, &levels, &then, added) })
		return
	}
	j.Dst, j.DstStep = unsafe.Pointer(&s.Out(c.out.F32, at)[0]), uintptr(4*c.channels)
	var added unsafe.Pointer
	if c.added != nil {
		added = unsafe.Pointer(&c.added.F32[at])
	}
	blocks := c.perCall
	if c.next != nil {
		blocks = min(blocks, 2) // others wait for the pixels
	}
	t.parts(s, part, blocks, func(uint32) {
		c.filter.Floats(j, part, &end, &then, added)
		if c.next != nil {
			from := pixel - image*c.outShape.H*c.outShape.W + int(part.Blocks[0].First)
			last := part.Blocks[len(part.Blocks)-1]
			c.next(s, image, from, pixel-image*c.outShape.H*c.outShape.W+int(last.First+last.Pixels))
		}
	})
}

// chunkBlocks is the number of blocks that have their sums in memory at a time, and chunkPixels that of
// their pixels at most.
const chunkBlocks, chunkPixels = 2, 2 * kern.BlockTiles * kern.TileRows

// sum computes sums in memory.
func (c *matrixConv) sum(s *tiles.Scratch, part *kern.MatrixPart, y0 int) {
	j := &s.Matrix
	if c.parts == nil {
		c.filter.Sums32(j, part)
		return
	}
	table, pixels := j.Table, j.Pixels
	j.Shift = 8
	c.filter.Sums32(j, part)
	j.Shift, j.Table, j.Pixels = 0, j.Dst, &c.inSums[y0*c.poolH*c.lines.cols]
	for _, more := range c.parts[1:] {
		more.Sums32(j, part)
	}
	j.Table, j.Pixels = table, pixels
}

// throughMemory computes the outputs of a tile of rows from sums in memory, 64 channels at a time.
// pixel is the index of the first pixel of the output, those of planes apart.
func (c *matrixConv) throughMemory(
	s *tiles.Scratch, part *kern.MatrixPart, t *matrixTiles, pixel, y0, rows, channel, end int,
) {
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
		t.parts(s, part, chunkBlocks, func(chunk uint32) {
			j.Before = uintptr(chunk) * j.DstStep
			c.sum(s, part, y0)
			first, last := &part.Blocks[0], &part.Blocks[len(part.Blocks)-1]
			c.endSums(s, pixel, y0, int(chunk), int(first.First), int(last.First+last.Pixels), channel, n)
		})
		if pooled && c.flip != nil {
			c.flipPixels(pixel, rows*width, channel, n)
		}
	}
}

// endSums makes outputs of the sums of pixels of a tile of rows, of n channels from channel on. The sums
// of pixel chunk are the first in memory.
func (c *matrixConv) endSums(s *tiles.Scratch, pixel, y0, chunk, from, to, channel, n int) {
	cols := c.lines.cols
	for p := from; p < to; {
		y, x := p/cols, p%cols
		take := min(cols-x, to-p)
		if c.thresholds != nil {
			row := pixel + y/c.poolH*c.outPlanes*c.outShape.W
			c.codes(s, p-chunk, row, c.poolH*c.poolW > 1, c.poolW, y0*c.poolH+y, x, take, channel, n)
		} else {
			dst := s.Out(c.out.F32, (pixel+p)*c.channels+channel)
			c.set.Scale(dst, c.channels, s.Sums[(p-chunk)*kern.BlockOutputs:], kern.BlockOutputs, n, take, c.end.From(channel))
			c.rest.Do(dst, c.channels, n, take)
		}
		p += take
	}
}
