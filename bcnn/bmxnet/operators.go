package bmxnet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/roots"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// operators are the operators of graphs, which several versions of MXNet have several
// names for.
var operators = map[string]func(*importer, *node) value{
	"Convolution":     convolution,
	"Convolution_v1":  convolution,
	"QConvolution":    convolution,
	"QConvolution_v1": convolution,
	"FullyConnected":  fullyConnected,
	"QFullyConnected": fullyConnected,
	"BatchNorm":       batchNorm,
	"BatchNorm_v1":    batchNorm,
	"CuDNNBatchNorm":  batchNorm,
	"Pooling":         pooling,
	"Pooling_v1":      pooling,

	"QActivation": qActivation,
	"det_sign":    sign,
	"Activation":  activation,
	"relu":        activation,
	"sigmoid":     activation,
	"tanh":        activation,
	"LeakyReLU":   leakyReLU,
	"clip":        clip,

	"Flatten":         flatten,
	"Reshape":         reshape,
	"mean":            mean,
	"L2Normalization": l2Normalization,
	"Concat":          concat,
	"Pad":             pad,
	"slice_axis":      sliceAxis,
	"elemwise_add":    add,
	"broadcast_add":   add,
	"broadcast_plus":  add,
	"_Plus":           add,
	"_plus":           add,
	"_add":            add,
	"add_n":           add,
	"ElementWiseSum":  add,
	"elemwise_sub":    sub,
	"broadcast_sub":   sub,
	"elemwise_mul":    mul,
	"broadcast_mul":   mul,
	"_Mul":            mul,
	"_mul":            mul,
	"_plus_scalar":    scalar,
	"_PlusScalar":     scalar,
	"_minus_scalar":   scalar,
	"_MinusScalar":    scalar,
	"_mul_scalar":     scalar,
	"_MulScalar":      scalar,
	"_rminus_scalar":  scalar,
	"_RMinusScalar":   scalar,
	"_maximum_scalar": limit,
	"_MaximumScalar":  limit,
	"_minimum_scalar": limit,
	"_MinimumScalar":  limit,
	"_div_scalar":     scalar,
	"_DivScalar":      scalar,

	"Dropout":                dropout,
	"_copy":                  identity,
	"identity":               identity,
	"BlockGrad":              identity,
	"_contrib_gradcancel":    identity,
	"LinearRegressionOutput": identity,

	"LogisticRegressionOutput": activation,
	"SoftmaxOutput":            softmax,
	"Softmax":                  softmax,
	"SoftmaxActivation":        softmax,
	"softmax":                  softmax,
	"log_softmax":              softmax,
}

// qActivation imports the sign of BMXNet, or its rounding to several bits. With backward_only it does nothing, since the
// layer behind it takes the sign itself.
func qActivation(im *importer, n *node) value {
	a := n.attributes()
	act, backward := a.integer("act_bit", 1, 1, full), a.flag("backward_only", false)
	if !backward && act > mostActBits {
		try.Failf("activations of %d bits are not supported, want act_bit 1 to %d", act, mostActBits)
	}
	v := im.operand(n, 0)
	if backward {
		return v
	}
	if act > 1 {
		return im.quantize(n, v, act)
	}
	return im.sign(&im.nodes[n.inputs[0][0]], v)
}

// sign imports the sign that layers of BMXNet 2 are made with, +1 for 0.
func sign(im *importer, n *node) value {
	v := im.operand(n, 0)
	return im.sign(&im.nodes[n.inputs[0][0]], v)
}

func activation(im *importer, n *node) value {
	kind := lowerCase(n.op)
	switch kind {
	case "activation":
		kind = n.attributes().text("act_type", "")
	case "logisticregressionoutput":
		kind = "sigmoid"
	}
	op, ok := map[string]bcnn.Op{
		"relu": bcnn.ReLU{}, "tanh": bcnn.Function{Name: bcnn.Tanh}, "sigmoid": bcnn.Function{Name: bcnn.Sigmoid},
		"softrelu": bcnn.Function{Name: bcnn.Softplus},
	}[kind]
	if !ok {
		try.Failf("act_type %s is not supported, want relu, sigmoid, tanh or softrelu", text.Quote(kind))
	}
	v := im.operand(n, 0)
	return im.pointwise(n, "", op, v)
}

func leakyReLU(im *importer, n *node) value {
	a := n.attributes()
	kind := a.text("act_type", "leaky")
	slope := []float32{a.number("slope", 0.25)}
	if kind == "rrelu" { // random in training, its mean at inference
		slope[0] = (a.number("lower_bound", 0.125) + a.number("upper_bound", 0.334)) / 2
	}
	switch kind {
	case "leaky", "prelu", "rrelu", "gelu":
	case "elu":
		if slope[0] != 1 {
			try.Failf("slope %v of act_type elu is not supported, want 1", slope[0])
		}
	default:
		try.Failf("act_type %s is not supported, want leaky, prelu, rrelu, elu or gelu", text.Quote(kind))
	}
	var gamma array
	if kind == "prelu" {
		gamma = im.parameter(n, 1)
	}
	v := im.operand(n, 0)
	switch kind {
	case "elu":
		return im.pointwise(n, "", bcnn.Function{Name: bcnn.ELU}, v)
	case "gelu":
		return im.pointwise(n, "", bcnn.Function{Name: bcnn.GELU}, v)
	case "prelu":
		v = im.plain(n, v)
		if gamma.len() != 1 && gamma.len() != v.shape.C {
			try.Failf("it has %d slopes, want one, or one for each of %d channels", gamma.len(), v.shape.C)
		}
		slope = try.Value(gamma.floats(im.budget))
	}
	return im.pointwise(n, "", bcnn.PReLU{Slope: slope}, v)
}

func clip(im *importer, n *node) value {
	a := n.attributes()
	op := bcnn.Clip{Min: a.number("a_min", 0), Max: a.number("a_max", 0)}
	if op.Min > op.Max {
		try.Failf("a_min %v is more than a_max %v", op.Min, op.Max)
	}
	v := im.operand(n, 0)
	return im.pointwise(n, "", op, v)
}

// withScalar returns the operand of an operator, and the number that it has as an attribute.
func (im *importer) withScalar(n *node) (v value, x float32) {
	a := n.attributes()
	x = a.number("scalar", 0)
	v = im.operand(n, 0)
	return v, x
}

// limit imports the larger or the smaller of a tensor and a number.
func limit(im *importer, n *node) value {
	v, x := im.withScalar(n)
	op := bcnn.Clip{Min: x, Max: float32(math.Inf(1))}
	if strings.HasPrefix(lowerCase(n.op), "min") {
		op = bcnn.Clip{Min: float32(math.Inf(-1)), Max: x}
	}
	return im.pointwise(n, "", op, v)
}

func flatten(im *importer, n *node) value {
	v := im.operand(n, 0)
	v.vector = true
	return v
}

// reshape imports a Reshape that makes a vector of an image.
func reshape(im *importer, n *node) value {
	a := n.attributes()
	shape := a.list("shape", -4, maxValues)
	unsupported := func() { try.Failf("shape %s is not supported, want (0, -1)", text.Quote(a.text("shape", ""))) }
	if len(shape) != 2 || a.flag("reverse", false) {
		unsupported()
	}
	v := im.operand(n, 0)
	// One of the two may be −1: the images, or the values of each.
	if values := v.shape.Values(); !(shape[0] == 0 && shape[1] == -1 || shape[0] <= 0 && shape[0] >= -1 && shape[1] == values) {
		unsupported()
	}
	v.vector = true
	return v
}

// mean imports the mean of every channel, a global pool.
func mean(im *importer, n *node) value {
	a := n.attributes()
	axis, keep := a.list("axis", -maxDims, maxDims), a.flag("keepdims", false)
	if a.flag("exclude", false) || !slices.Equal(axis, []int{2, 3}) && !slices.Equal(axis, []int{-2, -1}) {
		try.Failf("axis %s is not supported, want (2, 3)", text.Quote(a.text("axis", "")))
	}
	v := im.operand(n, 0)
	if v.vector {
		try.Failf("its input is a vector, want an image")
	}
	out := value{shape: bcnn.Shape{H: 1, W: 1, C: v.shape.C}, vector: !keep}
	return im.emit(n, "", bcnn.AvgPool{Window: bcnn.Window{KH: v.shape.H, KW: v.shape.W}}, out, v)
}

// l2Normalization imports L2Normalization: values divided by the root of the sum of their
// squares, of an image, of each pixel or of each channel.
func l2Normalization(im *importer, n *node) value {
	a := n.attributes()
	epsilon := a.number("eps", 1e-10)
	v := im.plain(n, im.operand(n, 0))
	squares := im.pointwise(n, "/squares", bcnn.Mul{}, v, v)
	sum := v
	window := bcnn.Window{KH: v.shape.H, KW: v.shape.W}
	ones := func() bcnn.Op {
		taps := window.KH * window.KW * v.shape.C
		try.Check(im.budget.Charge(8 * int64(taps)))
		w := make([]float32, taps)
		for k := range w {
			w[k] = 1
		}
		return bcnn.Conv2D{Window: window, Out: 1, Weights: bcnn.Weights{F32: w}}
	}
	switch mode := a.text("mode", "instance"); mode {
	case "instance":
		sum.shape = bcnn.Shape{H: 1, W: 1, C: 1}
		sum = im.emit(n, "/sum", ones(), sum, squares)
	case "channel":
		window, sum.shape.C = bcnn.Window{KH: 1, KW: 1}, 1
		sum = im.emit(n, "/sum", ones(), sum, squares)
	case "spatial":
		sum.shape.H, sum.shape.W = 1, 1
		sum = im.emit(n, "/mean", bcnn.AvgPool{Window: window}, sum, squares)
		sum = im.pointwise(n, "/sum", bcnn.Affine{Scale: []float32{float32(v.shape.Pixels())}}, sum)
	default:
		a.fail("mode", "instance, channel or spatial")
	}
	sum = im.pointwise(n, "/eps", bcnn.Affine{Bias: []float32{epsilon}}, sum)
	root := roots.RSqrt(func(suffix string, op bcnn.Op, in ...value) value {
		return im.emit(n, "/root"+suffix, op, sum, in...)
	}, sum)
	return im.pointwise(n, "", bcnn.Mul{}, v, root)
}

// concat imports a Concat of channels.
func concat(im *importer, n *node) value {
	a := n.attributes()
	if dim := a.integer("dim", 1, -maxDims, maxDims); dim != 1 {
		a.fail("dim", "1")
	}
	list := im.all(n)
	if len(list) == 0 {
		try.Failf("it has no inputs")
	}
	out := value{}
	for k := range list {
		list[k] = im.plain(n, list[k])
		s := list[k].shape
		if k > 0 && (s.H != out.shape.H || s.W != out.shape.W) {
			try.Failf("images of %d×%d and %d×%d cannot be concatenated", out.shape.H, out.shape.W, s.H, s.W)
		}
		out.shape, out.vector = bcnn.Shape{H: s.H, W: s.W, C: out.shape.C + s.C}, list[k].vector
	}
	if len(list) == 1 {
		return list[0]
	}
	return im.emit(n, "", bcnn.Concat{}, out, list...)
}

// add imports sums of two or more tensors of one shape.
func add(im *importer, n *node) value {
	if v, ok := im.withConstant(n); ok {
		return v
	}
	list := im.all(n)
	if len(list) == 0 {
		try.Failf("it has no inputs")
	}
	sum := list[0]
	for k, v := range list[1:] {
		sum, v = im.same(n, sum, v)
		if sum.shape != v.shape {
			try.Failf("a sum of shapes %v and %v is not supported: they must be equal", sum.shape, v.shape)
		}
		suffix := ""
		if k > 0 {
			suffix = fmt.Sprint("/", k)
		}
		out := sum
		sum = im.emit(n, suffix, bcnn.Add{}, out, sum, v)
	}
	return sum
}

// two returns both operands, in one form.
func (im *importer) two(n *node) (a, b value) {
	a = im.operand(n, 0)
	b = im.operand(n, 1)
	return im.same(n, a, b)
}

// sub imports differences of two tensors of one shape.
func sub(im *importer, n *node) value {
	if v, ok := im.withConstant(n); ok {
		return v
	}
	a, b := im.two(n)
	if a.shape != b.shape {
		try.Failf("a difference of shapes %v and %v is not supported: they must be equal", a.shape, b.shape)
	}
	b = im.pointwise(n, "/minus", bcnn.Affine{Scale: []float32{-1}}, b)
	out := a
	return im.emit(n, "", bcnn.Add{}, out, a, b)
}

// mul imports products of two tensors, of which one may be repeated.
func mul(im *importer, n *node) value {
	if v, ok := im.withConstant(n); ok {
		return v
	}
	a, b := im.two(n)
	if a.shape.Values() < b.shape.Values() {
		a, b = b, a
	}
	s, f := a.shape, b.shape
	if f.C != s.C && f.C != 1 || (f.H != s.H || f.W != s.W) && f.Pixels() != 1 {
		try.Failf("a product of shapes %v and %v is not supported", s, f)
	}
	out := a
	return im.emit(n, "", bcnn.Mul{}, out, a, b)
}

// scalar imports sums and products with a number.
func scalar(im *importer, n *node) value {
	v, x := im.withScalar(n)
	var op bcnn.Affine
	switch lowerCase(n.op)[:3] {
	case "plu":
		op.Bias = []float32{x}
	case "min":
		op.Bias = []float32{-x}
	case "rmi":
		op.Scale, op.Bias = []float32{-1}, []float32{x}
	case "mul":
		op.Scale = []float32{x}
	case "div":
		if x == 0 {
			try.Failf("it divides by 0")
		}
		op.Scale = []float32{1 / x}
	}
	return im.pointwise(n, "", op, v)
}

// identity imports what does nothing at inference.
func identity(im *importer, n *node) value { return im.operand(n, 0) }

// dropout does nothing at inference, unless it is told to.
func dropout(im *importer, n *node) value {
	if mode := n.attributes().text("mode", "training"); mode != "training" {
		try.Failf("mode %s is not supported, want training", text.Quote(mode))
	}
	return identity(im, n)
}

// softmax imports a softmax over all values at the end of a network.
func softmax(im *importer, n *node) value {
	a := n.attributes()
	axis, temperature := a.integer("axis", -1, -maxDims, maxDims), a.number("temperature", 1)
	switch {
	case axis != -1 && axis != 1:
		try.Failf("axis %d is not supported, want 1 or -1", axis)
	case !(temperature > 0):
		try.Failf("temperature %v is not supported, want more than 0", temperature)
	}
	v := im.operand(n, 0)
	if !v.vector && axis == -1 && strings.HasSuffix(n.op, "softmax") {
		try.Failf("axis -1 is the columns of an image, want axis 1, or a vector as its input")
	}
	v = im.plain(n, v)
	if v.shape.Pixels() != 1 {
		try.Failf("a softmax of %v is not supported, want a vector", v.shape)
	}
	if temperature != 1 {
		v = im.pointwise(n, "/temperature", bcnn.Affine{Scale: []float32{1 / temperature}}, v)
	}
	v = im.pointwise(n, "", bcnn.Softmax{Log: n.op == "log_softmax"}, v)
	im.softmax = true
	return v
}
