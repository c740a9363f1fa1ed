package onnx

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// padded returns the positions of n channels between some of zeros.
func (im *importer) padded(begin, n, end int) ([]int, error) {
	return budget.List(im.budget, begin+n+end, func(i int) int {
		if i >= begin+n {
			return -1
		}
		return max(i-begin, -1)
	})
}

// padNode imports Pad.
func (im *importer) padNode(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if v, err = im.build.Settle(v); err != nil {
		return build.Operand{}, err
	}
	mode, err := n.Text("mode", "constant")
	if err != nil {
		return build.Operand{}, err
	}
	pads, err := n.Ints("pads")
	if err != nil {
		return build.Operand{}, err
	}
	if pads == nil {
		t, err := im.required(n, 1)
		if err != nil {
			return build.Operand{}, err
		}
		if pads, err = t.Integers(); err != nil {
			return build.Operand{}, err
		}
	}
	fill, err := n.Float("value", 0)
	if err != nil {
		return build.Operand{}, err
	}
	if t, err := im.constant(n, 2); err != nil {
		return build.Operand{}, err
	} else if t != nil {
		if t.Len() != 1 || t.Type != v.Type {
			return build.Operand{}, fmt.Errorf("its value is a constant of %v %v, want one of %v", t.Type, t.Dims, v.Type)
		}
		fill = float32(t.At(0))
	}
	axes, ok, err := im.axes(n, 3, len(v.View))
	if err != nil {
		return build.Operand{}, err
	}
	if !ok {
		for i := range v.View {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		return build.Operand{}, fmt.Errorf("%d pads for %d dimensions", len(pads), len(axes))
	}
	moved := mode != "constant" || slices.Min(append(pads, 0)) < 0
	var p bcnn.Padding
	var rows, cols []int32 // where it does more than put pixels around the image
	channels := -1         // the dimension whose channels get some of zeros
	var positions []int
	for i, a := range axes {
		begin, end := pads[i], pads[len(axes)+i]
		if min(begin, end) < -pb.MaxSize || max(begin, end) > pb.MaxSize {
			return build.Operand{}, fmt.Errorf("pads %v", pads)
		}
		x := v.AxisOf(a)
		if begin == 0 && end == 0 {
			continue
		}
		if x == view.H || x == view.W {
			if moved {
				of := map[view.Axis]*[]int32{view.H: &rows, view.W: &cols}[x]
				if *of, err = im.padPositions(mode, v.Size(a), int(begin), int(end)); err != nil {
					return build.Operand{}, err
				}
				continue
			}
		} else if begin < 0 || end < 0 || mode != "constant" {
			return build.Operand{}, fmt.Errorf("pads of %d and %d of dimension %d, which is not the height or width of an image, mode %s", begin, end, a, text.Quote(mode))
		}
		switch {
		case x == view.H:
			p.Top, p.Bottom = int(begin), int(end)
		case x == view.W:
			p.Left, p.Right = int(begin), int(end)
		case x == view.C && fill == 0 && channels < 0:
			channels = a
			if positions, err = im.padded(int(begin), v.Shape.C, int(end)); err != nil {
				return build.Operand{}, err
			}
		default:
			return build.Operand{}, fmt.Errorf("padding of dimension %d, which is not the height or width of an image, nor with zeros its channels, is not supported", a)
		}
	}
	if channels >= 0 {
		if v, err = im.build.Pick(n, "", v, channels, positions); err != nil {
			return build.Operand{}, err
		}
	}
	if v, err = im.picked(n, v, bcnn.Pixels{Rows: rows, Cols: cols, Fill: fill}); err != nil {
		return build.Operand{}, err
	}
	out := v.With(n)
	if p == (bcnn.Padding{}) {
		return build.Operand{Value: out}, nil
	}
	if max(p.Top, p.Bottom, p.Left, p.Right) > pb.MaxSize {
		return build.Operand{}, fmt.Errorf("pads %v", pads)
	}
	out, err = im.build.Padded(n, v, p, fill)
	return build.Operand{Value: out}, err
}
