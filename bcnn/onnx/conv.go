package onnx

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// window reads the geometry of Conv and MaxPool for an image of h×w.
func window(n *pb.Node, kernel []int, h, w int) (bcnn.Window, error) {
	strides, err := n.Sizes("strides", 2, 1)
	if err != nil {
		return bcnn.Window{}, err
	}
	dilations, err := n.Sizes("dilations", 2, 1)
	if err != nil {
		return bcnn.Window{}, err
	}
	pads, err := n.Sizes("pads", 4, 0)
	if err != nil {
		return bcnn.Window{}, err
	}
	for _, v := range [][]int{kernel, strides, dilations} {
		if v[0] < 1 || v[1] < 1 || max(v[0], v[1]) > 1<<16 {
			return bcnn.Window{}, fmt.Errorf("kernel %v, strides %v, dilations %v", kernel, strides, dilations)
		}
	}
	auto, err := n.Text("auto_pad", "NOTSET")
	if err != nil {
		return bcnn.Window{}, err
	}
	switch auto {
	case "NOTSET", "":
	case "VALID":
		pads = make([]int, 4)
	case "SAME_UPPER", "SAME_LOWER":
		for i, size := range []int{h, w} {
			out := (size + strides[i] - 1) / strides[i]
			total := max((out-1)*strides[i]+(kernel[i]-1)*dilations[i]+1-size, 0)
			pads[i], pads[i+2] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				pads[i], pads[i+2] = pads[i+2], pads[i]
			}
		}
	default:
		return bcnn.Window{}, fmt.Errorf("auto_pad %s", text.Quote(auto))
	}
	return bcnn.Window{
		KH: kernel[0], KW: kernel[1], StrideH: strides[0], StrideW: strides[1],
		DilationH: dilations[0], DilationW: dilations[1],
		Pad: bcnn.Padding{Top: pads[0], Left: pads[1], Bottom: pads[2], Right: pads[3]},
	}, nil
}

// outputSize returns the size of the result along one axis, 0 if the window
// does not fit.
func outputSize(in, pad, kernel, dilation, stride int) int {
	rest := in + pad - (dilation*(kernel-1) + 1)
	if rest < 0 {
		return 0
	}
	return rest/stride + 1
}

func (im *importer) conv(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if v, err = im.build.Settle(v); err != nil {
		return build.Operand{}, err
	}
	if err := v.CheckReal(); err != nil {
		return build.Operand{}, err
	}
	if err := v.CheckImage(); err != nil {
		return build.Operand{}, err
	}
	w, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	if len(w.Dims) != 4 || w.Type != pb.Float {
		return build.Operand{}, fmt.Errorf("weights of %v %v, want four dimensions of FLOAT: only two-dimensional convolutions are supported", w.Type, w.Dims)
	}
	groups, err := n.Int("group", 1)
	if err != nil {
		return build.Operand{}, err
	}
	if groups > 1 {
		if v, err = im.build.Ordered(n, v); err != nil {
			return build.Operand{}, err
		}
	}
	out, channels, kernel := w.Dims[0], w.Dims[1], w.Dims[2:]
	if groups < 1 || groups > pb.MaxSize || out%int(groups) != 0 || int64(channels)*groups != int64(v.Shape.C) || out == 0 {
		return build.Operand{}, fmt.Errorf("weights %v in %d groups for %d channels", w.Dims, groups, v.Shape.C)
	}
	if given, err := n.Ints("kernel_shape"); err != nil {
		return build.Operand{}, err
	} else if given != nil && (len(given) != 2 || given[0] != int64(kernel[0]) || given[1] != int64(kernel[1])) {
		return build.Operand{}, fmt.Errorf("kernel_shape %v, but weights %v", given[:min(len(given), pb.MaxRank)], w.Dims)
	}
	win, err := window(n, kernel, v.Shape.H, v.Shape.W)
	if err != nil {
		return build.Operand{}, err
	}
	bias, err := im.bias(n, 2, out)
	if err != nil {
		return build.Operand{}, err
	}
	// [out][channel][ky][kx] becomes [out][ky][kx][channel in memory].
	taps := kernel[0] * kernel[1]
	rows, err := im.build.Floats(w.Len())
	if err != nil {
		return build.Operand{}, err
	}
	order, err := im.build.Channels(v, v.View[1])
	if err != nil {
		return build.Operand{}, err
	}
	o, c, k := 0, 0, 0 // of value i
	err = im.budget.Loop(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to := c
			if order != nil {
				to = order[c]
			}
			rows[(o*taps+k)*channels+to] = w.F32[i]
			if k++; k == taps {
				c, k = c+1, 0
			}
			if c == channels {
				o, c = o+1, 0
			}
		}
	})
	if err != nil {
		return build.Operand{}, err
	}
	shape := bcnn.Shape{
		H: outputSize(v.Shape.H, win.Pad.Top+win.Pad.Bottom, win.KH, win.DilationH, win.StrideH),
		W: outputSize(v.Shape.W, win.Pad.Left+win.Pad.Right, win.KW, win.DilationW, win.StrideW),
		C: out,
	}
	if err := im.build.CheckShape(shape); err != nil {
		return build.Operand{}, err
	}
	r, err := im.build.Weighted(n, v, bcnn.Conv2D{Window: win, Out: out, Groups: int(groups), Weights: bcnn.Weights{F32: rows}, Bias: bias}, shape)
	if err != nil {
		return build.Operand{}, err
	}
	r.View = view.NCHW(shape)
	return build.Operand{Value: r}, nil
}

// bias returns a vector of n values, or nil if the input is left out.
func (im *importer) bias(n *pb.Node, input, size int) ([]float32, error) {
	t, err := im.constant(n, input)
	if err != nil || t == nil {
		return nil, err
	}
	if t.Type != pb.Float || len(t.Dims) != 1 || t.Dims[0] != size {
		return nil, fmt.Errorf("input %d is a constant of %v %v, want %d FLOAT values", input, t.Type, t.Dims, size)
	}
	return t.F32, im.budget.Charge(4 * int64(size))
}
