package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// padded returns the positions 0 to n−1, with begin times −1 before and end times −1 behind them,
// for channels of zeros.
func (im *importer) padded(begin, n, end int) []int {
	return try.Value(budget.List(im.budget, begin+n+end, func(i int) int {
		if i >= begin+n {
			return -1
		}
		return max(i-begin, -1)
	}))
}

// padding is what Pad puts around a tensor.
type padding struct {
	mode       string
	fill       float32
	axes       []int
	begin, end []int64 // by axis
}

// padding reads the attributes and inputs of Pad for a value.
func (im *importer) padding(n *pb.Node, v *build.Value) padding {
	p := padding{mode: n.Text("mode", "constant"), fill: n.Float("value", 0)}
	pads := n.Ints("pads")
	if pads == nil {
		pads = try.Value(im.required(n, 1).Integers())
	}
	if t := im.constant(n, 2); t != nil {
		if t.Len() != 1 || t.Type != v.Type {
			try.Failf("the value of the padding is %v of shape %v, want one number of %v", t.Type, t.Dims, v.Type)
		}
		p.fill = float32(t.At(0))
	}
	axes, ok := im.axes(n, 3, len(v.View))
	if !ok {
		for i := range v.View {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		try.Failf("it has %d pads for %d axes, want two for each", len(pads), len(axes))
	}
	if len(pads) > 0 && (slices.Min(pads) < -pb.MaxSize || slices.Max(pads) > pb.MaxSize) {
		try.Failf("pads %v are too large", pads)
	}
	p.axes, p.begin, p.end = axes, pads[:len(axes)], pads[len(axes):]
	return p
}

// moves reports whether Pad does more than put pixels of one value around an image.
func (p padding) moves() bool {
	return p.mode != "constant" || slices.Min(append(slices.Concat(p.begin, p.end), 0)) < 0
}

func (im *importer) padNode(n *pb.Node) build.Operand {
	v := im.build.Settle(im.value(n, 0))
	pad := im.padding(n, v)
	var around bcnn.Padding
	op := bcnn.Pixels{Fill: pad.fill} // used if pad.moves()
	channels := -1                    // the dimension whose channels are padded with zeros
	var positions []int
	for i, a := range pad.axes {
		begin, end := int(pad.begin[i]), int(pad.end[i])
		if begin == 0 && end == 0 {
			continue
		}
		x := v.AxisOf(a)
		image := x == view.H || x == view.W
		if !image && (begin < 0 || end < 0 || pad.mode != "constant") {
			try.Failf("pads of %d and %d of dimension %d, which is not the height or width of an image, are not supported in mode %s", begin, end, a, text.Quote(pad.mode))
		}
		switch {
		case image && pad.moves():
			*map[view.Axis]*[]int32{view.H: &op.Rows, view.W: &op.Cols}[x] = im.padPositions(pad.mode, v.Size(a), begin, end)
		case x == view.H:
			around.Top, around.Bottom = begin, end
		case x == view.W:
			around.Left, around.Right = begin, end
		case x == view.C && pad.fill == 0 && channels < 0:
			channels, positions = a, im.padded(begin, v.Shape.C, end)
		default:
			try.Failf("padding of dimension %d is not supported, only of the height and width of an image, and of its channels with zeros", a)
		}
	}
	if channels >= 0 {
		v = im.build.Pick(n, "", v, channels, positions)
	}
	v = im.picked(n, v, op)
	if around == (bcnn.Padding{}) {
		return build.Operand{Value: v.With(n)}
	}
	return build.Operand{Value: im.build.Pad(n, v, around, pad.fill)}
}
