package tflite

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Operators on 8-bit values without weights.

// blockSize is how many values vectors make at once; what is left at the end of a tensor
// rounds otherwise.
const blockSize = 16

// many is how many values the interpreter takes at once: those of all images of the file's
// batch.
func (im *importer) many(v *value) int { return im.batch * v.shape.Values() }

// vector reports whether all values are the channels of one pixel.
func (im *importer) vector(v *value) bool { return im.batch*v.shape.Pixels() == 1 }

// centred returns a value whose numbers are q − zero.
func (im *importer) centred(o *schema.Operator, v *value) *value {
	if v.offset == v.zero {
		return v
	}
	y := im.affine(o, "/zero", v, nil, []float32{float32(v.offset - v.zero)})
	out := *v
	out.layer, out.offset = y.layer, v.zero
	return &out
}

// like gives a value the type of another one, of whose numbers it is made.
func (v *value) like(from *value) {
	v.typ, v.offset, v.scale, v.zero = from.typ, from.offset, from.scale, from.zero
}

// integers8 makes 8-bit integers like those of q: −128 and one more for each threshold
// that is reached.
func (im *importer) integers8(o *schema.Operator, y *value, thresholds []float32, q *value) *value {
	offset := im.endOffset(o, q)
	out := im.emit(o, "", bcnn.Quantize{Low: math.MinInt8 - offset, Levels: steps8 + 1, Thresholds: thresholds}, y.shape, y)
	out.like(q)
	out.offset = offset
	return out
}

// moved returns an input whose values an operator moves: numbers, or integers that are 0
// for 0.
func (im *importer) moved(o *schema.Operator, i int) *value {
	v := im.value(o, i)
	if v.typ == schema.Int8 {
		return im.centred(o, v)
	}
	try.Check(v.checkReal())
	return v
}

// as marks a value as one whose numbers are those of another.
func as(from, v *value) *value {
	v.like(from)
	return v
}

// signed returns 8-bit values as INT8: those of UINT8 less 128, which are the same numbers.
func (v *value) signed() *value {
	out := *v
	if v.typ == schema.Uint8 {
		out.typ, out.offset, out.zero = schema.Int8, v.offset-128, v.zero-128
	}
	return &out
}

// unsigned returns values of INT8 as UINT8.
func (v *value) unsigned() *value {
	out := *v
	out.typ, out.offset, out.zero = schema.Uint8, v.offset+128, v.zero+128
	return &out
}

// requantize is QUANTIZE of 8-bit values to others. Between UINT8 and INT8 of the same scale it
// only moves the integers by 128, as converters put it around networks whose input or output is
// to be UINT8.
func (im *importer) requantize(o *schema.Operator, v *value) *value {
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if t.Type != schema.Int8 && t.Type != schema.Uint8 {
		try.Failf("an output of %v for an input of %v is not supported", t.Type, v.typ)
	}
	q := &value{typ: t.Type}
	try.Check(q.quantized(t))
	from, y := v.typ, v.signed()
	switch s := q.signed(); {
	case from != t.Type && y.scale == s.scale && y.zero == s.zero:
	case v.probabilities:
		try.Failf("probabilities are supported only as they are, not in another scale")
	default:
		y = im.rescaled(o, y, s)
	}
	if t.Type == schema.Uint8 {
		return y.unsigned()
	}
	return y
}

// rescaled gives values of INT8 the scale and zero point of q.
func (im *importer) rescaled(o *schema.Operator, v, q *value) *value {
	f := newFactor(float64(v.scale) / float64(q.scale))
	const most = math.MaxUint8
	f.fits(most)
	limits := clamp{math.MinInt8, math.MaxInt8}
	level := func(x int64, r rounding) int64 { return limits.of(f.of(x, r) + int64(q.zero)) }
	n := im.many(v)
	channels, whole := 1, n/blockSize*blockSize
	if whole != n && im.vector(v) {
		channels = n
	} else if whole != n && whole > 0 { // without a block, all round as the rest does
		for x := int64(-most); x <= most; x++ {
			if level(x, halvesUp) != level(x, halvesAway) {
				im.deviates(o, "the last %d of %d values may differ by at most 1, if they are halfway between two integers", n-whole, n)
				break
			}
		}
	}
	return im.table8(o, v, q, channels, func(c int, x int64) int64 {
		return level(x, rounding(channels > 1 && c >= whole || n < blockSize))
	})
}

// deviates notes that an operator's integers may be others than those of the interpreter.
func (im *importer) deviates(o *schema.Operator, format string, args ...any) {
	name := fmt.Sprintf("operator %d (%s): ", o.Index, o.Name)
	im.report.Deviations = append(im.report.Deviations, name+fmt.Sprintf(format, args...))
}

// relu8 is RELU, RELU6 or RELU_N1_TO_1 of 8-bit values.
func (im *importer) relu8(o *schema.Operator, v *value) *value {
	q := im.output8(o.Outputs[0])
	limits := q.activationRange(map[string]int{"RELU": actReLU, "RELU6": actReLU6, "RELU_N1_TO_1": actReLU1}[o.Name])
	f := newFactor(float64(v.scale / q.scale))
	f.fits(math.MaxUint8)
	return im.table8(o, v, q, 1, func(_ int, x int64) int64 { return limits.of(f.of(x, halvesAway) + int64(q.zero)) })
}

// activated8 is the activation of a pool, whose input and output are of one scale.
func (im *importer) activated8(o *schema.Operator, v *value, kind int) *value {
	limits := v.activationRange(kind)
	if kind == actNone {
		return v
	}
	if limits.lo > limits.hi {
		try.Failf("the fused activation leaves no 8-bit integer, with zero point %d and scale %v", v.zero, v.scale)
	}
	y := im.emit(o, "/activation", bcnn.Clip{Min: float32(limits.lo) - float32(v.offset), Max: float32(limits.hi) - float32(v.offset)}, v.shape, v)
	return as(v, y)
}

// maxMean is how many values a mean of 8-bit values may be of, so that the float32 next to
// a quotient tells which integer it comes from.
const maxMean = 1 << 12

// averagePool8 is AVERAGE_POOL_2D of 8-bit values: the mean of the integers q, rounded,
// halves away from 0.
func (im *importer) averagePool8(o *schema.Operator, v *value, window bcnn.Window, shape bcnn.Shape) *value {
	q := im.output8(o.Outputs[0])
	if window.KH*window.KW > maxMean {
		try.Failf("a mean of %d×%d 8-bit values is not supported, only of at most %d values", window.KH, window.KW, maxMean)
	}
	if q.scale != v.scale || q.zero != v.zero {
		try.Failf("its output has another scale or zero point than its input")
	}
	limits := q.activationRange(int(o.Options.Uint8(5, 0)))
	thresholds := im.newFloats(steps8)
	v.nearest8(thresholds)
	for k := range thresholds {
		switch level := int64(math.MinInt8 + 1 + k); {
		case level <= limits.lo:
			thresholds[k] = -maxSum
		case level > limits.hi:
			thresholds[k] = maxSum
		}
	}
	v = im.centred(o, v)
	y := im.emit(o, "/mean", bcnn.AvgPool{Window: window}, shape, v)
	return im.integers8(o, y, thresholds, q)
}

// nearest8 sets the thresholds of the integers next to q, of numbers q − zero: halves
// away from 0.
func (v *value) nearest8(thresholds []float32) {
	for k := range thresholds {
		level := math.MinInt8 + 1 + k
		thresholds[k] = float32(level-v.zero) - 0.5
		if level <= 0 { // reached beyond the half
			thresholds[k] = math.Nextafter32(thresholds[k], math.MaxFloat32)
		}
	}
}

// mean8 is MEAN or SUM of 8-bit values over windows of all of a height, a width or both.
func (im *importer) mean8(o *schema.Operator, v *value, window bcnn.Window, shape bcnn.Shape) *value {
	q := im.output8(o.Outputs[0])
	n := int64(window.KH) * int64(window.KW)
	if n > maxMean {
		try.Failf("a mean or sum of %d 8-bit values is not supported, only of at most %d", n, maxMean)
	}
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	// Two kernels do this; of images to images of one pixel it is the faster one, unless the
	// file counts dimensions from the last.
	listed := im.integers(o, 1)
	direct := o.Name == "MEAN" && v.rank == 4 && len(t.Dims) == 4 && len(listed) == 2 && slices.Contains(listed, dimH) && slices.Contains(listed, dimW)
	limits := clamp{math.MinInt8, math.MaxInt8}
	var level func(c int, sum int64) int64
	if direct {
		f := newFactor(float64(v.scale / float32(float32(n)*q.scale)))
		zero := float32(float32(v.zero)*v.scale) / q.scale
		shift := int64(q.zero) - int64(math.Trunc(float64(zero+float32(math.Copysign(0.5, float64(zero))))))
		f.fits(n * 128)
		whole := shape.C / blockSize * blockSize
		level = func(c int, sum int64) int64 {
			return limits.of(f.of(sum+n*int64(v.zero), rounding(c >= whole)) + shift)
		}
	} else {
		of := meanLevels(o, v, q, n)
		level = func(_ int, sum int64) int64 { return of(sum) }
	}
	channels := 1
	if direct {
		channels = shape.C
	}
	thresholds := im.newFloats(channels * steps8)
	lo, hi := n*int64(math.MinInt8-v.zero), n*int64(math.MaxInt8-v.zero)
	for c := range channels {
		list := thresholds[c*steps8:][:steps8]
		im.steps8Of(list, lo, hi, func(x int64) int64 { return level(c, x) })
		for k := range list { // of the means
			list[k] = float32(float64(list[k]) / float64(n))
		}
	}
	v = im.centred(o, v)
	y := im.emit(o, "/mean", bcnn.AvgPool{Window: window}, shape, v)
	return im.integers8(o, y, thresholds, q)
}

// softmax8 is SOFTMAX of 8-bit values at the end: of the numbers that they stand for.
func (im *importer) softmax8(o *schema.Operator, v *value, beta float32) *value {
	v = im.centred(o, v)
	v = im.affine(o, "/beta", v, []float32{v.scale * beta}, nil)
	q := im.output8(o.Outputs[0])
	if o.Name == "LOG_SOFTMAX" {
		im.deviates(o, "gives logarithms that are rounded once: the integers differ by at most 1")
	} else {
		im.deviates(o, "gives probabilities that are rounded once: the integers differ by at most 1")
	}
	y := im.emit(o, "", bcnn.Softmax{Log: o.Name == "LOG_SOFTMAX"}, v.shape, v)
	y.like(q)
	y.probabilities = true
	return y
}

// both8 returns the operands of an operator on two values of 8 bits, nil if they are not.
func (im *importer) both8(o *schema.Operator) (v, w *value) {
	if len(o.Inputs) != 2 {
		return nil, nil
	}
	var list [2]*value
	for i := range list {
		r := im.operand(o, i)
		if r.value == nil || r.value.typ != schema.Int8 {
			return nil, nil
		}
		list[i] = im.settled(r.value.undivided())
	}
	return list[0], list[1]
}

// product8 returns what the output of MUL of 8-bit values is like, and its integers as a
// function of products.
func (im *importer) product8(o *schema.Operator, v, w *value, act int) (q *value, level func(x int64) int64) {
	q = im.output8(o.Outputs[0])
	limits := q.activationRange(act)
	f := newFactor(float64(float32(v.scale*w.scale) / q.scale))
	f.fits(maxProduct8)
	return q, func(x int64) int64 { return limits.of(f.of(x, halvesAway) + int64(q.zero)) }
}

// maxProduct8 is the largest product of differences of 8-bit integers.
const maxProduct8 = math.MaxUint8 * math.MaxUint8

// mul8 is MUL of 8-bit values: thresholds of the product of integers.
func (im *importer) mul8(o *schema.Operator, v, w *value, act int) *value {
	q, level := im.product8(o, v, w, act)
	thresholds := im.newFloats(steps8)
	im.steps8Of(thresholds, -maxProduct8, maxProduct8, level)
	if w.shape.Values() > v.shape.Values() {
		v, w = w, v
	}
	v = im.centred(o, v)
	w = im.centred(o, w)
	y := im.emit(o, "/product", bcnn.Mul{}, v.shape, v, w)
	return im.integers8(o, y, thresholds, q)
}
