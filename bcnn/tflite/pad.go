package tflite

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// pixels completes an operator that picks pixels: without lists, rows and columns in their
// order from the given ones on, −1 where there is none.
func (im *importer) pixels(op bcnn.Pixels, top, h, left, w int, s bcnn.Shape) bcnn.Pixels {
	at := func(from, size, n int) []int32 {
		return try.Value(budget.List(im.budget, n, func(i int) int32 {
			if i < from || i >= from+size {
				return -1
			}
			return int32(i - from)
		}))
	}
	if op.Rows == nil {
		op.Rows = at(top, h, s.H)
	}
	if op.Cols == nil {
		op.Cols = at(left, w, s.W)
	}
	return op
}

// padNode is PAD or PADV2: of a number around images, or of channels of zeros.
func (im *importer) padNode(o *schema.Operator) *value {
	v := im.moved(o, 0)
	fill := float32(0)
	if o.Name == "PADV2" {
		if v.typ == schema.Int8 {
			try.Fail(errQuantized)
		}
		list := im.floats(o, 2)
		if len(list) != 1 || math.IsInf(float64(list[0]), 0) || math.IsNaN(float64(list[0])) {
			try.Failf("the padding value must be one finite number")
		}
		fill = list[0]
	}
	list := im.integers(o, 1)
	if len(list) != 2*v.rank {
		try.Failf("%d amounts of padding for %d dimensions, want two for each", len(list), v.rank)
	}
	var pads [4][2]int
	for i, n := range list {
		d := dim(int64(i/2), v.rank)
		if n < 0 || n > maxSide {
			try.Failf("padding of %d is negative or too large", n)
		}
		pads[d][i%2] = int(n)
	}
	if pads[dimBatch] != [2]int{} {
		try.Failf("padding of the batch dimension is not supported")
	}
	out := *v
	if c := pads[dimC]; c != [2]int{} {
		if fill != 0 {
			try.Failf("padding of the channels is supported only with 0")
		}
		shape := v.shape
		shape.C += c[0] + c[1]
		try.Check(im.budget.Charge(8 * int64(shape.C)))
		index := make([]int32, shape.C)
		for i := range index {
			if index[i] = int32(i - c[0]); i < c[0] || i >= c[0]+v.shape.C {
				index[i] = -1
			}
		}
		y := im.emit(o, "", bcnn.Channels{Index: index}, shape, v)
		out = *y.moves(v)
	}
	return im.padded(o, &out, pads[dimH], pads[dimW], fill)
}

// padded puts rows and columns of a number around an image.
func (im *importer) padded(o *schema.Operator, v *value, h, w [2]int, fill float32) *value {
	out := *v
	if h == [2]int{} && w == [2]int{} {
		return &out
	}
	shape := bcnn.Shape{H: out.shape.H + h[0] + h[1], W: out.shape.W + w[0] + w[1], C: out.shape.C}
	op := im.pixels(bcnn.Pixels{Fill: fill}, h[0], out.shape.H, w[0], out.shape.W, shape)
	y := im.emit(o, "", op, shape, &out)
	return y.moves(&out)
}
