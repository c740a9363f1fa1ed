package tflite

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// The inputs of LceBconv2d.
const (
	bconvInput = iota
	bconvFilter
	bconvMultiplier
	bconvBias
	bconvThresholds
)

// maxTaps is how many taps a binary convolution may have, so that float32 holds all
// sums and thresholds.
const maxTaps = 1 << 22

// bconv is LceBconv2d. With x the sum over ±1, it gives activation(x)·multiplier + bias
// as FLOAT32, or rounded as INT8, or packed bits: −1 where the number of taps that
// differ exceeds a threshold.
func (im *importer) bconv(o *schema.Operator) *value {
	v := im.bits(o, bconvInput)
	filter := im.required(o, bconvFilter)
	p := im.options(o)
	const known = 1 << 22 // channels
	channels := p.int("channels_in", 1, known)
	act := p.int("fused_activation_function", actNone, actReLU6)
	g := geometry{
		sh: p.int("stride_height", 1, maxSide), sw: p.int("stride_width", 1, maxSide),
		dh: p.int("dilation_height_factor", 1, maxSide), dw: p.int("dilation_width_factor", 1, maxSide),
		valid: p.int("padding", 0, 1) == padValid,
	}
	padValue := p.int("pad_values", 0, 1)
	if channels != v.shape.C {
		try.Failf("it takes %d channels, its input has %d", channels, v.shape.C)
	}
	w, out, groups := im.packedFilter(filter, channels)
	g.kh, g.kw = filter.dims[1], filter.dims[2]
	window, shape := g.window(v)
	shape.C = out
	taps := g.kh * g.kw * (channels / groups)
	if taps > maxTaps {
		try.Failf("its kernel has %d taps, at most %d are supported", taps, maxTaps)
	}
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if window.Pad == (bcnn.Padding{}) {
		padValue = 0
	} else if padValue == 0 && channels/groups%2 != 0 && (t.Type != schema.Float32 || act != actNone) {
		// LCE would count half of the channels of a padded tap as −1.
		try.Failf("zero padding of %d channels, an odd number, is supported only with an output of FLOAT32 without activation", channels/groups)
	}
	conv := bcnn.Conv2D{Window: window, Out: out, Groups: groups, PadValue: padValue, Weights: bcnn.Weights{Bits: w}}
	switch t.Type {
	case schema.Int32:
		y := im.emit(o, "/sum", conv, shape, v)
		return im.bconvBits(o, y, taps)
	case schema.Int8:
		return im.bconv8(o, v, conv, shape, t, act)
	case schema.Float32:
		y := im.emit(o, "/sum", conv, shape, v)
		return im.bconvFloats(o, y, act)
	}
	panic(try.Errorf("an output of %v is not supported", t.Type))
}

// packedFilter returns the weights of a filter [out][kh][kw][words], in which a bit 1
// is −1, and how many groups of channels it is for.
func (im *importer) packedFilter(filter *constant, channels int) (w []uint64, out, groups int) {
	if len(filter.dims) != 4 {
		try.Failf("its filter has %d dimensions, want 4", len(filter.dims))
	}
	words := filter.words()
	out, per := filter.dims[0], filter.dims[3]
	switch total := wordsOf(channels); {
	case total%per != 0 || channels%(total/per) != 0 || out%(total/per) != 0:
		try.Failf("filters of shape %v do not fit an input of %d channels", filter.dims, channels)
	default:
		groups = total / per
	}
	row := channels / groups
	if wordsOf(row) != per || groups > 1 && row%wordBits != 0 {
		try.Failf("filters of shape %v do not fit an input of %d channels", filter.dims, channels)
	}
	rows, size := words.Len()/per, bits.Words(row)
	try.Check(im.budget.Charge(8 * int64(rows) * int64(size)))
	w = make([]uint64, rows*size)
	try.Check(im.budget.Loop(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			to := w[r*size:][:size]
			for i := range per {
				to[i/2] |= uint64(^uint32(words.At(r*per+i))) << (i % 2 * wordBits)
			}
			to[size-1] &= bits.TailMask(row)
		}
	}))
	try.Check(im.budget.Charge(int64(rows) * int64(per)))
	return w, out, groups
}

// bconvBits makes packed bits of sums x of so many taps: −1 where (taps − x)/2, the
// number of taps that differ, exceeds the threshold of its channel.
func (im *importer) bconvBits(o *schema.Operator, y *value, taps int) *value {
	c := im.required(o, bconvThresholds)
	thresholds := c.words()
	if thresholds.Len() != y.shape.C {
		try.Failf("it has %d thresholds, want one for each of %d channels", thresholds.Len(), y.shape.C)
	}
	bias := im.newFloats(y.shape.C)
	for i := range bias {
		// Beyond the ends it is always or never −1.
		most := min(max(int(thresholds.At(i)), -1), taps)
		bias[i] = float32(2*most - taps)
	}
	y = im.affine(o, "/threshold", y, nil, bias)
	y = im.emit(o, "", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, y.shape, y)
	y.typ = schema.Int32
	return y
}

// newFloats allocates numbers for a layer.
func (im *importer) newFloats(n int) []float32 {
	try.Check(im.budget.Charge(8 * int64(n)))
	return make([]float32, n)
}

// bconvFactors returns the multipliers and the biases of a binary convolution.
func (im *importer) bconvFactors(o *schema.Operator, channels int) (multiplier, bias []float32) {
	multiplier = im.floats(o, bconvMultiplier)
	bias = im.floats(o, bconvBias)
	if len(multiplier) != channels || len(bias) != channels {
		try.Failf("it has %d multipliers and %d biases, want one of each for each of %d channels", len(multiplier), len(bias), channels)
	}
	return multiplier, bias
}

// bconvFloats makes numbers of sums.
func (im *importer) bconvFloats(o *schema.Operator, y *value, act int) *value {
	multiplier, bias := im.bconvFactors(o, y.shape.C)
	y = im.activation(o, y, act)
	y = im.affine(o, "", y, multiplier, bias)
	y.typ = schema.Float32
	return y
}

// bconv8 emits a binary convolution with an output of INT8: a level for each integer, at
// the sums from which on LCE gives it. Filters whose integers fall as the sums rise are
// complemented.
func (im *importer) bconv8(o *schema.Operator, v *value, conv bcnn.Conv2D, shape bcnn.Shape, t *schema.Tensor, act int) *value {
	multiplier, bias := im.bconvFactors(o, conv.Out)
	out := &value{}
	try.Check(out.quantized(t))
	row := v.shape.C / conv.Groups
	taps := conv.KH * conv.KW * row
	thresholds := im.newFloats(conv.Out * steps8)
	size, words := len(conv.Weights.Bits)/conv.Out, bits.Words(row)
	for c := range conv.Out {
		q, falls := lceInteger(multiplier[c], bias[c], out.scale, out.zero, taps, act)
		if falls {
			try.Check(im.budget.Charge(int64(size)))
			filter := conv.Weights.Bits[c*size:][:size]
			for i := range filter {
				filter[i] = ^filter[i]
				if i%words == words-1 {
					filter[i] &= bits.TailMask(row)
				}
			}
		}
		list := thresholds[c*steps8:][:steps8]
		const work = 4 // of q
		sums := 2*taps + 1
		try.Check(im.budget.Charge((work - 1) * int64(sums)))
		reached := 0 // how many of them
		// All sums are odd, or even, as the number of taps is; thresholds in between lie on a line.
		try.Check(im.budget.Loop(sums, func(from, to int) {
			for i := from; i < to; i++ {
				x := i - taps
				y := q(x)
				if falls {
					y = q(-x)
				}
				for ; reached < y-math.MinInt8; reached++ {
					list[reached] = float32(x)
				}
			}
		}))
		for ; reached < steps8; reached++ {
			list[reached] = float32(taps + 1) // never
		}
	}
	y := im.emit(o, "/sum", conv, shape, v)
	out.typ = schema.Int8
	return im.integers8(o, y, thresholds, out)
}

// steps8 is the number of thresholds of 8-bit integers.
const steps8 = 255

// lceInteger returns the function by which LCE makes 8-bit integers of a sum x of so many
// taps, and whether they fall as x rises. LCE computes in float32, of the number of taps
// that differ, with a shift that it computes in float64, and rounds halves away from 0.
func lceInteger(multiplier, bias, scale float32, zero, taps, act int) (q func(x int) int, falls bool) {
	lo, hi := -taps, taps
	switch act {
	case actReLU:
		lo = 0
	case actReLU1:
		lo, hi = -1, 1
	case actReLU6:
		lo, hi = 0, min(hi, 6)
	}
	m := float32(float64(multiplier) / float64(scale))
	all := float64(float64(taps) * float64(multiplier)) // no fma
	shift := float32(float64((float64(bias)+all)/float64(scale)) + float64(zero))
	return func(x int) int {
		x = min(max(x, lo), hi)
		return round8(float32(float32(taps-x)*-m)+shift, math.MinInt8)
	}, m < 0
}

// round8 rounds to an integer of 8 bits from the least one on, halves away from 0.
func round8(y float32, least int) int {
	return int(min(max(math.Round(float64(y)), float64(least)), float64(least+steps8)))
}
