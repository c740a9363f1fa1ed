package tflite

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/f32"
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
func (im *importer) bconv(o *schema.Operator) (*value, error) {
	v, err := im.bits(o, bconvInput)
	if err != nil {
		return nil, err
	}
	filter, err := im.required(o, bconvFilter)
	if err != nil {
		return nil, err
	}
	p, err := im.options(o)
	if err != nil {
		return nil, err
	}
	const known = 1 << 22 // channels
	channels := p.int("channels_in", 1, known)
	act := p.int("fused_activation_function", actNone, actReLU6)
	g := geometry{
		sh: p.int("stride_height", 1, maxSide), sw: p.int("stride_width", 1, maxSide),
		dh: p.int("dilation_height_factor", 1, maxSide), dw: p.int("dilation_width_factor", 1, maxSide),
		valid: p.int("padding", 0, 1) == padValid,
	}
	padValue := p.int("pad_values", 0, 1)
	switch {
	case p.err != nil:
		return nil, p.err
	case channels != v.shape.C:
		return nil, fmt.Errorf("it takes %d channels, its input has %d", channels, v.shape.C)
	}
	w, out, groups, err := im.packedFilter(filter, channels)
	if err != nil {
		return nil, err
	}
	g.kh, g.kw = filter.dims[1], filter.dims[2]
	window, shape, err := g.window(v)
	if err != nil {
		return nil, err
	}
	shape.C = out
	if v.pad != nil && window.Pad != v.pad.Padding {
		return nil, errors.New("padding of a convolution on padding of its input")
	}
	if v.pad != nil { // of zeros, which became +1
		padValue = 1
	}
	taps := g.kh * g.kw * (channels / groups)
	if taps > maxTaps {
		return nil, fmt.Errorf("%d taps, at most %d are supported", taps, maxTaps)
	}
	t, err := im.model.Tensor(o.Outputs[0])
	if err != nil {
		return nil, err
	}
	if window.Pad == (bcnn.Padding{}) {
		padValue = 0
	} else if padValue == 0 && channels/groups%2 != 0 && (t.Type != schema.Float32 || act != actNone) {
		// LCE would count half of the channels of a padded tap as −1.
		return nil, fmt.Errorf("zero padding of %d channels, an odd number, needs an output of FLOAT32 without activation", channels/groups)
	}
	conv := bcnn.Conv2D{Window: window, Out: out, Groups: groups, PadValue: padValue, Weights: bcnn.Weights{Bits: w}}
	y, err := im.emit(o, "/sum", conv, shape, v)
	if err != nil {
		return nil, err
	}
	switch t.Type {
	case schema.Int32:
		return im.bconvBits(o, y, taps)
	case schema.Float32, schema.Int8:
		return im.bconvNumbers(o, y, t, taps, act)
	}
	return nil, fmt.Errorf("an output of %v is not supported", t.Type)
}

// packedFilter returns the weights of a filter [out][kh][kw][words], in which a bit 1
// is −1, and how many groups of channels it is for.
func (im *importer) packedFilter(filter *constant, channels int) (w []uint64, out, groups int, err error) {
	if len(filter.dims) != 4 {
		return nil, 0, 0, fmt.Errorf("its filter has %d dimensions, want 4", len(filter.dims))
	}
	words, err := filter.words()
	if err != nil {
		return nil, 0, 0, err
	}
	out, per := filter.dims[0], filter.dims[3]
	switch total := wordsOf(channels); {
	case total%per != 0 || channels%(total/per) != 0 || out%(total/per) != 0:
		return nil, 0, 0, fmt.Errorf("filters %v do not fit %d channels", filter.dims, channels)
	default:
		groups = total / per
	}
	row := channels / groups
	if wordsOf(row) != per || groups > 1 && row%wordBits != 0 {
		return nil, 0, 0, fmt.Errorf("filters %v do not fit %d channels", filter.dims, channels)
	}
	rows, size := words.Len()/per, bits.Words(row)
	if err := im.budget.Charge(8 * int64(rows) * int64(size)); err != nil {
		return nil, 0, 0, err
	}
	w = make([]uint64, rows*size)
	err = im.budget.Loop(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			to := w[r*size:][:size]
			for i := range per {
				to[i/2] |= uint64(^uint32(words.At(r*per+i))) << (i % 2 * wordBits)
			}
			to[size-1] &= bits.TailMask(row)
		}
	})
	if err == nil {
		err = im.budget.Charge(int64(rows) * int64(per))
	}
	return w, out, groups, err
}

// bconvBits makes packed bits of sums x of so many taps: −1 where (taps − x)/2, the
// number of taps that differ, exceeds the threshold of its channel.
func (im *importer) bconvBits(o *schema.Operator, y *value, taps int) (*value, error) {
	c, err := im.required(o, bconvThresholds)
	if err != nil {
		return nil, err
	}
	thresholds, err := c.words()
	if err != nil {
		return nil, err
	}
	if thresholds.Len() != y.shape.C {
		return nil, fmt.Errorf("%d thresholds for %d channels", thresholds.Len(), y.shape.C)
	}
	bias, err := im.numbers(y.shape.C)
	if err != nil {
		return nil, err
	}
	for i := range bias {
		// Beyond the ends it is always or never −1.
		most := min(max(int(thresholds.At(i)), -1), taps)
		bias[i] = float32(2*most - taps)
	}
	if y, err = im.affine(o, "/threshold", y, nil, bias); err != nil {
		return nil, err
	}
	if y, err = im.emit(o, "", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, y.shape, y); err != nil {
		return nil, err
	}
	y.typ, y.signs = schema.Int32, true
	return y, nil
}

// numbers allocates numbers for a layer.
func (im *importer) numbers(n int) ([]float32, error) {
	if err := im.budget.Charge(8 * int64(n)); err != nil { // and for the loop that sets them
		return nil, err
	}
	return make([]float32, n), nil
}

// bconvNumbers makes numbers of sums of so many taps.
func (im *importer) bconvNumbers(o *schema.Operator, y *value, t *schema.Tensor, taps, act int) (*value, error) {
	multiplier, err := im.floats(o, bconvMultiplier)
	if err != nil {
		return nil, err
	}
	bias, err := im.floats(o, bconvBias)
	if err != nil {
		return nil, err
	}
	if n := y.shape.C; len(multiplier) != n || len(bias) != n {
		return nil, fmt.Errorf("%d multipliers and %d biases for %d channels", len(multiplier), len(bias), n)
	}
	out := &value{}
	if t.Type == schema.Int8 {
		if err := out.quantized(t); err != nil {
			return nil, err
		}
		if multiplier, bias, err = im.rescaled(multiplier, bias, out, taps, act); err != nil {
			return nil, err
		}
	}
	if y, err = im.activation(o, y, act); err != nil {
		return nil, err
	}
	if y, err = im.affine(o, "", y, multiplier, bias); err != nil {
		return nil, err
	}
	y.typ, y.round, y.scale, y.zero, y.positive = t.Type, t.Type == schema.Int8, out.scale, out.zero, false
	return y, nil
}

// rescaled returns multipliers and biases with which x·multiplier + bias, rounded to an
// integer, is the 8-bit integer that LCE gives for every sum x of so many taps.
//
// LCE computes it, in float32, of the number of taps that differ.
func (im *importer) rescaled(multiplier, bias []float32, q *value, taps, act int) (m, b []float32, err error) {
	lo, hi := -taps, taps
	switch act {
	case actReLU:
		lo = 0
	case actReLU1:
		lo, hi = -1, 1
	case actReLU6:
		lo, hi = 0, min(hi, 6)
	}
	if m, err = im.numbers(len(multiplier)); err != nil {
		return nil, nil, err
	}
	if b, err = im.numbers(len(bias)); err != nil {
		return nil, nil, err
	}
	// each calls f for every sum: all are odd, or even, as the number of taps is.
	each := func(f func(x int)) error {
		const work = 4 // of f
		if err := im.budget.Charge((work - 1) * int64(taps+1)); err != nil {
			return err
		}
		return im.budget.Loop(taps+1, func(from, to int) {
			for i := from; i < to; i++ {
				f(min(max(2*i-taps, lo), hi))
			}
		})
	}
	for c := range m {
		m[c] = multiplier[c] / q.scale
		all := float32(taps) * multiplier[c]
		shift := float32(float32(bias[c]+all)/q.scale) + float32(q.zero)
		theirs := func(x int) float64 { return round8(float32(float32(taps-x)*-m[c]) + shift) }
		// Each sum bounds what the bias may be.
		least, most := math.Inf(-1), math.Inf(1)
		err := each(func(x int) {
			y, product := theirs(x), float64(x)*float64(m[c])
			if y > math.MinInt8 {
				least = max(least, y-0.5-product)
			}
			if y < math.MaxInt8 {
				most = min(most, y+0.5-product)
			}
		})
		if err != nil {
			return nil, nil, err
		}
		const wide = 1 // where one end is open
		candidates := []float32{
			float32(float64(bias[c])/float64(q.scale) + float64(q.zero)),
			float32((max(least, most-wide) + min(most, least+wide)) / 2),
		}
		same := false
		for _, candidate := range candidates {
			if same {
				break
			}
			b[c], same = candidate, true
			err = each(func(x int) { same = same && round8(f32.FMA(float32(x), m[c], b[c])) == theirs(x) })
			if err != nil {
				return nil, nil, err
			}
		}
		if !same {
			return nil, nil, fmt.Errorf("channel %d: rounding to 8 bits as LCE does it is not supported where sums·%v + %v are halves", c, m[c], candidates[0])
		}
	}
	return m, b, nil
}

// round8 rounds to a signed 8-bit integer, halves away from 0.
func round8(y float32) float64 {
	return min(max(math.Round(float64(y)), math.MinInt8), math.MaxInt8)
}
