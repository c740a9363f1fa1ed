package tflite

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// quantize is LceQuantize: −1 where x < 0 (q < zero point of 8-bit values), else +1.
func (im *importer) quantize(o *schema.Operator) *value {
	v := im.value(o, 0)
	out := v
	switch {
	case v.typ == schema.Float32:
		out = im.emit(o, "", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, v.shape, v)
	case v.typ == schema.Int8:
		out = im.sign8(o, v)
	default:
		try.Failf("values of %v are not supported", v.typ)
	}
	return &value{layer: out.layer, shape: v.shape, typ: schema.Int32}
}

// sign8 emits the sign of q − zero for 8-bit values q.
func (im *importer) sign8(o *schema.Operator, v *value) *value {
	v = im.centred(o, v)
	return im.emit(o, "", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, v.shape, v)
}

// dequantize is LceDequantize.
func (im *importer) dequantize(o *schema.Operator) *value {
	v := im.bits(o, 0)
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	switch t.Type {
	case schema.Float32:
		return &value{layer: v.layer, shape: v.shape, typ: schema.Float32}
	case schema.Int8:
		// The 8-bit values next to +1 and −1.
		q := &value{}
		try.Check(q.quantized(t))
		one := math.Round(float64(1 / q.scale)) // of float32, as LCE divides
		hi, lo := min(127, float64(q.zero)+one), max(-128, float64(q.zero)-one)
		out := im.affine(o, "", v, []float32{float32((hi - lo) / 2)}, []float32{float32((hi + lo) / 2)})
		out.typ, out.scale, out.zero = schema.Int8, q.scale, q.zero
		return out
	}
	panic(try.Errorf("an output of %v is not supported", t.Type))
}

// bits returns an input of packed bits.
func (im *importer) bits(o *schema.Operator, i int) *value {
	v := im.value(o, i)
	if v.typ != schema.Int32 {
		try.Failf("input %d is %v, want packed bits", i, v.typ)
	}
	return v
}

// bmaxPool is LceBMaxPool2d: the maximum of the signs inside the image.
func (im *importer) bmaxPool(o *schema.Operator) *value {
	v := im.bits(o, 0)
	p := im.options(o)
	g := geometry{
		kh: p.int("filter_height", 1, maxSide), kw: p.int("filter_width", 1, maxSide),
		sh: p.int("stride_height", 1, maxSide), sw: p.int("stride_width", 1, maxSide),
		dh: 1, dw: 1, valid: p.int("padding", 0, 1) == padValid,
	}
	w, shape := g.window(v)
	out := im.emit(o, "", bcnn.MaxPool{Window: w}, shape, v)
	out.typ = schema.Int32
	return out
}

// dequantize8 is DEQUANTIZE of 8-bit values that are computed.
func (im *importer) dequantize8(o *schema.Operator) *value {
	v := im.value(o, 0)
	switch {
	case v.typ != schema.Int8 && v.typ != schema.Uint8:
		try.Failf("values of %v are not supported", v.typ)
	case v.probabilities:
		return &value{layer: v.layer, shape: v.shape, typ: schema.Float32}
	}
	out := im.centred(o, v)
	if out.layer != v.layer { // which limits keep from becoming one fma with the scale, of which q = zero need not be 0
		clip := bcnn.Clip{Min: -math.MaxUint8, Max: math.MaxUint8}
		out = im.emit(o, "/integer", clip, v.shape, out)
	}
	out = im.affine(o, "", out, []float32{v.scale}, nil)
	out.typ = schema.Float32
	return out
}

// quantisedBlock is how many numbers QUANTIZE takes at once; what is left at the end of a
// tensor rounds otherwise.
const quantisedBlock = 8

// inBlocks is x/scale, rounded, as QUANTIZE computes it in blocks: halves to even.
func inBlocks(x, scale float32) float64 { return math.RoundToEven(float64(x * (1 / scale))) }

// oneByOne is x/scale, rounded, as QUANTIZE computes it of what is left, in float64: halves
// away from 0.
func oneByOne(x, scale float32) float64 { return math.Round(float64(x) / float64(scale)) }

// quantize8 is QUANTIZE of numbers: round(x/scale) + zero point, as LCE's interpreter
// rounds, as a level for each integer, at the least float32 from which on it is reached.
func (im *importer) quantize8(o *schema.Operator) *value {
	v := im.value(o, 0)
	if v.typ == schema.Int8 || v.typ == schema.Uint8 {
		return im.requantize(o, v)
	}
	try.Check(v.checkReal())
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	least := 0
	switch t.Type {
	case schema.Int8:
		least = math.MinInt8
	case schema.Uint8:
	default:
		try.Failf("an output of %v is not supported", t.Type)
	}
	q := &value{}
	try.Check(q.quantized(t))
	n := im.many(v)
	whole, channels := n/quantisedBlock*quantisedBlock, 1
	switch {
	case whole == n || whole == 0:
	case im.vector(v):
		channels = n
	default:
		im.deviates(o, "the last %d of %d values may differ by at most 1, if they are halfway between two integers", n-whole, n)
	}
	thresholds := im.newFloats(channels * steps8)
	for c := range channels {
		list := thresholds[c*steps8:][:steps8]
		rounded := inBlocks
		if whole == 0 || channels > 1 && c >= whole {
			rounded = oneByOne
		}
		if 0 < c && c != whole { // as the one before
			copy(list, thresholds[(c-1)*steps8:])
			continue
		}
		for i := range list {
			list[i] = f32.Least(func(x float32) bool { return rounded(x, q.scale) >= float64(least+1+i-q.zero) })
		}
	}
	if t.Type == schema.Int8 {
		q.typ = t.Type
		return im.integers8(o, v, thresholds, q)
	}
	out := im.emit(o, "", bcnn.Quantize{Low: least, Levels: steps8 + 1, Thresholds: thresholds}, v.shape, v)
	out.typ, out.scale, out.zero = t.Type, q.scale, q.zero
	return out
}
