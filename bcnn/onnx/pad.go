package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// padded returns the positions of n channels between some of zeros.
func (im *importer) padded(begin, n, end int) []int {
	return try.Value(budget.List(im.budget, begin+n+end, func(i int) int {
		if i >= begin+n {
			return -1
		}
		return max(i-begin, -1)
	}))
}

// padNode imports Pad.
func (im *importer) padNode(n *pb.Node) build.Operand {
	v := im.build.Settle(im.value(n, 0))
	mode := n.Text("mode", "constant")
	pads := n.Ints("pads")
	if pads == nil {
		t := im.required(n, 1)
		pads = try.Value(t.Integers())
	}
	fill := n.Float("value", 0)
	if t := im.constant(n, 2); t != nil {
		if t.Len() != 1 || t.Type != v.Type {
			try.Failf("its value is a constant of %v %v, want one of %v", t.Type, t.Dims, v.Type)
		}
		fill = float32(t.At(0))
	}
	axes, ok := im.axes(n, 3, len(v.View))
	if !ok {
		for i := range v.View {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		try.Failf("%d pads for %d dimensions", len(pads), len(axes))
	}
	moved := mode != "constant" || slices.Min(append(pads, 0)) < 0
	var p bcnn.Padding
	var rows, cols []int32 // where it does more than put pixels around the image
	channels := -1         // the dimension whose channels get some of zeros
	var positions []int
	for i, a := range axes {
		begin, end := pads[i], pads[len(axes)+i]
		if min(begin, end) < -pb.MaxSize || max(begin, end) > pb.MaxSize {
			try.Failf("pads %v", pads)
		}
		x := v.AxisOf(a)
		if begin == 0 && end == 0 {
			continue
		}
		if x == view.H || x == view.W {
			if moved {
				of := map[view.Axis]*[]int32{view.H: &rows, view.W: &cols}[x]
				*of = im.padPositions(mode, v.Size(a), int(begin), int(end))
				continue
			}
		} else if begin < 0 || end < 0 || mode != "constant" {
			try.Failf("pads of %d and %d of dimension %d, which is not the height or width of an image, mode %s", begin, end, a, text.Quote(mode))
		}
		switch {
		case x == view.H:
			p.Top, p.Bottom = int(begin), int(end)
		case x == view.W:
			p.Left, p.Right = int(begin), int(end)
		case x == view.C && fill == 0 && channels < 0:
			channels = a
			positions = im.padded(int(begin), v.Shape.C, int(end))
		default:
			try.Failf("padding of dimension %d, which is not the height or width of an image, nor with zeros its channels, is not supported", a)
		}
	}
	if channels >= 0 {
		v = im.build.Pick(n, "", v, channels, positions)
	}
	v = im.picked(n, v, bcnn.Pixels{Rows: rows, Cols: cols, Fill: fill})
	out := v.With(n)
	if p == (bcnn.Padding{}) {
		return build.Operand{Value: out}
	}
	if max(p.Top, p.Bottom, p.Left, p.Right) > pb.MaxSize {
		try.Failf("pads %v", pads)
	}
	return build.Operand{Value: im.build.Padded(n, v, p, fill)}
}
