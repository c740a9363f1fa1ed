package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/internal/transposed"
)

// transposedWindow reads the geometry of ConvTranspose: strides and dilations, how many rows and
// columns are cut off at the beginning of the full result, and how many are wanted.
func transposedWindow(n *pb.Node, kernel []int, in [2]int) (strides, dilations, cut, wanted []int) {
	strides = n.Sizes("strides", 2, 1)
	dilations = n.Sizes("dilations", 2, 1)
	pads := n.Sizes("pads", 4, 0)
	more := n.Sizes("output_padding", 2, 0)
	var sizes []int
	if n.Has("output_shape") {
		sizes = n.Sizes("output_shape", 2, 0)
	}
	auto := n.Text("auto_pad", "NOTSET")
	cut, wanted = make([]int, 2), make([]int, 2)
	for i, size := range in {
		if min(kernel[i], strides[i], dilations[i]) < 1 || max(kernel[i], strides[i], dilations[i]) > 1<<16 {
			try.Failf("kernel %v, strides %v, dilations %v: each must be from 1 to 65536", kernel, strides, dilations)
		}
		if more[i] >= max(strides[i], dilations[i]) {
			try.Failf("output_padding %v must be less than strides %v or dilations %v", more, strides, dilations)
		}
		whole := strides[i]*(size-1) + (kernel[i]-1)*dilations[i] + 1 + more[i]
		if whole > pb.MaxSize {
			try.Failf("the result would have %d rows or columns, which is too large", whole)
		}
		cut[i], wanted[i] = pads[i], whole-pads[i]-pads[2+i]
		switch {
		case auto == "VALID" && sizes == nil: // a size overrides it
			cut[i], wanted[i] = 0, whole
		case auto == "SAME_UPPER" || auto == "SAME_LOWER" || sizes != nil && (auto == "VALID" || auto == "NOTSET" || auto == ""):
			if wanted[i] = size * strides[i]; sizes != nil {
				wanted[i] = sizes[i]
			}
			total := max(whole-wanted[i], 0)
			if cut[i] = total - total/2; auto == "SAME_UPPER" {
				cut[i] = total / 2
			}
		case auto != "NOTSET" && auto != "":
			try.Failf("auto_pad %s is not supported, want NOTSET, VALID, SAME_UPPER or SAME_LOWER", text.Quote(auto))
		}
		if wanted[i] < 1 {
			try.Failf("pads %v leave nothing of the result", pads)
		}
	}
	return strides, dilations, cut, wanted
}

func (im *importer) convTranspose(n *pb.Node) build.Operand {
	v := im.settledImage(n)
	w := im.required(n, 1)
	if len(w.Dims) != 4 || w.Type != pb.Float || w.Len() == 0 {
		try.Failf("its weights are %v of shape %v, want FLOAT with 4 dimensions", w.Type, w.Dims)
	}
	g := n.Int("group", 1)
	if g < 1 || g > pb.MaxSize || w.Dims[0] != v.Shape.C || v.Shape.C%int(g) != 0 {
		try.Failf("weights of shape %v in %d groups for %d channels do not fit: the first size must be the channels, a multiple of the groups", w.Dims, g, v.Shape.C)
	}
	groups, each, kernel := int(g), w.Dims[1], w.Dims[2:]
	checkKernel(n, w)
	strides, dilations, cut, wanted := transposedWindow(n, kernel, [2]int{v.Shape.H, v.Shape.W})
	bias := im.bias(n, 2, groups*each)
	try.Check(im.build.CheckShape(bcnn.Shape{H: wanted[0], W: wanted[1], C: groups * each}))
	y := try.Value(transposed.New(im.budget, v.Shape.H, kernel[0], strides[0], dilations[0], cut[0], wanted[0]))
	x := try.Value(transposed.New(im.budget, v.Shape.W, kernel[1], strides[1], dilations[1], cut[1], wanted[1]))
	blocks := y.Stride * x.Stride
	win := bcnn.Window{
		KH: y.Window, KW: x.Window, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: y.Before, Left: x.Before, Bottom: y.After, Right: x.After},
	}
	shape := bcnn.Shape{H: y.Output(v.Shape.H), W: x.Output(v.Shape.W), C: num.Product(groups, blocks, each)}
	try.Check(im.build.CheckShape(shape))
	rows, biases := im.transposedWeights(w, groups, y, x, bias)
	out := im.build.Weighted(n, v, bcnn.Conv2D{Window: win, Out: shape.C, Groups: groups, Weights: bcnn.Weights{F32: rows}, Bias: biases}, shape)
	out.View = view.NCHW(shape)
	if groups > 1 && blocks > 1 { // all channels of a pixel side by side
		index := try.Value(budget.List(im.budget, shape.C, func(i int) int {
			b, o := i/(groups*each), i%(groups*each)
			return (o/each*blocks+b)*each + o%each
		}))
		out = im.build.Pick(n, "/order", out, 1, index)
	}
	if y.InOrder(v.Shape.H) && x.InOrder(v.Shape.W) {
		return build.Operand{Value: out}
	}
	return build.Operand{Value: im.build.Pixels(n, "/pixels", out, bcnn.Pixels{Rows: y.Positions, Cols: x.Positions, BlockH: y.Stride, BlockW: x.Stride})}
}

// transposedWeights returns weights [channel][out][ky][kx] in the order of transposed.Fill, and the
// biases repeated for every pixel of a block.
func (im *importer) transposedWeights(w *eval.Tensor, groups int, y, x *transposed.Phases, bias []float32) (rows, biases []float32) {
	channels, each := w.Dims[0]/groups, w.Dims[1]
	taps, blocks := num.Product(y.Window, x.Window), num.Product(y.Stride, x.Stride)
	try.Value(eval.Count([]int{groups * each, blocks, taps, channels}))
	rows = im.build.NewFloats(num.Product(groups, blocks, each, taps, channels))
	area := y.Kernel * x.Kernel
	try.Check(transposed.Fill(im.budget, rows, groups, each, channels, y, x, func(group, m, ky, kx, c int) float32 {
		return w.F32[((group*channels+c)*each+m)*area+ky*x.Kernel+kx]
	}))
	if bias == nil {
		return rows, nil
	}
	biases = im.build.NewFloats(groups * blocks * each)
	try.Check(im.budget.Loop(len(biases), func(lo, hi int) {
		for o := lo; o < hi; o++ {
			biases[o] = bias[o/(blocks*each)*each+o%each]
		}
	}))
	return rows, biases
}
