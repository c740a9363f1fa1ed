package conv

import "github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"

// rowsConv computes some output rows of an image, of the channels of some blocks.
type rowsConv interface {
	tiles.Step
	// most is the number of rows that there is memory for.
	most() int
	compute(s *tiles.Scratch, image, y0, y1, block, end int)
	// makesFloats reports whether it computes float32 values alone.
	makesFloats() bool
}

// Rows returns what computes rows of float32 values of an image, how many at a time at most, 0 where a step
// is no convolution that can, and of how many the number of the first one must be a multiple.
func Rows(step tiles.Step) (most, each int, compute func(s *tiles.Scratch, image, y0, y1 int)) {
	var channels int
	switch c := step.(type) {
	case *sumsConv:
		channels = c.channels
	case *wideConv:
		channels = c.channels
	case *matrixConv:
		if c.thresholds == nil && c.levels == nil && c.blockTiles == 1 {
			return c.tiling.rows, c.tiling.rows, c.tile
		}
	}
	c, ok := step.(rowsConv)
	if !ok || !c.makesFloats() {
		return 0, 0, nil
	}
	return c.most(), 1, func(s *tiles.Scratch, image, y0, y1 int) { c.compute(s, image, y0, y1, 0, channels) }
}

// Windows is a convolution of float32 values in float32 whose input may lie in the memory of a worker.
type Windows struct{ conv *sumsConv }

// WindowsOf returns a step as Windows, nil if it is none.
func WindowsOf(step tiles.Step) *Windows {
	c, ok := step.(*sumsConv)
	if !ok || c.outPlanes > 1 || c.planes > 1 {
		return nil
	}
	if f, ok := c.source.(*floatSource); !ok || f.bytes != nil {
		return nil
	}
	return &Windows{c}
}

// Most returns the number of output rows that there is memory for.
func (w *Windows) Most() int { return w.conv.tileRows }

// Reads returns the rows of an image that some rows of the output read, at least one.
func (w *Windows) Reads(y0, y1 int) (from, to int) {
	c := w.conv
	top := y0*c.poolH*c.StrideH - c.Pad.Top
	from = min(max(top, 0), c.image.H-1)
	return from, max(min(top+w.Span(y1-y0), c.image.H), from+1)
}

// Span returns how many input rows n output rows read at most.
func (w *Windows) Span(n int) int {
	rows, _ := w.conv.span(n * w.conv.poolH)
	return rows
}

// Of computes output rows of an image from rows of its input, which are in s.Made, from row first on.
func (w *Windows) Of(s *tiles.Scratch, first, image, y0, y1 int) {
	c := w.conv
	s.Source = (image*c.image.H + first) * c.image.W * c.image.C
	c.compute(s, image, y0, y1, 0, c.channels)
	s.Source = -1
}
