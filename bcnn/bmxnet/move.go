package bmxnet

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

// border is what a Pad puts around an image. A convolution of bits takes it as its own
// padding; the layer is made for what else reads it.
type border struct {
	of     value
	op     bcnn.Pixels
	width  bcnn.Padding
	filled bool // with op.Fill
}

// notMade is the layer of a value whose layer has not been made yet.
const notMade = bcnn.NetworkInput - 1

// made returns the value of a node, and makes its layer if that is missing.
func (im *importer) made(n *node) (value, error) {
	v := im.values[n.index]
	b, ok := im.borders[n.index]
	if !ok || v.layer != notMade {
		return v, nil
	}
	v, err := im.emit(n, "", b.op, v, b.of)
	if err != nil {
		return v, err
	}
	im.net.Layers[v.layer].Source = source(n.name+"_output", v)
	im.values[n.index] = v
	return v, nil
}

// unpadded returns the image that a convolution reads. Where a Pad in front of it puts −1
// or +1 around signs, and the weights are signs, the convolution pads with that itself.
func (im *importer) unpadded(n *node, signs bool, width *bcnn.Padding) (v value, padValue int, err error) {
	if signs && *width == (bcnn.Padding{}) && n.inputs[0][1] == 0 {
		if b, ok := im.borders[n.inputs[0][0]]; ok && b.filled && b.of.binary && (b.op.Fill == 1 || b.op.Fill == -1) {
			*width = b.width
			return b.of, int(b.op.Fill), nil
		}
	}
	v, err = im.operand(n, 0)
	return v, 0, err
}

// pad imports a Pad of rows and columns.
func pad(im *importer, n *node) (value, error) {
	a := n.attributes()
	width, fill, mode := a.list("pad_width", 0, maxSide), a.number("constant_value", 0), a.text("mode", "")
	if a.err != nil {
		return value{}, a.err
	}
	if len(width) != 8 || width[0]+width[1]+width[2]+width[3] > 0 {
		return value{}, fmt.Errorf("pad_width %s is not supported, want numbers for rows and columns", text.Quote(n.attrs["pad_width"]))
	}
	v, err := im.operand(n, 0)
	if err != nil {
		return v, err
	}
	if v.vector {
		return v, errors.New("its input is a vector, want an image")
	}
	if err := im.budget.Charge(4 * int64(v.shape.H+v.shape.W+width[4]+width[5]+width[6]+width[7])); err != nil {
		return v, err
	}
	op := bcnn.Pixels{}
	if op.Rows, err = padded(mode, v.shape.H, width[4], width[5]); err == nil {
		op.Cols, err = padded(mode, v.shape.W, width[6], width[7])
	}
	if err != nil {
		return v, err
	}
	b := border{of: v, op: op, width: bcnn.Padding{Top: width[4], Left: width[6], Bottom: width[5], Right: width[7]}, filled: mode == "constant"}
	if b.filled {
		b.op.Fill = fill
	}
	im.borders[n.index] = b
	out := v
	out.layer, out.shape.H, out.shape.W = notMade, len(op.Rows), len(op.Cols)
	out.binary = v.binary && (!b.filled || fill == 1 || fill == -1)
	return out, nil
}

// padded lists the rows or columns of an image of size, with more before and after it.
func padded(mode string, size, before, after int) ([]int32, error) {
	if mode == "reflect" && (before >= size || after >= size) {
		return nil, fmt.Errorf("a reflection of %d and %d of %d", before, after, size)
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
			return nil, fmt.Errorf("mode %s is not supported, want constant, edge or reflect", text.Quote(mode))
		}
		list = append(list, int32(at))
	}
	return list, nil
}

// sliceAxis imports a slice of channels.
func sliceAxis(im *importer, n *node) (value, error) {
	a := n.attributes()
	axis, begin, end := a.integer("axis", 0, -maxDims, maxDims), a.integer("begin", 0, -maxValues, maxValues), a.integer("end", maxValues, -maxValues, maxValues)
	if a.err != nil {
		return value{}, a.err
	}
	v, err := im.operand(n, 0)
	if err != nil {
		return v, err
	}
	if v, err = im.plain(n, v); err != nil {
		return v, err
	}
	if axis != 1 {
		return v, fmt.Errorf("axis %d is not supported, want 1", axis)
	}
	from := func(i int) int {
		if i < 0 {
			i += v.shape.C
		}
		return min(max(i, 0), v.shape.C)
	}
	begin, end = from(begin), from(end)
	if begin >= end {
		return v, fmt.Errorf("a slice from channel %d to %d of %d", begin, end, v.shape.C)
	}
	if err := im.budget.Charge(4 * int64(end-begin)); err != nil {
		return v, err
	}
	var op bcnn.Channels
	for c := begin; c < end; c++ {
		op.Index = append(op.Index, int32(c))
	}
	out := v
	out.shape.C = end - begin
	return im.emit(n, "", op, out, v)
}
