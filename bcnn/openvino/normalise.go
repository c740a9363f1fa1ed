package openvino

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/roots"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Normalisation: by given means and variances, and by what an image has itself. Roots and quotients are
// those of package roots.

// layers returns a function that emits layers of a node, which see their first input as it is seen.
func (im *importer) layers(n *node) roots.Emit[*value] {
	return func(suffix string, op bcnn.Op, in ...*value) *value {
		return im.emit(n, suffix, op, in[0].shape, in[0].view, in...)
	}
}

// times returns the product of two values, of which the second may be repeated.
func (im *importer) times(n *node, a, b *value) *value {
	a, b, _ = im.fitted(n, a, b)
	return im.emit(n, "", bcnn.Mul{}, a.shape, a.view, a, b)
}

// channelled returns a value whose dimension 1 is the channels of an image or of a vector.
func (im *importer) channelled(n *node, v *value) *value {
	if len(v.view) == 4 {
		return im.nchw(n, v)
	}
	return im.plain(n, v)
}

// perDim1 returns one number for each channel in memory of what has one for each of dimension 1.
func (im *importer) perDim1(n *node, v *value, list []float32) []float32 {
	dims := append([]int{v.size(1)}, slices.Repeat([]int{1}, len(v.view)-2)...)
	if len(list) != dims[0] {
		try.Failf("it has %d numbers for %d channels", len(list), dims[0])
	}
	if len(list) == 1 {
		list = slices.Repeat(list, v.shape.C)
		try.Check(im.budget.Charge(4 * int64(len(list))))
		return list
	}
	_, list = im.perChannel(n, v, &constant{typ: "f32", dims: dims, floats: list})
	return list
}

// batchNorm imports BatchNormInference, whose input is the third one in opset 1, the first one since.
func batchNorm(im *importer, n *node) operand {
	order := []int{2, 0, 1, 3, 4} // data, gamma, beta, mean, variance
	if n.version != "opset1" {
		order = []int{0, 1, 2, 3, 4}
	}
	v := im.channelled(n, im.value(n, order[0]))
	var lists [4][]float32
	for i, k := range order[1:] {
		c := im.constant(n, k)
		c.checkReal()
		lists[i] = im.perDim1(n, v, c.floats)
	}
	return im.normal(n, v, n.number("epsilon", ""), lists)
}

func (im *importer) normal(n *node, v *value, epsilon float32, lists [4][]float32) operand {
	for i, variance := range lists[3] {
		if !(float64(variance)+float64(epsilon) > 0) {
			try.Failf("the variance of channel %d, %v, and epsilon, %v, are not above 0 together", i, variance, epsilon)
		}
	}
	op := bcnn.BatchNorm{Gamma: lists[0], Beta: lists[1], Mean: lists[2], Var: lists[3], Epsilon: epsilon}
	return operand{v: im.emit(n, "", op, v.shape, v.view, v)}
}

// legacyBatchNorm imports BatchNormalization, whose weights are variances and whose biases are means.
func legacyBatchNorm(im *importer, n *node) operand {
	n.onlyBlobs("weights", "biases")
	v := im.channelled(n, im.value(n, 0))
	channel := func(name string) []float32 {
		list := im.blob(n, name, v.size(1))
		if list == nil {
			try.Failf("it has no %s", name)
		}
		return im.perDim1(n, v, list)
	}
	try.Check(im.budget.Charge(8 * int64(v.shape.C)))
	ones, zeros := slices.Repeat([]float32{1}, v.shape.C), make([]float32, v.shape.C)
	return im.normal(n, v, n.number("epsilon", ""), [4][]float32{ones, zeros, channel("biases"), channel("weights")})
}

// lrn imports LRN over channels, or over rows and columns.
func lrn(im *importer, n *node) operand {
	axes := im.constant(n, 1).integers(false)
	size, alpha, beta, bias := n.integer("size", "", 1, maxSide), n.number("alpha", ""), n.number("beta", ""), n.number("bias", "")
	v := im.nchw(n, im.value(n, 0))
	switch {
	case slices.Equal(axes, []int64{1}):
		return im.response(n, v, size, alpha, beta, bias, true)
	case slices.Equal(axes, []int64{2, 3}):
		return im.response(n, v, size, alpha, beta, bias, false)
	}
	panic(try.Errorf("its axes are %v, want 1, or 2 and 3", axes))
}

// legacyNorm imports Norm, which is LRN.
func legacyNorm(im *importer, n *node) operand {
	size, alpha, beta, bias := n.integer("local-size", "", 1, maxSide), n.number("alpha", ""), n.number("beta", ""), n.number("k", "1")
	n.only("region", "across", "same")
	return im.response(n, im.nchw(n, im.value(n, 0)), size, alpha, beta, bias, n.text("region", "") == "across")
}

// response appends x / (bias + alpha·mean(x²))^beta. The mean is over size neighbouring channels, or size
// rows and columns; those outside count as 0.
func (im *importer) response(n *node, v *value, size int, alpha, beta, bias float32, across bool) operand {
	if size%2 == 0 {
		try.Failf("a size of %d is not supported, want an odd number", size)
	}
	layer := im.layers(n)
	y := layer("/square", bcnn.Mul{}, v, v)
	if across {
		y = layer("/mean", im.meanAcross(v.shape.C, size), y)
	} else {
		half := size / 2
		w := bcnn.Window{KH: size, KW: size, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
			Pad: bcnn.Padding{Top: half, Left: half, Bottom: half, Right: half}}
		y = im.pool(n, bcnn.AvgPool{Window: w, CountPadding: true}, w, y)
	}
	y = layer("/base", bcnn.Affine{Scale: []float32{alpha}, Bias: []float32{bias}}, y)
	return operand{v: im.times(n, v, im.power(n, y, "beta", -beta))}
}

// meanAcross is the mean of every size neighbouring channels, as a 1×1 convolution.
func (im *importer) meanAcross(channels, size int) bcnn.Op {
	if int64(channels)*int64(channels) > maxValues {
		try.Failf("a mean over neighbours of %d channels is too large", channels)
	}
	weights := im.newFloats(channels * channels)
	half := size / 2
	for c := range channels {
		for k := max(c-half, 0); k <= min(c+half, channels-1); k++ {
			weights[c*channels+k] = 1 / float32(size)
		}
	}
	return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: channels, Weights: bcnn.Weights{F32: weights}}
}

// normalizeL2 imports NormalizeL2.
func normalizeL2(im *importer, n *node) operand {
	v := im.value(n, 0)
	least := n.number("eps", "")
	n.only("eps_mode", "add", "max")
	var over []int
	for _, a := range im.constant(n, 1).integers(false) {
		if a < 0 {
			a += int64(len(v.view))
		}
		if a < 1 || a >= int64(len(v.view)) || slices.Contains(over, int(a)) {
			try.Failf("its axes are the batch, none, or one twice")
		}
		over = append(over, int(a))
	}
	if len(over) == 0 {
		try.Failf("it has no axes, which is not supported")
	}
	return operand{v: im.unit(n, v, over, least, n.text("eps_mode", "add") == "max")}
}

// legacyNormalize imports Normalize, NormalizeL2 with a scale.
func legacyNormalize(im *importer, n *node) operand {
	n.onlyBlobs("weights")
	n.ignore("channel_shared") // the number of weights tells it as well
	v := im.channelled(n, im.value(n, 0))
	over := []int{1}
	if n.flag("across_spatial", true) {
		over = v.indices()
	}
	shared := n.list["channel_shared"] == "1" || n.list["channel_shared"] == "true"
	count := v.size(1)
	if shared {
		count = 1
	}
	scale := im.blob(n, "weights", count)
	v = im.unit(n, v, over, n.number("eps", ""), false)
	if scale == nil {
		return operand{v: v}
	}
	if !shared {
		scale = im.perDim1(n, v, scale)
	}
	return operand{v: im.emit(n, "/scale", bcnn.Affine{Scale: scale}, v.shape, v.view, v)}
}

// unit divides a value by the root of its sum of squares over some dimensions, to which least is added, or
// which is at least that.
func (im *importer) unit(n *node, v *value, over []int, least float32, most bool) *value {
	if !(least >= 0) {
		try.Failf("its eps is %v, want 0 or more", least)
	}
	var rest []int
	for _, d := range v.indices() {
		if !slices.Contains(over, d) {
			rest = append(rest, d)
		}
	}
	rows := rest[:min(1, len(rest))]
	v = im.image(n, v, over, rows, rest[len(rows):])
	layer := im.layers(n)
	ones := im.newFloats(v.shape.C)
	for i := range ones {
		ones[i] = 1
	}
	seen := slices.Clone(v.view)
	for _, d := range over {
		seen[d] = nil
	}
	sum := im.emit(n, "/sum", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{F32: ones}},
		bcnn.Shape{H: v.shape.H, W: v.shape.W, C: 1}, seen, layer("/square", bcnn.Mul{}, v, v))
	switch {
	case most:
		sum = layer("/least", bcnn.Clip{Min: least, Max: float32(math.Inf(1))}, sum)
	case least > 0:
		sum = layer("/eps", bcnn.Affine{Bias: []float32{least}}, sum)
	}
	return im.emit(n, "", bcnn.Mul{}, v.shape, v.view, v, roots.RSqrtSum(layer, sum))
}

// mostPower is the largest magnitude of an exponent.
const mostPower = 4

// power returns a value to a power that is a multiple of ¼.
func (im *importer) power(n *node, v *value, name string, exponent float32) *value {
	quarters := 4 * exponent
	if quarters == 0 || quarters != float32(int(quarters)) || math.Abs(float64(exponent)) > mostPower {
		try.Failf("its %s is %v, want a multiple of ¼ up to %d other than 0", name, float32(math.Abs(float64(exponent))), mostPower)
	}
	layer := im.layers(n)
	return roots.Power(layer, v, int(quarters), func() *value { return roots.Reciprocal(layer, v) })
}

// powerOf imports Power with a constant exponent, and Sqrt.
func powerOf(im *importer, n *node) operand {
	exponent := float32(0.5)
	if n.typ == "Power" {
		n.only("auto_broadcast", "numpy")
		c := im.constant(n, 1)
		c.checkReal()
		if c.len() != 1 || len(c.dims) > len(im.value(n, 0).view) {
			try.Failf("its exponent has shape %v, want one number", c.dims)
		}
		exponent = c.floats[0]
	}
	return im.raised(n, im.value(n, 0), exponent)
}

// legacyPower imports Power of the old versions, (shift + scale·x)^power.
func legacyPower(im *importer, n *node) operand {
	exponent := n.number("power", "1")
	v := im.pointwise(n, bcnn.Affine{Scale: []float32{n.number("scale", "1")}, Bias: []float32{n.number("shift", "0")}}).v
	return im.raised(n, v, exponent)
}

func (im *importer) raised(n *node, v *value, exponent float32) operand {
	if exponent == 1 {
		return operand{v: v}
	}
	return operand{v: im.power(n, v, "power", exponent)}
}

// reorg imports ReorgYolo: pixels become channels, as Darknet's [reorg] does it, which takes the image for
// one of fewer, larger channels.
func reorg(im *importer, n *node) operand {
	s := n.integer("stride", "", 1, maxSide)
	v := im.value(n, 0)
	if len(v.view) != 4 || v.size(1)%(s*s) != 0 || v.size(2)%s != 0 || v.size(3)%s != 0 {
		try.Failf("its input has shape %v, want channels that %d divides, and rows and columns that %d does", v.dims(), s*s, s)
	}
	c, h, w := v.size(1), v.size(2), v.size(3)
	v = im.plain(n, v)
	try.Check(im.budget.Charge(32 * int64(v.shape.C)))
	// What is read as c channels of h×w is a plane of c/s² channels of (h·s)×(w·s), of which value i of the
	// result is one.
	index := make([]int32, v.shape.C)
	each := c / (s * s)
	for i := range index {
		ch, y, x := i/(h*w), i/w%h, i%w
		block := ch / each
		index[i] = int32(((ch%each)*h*s+y*s+block/s)*w*s + x*s + block%s)
	}
	dims := []int{num.Product(c, s, s), h / s, w / s}
	return operand{v: im.emit(n, "", bcnn.Channels{Index: index}, v.shape, vectorView(dims), v)}
}
