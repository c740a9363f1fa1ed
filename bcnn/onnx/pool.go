package onnx

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

func (im *importer) maxPool(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	clip := v.Clip
	if clip != nil {
		v = v.With(v.Node)
		v.Clip = nil
	}
	if v, err = im.build.SettleSigns(v); err != nil {
		return build.Operand{}, err
	}
	if v.Pad != nil {
		return build.Operand{}, v.Pad.Error()
	}
	if err := v.CheckReal(); err != nil {
		return build.Operand{}, err
	}
	if err := v.CheckImage(); err != nil {
		return build.Operand{}, err
	}
	win, _, err := poolWindow(n, v.Shape)
	if err != nil {
		return build.Operand{}, err
	}
	shape := pooled(v.Shape, win)
	if err := im.build.CheckShape(shape); err != nil {
		return build.Operand{}, err
	}
	out := im.build.Emit(n, "", bcnn.MaxPool{Window: win}, shape, v)
	out.View = view.View{view.Batch, v.View[1], view.Whole(view.H, shape.H), view.Whole(view.W, shape.W)}
	// The maximum commutes with a gain, which is positive, and with a clip.
	out.Signs, out.Gain, out.Offset, out.Clip = v.Signs, v.Gain, v.Offset, clip
	return build.Operand{Value: out}, nil
}

// pooled returns the shape of what a pool makes of an image.
func pooled(in bcnn.Shape, win bcnn.Window) bcnn.Shape {
	return bcnn.Shape{
		H: outputSize(in.H, win.Pad.Top+win.Pad.Bottom, win.KH, 1, win.StrideH),
		W: outputSize(in.W, win.Pad.Left+win.Pad.Right, win.KW, 1, win.StrideW),
		C: in.C,
	}
}

// poolWindow returns the window of a pool over an image. partial says that the last
// ones reach beyond the padding.
func poolWindow(n *pb.Node, in bcnn.Shape) (win bcnn.Window, partial bool, err error) {
	kernel, err := n.Sizes("kernel_shape", 2, 0)
	if err != nil {
		return win, false, err
	}
	if win, err = window(n, kernel, in.H, in.W); err != nil {
		return win, false, err
	}
	if win.DilationH != 1 || win.DilationW != 1 {
		return win, false, errors.New("pooling with dilation is not supported")
	}
	ceil, err := n.Int("ceil_mode", 0)
	if err != nil {
		return win, false, err
	}
	if ceil != 0 {
		before := win.Pad
		win.Pad.Bottom += ceilPad(in.H, win.Pad.Top, win.Pad.Bottom, win.KH, win.StrideH)
		win.Pad.Right += ceilPad(in.W, win.Pad.Left, win.Pad.Right, win.KW, win.StrideW)
		partial = win.Pad != before
	}
	return win, partial, nil
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
