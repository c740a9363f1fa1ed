package openvino

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/transposed"
)

// backprop imports ConvolutionBackpropData and GroupConvolutionBackpropData, transposed convolutions, whose
// weights have channels of the input first, behind the groups.
func backprop(im *importer, n *node) operand {
	c := im.constant(n, 1)
	c.checkReal()
	groups, dims := 1, c.dims
	if n.typ == "GroupConvolutionBackpropData" && len(dims) == 5 {
		groups, dims = dims[0], dims[1:]
	}
	if len(dims) != 4 {
		try.Failf("its weights have shape %v, want channels, outputs, height and width, and groups in front of those of a GroupConvolutionBackpropData", c.dims)
	}
	v := im.nchw(n, im.value(n, 0))
	var wanted []int
	if len(n.from) > 2 {
		for _, d := range im.constant(n, 2).integers(false) {
			wanted = append(wanted, int(min(max(d, 0), maxValues)))
		}
		if len(wanted) != 2 {
			try.Failf("its output_shape has %d numbers, want 2", len(wanted))
		}
	}
	return operand{v: im.transposed(n, v, c.floats, groups, dims, nil, wanted)}
}

// deconvolution imports Deconvolution, whose weights are in that order, too.
func deconvolution(im *importer, n *node) operand {
	n.onlyBlobs("weights", "biases")
	v := im.nchw(n, im.value(n, 0))
	kh, kw := n.pair("kernel", 1)
	out, groups := n.integer("output", "", 1, maxOut), n.integer("group", "1", 1, maxOut)
	if v.shape.C%groups != 0 || out%groups != 0 {
		try.Failf("%d groups do not divide %d channels and %d outputs", groups, v.shape.C, out)
	}
	dims := []int{v.shape.C / groups, out / groups, kh, kw}
	weights := im.blob(n, "weights", groups, dims[0], dims[1], kh, kw)
	if weights == nil {
		try.Failf("it has no weights")
	}
	// The sizes of the output are in the file; for same_upper and same_lower nothing else has them.
	var wanted []int
	if len(n.outputs) == 1 && len(n.outputs[0].dims) == 4 && n.text("auto_pad", "") != "" {
		wanted = n.outputs[0].dims[2:]
	}
	return operand{v: im.transposed(n, v, weights, groups, dims, im.blob(n, "biases", out), wanted)}
}

// transposedSide returns what a side of a size becomes: how many rows are cut off at the beginning of the
// whole result, and how many are wanted.
func (n *node) transposedSide(size, kernel, stride, dilation, begin, end, more int, wanted int) (cut, rows int) {
	whole := num.Product(stride, size-1) + num.Product(kernel-1, dilation) + 1
	if whole > maxSide {
		try.Failf("its result has %d rows or columns, at most %d are supported", whole, maxSide)
	}
	cut, rows = begin, whole-begin-end+more
	auto := n.text("auto_pad", "explicit")
	switch {
	case wanted > 0 && (auto == "same_upper" || auto == "same_lower"):
		total := max(whole+more-wanted, 0)
		if cut, rows = total/2, wanted; auto == "same_lower" {
			cut = total - total/2
		}
	case auto == "same_upper" || auto == "same_lower":
		try.Failf("auto_pad is %s, but the size of its output is not known", auto)
	case auto == "valid":
		cut, rows = 0, whole+more
	}
	if wanted > 0 && rows != wanted {
		try.Failf("its output has %d rows or columns in the file, but %d are computed", wanted, rows)
	}
	if rows < 1 || rows > maxSide {
		try.Failf("its padding leaves %d rows or columns, want 1 to %d", rows, maxSide)
	}
	return cut, rows
}

// transposed appends a transposed convolution with weights of groups, and dims in each: channels, outputs,
// height and width. wanted are rows and columns of its output, if these are known.
func (im *importer) transposed(n *node, v *value, weights []float32, groups int, dims []int, bias []float32, wanted []int) *value {
	channels, each, kernel := dims[0], dims[1], dims[2:]
	if num.Product(groups, channels) != v.shape.C || min(each, kernel[0], kernel[1]) < 1 || max(kernel[0], kernel[1]) > maxSide {
		try.Failf("its weights have shape %v in %d groups, its input %d channels", dims, groups, v.shape.C)
	}
	if wanted == nil {
		wanted = []int{0, 0}
	}
	n.only("auto_pad", "explicit", "notset", "valid", "same_upper", "same_lower")
	sy, sx := n.pair("strides", 1, 1)
	dy, dx := n.pair("dilations", 1, 1)
	top, left := n.pair("pads_begin", 0, 0)
	bottom, right := n.pair("pads_end", 0, 0)
	moreY, moreX := n.pair("output_padding", 0, 0)
	cutY, rows := n.transposedSide(v.shape.H, kernel[0], sy, dy, top, bottom, moreY, wanted[0])
	cutX, cols := n.transposedSide(v.shape.W, kernel[1], sx, dx, left, right, moreX, wanted[1])
	y := try.Value(transposed.New(im.budget, v.shape.H, kernel[0], sy, dy, cutY, rows))
	x := try.Value(transposed.New(im.budget, v.shape.W, kernel[1], sx, dx, cutX, cols))
	blocks, taps := num.Product(sy, sx), num.Product(y.Window, x.Window)
	count := num.Product(groups, blocks, each, taps, channels)
	if count > maxValues || int64(count)*4 > im.limits.TensorBytes {
		try.Failf("the %d weights of its convolution are too many; Limits.TensorBytes allows more, up to %d", count, maxValues)
	}
	list := im.newFloats(count)
	area := kernel[0] * kernel[1]
	try.Check(transposed.Fill(im.budget, list, groups, each, channels, y, x, func(group, out, ky, kx, c int) float32 {
		return weights[((group*channels+c)*each+out)*area+ky*kernel[1]+kx]
	}))
	if bias != nil {
		repeated := im.newFloats(groups * blocks * each)
		for o := range repeated {
			repeated[o] = bias[o/(blocks*each)*each+o%each]
		}
		bias = repeated
	}
	w := bcnn.Window{
		KH: y.Window, KW: x.Window, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: y.Before, Left: x.Before, Bottom: y.After, Right: x.After},
	}
	shape := bcnn.Shape{H: y.Output(v.shape.H), W: x.Output(v.shape.W), C: num.Product(groups, blocks, each)}
	op := bcnn.Conv2D{Window: w, Out: shape.C, Groups: groups, Weights: bcnn.Weights{F32: list}, Bias: bias}
	out := im.emit(n, "", op, shape, view.NCHW(shape), v)
	if groups > 1 && blocks > 1 { // all channels of a pixel side by side
		index := try.Value(budget.List(im.budget, shape.C, func(i int) int32 {
			block, o := i/(groups*each), i%(groups*each)
			return int32((o/each*blocks+block)*each + o%each)
		}))
		out = im.emit(n, "/order", bcnn.Channels{Index: index}, shape, out.view, out)
	}
	if y.InOrder(v.shape.H) && x.InOrder(v.shape.W) {
		return out
	}
	shape = bcnn.Shape{H: rows, W: cols, C: groups * each}
	return im.emit(n, "/pixels", bcnn.Pixels{Rows: y.Positions, Cols: x.Positions, BlockH: sy, BlockW: sx}, shape, view.NCHW(shape), out)
}
