package tflite

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// pooled reads the geometry of a pool.
func pooled(o *schema.Operator) geometry {
	g := windowed(o)
	g.kw, g.kh = int(o.Options.Int32(3, 0)), int(o.Options.Int32(4, 0))
	return g
}

// maxPool is MAX_POOL_2D, of numbers or of 8-bit values.
func (im *importer) maxPool(o *schema.Operator) *value {
	v := im.value(o, 0)
	if v.typ == schema.Int32 {
		try.Failf("its input is packed bits, which this operator does not support")
	}
	window, shape := pooled(o).window(v)
	y := im.emit(o, "", bcnn.MaxPool{Window: window}, shape, v)
	y.moves(v)
	act := int(o.Options.Uint8(5, 0))
	switch {
	case v.typ == schema.Int8:
		return im.activated8(o, y, act)
	case act != actNone && v.typ != schema.Float32:
		try.Fail(errQuantized)
	}
	return im.activated(o, y, act)
}

// activated is activation of a value with a type.
func (im *importer) activated(o *schema.Operator, v *value, kind int) *value {
	if kind != actNone {
		try.Check(v.checkBounded())
	}
	y := im.activation(o, v, kind)
	if y != v {
		y.typ = v.typ
	}
	return y
}

// averagePool is AVERAGE_POOL_2D. Padding does not count.
func (im *importer) averagePool(o *schema.Operator) *value {
	v := im.weighable(o, 0).undivided()
	window, shape := pooled(o).window(v)
	if v.typ == schema.Int8 {
		return im.averagePool8(o, v, window, shape)
	}
	y := im.emit(o, "", bcnn.AvgPool{Window: window}, shape, v)
	y.typ = schema.Float32
	return im.activated(o, y, int(o.Options.Uint8(5, 0)))
}

// The dimensions of images.
const dimBatch, dimH, dimW, dimC = 0, 1, 2, 3

// size returns the size of a dimension of images.
func (v *value) size(dim int) int {
	return [...]int{1, v.shape.H, v.shape.W, v.shape.C}[dim]
}

// dim returns the dimension of images that one of a tensor of so many dimensions is, of
// which those that are negative count from the last.
func dim(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	if axis < 0 || axis >= int64(rank) {
		try.Failf("there is no dimension %d, its input has %d dimensions", axis, rank)
	}
	if axis == 0 {
		return dimBatch
	}
	return int(axis) + 4 - rank
}

// axes returns the dimensions of images that a constant input lists.
func (im *importer) axes(o *schema.Operator, i, rank int) []int {
	list := im.integers(o, i)
	axes := make([]int, 0, len(list))
	for _, a := range list {
		d := dim(a, rank)
		if !slices.Contains(axes, d) {
			axes = append(axes, d)
		}
	}
	return axes
}
