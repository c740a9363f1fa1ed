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
