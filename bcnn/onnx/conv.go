package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// window reads the geometry of Conv and MaxPool over an image of h×w.
func window(n *pb.Node, kernel []int, h, w int) bcnn.Window {
	strides := n.Sizes("strides", 2, 1)
	dilations := n.Sizes("dilations", 2, 1)
	pads := n.Sizes("pads", 4, 0)
	for _, v := range [][]int{kernel, strides, dilations} {
		if v[0] < 1 || v[1] < 1 || max(v[0], v[1]) > 1<<16 {
			try.Failf("kernel %v, strides %v, dilations %v: each must be from 1 to 65536", kernel, strides, dilations)
		}
	}
	auto := n.Text("auto_pad", "NOTSET")
	switch auto {
	case "NOTSET", "":
	case "VALID":
		pads = make([]int, 4)
	case "SAME_UPPER", "SAME_LOWER":
		for i, size := range []int{h, w} {
			total := samePad(auto, size, (kernel[i]-1)*dilations[i]+1, strides[i])
			pads[i], pads[i+2] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				pads[i], pads[i+2] = pads[i+2], pads[i]
			}
		}
	default:
		try.Failf("auto_pad %s is not supported, want NOTSET, VALID, SAME_UPPER or SAME_LOWER", text.Quote(auto))
	}
	return bcnn.Window{
		KH: kernel[0], KW: kernel[1], StrideH: strides[0], StrideW: strides[1],
		DilationH: dilations[0], DilationW: dilations[1],
		Pad: bcnn.Padding{Top: pads[0], Left: pads[1], Bottom: pads[2], Right: pads[3]},
	}
}

// samePad returns the total padding of a dimension under SAME_UPPER or SAME_LOWER. If the window is
// so much smaller than the stride that it would be below −1, engines differ, and it fails: ONNX
// Runtime skips the first pixels, or refuses pools, and TensorFlow pads nothing.
func samePad(auto string, size, window, stride int) int {
	total := ((size+stride-1)/stride-1)*stride + window - size
	if total < -1 {
		try.Failf("auto_pad %s of a window of %d with strides of %d over %d pixels: engines differ in which pixels are left out, so export with explicit pads", auto, window, stride, size)
	}
	return max(total, 0)
}

// outputSize returns how many windows fit into a dimension of in values with pad values of padding
// in all, 0 if none does.
func outputSize(in, pad, kernel, dilation, stride int) int {
	rest := in + pad - (dilation*(kernel-1) + 1)
	if rest < 0 {
		return 0
	}
	return rest/stride + 1
}

func (im *importer) conv(n *pb.Node) build.Operand {
	v := im.build.Settle(im.value(n, 0))
	try.Check(v.CheckReal())
	try.Check(v.CheckImage())
	w := im.required(n, 1)
	if len(w.Dims) != 4 || w.Type != pb.Float {
		try.Failf("its weights are %v of shape %v, want FLOAT with 4 dimensions: only two-dimensional convolutions of images and one-dimensional ones of sequences are supported", w.Type, w.Dims)
	}
	groups := n.Int("group", 1)
	if groups > 1 {
		v = im.build.InChannelOrder(n, v)
	}
	out, channels, kernel := w.Dims[0], w.Dims[1], w.Dims[2:]
	if groups < 1 || groups > pb.MaxSize || out%int(groups) != 0 || int64(channels)*groups != int64(v.Shape.C) || out == 0 {
		try.Failf("weights of shape %v in %d groups for %d channels do not fit: each filter must have as many channels as a group of the input", w.Dims, groups, v.Shape.C)
	}
	checkKernel(n, w)
	win := window(n, kernel, v.Shape.H, v.Shape.W)
	bias := im.bias(n, 2, out)
	// [out][channel][ky][kx] becomes [out][ky][kx][channel in memory].
	taps := kernel[0] * kernel[1]
	rows := im.build.NewFloats(w.Len())
	order := im.build.Channels(v, v.View[1])
	o, c, k := 0, 0, 0 // filter, channel and tap of weight i
	try.Check(im.budget.Loop(len(rows), func(lo, hi int) {
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
	}))
	shape := bcnn.Shape{
		H: outputSize(v.Shape.H, win.Pad.Top+win.Pad.Bottom, win.KH, win.DilationH, win.StrideH),
		W: outputSize(v.Shape.W, win.Pad.Left+win.Pad.Right, win.KW, win.DilationW, win.StrideW),
		C: out,
	}
	try.Check(im.build.CheckShape(shape))
	r := im.build.Weighted(n, v, bcnn.Conv2D{Window: win, Out: out, Groups: int(groups), Weights: bcnn.Weights{F32: rows}, Bias: bias}, shape)
	r.View = view.NCHW(shape)
	return build.Operand{Value: r}
}

// bias returns an input that must be a FLOAT vector of size values, or nil if it is left out.
func (im *importer) bias(n *pb.Node, input, size int) []float32 {
	t := im.constant(n, input)
	if t == nil {
		return nil
	}
	if t.Type != pb.Float || len(t.Dims) != 1 || t.Dims[0] != size {
		try.Failf("input %d is %v of shape %v, want %d FLOAT values", input, t.Type, t.Dims, size)
	}
	try.Check(im.budget.Charge(4 * int64(size)))
	return t.F32
}

// checkKernel fails if kernel_shape is given and is not that of the weights, whose last two
// dimensions are rows and columns.
func checkKernel(n *pb.Node, w *eval.Tensor) {
	rows, cols := w.Dims[2], w.Dims[3]
	if given := n.Ints("kernel_shape"); given != nil && (len(given) != 2 || given[0] != int64(rows) || given[1] != int64(cols)) {
		try.Failf("kernel_shape is %v, but the weights have shape %v", given[:min(len(given), pb.MaxRank)], w.Dims)
	}
}
