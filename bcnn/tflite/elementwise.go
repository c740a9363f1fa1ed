package tflite

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/roots"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// floats marks a value as numbers.
func floats(v *value) *value {
	v.typ = schema.Float32
	return v
}

// relu is RELU, RELU6 or RELU_N1_TO_1.
func (im *importer) relu(o *schema.Operator) *value {
	limits := map[string][2]float64{"RELU": {0, math.Inf(1)}, "RELU6": {0, 6}, "RELU_N1_TO_1": {-1, 1}}[o.Name]
	if y, ok := im.limited(o, 0, limits[0], limits[1]); ok {
		return y
	}
	v := im.moved(o, 0)
	if v.typ == schema.Int8 {
		return im.relu8(o, v)
	}
	switch o.Name {
	case "RELU":
		return floats(im.emit(o, "", bcnn.ReLU{}, v.shape, v))
	case "RELU6":
		return floats(im.emit(o, "", bcnn.Clip{Min: 0, Max: 6}, v.shape, v))
	}
	return floats(im.emit(o, "", bcnn.Clip{Min: -1, Max: 1}, v.shape, v))
}

// slope emits x·slope where x < 0.
func (im *importer) slope(o *schema.Operator, v *value, slope []float32) *value {
	return floats(im.emit(o, "", bcnn.PReLU{Slope: slope}, v.shape, v))
}

func (im *importer) leakyReLU(o *schema.Operator) *value {
	v := im.moved(o, 0)
	if v.typ == schema.Int8 {
		return im.leakyReLU8(o, v)
	}
	return im.slope(o, v, []float32{o.Options.Float32(0, 0)})
}

func (im *importer) prelu(o *schema.Operator) *value {
	v := im.moved(o, 0)
	if v.typ == schema.Int8 {
		return im.prelu8(o, v)
	}
	slope := im.perChannel(o, 1, v)
	return im.slope(o, v, slope)
}

// function is an operator that is one function of a value.
func (im *importer) function(o *schema.Operator) *value {
	v := im.moved(o, 0)
	if v.typ == schema.Int8 {
		return im.function8(o, v)
	}
	name := map[string]bcnn.FunctionName{"ELU": bcnn.ELU, "EXP": bcnn.Exp, "GELU": bcnn.GELU, "HARD_SWISH": bcnn.HardSwish,
		"LOGISTIC": bcnn.Sigmoid, "TANH": bcnn.Tanh}[o.Name]
	if o.Name == "GELU" && o.Options.Uint8(0, 0) != 0 { // approximate
		name = bcnn.GELUTanh
	}
	return floats(im.emit(o, "", bcnn.Function{Name: name}, v.shape, v))
}

// l2Normalization is L2_NORMALIZATION: the channels of each pixel, divided by the root of the sum
// of their squares, which is at least 10^−6.
func (im *importer) l2Normalization(o *schema.Operator) *value {
	v := im.real(o, 0)
	if o.Options.Uint8(0, actNone) != actNone {
		try.Failf("a fused activation is not supported")
	}
	squares := im.emit(o, "/squares", bcnn.Mul{}, v.shape, v, v)
	one := bcnn.Shape{H: v.shape.H, W: v.shape.W, C: 1}
	ones := im.newFloats(v.shape.C)
	for c := range ones {
		ones[c] = 1
	}
	sum := im.emit(o, "/sum", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{F32: ones}}, one, squares)
	sum = im.emit(o, "/least", bcnn.Clip{Min: 1e-12, Max: float32(math.Inf(1))}, one, sum)
	root := roots.RSqrt(func(suffix string, op bcnn.Op, in ...*value) *value {
		return im.emit(o, "/root"+suffix, op, one, in...)
	}, sum)
	return floats(im.emit(o, "", bcnn.Mul{}, v.shape, v, root))
}

func (im *importer) abs(o *schema.Operator) *value {
	v := im.moved(o, 0)
	if v.typ == schema.Int8 {
		return im.abs8(o, v)
	}
	return im.slope(o, v, []float32{-1})
}

// sign is SIGN, whose value at 0 is 0: {0, 1} of values that are not negative, as
// ste_heaviside of Larq has it, three values of others.
func (im *importer) sign(o *schema.Operator) *value {
	v := im.real(o, 0)
	op := bcnn.Quantize{Low: -1, Levels: 3, Thresholds: []float32{0, math.SmallestNonzeroFloat32}}
	if positive := im.positive(v); positive {
		op = bcnn.Quantize{Levels: 2, Thresholds: op.Thresholds[1:]}
	}
	return floats(im.emit(o, "", op, v.shape, v))
}

func (im *importer) neg(o *schema.Operator) *value {
	v := im.real(o, 0)
	return floats(im.affine(o, "", v, []float32{-1}, nil))
}

// extremeOf is MAXIMUM or MINIMUM of two values.
func (im *importer) extremeOf(o *schema.Operator, v, w *value) *value {
	op := bcnn.Op(bcnn.Max{})
	if o.Name == "MINIMUM" {
		op = bcnn.Min{}
	}
	return floats(im.emit(o, "", op, v.shape, v, w))
}

// channelled returns constants of the channels of a value as a value of one pixel.
func (im *importer) channelled(o *schema.Operator, like *value, list []float32) *value {
	if like.shape.Pixels() > 1 {
		shape := bcnn.Shape{H: 1, W: 1, C: like.shape.C}
		like = im.emit(o, "/pixel", bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}}, shape, like)
	}
	try.Check(im.budget.Charge(4 * int64(len(list))))
	none := slices.Repeat([]int32{-1}, len(list)) // zeros of what there is, so that nothing of it is left
	zeros := im.emit(o, "/zeros", bcnn.Channels{Index: none}, like.shape, like)
	return im.affine(o, "/constant", zeros, nil, list)
}

// perChannel returns the numbers of a constant input that do not differ by pixel: one,
// or one per channel of a value of whose shape the result is.
func (im *importer) perChannel(o *schema.Operator, i int, v *value) []float32 {
	c := im.required(o, i)
	list := c.floats(im.budget)
	return perChannel(im, c.dims, list, v)
}

// perChannel is that of a list of constants with these dimensions.
func perChannel[T comparable](im *importer, dims []int, list []T, v *value) []T {
	// Dimensions are lined up at the last ones.
	image := [...]int{im.batch, v.shape.H, v.shape.W, v.shape.C}
	d := dims
	for len(d) > 0 && d[0] == 1 {
		d = d[1:]
	}
	if len(d) > v.rank {
		try.Failf("a constant of shape %v does not fit values of %v", dims, v.shape)
	}
	for k := range d {
		if n := d[len(d)-1-k]; n != 1 && n != image[len(image)-1-k] {
			try.Failf("a constant of shape %v does not fit values of %v", dims, v.shape)
		}
	}
	if len(d) <= 1 {
		return list
	}
	// It may have been expanded without varying.
	n := d[len(d)-1]
	varies := false
	try.Check(im.budget.Loop(len(list), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			varies = varies || list[i] != list[i%n]
		}
	}))
	if varies {
		try.Failf("a constant of shape %v with different values per pixel is not supported, only per channel", dims)
	}
	return list[:n]
}

// softmax is SOFTMAX over channels, which only stands at the end.
func (im *importer) softmax(o *schema.Operator) *value {
	v := im.moved(o, 0)
	if !im.isOutput(o) && !(v.typ == schema.Int8 && im.ends(o)) {
		try.Failf("a softmax is supported only as an output of the model")
	}
	beta := float32(1)
	if o.Name == "SOFTMAX" {
		beta = o.Options.Float32(0, 0)
	}
	if v.typ == schema.Int8 {
		return im.softmax8(o, v, beta)
	}
	if beta != 1 {
		v = im.affine(o, "/beta", v, []float32{beta}, nil)
	}
	return floats(im.emit(o, "", bcnn.Softmax{Log: o.Name == "LOG_SOFTMAX"}, v.shape, v))
}

// isOutput reports whether an operator computes an output of the graph.
func (im *importer) isOutput(o *schema.Operator) bool {
	return len(o.Outputs) == 1 && slices.Contains(im.model.Graph.Outputs, o.Outputs[0])
}

// endOffset is what the numbers of an operator's integers like q are less than these: its zero
// point, so that 0 stands for 0, and nothing at the end of a model, which gives the integers
// themselves.
func (im *importer) endOffset(o *schema.Operator, q *value) int {
	if im.isOutput(o) {
		return 0
	}
	if reader := im.onlyReader(o); reader != nil && reader.Name == "QUANTIZE" && im.isOutput(reader) {
		if t := try.Value(im.model.Tensor(reader.Outputs[0])); t.Type == schema.Uint8 {
			return math.MinInt8
		}
	}
	return q.zero
}

// onlyReader returns the operator that alone reads what another one computes, nil if there is none.
func (im *importer) onlyReader(o *schema.Operator) *schema.Operator {
	if len(o.Outputs) != 1 {
		return nil
	}
	return im.reader[o.Outputs[0]]
}

// ends reports whether all that reads what an operator computes are outputs of the model in another
// form: DEQUANTIZE, and QUANTIZE of INT8 to UINT8.
func (im *importer) ends(o *schema.Operator) bool {
	reader := im.onlyReader(o)
	return reader != nil && (reader.Name == "DEQUANTIZE" || reader.Name == "QUANTIZE") && im.isOutput(reader)
}
