package onnx

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// padNode imports Pad; the window behind takes it in.
func (im *importer) padNode(n *pb.Node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v, err = im.build.settleSigns(v); err != nil {
		return result{}, err
	}
	mode, err := n.Text("mode", "constant")
	if err != nil {
		return result{}, err
	}
	if mode != "constant" {
		return result{}, fmt.Errorf("mode %q is not supported, want constant", mode)
	}
	pads, err := n.Ints("pads")
	if err != nil {
		return result{}, err
	}
	if pads == nil {
		t, err := im.required(n, 1)
		if err != nil {
			return result{}, err
		}
		if pads, err = t.Integers(); err != nil {
			return result{}, err
		}
	}
	fill, err := n.Float("value", 0)
	if err != nil {
		return result{}, err
	}
	if t, err := im.constant(n, 2); err != nil {
		return result{}, err
	} else if t != nil {
		if t.Len() != 1 || t.Type != v.typ {
			return result{}, fmt.Errorf("its value is a constant of %v %v, want one of %v", t.Type, t.Dims, v.typ)
		}
		fill = float32(t.At(0))
	}
	axes, ok, err := im.axes(n, 3, len(v.view))
	if err != nil {
		return result{}, err
	}
	if !ok {
		for i := range v.view {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		return result{}, fmt.Errorf("%d pads for %d dimensions", len(pads), len(axes))
	}
	p := pending{value: fill, node: n}
	for i, a := range axes {
		begin, end := pads[i], pads[len(axes)+i]
		if begin < 0 || end < 0 || begin > pb.MaxSize || end > pb.MaxSize {
			return result{}, fmt.Errorf("pads %v", pads)
		}
		switch x := v.axisOf(a); {
		case begin == 0 && end == 0:
		case x == view.H:
			p.Top, p.Bottom = int(begin), int(end)
		case x == view.W:
			p.Left, p.Right = int(begin), int(end)
		default:
			return result{}, fmt.Errorf("padding of dimension %d, which is not the height or width of an image, is not supported", a)
		}
	}
	out := v.with(n)
	if p.Padding == (bcnn.Padding{}) {
		return result{value: out}, nil
	}
	if v.pad != nil {
		if v.pad.value != fill {
			return result{}, fmt.Errorf("padding with %v around padding with %v", fill, v.pad.value)
		}
		p.Padding = sumPadding(p.Padding, v.pad.Padding)
	}
	// Twice maxSize still fits an int of 32 bits; more does not fit any window.
	if max(p.Top, p.Bottom, p.Left, p.Right) > pb.MaxSize {
		return result{}, fmt.Errorf("pads %v", pads)
	}
	out.pad = &p
	return result{value: out}, nil
}
