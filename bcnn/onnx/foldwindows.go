package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Convolutions and pools of constants, with which some exporters compute kernels.

// foldWindow reads the geometry of windows of the given size over pixels, one number per dimension.
func foldWindow(n *pb.Node, pixels, size []int) eval.Window {
	rank := len(pixels)
	if rank < 1 || len(size) != rank {
		try.Failf("a kernel of %v does not have as many dimensions as the pixels, %v", size, pixels)
	}
	w := eval.Window{
		Size: size, Stride: n.Sizes("strides", rank, 1), Dilation: n.Sizes("dilations", rank, 1),
		Begin: make([]int, rank), End: make([]int, rank),
	}
	// So a window spans no more than an image of the largest size.
	for d := range rank {
		if w.Stride[d] < 1 || w.Dilation[d] < 1 || size[d] < 1 || int64(size[d])*int64(w.Dilation[d]) > pb.MaxSize {
			try.Failf("a kernel of %v with strides %v and dilations %v is not possible: each must be at least 1, and not too large", size, w.Stride, w.Dilation)
		}
	}
	if n.Bit("ceil_mode", 0) != 0 {
		try.Failf("ceil_mode is not supported on constants")
	}
	auto := n.Text("auto_pad", "NOTSET")
	switch auto {
	case "NOTSET", "VALID":
		pads := n.Sizes("pads", 2*rank, 0)
		if auto == "NOTSET" {
			w.Begin, w.End = pads[:rank], pads[rank:]
		}
	case "SAME_UPPER", "SAME_LOWER":
		for d, have := range pixels {
			pad := samePad(auto, have, (size[d]-1)*w.Dilation[d]+1, w.Stride[d])
			w.Begin[d], w.End[d] = pad/2, pad-pad/2
			if auto == "SAME_LOWER" {
				w.Begin[d], w.End[d] = w.End[d], w.Begin[d]
			}
		}
	default:
		try.Failf("auto_pad %s is not supported, want NOTSET, VALID, SAME_UPPER or SAME_LOWER", text.Quote(auto))
	}
	return w
}

func foldConv(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	x, w := c.at(0), c.at(1)
	if len(x.Dims) < 3 || len(w.Dims) != len(x.Dims) {
		try.Failf("constants of shapes %v and %v cannot be convolved: both need the same number of dimensions, at least 3", x.Dims, w.Dims)
	}
	win := foldWindow(n, x.Dims[2:], w.Dims[2:])
	groups := n.Int("group", 1)
	return im.eval.Conv(x, w, c.at(2), int(max(0, min(groups, pb.MaxSize))), win)
}

func foldPool(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	x := c.at(0)
	if len(x.Dims) < 3 {
		try.Failf("a constant of shape %v cannot be pooled: want batch, channels and further dimensions above 0", x.Dims)
	}
	size := n.Sizes("kernel_shape", len(x.Dims)-2, 0)
	if _, err := eval.Count(size); err != nil {
		try.Fail(err)
	}
	all := n.Bit("count_include_pad", 0)
	return im.eval.Pool(x, foldWindow(n, x.Dims[2:], size), n.OpType == "MaxPool", all != 0)
}

func foldGlobalPool(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	x := c.at(0)
	if len(x.Dims) < 3 || slices.Contains(x.Dims[2:], 0) {
		try.Failf("a constant of shape %v cannot be pooled: want batch, channels and further dimensions above 0", x.Dims)
	}
	var axes []int
	for d := 2; d < len(x.Dims); d++ {
		axes = append(axes, d)
	}
	op := "ReduceMean"
	if n.OpType == "GlobalMaxPool" {
		op = "ReduceMax"
	}
	return im.eval.Reduce(op, x, axes)
}
