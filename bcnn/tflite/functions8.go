package tflite

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Functions of one 8-bit value, which are tables of 256 integers: thresholds where they
// never fall, or never rise, and where they do both a sum of two such functions.

// table8 emits functions of 8-bit integers, one for each of so many channels or one for
// all: f is the 8-bit integer that becomes of q − zero = x.
func (im *importer) table8(o *schema.Operator, v, q *value, channels int, f func(c int, x int64) int64) *value {
	try.Check(im.budget.Charge(tableUnits * int64(channels)))
	rows := make([]bytes8, channels)
	rises, falls, both := false, false, false
	signs := make([]float32, channels)
	for c := range rows {
		try.Check(im.budget.Charge(0))
		up, down := false, false
		for i := range rows[c] {
			y := int8(f(c, v.integer8(i)))
			if i > 0 {
				up, down = up || y > rows[c][i-1], down || y < rows[c][i-1]
			}
			rows[c][i] = y
		}
		rises, falls, both = rises || up, falls || down, both || up && down
		if signs[c] = 1; down {
			signs[c] = -1
		}
	}
	if both {
		return im.hills8(o, v, q, rows)
	}
	thresholds := im.newFloats(channels * steps8)
	for c, row := range rows {
		k, list := 0, thresholds[c*steps8:][:steps8]
		for i := range row {
			at := i
			if signs[c] < 0 { // what falls with x rises with −x
				at = len(row) - 1 - i
			}
			for ; k < int(row[at])-math.MinInt8; k++ {
				list[k] = signs[c] * float32(v.integer8(at))
			}
		}
		beyond := v.integer8(len(row)-1) + 1 // all integers
		if signs[c] < 0 {
			beyond = 1 - v.integer8(0)
		}
		for ; k < steps8; k++ {
			list[k] = float32(beyond)
		}
	}
	y := im.centred(o, v)
	if falls {
		y = im.affine(o, "/minus", y, signs, nil)
	}
	return im.integers8(o, y, thresholds, q)
}

const (
	// tableUnits is what is charged for a table of all 8-bit values.
	tableUnits = 6 * (steps8 + 1)
	// never8 is beyond all differences of 8-bit integers.
	never8 = 2 * (steps8 + 1)
)

// bytes8 is what a function makes of each of the 8-bit integers.
type bytes8 [steps8 + 1]int8

// integer8 is q − zero of 8-bit integer number i.
func (v *value) integer8(i int) int64 { return int64(i + math.MinInt8 - v.zero) }

// hills8 emits functions that rise and fall: the sum of all rises up to x, less that of
// all falls.
func (im *importer) hills8(o *schema.Operator, v, q *value, rows []bytes8) *value {
	var lists [2][]float32 // thresholds of rises and of falls
	for k := range lists {
		lists[k] = im.newFloats(len(rows) * steps8)
	}
	first := im.newFloats(len(rows))
	offset := im.endOffset(o, q)
	for c, row := range rows {
		first[c] = float32(int(row[0]) - offset)
		var steps [2]int
		for i := 1; i < len(row); i++ {
			k, step := 0, int(row[i])-int(row[i-1])
			if step < 0 {
				k, step = 1, -step
			}
			if steps[k]+step > steps8 {
				try.Failf("a function of an 8-bit value that rises or falls by more than 255 in all is not supported")
			}
			for range step {
				lists[k][c*steps8+steps[k]] = float32(v.integer8(i))
				steps[k]++
			}
		}
		for k, n := range steps {
			for i := n; i < steps8; i++ {
				lists[k][c*steps8+i] = never8
			}
		}
	}
	v = im.centred(o, v)
	var parts [2]*value
	for k, name := range []string{"/rises", "/falls"} {
		parts[k] = im.emit(o, name, bcnn.Quantize{Levels: steps8 + 1, Thresholds: lists[k]}, v.shape, v)
	}
	parts[1] = im.affine(o, "/minus", parts[1], []float32{-1}, first)
	y := im.emit(o, "", bcnn.Add{}, v.shape, parts[0], parts[1])
	y.like(q)
	y.offset = offset
	return y
}

// function8 is an operator that is one function of an 8-bit value: the interpreter
// computes a table of it in float32.
func (im *importer) function8(o *schema.Operator, v *value) *value {
	q := im.output8(o.Outputs[0])
	if o.Name == "HARD_SWISH" {
		return im.hardSwish8(o, v, q)
	}
	f := functionOf(o)
	limits := clamp{math.MinInt8, math.MaxInt8}
	at := func(x int64) float64 {
		real := max(min(v.scale*float32(x), math.MaxFloat32), -math.MaxFloat32)
		return float64(float32(f(float64(real))) * (1 / q.scale))
	}
	uncertain := 0
	for i := range steps8 + 1 {
		x := v.integer8(i)
		y := math.Abs(at(x))
		// What is added up may be larger than the result.
		size := y
		switch o.Name {
		case "ELU":
			size = max(y, 1/float64(q.scale))
		case "GELU":
			size = max(y, math.Abs(float64(v.scale)*float64(x)/float64(q.scale)))
		}
		const roundings = 0x1p-21 // of the interpreter, relative to it
		if y < 2*steps8 && math.Abs(y-math.Floor(y)-0.5) <= roundings*size {
			uncertain++
		}
	}
	if uncertain > 0 {
		im.deviates(o, "results may differ by at most 1, for at most %d of the %d integers: these results are halfway between two integers", uncertain, steps8+1)
	}
	return im.table8(o, v, q, 1, func(_ int, x int64) int64 {
		y := math.Round(min(max(at(x), -4*steps8), 4*steps8))
		return limits.of(int64(y) + int64(q.zero))
	})
}

// functionOf returns what the operators of one value compute.
func functionOf(o *schema.Operator) func(x float64) float64 {
	switch o.Name {
	case "ELU":
		return func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) }
	case "EXP":
		return math.Exp
	case "GELU":
		if o.Options.Uint8(0, 0) != 0 {
			return func(x float64) float64 {
				return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
			}
		}
		return func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }
	case "LOGISTIC":
		return func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	}
	return math.Tanh
}

// hardSwish8 is HARD_SWISH of 8-bit values: integers of 16 bits.
func (im *importer) hardSwish8(o *schema.Operator, v, q *value) *value {
	fine := (1.0 / (1 << 7)) * v.scale // of x·2^7
	output := newFactor(float64(fine / q.scale))
	gate := newFactor(float64(fine / (3.0 / 32768.0)))
	if output.exponent > 0 || output.exponent < -15 {
		try.Failf("an input scale of %v and an output scale of %v differ too much", v.scale, q.scale)
	}
	short := func(f factor) int64 { // the fraction with 15 bits
		return min((f.fraction+1<<15)>>16, math.MaxInt16)
	}
	saturated := func(x int64) int64 { return min(max(x, math.MinInt16), math.MaxInt16) }
	high := func(a, b int64) int64 { // a·b/2^15, rounded
		p := a * b
		if p < 0 {
			return (p + 1 - 1<<14) / (1 << 15)
		}
		return (p + 1<<14) / (1 << 15)
	}
	limits := clamp{math.MinInt8, math.MaxInt8}
	return im.table8(o, v, q, 1, func(_ int, x int64) int64 {
		x <<= 7
		g := x
		if gate.exponent > 0 {
			g = saturated(g << (gate.exponent - 1))
		}
		if g = high(g, short(gate)); gate.exponent > 0 {
			g = saturated(g << 1)
		} else {
			g = shifted(g, -gate.exponent, halvesAway)
		}
		g = (g + 1<<15) >> 1
		y := g * high(x, short(output)) / (1 << 15)
		return limits.of(shifted(y, -output.exponent, halvesAway) + int64(q.zero))
	})
}

// slopes8 is LEAKY_RELU or PRELU of 8-bit values: x where it is not negative, else x times
// the slope of its channel, an integer multiple of unit.
func (im *importer) slopes8(o *schema.Operator, v *value, slopes []int64, unit float32) *value {
	q := im.output8(o.Outputs[0])
	same := newFactor(float64(v.scale / q.scale))
	below := newFactor(float64(float32(v.scale*unit) / q.scale))
	same.fits(math.MaxUint8)
	below.fits(math.MaxUint8 * math.MaxUint8)
	limits := clamp{math.MinInt8, math.MaxInt8}
	return im.table8(o, v, q, len(slopes), func(c int, x int64) int64 {
		if x >= 0 {
			return limits.of(same.of(x, halvesAway) + int64(q.zero))
		}
		return limits.of(below.of(x*slopes[c], halvesAway) + int64(q.zero))
	})
}

// leakyReLU8 is LEAKY_RELU of 8-bit values.
func (im *importer) leakyReLU8(o *schema.Operator, v *value) *value {
	slope := o.Options.Float32(0, 0)
	if slope < 0 {
		return im.slopes8(o, v, []int64{-1}, -slope)
	}
	return im.slopes8(o, v, []int64{1}, slope)
}

// constant8 is a constant operand of 8-bit values.
type constant8 struct {
	value         // its scale and zero point
	list  []int64 // q − zero, of one or of each channel
	size  int     // of all that the file holds
}

// constant8 returns a constant input of an operator on 8-bit values like v.
func (im *importer) constant8(o *schema.Operator, i int, v *value) *constant8 {
	k := im.required(o, i)
	if k.tensor == nil || k.tensor.Type != schema.Int8 {
		try.Failf("its constant must be INT8, like its input")
	}
	c := &constant8{size: len(k.tensor.Data)}
	try.Check(c.quantized(k.tensor))
	list := perChannel(im, k.dims, k.tensor.Data, v)
	try.Check(im.budget.Charge(8 * int64(len(list))))
	c.list = make([]int64, len(list))
	for i, b := range list {
		c.list[i] = int64(int8(b)) - int64(c.zero)
	}
	return c
}

// prelu8 is PRELU of 8-bit values.
func (im *importer) prelu8(o *schema.Operator, v *value) *value {
	c := im.constant8(o, 1, v)
	return im.slopes8(o, v, c.list, c.scale)
}

// withConstant8 returns the computed operand of an operator on two of 8-bit values, and
// the number of the constant one; nil if there is no such pair.
func (im *importer) withConstant8(o *schema.Operator) (*value, int) {
	if len(o.Inputs) != 2 {
		return nil, 0
	}
	for k := range 2 {
		if im.operand(o, k).constant == nil {
			continue
		}
		if v := im.operand(o, 1-k).value; v != nil && v.typ == schema.Int8 {
			return im.settled(v.undivided()), k
		}
	}
	return nil, 0
}

// addConstant8 is ADD or SUB, with the sign −1, of 8-bit values and input k, a constant.
func (im *importer) addConstant8(o *schema.Operator, v *value, k int, sign int64, act int) *value {
	q := im.output8(o.Outputs[0])
	limits := q.activationRange(act)
	c := im.constant8(o, k, v)
	first, second := v, &c.value
	if k == 0 {
		first, second = second, first
	}
	var sums [2]*sum8 // of single values, and of blocks
	for i := range sums {
		sums[i] = newSum8(first, second, q, sign, limits, i == 1)
	}
	level := func(s *sum8, channel int, x int64) int64 {
		i, j := int(x)+v.zero-math.MinInt8, int(c.list[channel%len(c.list)])+c.zero-math.MinInt8
		if k == 0 {
			i, j = j, i
		}
		return s.level(i, j)
	}
	// The interpreter makes blocks of as many values as the constant has, and smaller ones
	// of all values where that is one number.
	channels, whole := len(c.list), 0
	block, run := blockSize, c.size
	if c.size == 1 {
		block, run = blockSize/2, im.many(v)
	}
	switch rest := run % block; {
	case sign < 0 || run < block:
	case run == v.shape.C: // each channel has its place
		channels, whole = run, run-rest
	default:
		whole = channels
		different := false
		for channel := range channels {
			for i := range steps8 + 1 {
				x := v.integer8(i)
				different = different || level(sums[0], channel, x) != level(sums[1], channel, x)
			}
		}
		if rest > 0 && different {
			im.deviates(o, "the last %d of %d values may differ by at most 1, if they are almost halfway between two integers", rest, run)
		}
	}
	return im.table8(o, v, q, channels, func(channel int, x int64) int64 {
		if channel < whole {
			return level(sums[1], channel, x)
		}
		return level(sums[0], channel, x)
	})
}

// mulConstant8 is MUL of 8-bit values and input k, a constant.
func (im *importer) mulConstant8(o *schema.Operator, v *value, k, act int) *value {
	c := im.constant8(o, k, v)
	q, level := im.product8(o, v, &c.value, act)
	return im.table8(o, v, q, len(c.list), func(channel int, x int64) int64 { return level(x * c.list[channel]) })
}

// abs8 is ABS of 8-bit values.
func (im *importer) abs8(o *schema.Operator, v *value) *value {
	q := im.output8(o.Outputs[0])
	f := newFactor(float64(v.scale / q.scale))
	f.fits(math.MaxUint8)
	limits := clamp{math.MinInt8, math.MaxInt8}
	return im.table8(o, v, q, 1, func(_ int, x int64) int64 { return limits.of(f.of(max(x, -x), halvesAway) + int64(q.zero)) })
}

// extreme8 is MAXIMUM or MINIMUM of 8-bit values, of which the interpreter compares the
// integers.
func (im *importer) extreme8(o *schema.Operator, v, w *value) *value {
	im.alike8(o, v, w)
	if w.shape.Values() > v.shape.Values() {
		v, w = w, v
	}
	v = im.centred(o, v)
	w = im.centred(o, w)
	y := im.extremeOf(o, v, w)
	return as(v, y)
}

// extremeConstant8 is MAXIMUM or MINIMUM of 8-bit values and input k, a constant.
func (im *importer) extremeConstant8(o *schema.Operator, v *value, k int) *value {
	c := im.constant8(o, k, v)
	im.alike8(o, v, &c.value)
	return im.table8(o, v, v, len(c.list), func(channel int, x int64) int64 {
		if o.Name == "MINIMUM" {
			return min(x, c.list[channel]) + int64(v.zero)
		}
		return max(x, c.list[channel]) + int64(v.zero)
	})
}

// alike8 tests whether both operands and the output have one scale and zero point.
func (im *importer) alike8(o *schema.Operator, v, w *value) {
	q := im.output8(o.Outputs[0])
	if v.scale != q.scale || v.zero != q.zero || w.scale != q.scale || w.zero != q.zero {
		try.Failf("its inputs and its output have different scales or zero points")
	}
}
