package cpu

import (
	"fmt"
	"sort"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/conv"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/pixelwise"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
)

// windowed is a convolution and the step that alone reads it, by windows: maxima, or another
// convolution in float32. A tile is rows of what that step makes; the rows of the first convolution
// that they read lie in the memory of the worker and not in that of a tensor, which is the largest of
// most networks.
type windowed struct {
	rows     func(s *tiles.Scratch, image, y0, y1 int)
	reader   windowReader
	made     bcnn.Shape // by the convolution
	shape    bcnn.Shape // of the output
	most     int        // rows of the convolution at a time
	each     int        // of which the number of the first of them is a multiple
	chunk    int        // rows of the output at a time
	tileRows int        // of a tile
	next     tiles.Next
}

// windowReader computes rows of its output from rows of its input.
type windowReader interface {
	// Reads returns the rows of an image that some rows of the output read, at least one.
	Reads(y0, y1 int) (from, to int)
	// Span returns how many those of n rows of the output are at most.
	Span(n int) int
	// Of computes rows of the output of an image from those that they read, which are in s.Made, from
	// row first on.
	Of(s *tiles.Scratch, first, image, y0, y1 int)
}

// readerOf returns a step as a windowReader, how many rows it computes at a time at most, 0 for any
// number, and at most how much memory the rows that it reads should take. It returns nil for other
// steps, and where the tensor in between would stay in the cache.
func readerOf(step tiles.Step, made bcnn.Shape) (r windowReader, most, bytes int) {
	if pool, ok := step.(*pixelwise.MaxPool); ok {
		return pool, 0, pooledBytes
	}
	w := conv.WindowsOf(step)
	if w == nil || 4*made.Values() < schedule.L2() {
		return nil, 0, 0
	}
	return w, w.Most(), schedule.L2() / 4
}

// pooledBytes is about how much memory the rows of a convolution take that wait for their maxima: a
// part of the second-level cache.
const pooledBytes = 256 << 10

// newWindowed returns nil where steps cannot be one, or tiles would compute too many rows twice: those
// that two of them read.
func newWindowed(first, second tiles.Step, made, shape bcnn.Shape, threads int) *windowed {
	reader, limit, bytes := readerOf(second, made)
	most, each, rows := conv.Rows(first)
	if reader == nil || most == 0 {
		return nil
	}
	p := &windowed{rows: rows, reader: reader, made: made, shape: shape, most: most, each: each, tileRows: shape.H}
	if threads > 1 {
		const tiles = 2 // of a thread, so that none waits long for the others
		p.tileRows = num.CeilDiv(shape.H, tiles*threads)
	}
	const part = 16 // at most one row of so many is computed twice
	if p.twice()*part > made.H {
		return nil
	}
	p.chunk = p.tileRows
	if limit > 0 {
		p.chunk = min(p.chunk, limit)
	}
	fit := bytes / num.Product(4, made.W, made.C)
	p.chunk = 1 + sort.Search(p.chunk-1, func(i int) bool { return reader.Span(i+2) > fit })
	return p
}

// twice returns how many rows of an image two tiles compute.
func (p *windowed) twice() (n int) {
	for y := p.tileRows; y < p.shape.H; y += p.tileRows {
		from, _ := p.reader.Reads(y, y+1)
		_, to := p.reader.Reads(y-1, y)
		n += max(num.RoundUp(to, p.each)-from/p.each*p.each, 0)
	}
	return n
}

// memory returns what a worker needs beside that of the convolution.
func (p *windowed) memory() tiles.Size {
	rows := min(p.reader.Span(p.chunk)+2*(p.each-1), p.made.H)
	return tiles.Size{Made: num.Product(rows, p.made.W, p.made.C)}
}

// Lead is that of a tiles.Leader.
func (p *windowed) Lead(_, _ int, next tiles.Next) bool {
	p.next = next
	return true
}

func (p *windowed) perImage() int { return num.CeilDiv(p.shape.H, p.tileRows) }

func (p *windowed) Tiles(n int) int { return n * p.perImage() }

func (p *windowed) Run(tile int, s *tiles.Scratch) {
	image, y0 := tile/p.perImage(), tile%p.perImage()*p.tileRows
	row := p.made.W * p.made.C
	first, end := 0, 0 // the rows that are there
	for y := y0; y < min(y0+p.tileRows, p.shape.H) && !s.Ended(); y += p.chunk {
		to := min(y+p.chunk, y0+p.tileRows, p.shape.H)
		from, last := p.reader.Reads(y, to)
		last = min(num.RoundUp(last, p.each), p.made.H)
		if from < end {
			copy(s.Made, s.Made[(from-first)*row:(end-first)*row])
		} else {
			from = from / p.each * p.each
			end = from
		}
		first = from
		s.From = (image*p.made.H + first) * row
		for ; end < last; end = min(end+p.most, last) {
			p.rows(s, image, end, min(end+p.most, last))
		}
		s.From = -1
		p.reader.Of(s, first, image, y, to)
		if p.next != nil {
			p.next(s, image, y*p.shape.W, to*p.shape.W)
		}
	}
}

// choose says what was picked: of the convolution, and of the step that reads its rows.
func (p *windowed) choose(first, second *driver.Choice, name string) {
	first.Tile, first.With = "those of "+name, name
	second.Tile = fmt.Sprintf("%s, %s, %s at a time",
		schedule.Count(p.tileRows, "row"), schedule.Count(p.perImage(), "tile"), schedule.Count(p.chunk, "row"))
	second.Why = "rows that are in the cache"
}
