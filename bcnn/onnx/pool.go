package onnx

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

func (im *importer) maxPool(n *pb.Node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v, err = im.build.settleSigns(v); err != nil {
		return result{}, err
	}
	if v.pad != nil {
		return result{}, v.pad.error()
	}
	if err := v.real(); err != nil {
		return result{}, err
	}
	if err := v.image(); err != nil {
		return result{}, err
	}
	kernel, err := n.Sizes("kernel_shape", 2, 0)
	if err != nil {
		return result{}, err
	}
	win, err := window(n, kernel, v.shape.H, v.shape.W)
	if err != nil {
		return result{}, err
	}
	if win.DilationH != 1 || win.DilationW != 1 {
		return result{}, errors.New("max-pooling with dilation is not supported")
	}
	ceil, err := n.Int("ceil_mode", 0)
	if err != nil {
		return result{}, err
	}
	if ceil != 0 {
		win.Pad.Bottom += ceilPad(v.shape.H, win.Pad.Top, win.Pad.Bottom, win.KH, win.StrideH)
		win.Pad.Right += ceilPad(v.shape.W, win.Pad.Left, win.Pad.Right, win.KW, win.StrideW)
	}
	shape := bcnn.Shape{
		H: outputSize(v.shape.H, win.Pad.Top+win.Pad.Bottom, win.KH, 1, win.StrideH),
		W: outputSize(v.shape.W, win.Pad.Left+win.Pad.Right, win.KW, 1, win.StrideW),
		C: v.shape.C,
	}
	if err := shapeFits(shape); err != nil {
		return result{}, err
	}
	out := im.build.emit(n, "", bcnn.MaxPool{Window: win}, shape, v)
	out.view = view.View{view.Batch, v.view[1], view.Whole(view.H, shape.H), view.Whole(view.W, shape.W)}
	// The maximum commutes with a gain, which is positive.
	out.signs, out.gain = v.signs, v.gain
	return result{value: out}, nil
}

// ceilPad returns the padding to add at the end so that a last, partial window
// counts. One that would start in the padding does not.
func ceilPad(in, begin, end, kernel, stride int) int {
	rest := in + begin + end - kernel
	if rest < 0 || rest%stride == 0 {
		return 0
	}
	last := (rest/stride + 1) * stride
	if last >= in+begin {
		return 0
	}
	return last - rest
}
