package tflite

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/transposed"
)

// transposeConv is TRANSPOSE_CONV: the shape of its output, filters [out][kh][kw][in], the
// image, biases.
func (im *importer) transposeConv(o *schema.Operator) *value {
	v := im.weighable(o, 2).undivided()
	filter := im.filter(o)
	size := im.integers(o, 0)
	d := filter.dims
	if len(size) != 4 || d[3] != v.shape.C || size[3] != int64(d[0]) || min(size[1], size[2]) < 1 || max(size[1], size[2]) > maxSide {
		try.Failf("filters of shape %v and an input of %v do not fit an output of %v", d, v.shape, size)
	}
	g := windowed(o)
	g.kh, g.kw = d[1], d[2]
	if min(g.sh, g.sw) < 1 || max(g.sh, g.sw, g.kh, g.kw) > maxSide {
		try.Failf("kernel %d×%d, stride %d×%d: want values from 1 to %d", g.kh, g.kw, g.sh, g.sw, maxSide)
	}
	y := im.phases(v.shape.H, int(size[1]), g.kh, g.sh, g.valid)
	x := im.phases(v.shape.W, int(size[2]), g.kw, g.sw, g.valid)
	blocks := g.sh * g.sw
	window := phaseWindow(y, x)
	shape := bcnn.Shape{H: y.Output(v.shape.H), W: x.Output(v.shape.W), C: num.Product(blocks, d[0])}
	build := func(w bcnn.Weights, bias []float32) bcnn.Op {
		return bcnn.Conv2D{Window: window, Out: shape.C, Weights: w, Bias: bias}
	}
	act := int(o.Options.Uint8(3, 0))
	var out *value
	if v.typ == schema.Int8 {
		sums32(o, 4)
		out = im.transposeConv8(o, v, filter, shape, y, x, act, build)
	} else {
		out = im.transposeConvFloats(o, v, filter, 3, shape, y, x, act, build)
	}
	return im.unphased(o, v, out, y, x, bcnn.Shape{H: int(size[1]), W: int(size[2]), C: d[0]})
}

// phases divides the taps of one dimension. The padding is that of the convolution from
// the output, of so many rows, to the image.
func (im *importer) phases(size, out, kernel, stride int, valid bool) *transposed.Phases {
	cut, rows := 0, num.CeilDiv(out, stride)
	if valid {
		rows = (out-kernel)/stride + 1
	} else {
		cut, _ = same(out, kernel, stride, 1)
	}
	if rows != size || valid && out < kernel {
		try.Failf("%d rows or columns of the input cannot become %d of the output", size, out)
	}
	return try.Value(transposed.New(im.budget, size, kernel, stride, 1, cut, out))
}

// phased puts filters in the order of transposed.Fill.
func phased[T any](b *budget.Budget, filter []T, d []int, y, x *transposed.Phases) []T {
	n := num.Product(d[0], d[3], y.Window, x.Window, y.Stride, x.Stride)
	if n > schema.MaxSize {
		try.Failf("its filters are too large once they are split by the stride")
	}
	try.Check(b.Charge(4 * int64(n)))
	rows := make([]T, n)
	try.Check(transposed.Fill(b, rows, 1, d[0], d[3], y, x, func(_, m, ky, kx, c int) T {
		return filter[((m*y.Kernel+ky)*x.Kernel+kx)*d[3]+c]
	}))
	return rows
}

func (im *importer) transposeConvFloats(o *schema.Operator, v *value, filter *constant, biases int, shape bcnn.Shape, y, x *transposed.Phases, act int,
	build func(w bcnn.Weights, bias []float32) bcnn.Op) *value {
	list := filter.weights(im.budget)
	rows := phased(im.budget, list, filter.dims, y, x)
	of := im.bias(o, biases, filter.dims[0])
	var bias []float32
	if of != nil { // the same for all pixels of a block
		bias = im.newFloats(shape.C)
		for i := range bias {
			bias[i] = of[i%len(of)]
		}
	}
	out := floats(im.emit(o, "", build(bcnn.Weights{F32: rows}, bias), shape, v))
	return floats(im.activation(o, out, act))
}

func (im *importer) transposeConv8(o *schema.Operator, v *value, filter *constant, shape bcnn.Shape, y, x *transposed.Phases, act int,
	build func(w bcnn.Weights, bias []float32) bcnn.Op) *value {
	scales := filter.scales(filter.dims[0], 0)
	list := im.bytes(filter)
	rows := phased(im.budget, list, filter.dims, y, x)
	const block = 8 // of channels that vectors make; those behind round otherwise
	out := filter.dims[0]
	return im.weighted8(o, v, shape, weights8{
		rows: rows, out: shape.C, scales: scales, act: act, bias: 3, blocks: y.Stride * x.Stride,
		rounds: func(c int) rounding { return rounding(c%out >= out/block*block) },
		build:  func(w bcnn.Weights) bcnn.Op { return build(w, nil) },
	})
}

// transposeConvBias is Convolution2DTransposeBias of MediaPipe: the image, filters
// [out][kh][kw][in], biases. Its options are a struct: the padding, and strides of columns and rows.
// https://github.com/google-ai-edge/mediapipe/blob/master/mediapipe/util/tflite/operations/transpose_conv_bias.cc.
func (im *importer) transposeConvBias(o *schema.Operator) *value {
	v := im.weighable(o, 0).undivided()
	if v.typ != schema.Float32 {
		try.Fail(errQuantized)
	}
	filter := im.filter(o)
	d := filter.dims
	const same, valid = 1, 2
	const size = 3 * 4
	if len(o.CustomOptions) < size || d[3] != v.shape.C {
		try.Failf("filters of shape %v and options of %d bytes do not fit an input of %v", d, len(o.CustomOptions), v.shape)
	}
	fields := flat.Int32s(o.CustomOptions)
	padding, sw, sh := fields.At(0), int(fields.At(1)), int(fields.At(2))
	if padding != same && padding != valid || min(sh, sw) < 1 || max(sh, sw, d[1], d[2]) > maxSide {
		try.Failf("padding %d, kernel %d×%d, stride %d×%d are not supported", padding, d[1], d[2], sh, sw)
	}
	for i := size; i < len(o.CustomOptions); i++ {
		if o.CustomOptions[i] != 0 {
			try.Failf("byte %d of its options is not read here", i)
		}
	}
	im.custom = options{}
	along := func(size, kernel, stride int) (*transposed.Phases, int) {
		cut := 0
		if padding == same {
			cut = max(0, kernel-(size-1)%stride-1)
		}
		out := stride*(size-1) + kernel - cut
		if out < 1 {
			try.Failf("a kernel of %d rows or columns leaves nothing of %d", kernel, size)
		}
		return try.Value(transposed.New(im.budget, size, kernel, stride, 1, cut/2, out)), out
	}
	y, h := along(v.shape.H, d[1], sh)
	x, w := along(v.shape.W, d[2], sw)
	window := phaseWindow(y, x)
	shape := bcnn.Shape{H: y.Output(v.shape.H), W: x.Output(v.shape.W), C: num.Product(sh, sw, d[0])}
	out := im.transposeConvFloats(o, v, filter, 2, shape, y, x, actNone, func(w bcnn.Weights, bias []float32) bcnn.Op {
		return bcnn.Conv2D{Window: window, Out: shape.C, Weights: w, Bias: bias}
	})
	return im.unphased(o, v, out, y, x, bcnn.Shape{H: h, W: w, C: d[0]})
}

// phaseWindow is the window of the convolution that a transposed one becomes.
func phaseWindow(y, x *transposed.Phases) bcnn.Window {
	return bcnn.Window{
		KH: y.Window, KW: x.Window, StrideH: 1, StrideW: 1,
		Pad: bcnn.Padding{Top: y.Before, Bottom: y.After, Left: x.Before, Right: x.After},
	}
}

// unphased puts the pixels of blocks in their places.
func (im *importer) unphased(o *schema.Operator, v, out *value, y, x *transposed.Phases, image bcnn.Shape) *value {
	if y.InOrder(v.shape.H) && x.InOrder(v.shape.W) {
		return out
	}
	pixels := im.emit(o, "/pixels", bcnn.Pixels{Rows: y.Positions, Cols: x.Positions, BlockH: y.Stride, BlockW: x.Stride}, image, out)
	return as(out, pixels)
}
