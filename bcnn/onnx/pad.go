package onnx

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// padded returns the positions of n channels between some of zeros.
func (im *importer) padded(begin, n, end int) ([]int, error) {
	if err := im.budget.Charge(16 * (int64(begin) + int64(n) + int64(end))); err != nil {
		return nil, err
	}
	positions := make([]int, begin+n+end)
	for i := range positions {
		if positions[i] = i - begin; i >= begin+n {
			positions[i] = -1
		}
		positions[i] = max(positions[i], -1)
	}
	return positions, nil
}

// padNode imports Pad; the window behind takes in what is around an image.
func (im *importer) padNode(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if v, err = im.build.SettleSigns(v); err != nil {
		return build.Operand{}, err
	}
	mode, err := n.Text("mode", "constant")
	if err != nil {
		return build.Operand{}, err
	}
	if mode != "constant" {
		return build.Operand{}, fmt.Errorf("mode %s is not supported, want constant", text.Quote(mode))
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
	p := build.Pending{Value: fill, Node: n}
	channels := -1 // the dimension whose channels get some of zeros
	var positions []int
	for i, a := range axes {
		begin, end := pads[i], pads[len(axes)+i]
		if begin < 0 || end < 0 || begin > pb.MaxSize || end > pb.MaxSize {
			return build.Operand{}, fmt.Errorf("pads %v", pads)
		}
		switch x := v.AxisOf(a); {
		case begin == 0 && end == 0:
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
	out := v.With(n)
	if p.Padding == (bcnn.Padding{}) {
		return build.Operand{Value: out}, nil
	}
	if v.Pad != nil {
		if v.Pad.Value != fill {
			return build.Operand{}, fmt.Errorf("padding with %v around padding with %v", fill, v.Pad.Value)
		}
		p.Padding = sumPadding(p.Padding, v.Pad.Padding)
	}
	// Twice maxSize still fits an int of 32 bits; more does not fit any window.
	if max(p.Top, p.Bottom, p.Left, p.Right) > pb.MaxSize {
		return build.Operand{}, fmt.Errorf("pads %v", pads)
	}
	out.Pad = &p
	return build.Operand{Value: out}, nil
}
