package bmxnet

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxOut is the largest number of outputs of a layer, as bcnn has it.
const maxOut = 1 << 22

// precision is what the attributes of a layer of BMXNet say of it.
type precision struct {
	act, weight int  // bits
	binary      bool // both its input and its weights are ±1
	weights     bool // its weights are
	packed      bool
	scaled      bool // by the mean magnitude of its weights
}

// full is the number of bits of a float.
const full = 32

func (a *attributes) precision() precision {
	act, weight := a.integer("act_bit", 1, 1, full), a.integer("weight_bit", 1, 1, full)
	p := precision{
		act: act, weight: weight,
		binary: act == 1 && weight == 1, weights: weight == 1,
		packed: a.flag("binarized_weights_only", false),
	}
	switch a.text("scaling_mode", "none") {
	case "none", "backward":
	case "forward":
		p.scaled = p.binary
	default:
		a.fail("scaling_mode", "none, backward or forward")
	}
	switch {
	case a.flag("scaling_factor", false):
		try.Failf("scaling_factor is not supported")
	case p.packed && p.scaled:
		try.Failf("scaling_mode is forward, but the magnitudes of packed weights are not known")
	}
	p.checkBits()
	return p
}

// convolution imports Convolution and QConvolution.
func convolution(im *importer, n *node) value {
	a := n.attributes()
	w := a.window()
	out, groups := a.integer("num_filter", 0, 1, maxOut), a.integer("num_group", 1, 1, maxOut)
	a.nchw()
	var p precision
	biased := !a.flag("no_bias", n.op[0] == 'Q')
	if n.op[0] == 'Q' {
		p = a.precision()
	}
	switch {
	case w.KH == 0 || out == 0:
		try.Failf("kernel or num_filter is missing")
	case out%groups != 0:
		try.Failf("%d groups do not divide %d filters", groups, out)
	}
	weights := im.parameter(n, 1)
	p.weights = p.weights || weights.signs
	v := im.operand(n, 0)
	if v.vector || v.shape.C%groups != 0 {
		try.Failf("its input is %v, want an image whose channels %d groups divide", v.shape, groups)
	}
	f := &filters{array: weights, out: out, channels: v.shape.C / groups, pixels: w.KH * w.KW, packed: p.packed}
	f.check(out, f.channels, w.KH, w.KW)
	op := bcnn.Conv2D{Window: w, Out: out, Groups: groups}
	return im.weighted(n, f, p, biased, false, v, func(weights bcnn.Weights, bias []float32) (bcnn.Op, bcnn.Shape) {
		op.Weights, op.Bias = weights, bias
		if p.act == 1 && w.Pad != (bcnn.Padding{}) {
			op.PadValue = 1
		}
		return op, w.Output(v.shape, out)
	})
}

// fullyConnected imports FullyConnected and QFullyConnected.
func fullyConnected(im *importer, n *node) value {
	a := n.attributes()
	out := a.integer("num_hidden", 0, 1, maxOut)
	biased, flatten := !a.flag("no_bias", n.op[0] == 'Q'), a.flag("flatten", true)
	var p precision
	if n.op[0] == 'Q' {
		p = a.precision()
	}
	if out == 0 {
		try.Failf("num_hidden is missing")
	}
	weights := im.parameter(n, 1)
	p.weights = p.weights || weights.signs
	v := im.operand(n, 0)
	if !flatten && !v.vector && v.shape.Pixels() > 1 {
		try.Failf("flatten=False is not supported: it applies the layer to each row of the image")
	}
	f := &filters{array: weights, out: out, channels: v.shape.C, pixels: v.shape.Pixels(), packed: p.packed, columns: p.packed}
	f.check(out, v.shape.Values())
	return im.weighted(n, f, p, biased, true, v, func(weights bcnn.Weights, bias []float32) (bcnn.Op, bcnn.Shape) {
		return bcnn.Dense{Out: out, Weights: weights, Bias: bias}, bcnn.Shape{H: 1, W: 1, C: out}
	})
}

// maxExact is the largest number up to which float32 holds every half.
const maxExact = 1 << 23

// weighted appends a layer with weights, and behind a binary one what makes its sums
// those of BMXNet.
func (im *importer) weighted(n *node, f *filters, p precision, biased, dense bool, v value,
	make func(bcnn.Weights, []float32) (bcnn.Op, bcnn.Shape)) value {
	var bias []float32
	if biased {
		bias = im.floats(n, 2, f.out)
	}
	if !p.binary && (p.act < full && p.act > 0 || p.weight > 1 && p.weight < full) {
		return im.quantisedLayer(n, f, p, bias, dense, v, make)
	}
	var weights bcnn.Weights
	mean := float32(1)
	if p.weights {
		weights, mean = f.binary(im.budget, dense)
	} else {
		weights = f.real(im.budget)
	}
	out := value{vector: dense}
	var op bcnn.Op
	if !p.binary {
		op, out.shape = make(weights, bias)
		return im.emit(n, "", op, out, v)
	}
	taps := f.channels * f.pixels
	if taps > maxExact {
		try.Failf("sums of %d products are not exact in float32", taps)
	}
	v = im.sign(&im.nodes[n.inputs[0][0]], v)
	op, out.shape = make(weights, nil)
	out = im.emit(n, "", op, out, v)
	out = im.pointwise(n, "/half", bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{float32(taps) / 2}}, out)
	if biased {
		out = im.pointwise(n, "/bias", bcnn.Affine{Bias: bias}, out)
	}
	if p.scaled {
		out = im.pointwise(n, "/scale", bcnn.Affine{Scale: []float32{mean}}, out)
	}
	return out
}

// quantisedLayer appends a layer with values or weights of several bits, whose sums are
// exact integers, and what makes values of them.
func (im *importer) quantisedLayer(n *node, f *filters, p precision, bias []float32, dense bool, v value,
	make func(bcnn.Weights, []float32) (bcnn.Op, bcnn.Shape)) value {
	if f.channels*f.pixels > maxExact/top(max(1, p.act%full))/top(p.weight) {
		try.Failf("sums of %d products of %d and %d bits are not exact in float32", f.channels*f.pixels, p.act, p.weight)
	}
	weights, scale, v := im.lowBit(n, f, p, dense, v)
	out := value{vector: dense}
	op, shape := make(weights, nil)
	out.shape = shape
	out = im.emit(n, "", op, out, v)
	if out = im.pointwise(n, "/scale", bcnn.Affine{Scale: []float32{scale}}, out); bias == nil {
		return out
	}
	return im.pointwise(n, "/bias", bcnn.Affine{Bias: bias}, out)
}

// batchNorm imports BatchNorm as it is at inference.
func batchNorm(im *importer, n *node) value {
	a := n.attributes()
	op := bcnn.BatchNorm{Epsilon: a.number("eps", 1e-3)}
	fixed := a.flag("fix_gamma", true)
	if axis := a.integer("axis", 1, -1, maxDims); axis != 1 {
		a.fail("axis", "1")
	}
	for k := 1; k < 5; k++ {
		im.parameter(n, k)
	}
	v := im.operand(n, 0)
	v = im.plain(n, v)
	for k, p := range []*[]float32{&op.Gamma, &op.Beta, &op.Mean, &op.Var} {
		*p = im.floats(n, k+1, v.shape.C)
	}
	if fixed {
		for c := range op.Gamma {
			op.Gamma[c] = 1
		}
	}
	return im.pointwise(n, "", op, v)
}

// pooling imports Pooling.
func pooling(im *importer, n *node) value {
	a := n.attributes()
	kind, convention := a.text("pool_type", "max"), a.text("pooling_convention", "valid")
	global, counted := a.flag("global_pool", false), a.flag("count_include_pad", true)
	a.nchw()
	var w bcnn.Window
	if !global {
		w = a.window()
	}
	switch {
	case kind != "max" && kind != "avg":
		try.Failf("pool_type %s is not supported, want max or avg", text.Quote(kind))
	case convention != "valid" && convention != "full":
		try.Failf("pooling_convention %s is not supported, want valid or full", text.Quote(convention))
	case !global && w.KH == 0:
		try.Failf("kernel is missing")
	}
	v := im.operand(n, 0)
	switch {
	case v.vector:
		try.Failf("its input is a vector, want an image")
	case global:
		w = bcnn.Window{KH: v.shape.H, KW: v.shape.W, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	case convention == "full":
		padded := w.Pad != bcnn.Padding{}
		more := max(extend(&w.Pad.Bottom, v.shape.H, w.Pad.Top, w.KH, w.StrideH), extend(&w.Pad.Right, v.shape.W, w.Pad.Left, w.KW, w.StrideW))
		if kind == "avg" && more > 0 {
			// The rows and columns that only the last windows reach do not count.
			if padded && counted {
				try.Failf("an average pool with count_include_pad=True and pooling_convention full is not supported if its last windows reach beyond the padding")
			}
			counted = false
		}
	}
	out := v
	out.shape = w.Output(v.shape, v.shape.C)
	if kind == "max" {
		return im.emit(n, "", bcnn.MaxPool{Window: w}, out, v)
	}
	return im.emit(n, "", bcnn.AvgPool{Window: w, CountPadding: counted}, out, v)
}

// extend adds to the padding at the end of a side what makes its windows reach the end,
// and returns how much that is.
func extend(end *int, size, begin, kernel, stride int) int {
	rest := size + begin + *end - kernel
	if rest <= 0 {
		return 0
	}
	more := (rest+stride-1)/stride*stride - rest
	*end += more
	return more
}
