package bmxnet

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// pad imports a Pad of rows and columns.
func pad(im *importer, n *node) value {
	a := n.attributes()
	width, fill, mode := a.list("pad_width", 0, maxSide), a.number("constant_value", 0), a.text("mode", "")
	if len(width) != 8 || width[0]+width[1]+width[2]+width[3] > 0 {
		try.Failf("pad_width %s is not supported, want 8 numbers, of which those for batch and channels are 0", text.Quote(n.attrs["pad_width"]))
	}
	v := im.operand(n, 0)
	if v.vector {
		try.Failf("its input is a vector, want an image")
	}
	try.Check(im.budget.Charge(4 * int64(v.shape.H+v.shape.W+width[4]+width[5]+width[6]+width[7])))
	op := bcnn.Pixels{}
	op.Rows = padded(mode, v.shape.H, width[4], width[5])
	op.Cols = padded(mode, v.shape.W, width[6], width[7])
	if mode == "constant" {
		op.Fill = fill
	}
	out := v
	out.shape.H, out.shape.W = len(op.Rows), len(op.Cols)
	return im.emit(n, "", op, out, v)
}

// padded lists the rows or columns of an image of size, with more before and after it.
func padded(mode string, size, before, after int) []int32 {
	if mode == "reflect" && (before >= size || after >= size) {
		try.Failf("padding of %d and %d by reflection does not fit a dimension of %d", before, after, size)
	}
	list := make([]int32, 0, before+size+after)
	for i := -before; i < size+after; i++ {
		at := i
		switch mode {
		case "constant":
			if i < 0 || i >= size {
				at = -1
			}
		case "edge":
			at = min(max(i, 0), size-1)
		case "reflect":
			if i < 0 {
				at = -i
			} else if i >= size {
				at = 2*(size-1) - i
			}
		default:
			try.Failf("mode %s is not supported, want constant, edge or reflect", text.Quote(mode))
		}
		list = append(list, int32(at))
	}
	return list
}

// sliceAxis imports a slice of channels.
func sliceAxis(im *importer, n *node) value {
	a := n.attributes()
	axis, begin, end := a.integer("axis", 0, -maxDims, maxDims), a.integer("begin", 0, -maxValues, maxValues), a.integer("end", maxValues, -maxValues, maxValues)
	v := im.operand(n, 0)
	v = im.plain(n, v)
	if axis != 1 {
		try.Failf("axis %d is not supported, want 1", axis)
	}
	from := func(i int) int {
		if i < 0 {
			i += v.shape.C
		}
		return min(max(i, 0), v.shape.C)
	}
	begin, end = from(begin), from(end)
	if begin >= end {
		try.Failf("a slice from channel %d to channel %d of %d is empty", begin, end, v.shape.C)
	}
	try.Check(im.budget.Charge(4 * int64(end-begin)))
	var op bcnn.Channels
	for c := begin; c < end; c++ {
		op.Index = append(op.Index, int32(c))
	}
	out := v
	out.shape.C = end - begin
	return im.emit(n, "", op, out, v)
}
