package tflite

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Operators that move or resample pixels.

// resize is RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR.
func (im *importer) resize(o *schema.Operator) *value {
	bilinear := o.Name == "RESIZE_BILINEAR"
	v := im.moved(o, 0)
	size := im.integers(o, 1)
	if len(size) != 2 || min(size[0], size[1]) < 1 || max(size[0], size[1]) > maxSide {
		try.Failf("the new size %v is not a valid height and width", size)
	}
	first := 0 // option
	if bilinear {
		first = 2
	}
	corners, half := o.Options.Uint8(first, 0) != 0, o.Options.Uint8(first+1, 0) != 0
	try.Check(im.budget.Charge(32 * (size[0] + size[1])))
	shape := bcnn.Shape{H: int(size[0]), W: int(size[1]), C: v.shape.C}
	var op bcnn.Op
	if bilinear && v.typ == schema.Int8 {
		return im.bilinear8(o, v, shape, corners, half)
	}
	if bilinear {
		op = bcnn.Resample{Rows: linear(v.shape.H, shape.H, corners, half), Cols: linear(v.shape.W, shape.W, corners, half)}
	} else {
		op = bcnn.Pixels{Rows: nearest(v.shape.H, shape.H, corners, half), Cols: nearest(v.shape.W, shape.W, corners, half)}
	}
	y := im.emit(o, "", op, shape, v)
	return y.moves(v)
}

// scaling returns how far apart in the image the pixels of the result are. Like all that
// follows it is computed in float32, as TensorFlow Lite does: that decides between
// neighbours.
func scaling(from, to int, corners bool) float32 {
	if corners && to > 1 {
		return float32(from-1) / float32(to-1)
	}
	return float32(from) / float32(to)
}

// nearest lists the nearest rows or columns.
func nearest(from, to int, corners, half bool) []int32 {
	list, scale := make([]int32, to), scaling(from, to, corners)
	for i := range list {
		x := float32(i)
		if half {
			x += 0.5
		}
		at := math.Floor(float64(x * scale))
		if corners {
			at = math.Round(float64(x * scale))
		}
		list[i] = int32(max(0, min(at, float64(from-1))))
	}
	return list
}

// linear lists the two rows or columns that each is between.
func linear(from, to int, corners, half bool) bcnn.Taps {
	t, scale := bcnn.Taps{N: 2}, scaling(from, to, corners)
	for i := range to {
		x := float32(i) * scale
		if half {
			x = float32((float32(i)+0.5)*scale) - 0.5
		}
		low := max(int32(math.Floor(float64(x))), 0)
		high := min(int32(math.Ceil(float64(x))), int32(from-1))
		part := x - float32(low)
		t.Index, t.Weight = append(t.Index, low, high), append(t.Weight, 1-part, part)
	}
	return t
}

// bilinear8 is RESIZE_BILINEAR of 8-bit values: weights are multiples of 1/1024, and what
// they make of the integers is rounded, halves away from 0.
func (im *importer) bilinear8(o *schema.Operator, v *value, shape bcnn.Shape, corners, half bool) *value {
	q := im.output8(o.Outputs[0])
	if q.scale != v.scale || q.zero != v.zero {
		try.Failf("its output has another scale or zero point than its input")
	}
	rows, rowUnit := linear8(v.shape.H, shape.H, corners, half)
	cols, colUnit := linear8(v.shape.W, shape.W, corners, half)
	// float32 holds multiples of 2^−16 below 256.
	if unit := rowUnit * colUnit; unit < unit8*unit8>>16 {
		im.deviates(o, "pixels may differ by at most 1, if they are almost halfway between two integers")
	}
	thresholds := im.newFloats(steps8)
	v.nearest8(thresholds)
	y := im.emit(o, "/weighted", bcnn.Resample{Rows: rows, Cols: cols}, shape, v)
	return im.integers8(o, y, thresholds, q)
}

// unit8 is 1 as a weight of linear8.
const unit8 = 1 << 10

// linear8 is linear in integers, as the interpreter has it for 8-bit values, and the
// largest power of two that divides the weights as multiples of 1/unit8.
func linear8(from, to int, corners, half bool) (t bcnn.Taps, unit int) {
	scale := (unit8*from + to/2) / to
	if corners && to > 1 {
		scale = (unit8*(from-1) + (to-1)/2) / (to - 1)
	}
	t.N, unit = 2, unit8
	for i := range to {
		at := i * scale
		if half {
			at += scale/2 - unit8/2
		}
		at = max(at, 0) // in front of the first, that one alone
		low, high := at/unit8, min((at+unit8-1)/unit8, from-1)
		part := at - low*unit8
		if low >= high { // at a pixel, or behind the last one
			low, part = high, 0
		}
		for unit > 1 && part%unit != 0 {
			unit /= 2
		}
		t.Index = append(t.Index, int32(low), int32(high))
		t.Weight = append(t.Weight, float32(unit8-part)/unit8, float32(part)/unit8)
	}
	return t, unit
}

// mirrorPad is MIRROR_PAD of height and width.
func (im *importer) mirrorPad(o *schema.Operator) *value {
	v := im.moved(o, 0)
	list := im.integers(o, 1)
	if len(list) != 2*v.rank {
		try.Failf("%d amounts of padding for %d dimensions, want two for each", len(list), v.rank)
	}
	edge := int(o.Options.Uint8(0, 0)) // 1: the pixel at the edge is repeated, too
	moved := map[int][]int32{}
	for i := 0; i < len(list); i += 2 {
		d := dim(int64(i/2), v.rank)
		size := map[int]int{dimH: v.shape.H, dimW: v.shape.W}[d]
		before, after := list[i], list[i+1]
		switch most := int64(size - 1 + edge); {
		case size == 0 && (before != 0 || after != 0):
			try.Failf("mirror padding of dimension %d is not supported, only of the height and width of an image", i/2)
		case size == 0:
			continue
		case edge > 1 || min(before, after) < 0 || max(before, after) > most:
			try.Failf("mirror padding of %d before and %d after does not fit a dimension of %d", before, after, size)
		}
		try.Check(im.budget.Charge(16 * int64(3*size)))
		for k := -int(before); k < size+int(after); k++ {
			at := k
			switch {
			case k < 0:
				at = -k - edge
			case k >= size:
				at = 2*(size-1) - k + edge
			}
			moved[d] = append(moved[d], int32(at))
		}
	}
	shape := bcnn.Shape{H: 1, W: 1, C: v.shape.C}
	op := bcnn.Pixels{Rows: moved[dimH], Cols: moved[dimW]}
	for _, side := range []struct {
		list *[]int32
		size *int
	}{{&op.Rows, &shape.H}, {&op.Cols, &shape.W}} {
		if *side.list == nil { // the file has no such dimension
			*side.list = []int32{0}
		}
		*side.size = len(*side.list)
	}
	y := im.emit(o, "", op, shape, v)
	return y.moves(v)
}

// depthToSpace is DEPTH_TO_SPACE.
func (im *importer) depthToSpace(o *schema.Operator) *value {
	v := im.moved(o, 0)
	b := int(o.Options.Int32(0, 0))
	if b < 1 || b > maxSide || v.shape.C%b != 0 || v.shape.C/b%b != 0 {
		try.Failf("a block size of %d does not fit %d channels: its square must divide them", b, v.shape.C)
	}
	shape := bcnn.Shape{H: v.shape.H * b, W: v.shape.W * b, C: v.shape.C / b / b}
	if max(shape.H, shape.W) > maxSide {
		try.Failf("a feature map of %v is too large", shape)
	}
	try.Check(im.budget.Charge(8 * int64(shape.H+shape.W)))
	all := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(i)
		}
		return list
	}
	y := im.emit(o, "", bcnn.Pixels{Rows: all(shape.H), Cols: all(shape.W), BlockH: b, BlockW: b}, shape, v)
	return y.moves(v)
}
