package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// matrixDense is a dense layer on bits whose images are multiplied by the kernels of a kern.Matrix, so many
// at a time: as the pixels of a row, by a 1×1 convolution. What is left of a batch is a dense layer as
// always.
type matrixDense struct {
	*dense
	rows   *matrixConv
	images int
}

// newMatrixDense returns the dense layer where batches are too small, or other kernels take less time.
func newMatrixDense(c *schedule.Context, op *plan.Conv, d *dense, need tiles.Size) (tiles.Step, tiles.Size) {
	const most, least = kern.BlockTiles * kern.TileRows, 2 * kern.TileRows
	taps := d.pixels * d.group
	images := min(c.Batch, most, lineMemory/max(taps, 1)) / kern.TileRows * kern.TileRows
	if c.Set.Matrix == nil || images < least {
		return d, need
	}
	row := *op
	row.Dense, row.Groups = false, 1
	row.Window = bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	out := bcnn.Float32
	if op.Threshold != nil {
		out = bcnn.Bits
	}
	choice, tables := c.Choice, c.Tables
	rows, more := newMatrixConv(c, &row, plan.Tensor{DType: bcnn.Bits, Shape: bcnn.Shape{H: 1, W: images, C: taps}},
		plan.Tensor{DType: out, Shape: bcnn.Shape{H: 1, W: images, C: op.Out}})
	if rows == nil || c.Tables > c.Room {
		c.Choice, c.Tables = choice, tables
		return d, need
	}
	kernel := c.Choice.Kernel
	c.Choice = choice
	c.Choice.Kernel += "; " + kernel + " for " + schedule.Count(images, "image")
	need.Grow(more)
	return &matrixDense{dense: d, rows: rows, images: images}, need
}

func (m *matrixDense) Tiles(n int) int {
	return m.rows.Tiles(n/m.images) + m.dense.Tiles(n%m.images)
}

func (m *matrixDense) Run(tile int, s *tiles.Scratch) {
	whole := m.in.N / m.images
	if of := m.rows.Tiles(whole); tile >= of {
		m.from(whole*m.images, tile-of, s)
		return
	}
	m.rows.Run(tile, s)
}
