package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Local response normalisation, which divides by a mean over neighbouring channels.

// lrn imports LRN, x / (bias + alpha·mean(x²))^beta. The mean is over size neighbouring channels;
// those outside count as 0.
func (im *importer) lrn(n *pb.Node) build.Operand {
	v := im.settledImage(n)
	v = im.build.Settle(v)
	var parameters [3]float32
	for i, p := range []struct {
		name     string
		fallback float32
	}{{"alpha", 0.0001}, {"beta", 0.75}, {"bias", 1}} {
		parameters[i] = n.Float(p.name, p.fallback)
	}
	alpha, beta, bias := parameters[0], parameters[1], parameters[2]
	size := n.Int("size", 0)
	if size < 1 || size > pb.MaxSize || size%2 == 0 {
		try.Failf("a size of %d is not supported, want an odd number from 1 on", size)
	}
	square := im.build.Emit(n, "/square", bcnn.Mul{}, v.Shape, v, v)
	mean := im.meanAcross(n, square, int(size), int(size-1)/2, int(size)/2, true)
	base := im.emit(n, "/base", bcnn.Affine{Scale: []float32{alpha}, Bias: []float32{bias}}, mean)
	divisor := im.power(n, base.Value, eval.Scalar(pb.Float, float64(-beta)))
	return im.ofValues(n, "Mul", v, divisor.Value)
}

// meanAcross returns the mean of every k neighbouring channels of an image with before and after
// channels of zeros around it, as a 1×1 convolution. count says that the zeros count.
func (im *importer) meanAcross(n *pb.Node, v *build.Value, k, before, after int, count bool) *build.Value {
	shape := v.Shape
	shape.C += before + after - k + 1
	if shape.C < 1 || before >= k || after >= k {
		try.Failf("a window of %d over %d channels with pads of %d and %d does not fit", k, v.Shape.C, before, after)
	}
	try.Check(im.build.CheckShape(shape))
	size := try.Value(eval.Count([]int{shape.C, v.Shape.C}))
	weights := im.build.NewFloats(size)
	for c := range shape.C {
		first, end := max(c-before, 0), min(c-before+k, v.Shape.C)
		number := k
		if !count {
			number = end - first
		}
		for i := first; i < end; i++ {
			weights[c*v.Shape.C+i] = 1 / float32(number)
		}
	}
	y := im.build.Emit(n, "/mean", bcnn.Conv2D{Window: tiles(1, 1), Out: shape.C, Groups: 1, Weights: bcnn.Weights{F32: weights}}, shape, v)
	y.View = slices.Clone(v.View)
	y.View[1] = view.All(view.C, shape.C)
	return y
}

// depthWindow returns the window of a pool over the depth of volumes alone, one step at a time, and how much
// is padded on each side of it; ok is false for other pools.
func depthWindow(n *pb.Node) (kernel, before, after int, ok bool) {
	window, pads := n.Ints("kernel_shape"), n.Ints("pads")
	strides, dilations := n.Ints("strides"), n.Ints("dilations")
	ceil := n.Bit("ceil_mode", 0)
	auto := n.Text("auto_pad", "NOTSET")
	if pads == nil {
		pads = make([]int64, 6)
	}
	other := func(v int64) bool { return v != 1 }
	if len(window) != 3 || window[0] < 1 || window[0] > pb.MaxSize || window[1] != 1 || window[2] != 1 || len(pads) != 6 ||
		min(pads[0], pads[3]) < 0 || max(pads[0], pads[3]) > pb.MaxSize || pads[1]|pads[2]|pads[4]|pads[5] != 0 ||
		slices.ContainsFunc(strides, other) || slices.ContainsFunc(dilations, other) || ceil != 0 || auto != "NOTSET" {
		return 0, 0, 0, false
	}
	return int(window[0]), int(pads[0]), int(pads[3]), true
}

// poolAcross wraps the handler of AveragePool. It also takes a pool over the channels of images
// that have become the depth of volumes, as PyTorch writes local response normalisation.
func poolAcross(images handler) handler {
	return func(im *importer, n *pb.Node) build.Operand {
		v := im.env[n.Input(0)].Value
		if v == nil || v.Hole || len(v.View) != 5 || len(v.View[1]) != 0 {
			return images(im, n)
		}
		v = im.build.Settle(v)
		const depth = 1 // the dimension that the image lacks
		image := v.With(n)
		image.View = edit(v.View, []int{depth}, false, nil)
		if image.CheckImage() != nil || !slices.Equal(image.View[1], view.All(view.C, v.Shape.C)) {
			return images(im, n)
		}
		count := n.Bit("count_include_pad", 0)
		kernel, before, after, ok := depthWindow(n)
		if !ok {
			return images(im, n)
		}
		y := im.meanAcross(n, image, kernel, before, after, count != 0)
		y.View = edit(y.View, []int{depth}, true, nil)
		return build.Operand{Value: y}
	}
}
