package openvino

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/text"
)

// legacy are the operators of IR 4 to 7, whose weights hang on the layer. Half precision says how they
// are stored: all is computed in float32.
//
// These versions have one meaning: OpenVINO read them by one parser. IR 6 calls Quantize FakeQuantize and
// gives shapes as integers, and IR 7 states precisions at ports and blobs. There was no release with 8 or 9.
var legacy map[string]operator

func init() {
	legacy = map[string]operator{
		"Input":             {make: parameter},
		"Const":             {make: legacyConstant},
		"ScaleShift":        {make: scaleShift},
		"Convolution":       {make: legacyConvolution},
		"BinaryConvolution": {make: legacyBinary},
		"Quantize":          {make: fakeQuantize},
		"FakeQuantize":      {make: fakeQuantize},
		"FullyConnected":    {make: fullyConnected},
		"Pooling":           {make: legacyPool},
		"Eltwise":           {make: eltwise},
		"Clamp":             {make: clamp},
		"Sigmoid":           {make: function(bcnn.Sigmoid)},
		"ReLU":              {make: legacyReLU},
		"PReLU":             {make: legacyPReLU},
		"Power":             {make: legacyPower},
		"Activation":        {make: activation},
		"ReLU6":             {make: reLU6},
		"ELU":               {make: elu},
		"TanH":              {make: function(bcnn.Tanh)},
		"Logistic":          {make: function(bcnn.Sigmoid)},
		"Exp":               {make: function(bcnn.Exp)},
		"Erf":               {make: function(bcnn.Erf)},

		"BatchNormalization": {make: legacyBatchNorm},
		"Norm":               {make: legacyNorm},
		"Normalize":          {make: legacyNormalize},
		"Deconvolution":      {make: deconvolution},
		"Interp":             {make: interp},
		"Resample":           {make: resample},
		"Pad":                {make: legacyPad},
		"Crop":               {make: crop},
		"Split":              {make: split},
		"Slice":              {make: split},
		"ReorgYolo":          {make: reorg},
		"ShuffleChannels":    {make: shuffle},
		"Squeeze":            {make: legacyReshape},
		"Unsqueeze":          {make: legacyReshape},

		"Permute":           {make: transpose},
		"Flatten":           {make: legacyReshape},
		"Reshape":           {make: legacyReshape},
		"Concat":            {make: concat, fold: foldConcat},
		"SoftMax":           {make: softmax},
		"PriorBox":          {make: priorBox},
		"PriorBoxClustered": {make: priorBoxClustered},
		"DetectionOutput":   {make: inside},
		"RegionYolo":        {make: inside},
	}
}

// blob returns the values of a blob that hangs on a layer, nil where there is none.
func (im *importer) blob(n *node, name string, dims ...int) []float32 {
	b, ok := n.blobs[name]
	if !ok {
		return nil
	}
	p := cmp.Or(b["precision"], n.precision)
	typ := map[string]string{"FP32": "f32", "FP16": "f16"}[p]
	if typ == "" {
		try.Failf("values of precision %s are not supported, want FP32 or FP16", text.Quote(short(p)))
	}
	return im.decode(n, typ, dims, b["offset"], b["size"]).floats
}

// outputPrecision is that of the output.
func (n *node) outputPrecision() string {
	if len(n.outputs) > 0 {
		return cmp.Or(n.outputs[0].precision, n.precision)
	}
	return n.precision
}

// blobs refuses blobs of other names.
func (n *node) onlyBlobs(names ...string) {
	known := 0
	for _, name := range names {
		if _, ok := n.blobs[name]; ok {
			known++
		}
	}
	if known < len(n.blobs) {
		try.Failf("it has blobs besides %v, which are not supported", names)
	}
}

func legacyConstant(im *importer, n *node) operand {
	n.onlyBlobs("custom")
	if len(n.outputs) != 1 {
		try.Failf("it has %d outputs, want one", len(n.outputs))
	}
	dims := n.outputs[0].dims
	for _, d := range dims {
		if d < 1 {
			try.Failf("its shape %v is not known", dims)
		}
	}
	b, ok := n.blobs["custom"]
	if !ok {
		try.Failf("it has no values")
	}
	p := cmp.Or(b["precision"], n.outputPrecision())
	typ := map[string]string{"FP32": "f32", "FP16": "f16", "I32": "i32", "I64": "i64"}[p]
	if typ == "" {
		try.Failf("values of precision %s are not supported, want FP32, FP16, I32 or I64", text.Quote(short(p)))
	}
	return operand{c: im.decode(n, typ, dims, b["offset"], b["size"])}
}

func scaleShift(im *importer, n *node) operand {
	n.onlyBlobs("weights", "biases")
	v := im.channelled(n, im.value(n, 0))
	channel := func(name string) (list []float32) {
		if list = im.blob(n, name, v.size(1)); list != nil {
			list = im.perDim1(n, v, list)
		}
		return list
	}
	op := bcnn.Affine{Scale: channel("weights"), Bias: channel("biases")}
	return operand{v: im.emit(n, "", op, v.shape, v.view, v)}
}

// legacyWindow returns the weights' dimensions, groups and window of a convolution.
func (n *node) legacyWindow(in bcnn.Shape) (dims []int, groups int, w bcnn.Window) {
	kh, kw := n.pair("kernel", 1)
	out := n.integer("output", "", 1, maxOut)
	groups = n.integer("group", "1", 1, maxOut)
	if in.C%groups != 0 {
		try.Failf("%d groups do not divide %d channels", groups, in.C)
	}
	w = n.window(kh, kw, in, true)
	return []int{out, in.C / groups, kh, kw}, groups, w
}

func legacyConvolution(im *importer, n *node) operand {
	n.onlyBlobs("weights", "biases")
	v := im.nchw(n, im.value(n, 0))
	dims, groups, w := n.legacyWindow(v.shape)
	weights := im.blob(n, "weights", dims...)
	if weights == nil {
		try.Failf("it has no weights")
	}
	return operand{v: im.real2D(n, "", v, weights, dims, groups, im.blob(n, "biases", dims[0]), w)}
}

func legacyBinary(im *importer, n *node) operand {
	n.onlyBlobs("weights")
	n.only("mode", "xnor-popcount")
	n.ignore("input") // the number of channels, which the size of the weights tells as well
	v := im.real(n, 0)
	if len(v.view) != 4 {
		try.Failf("its input has %d dimensions, want 4", len(v.view))
	}
	in := bcnn.Shape{C: v.size(1), H: v.size(2), W: v.size(3)}
	dims, groups, w := n.legacyWindow(in)
	if groups != 1 {
		n.fail("group", "1")
	}
	b, ok := n.blobs["weights"]
	if !ok {
		try.Failf("it has no weights")
	}
	pad := 0
	switch _, said := n.list["pad_value"]; {
	case said:
		switch n.number("pad_value", "") {
		case 0:
		case 1:
			pad = 1
		default:
			pad = -1
		}
	case w.Pad != (bcnn.Padding{}):
		try.Failf("it has padding but no pad_value, so what pads it is not known")
	}
	c := im.decode(n, "u1", dims, b["offset"], b["size"])
	return operand{v: im.binary(n, v, c, func(bcnn.Shape) (bcnn.Window, int) { return w, pad })}
}

// fullyConnected imports a product with weights of outputs and inputs.
func fullyConnected(im *importer, n *node) operand {
	n.onlyBlobs("weights", "biases")
	out := n.integer("out-size", "", 1, maxOut)
	v := im.value(n, 0)
	inputs := seenValues(v.view)
	v = im.seenAs(n, v, []int{im.batch, inputs})
	weights := im.blob(n, "weights", out, inputs)
	if weights == nil {
		try.Failf("it has no weights")
	}
	v = im.product(n, v, &constant{typ: "f32", dims: []int{out, inputs}, floats: weights}, true, im.blob(n, "biases", out))
	return operand{v: v}
}

func legacyPool(im *importer, n *node) operand {
	switch n.text("pool-method", "") {
	case "max":
		n.ignore("exclude-pad") // which is about averages
		return maxPool(im, n)
	case "avg":
		return avgPool(im, n)
	}
	n.fail("pool-method", "max or avg")
	return operand{}
}

// eltwise imports what is done with two tensors, or more, of one shape, or of sizes that are repeated.
func eltwise(im *importer, n *node) operand {
	f := map[string]func(*importer, *node) operand{
		"sum": add, "mul": multiply, "prod": multiply, "max": maximum, "min": minimum, "sub": subtract, "div": divide,
	}[n.text("operation", "sum")]
	if f == nil {
		n.fail("operation", "sum, sub, mul, div, max or min")
	}
	if len(n.from) < 2 {
		try.Failf("it has %d inputs, want 2 or more", len(n.from))
	}
	for part := range strings.SplitSeq(n.text("coeff", ""), ",") {
		if v, err := strconv.ParseFloat(strings.TrimSpace(part), 32); part != "" && (err != nil || v != 1) {
			n.fail("coeff", "ones")
		}
	}
	if len(n.from) == 2 {
		return f(im, n)
	}
	var op bcnn.Op
	switch n.text("operation", "sum") {
	case "sum":
		op = bcnn.Add{}
	case "mul", "prod":
		op = bcnn.Mul{}
	case "max":
		op = bcnn.Max{}
	case "min":
		op = bcnn.Min{}
	default:
		try.Failf("it has %d inputs, want 2", len(n.from))
	}
	y := im.value(n, 0)
	for k := 1; k < len(n.from); k++ {
		b := im.value(n, k)
		if !slices.Equal(y.dims(), b.dims()) {
			try.Failf("its inputs have shapes %v and %v behind the batch, want one", y.dims(), b.dims())
		}
		a, b := im.alike(n, y, b)
		y = im.emit(n, "", op, a.shape, a.view, a, b)
	}
	return operand{v: y}
}

func legacyReLU(im *importer, n *node) operand {
	if slope := n.number("negative_slope", "0"); slope != 0 {
		return im.pointwise(n, bcnn.PReLU{Slope: []float32{slope}})
	}
	return im.pointwise(n, bcnn.ReLU{})
}

func reLU6(im *importer, n *node) operand {
	n.only("n", "6", "6.0", "6.000000")
	return im.pointwise(n, bcnn.Clip{Min: 0, Max: 6})
}

// legacyPReLU imports PReLU, whose slopes are a blob: one for each channel, or one for all.
func legacyPReLU(im *importer, n *node) operand {
	n.onlyBlobs("weights")
	n.ignore("bias_term", "filler_type", "filler_value", "min", "max", "mean", "std", "sparse", "variance_norm") // Caffe's, of training
	v, slopes := im.value(n, 0), 1
	if !n.flag("channel_shared", false) {
		slopes = v.size(1)
	}
	values := im.blob(n, "weights", slopes)
	if values == nil {
		try.Failf("it has no weights")
	}
	dims := append([]int{slopes}, slices.Repeat([]int{1}, len(v.view)-2)...)
	v, slope := im.perChannel(n, v, &constant{typ: "f32", dims: dims, floats: values})
	return operand{v: im.emit(n, "", bcnn.PReLU{Slope: slope}, v.shape, v.view, v)}
}

// activation imports Activation, whose type is an attribute.
func activation(im *importer, n *node) operand {
	switch n.text("type", "") {
	case "relu":
		return legacyReLU(im, n)
	case "relu6":
		return reLU6(im, n)
	case "sigmoid":
		return im.pointwise(n, bcnn.Function{Name: bcnn.Sigmoid})
	case "tanh":
		return im.pointwise(n, bcnn.Function{Name: bcnn.Tanh})
	case "exp":
		return im.pointwise(n, bcnn.Function{Name: bcnn.Exp})
	case "elu":
		return elu(im, n)
	case "clamp":
		return clamp(im, n)
	}
	n.fail("type", "relu, relu6, sigmoid, tanh, exp, elu or clamp")
	return operand{}
}

// legacyReshape imports Flatten and Reshape: the output port has the new dimensions, which the
// attributes and the constants that give them as floats say once more.
func legacyReshape(im *importer, n *node) operand {
	n.ignore("axis", "end_axis", "num_axes", "dim")
	for k := 1; k < len(n.from); k++ {
		im.constant(n, k)
	}
	if len(n.outputs) != 1 {
		try.Failf("it has %d outputs, want one", len(n.outputs))
	}
	v := im.any(n, 0)
	dims := n.outputs[0].dims
	if len(dims) < 2 || slices.Min(dims[1:]) < 1 || num.Product(dims[1:]...) != seenValues(v.view) {
		try.Failf("its output has shape %v, its input %v behind the batch", dims, v.dims())
	}
	return operand{v: im.seenAs(n, v, dims)}
}
