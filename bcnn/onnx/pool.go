package onnx

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn"
)

func (im *importer) maxPool(n *node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v, err = im.settleSigns(v); err != nil {
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
	kernel, err := n.sizes("kernel_shape", 2, 0)
	if err != nil {
		return result{}, err
	}
	window, err := n.window(kernel, v.shape.H, v.shape.W)
	if err != nil {
		return result{}, err
	}
	if window.DilationH != 1 || window.DilationW != 1 {
		return result{}, errors.New("max-pooling with dilation is not supported")
	}
	ceil, err := n.int("ceil_mode", 0)
	if err != nil {
		return result{}, err
	}
	if ceil != 0 {
		window.Pad.Bottom += ceilPad(v.shape.H, window.Pad.Top, window.Pad.Bottom, window.KH, window.StrideH)
		window.Pad.Right += ceilPad(v.shape.W, window.Pad.Left, window.Pad.Right, window.KW, window.StrideW)
	}
	shape := bcnn.Shape{
		H: outputSize(v.shape.H, window.Pad.Top+window.Pad.Bottom, window.KH, 1, window.StrideH),
		W: outputSize(v.shape.W, window.Pad.Left+window.Pad.Right, window.KW, 1, window.StrideW),
		C: v.shape.C,
	}
	if err := shapeFits(shape); err != nil {
		return result{}, err
	}
	out := im.emit(n, "", bcnn.MaxPool{Window: window}, shape, v)
	out.view = view{batchAtom, v.view[1], whole(axisH, shape.H), whole(axisW, shape.W)}
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
