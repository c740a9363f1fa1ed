package tflite

import (
	"math"
	"sort"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// The arithmetic by which TensorFlow Lite's kernels for x86, which LCE's interpreter runs,
// make 8-bit integers of integer sums: a multiplication by a fixed-point factor, in two
// steps that both round.

// rounding says what the second step makes of halves.
type rounding bool

const (
	halvesUp   rounding = false // towards +∞
	halvesAway rounding = true  // away from 0
)

// factor is fraction·2^(exponent − 31), with a fraction from 2^30 to 2^31, or 0.
type factor struct {
	fraction int64
	exponent int
}

// maxSum is how large an integer may be so that it is a float32, and with it all below.
const maxSum = 1 << 24

func newFactor(scale float64) factor {
	if !(scale >= 0) || math.IsInf(scale, 0) {
		try.Failf("the ratio of its scales is %v, want a finite number of at least 0", scale)
	}
	part, exponent := math.Frexp(scale)
	fraction := int64(math.Round(part * (1 << 31)))
	if fraction == 1<<31 {
		fraction, exponent = fraction/2, exponent+1
	}
	if exponent < -31 {
		return factor{}
	}
	if exponent > 30 {
		try.Failf("the ratio of its scales, %v, is too large", scale)
	}
	return factor{fraction, exponent}
}

// fits fails at an integer that the factor would carry out of 32 bits.
func (f factor) fits(x int64) {
	if shifted := max(x, -x) << max(f.exponent, 0); shifted > math.MaxInt32 {
		try.Failf("sums of up to %d, times 2^%d, exceed 32 bits", max(x, -x), max(f.exponent, 0))
	}
}

// high is x times the fraction, rounded.
func (f factor) high(x int64) int64 { return (x*f.fraction + 1<<30) >> 31 }

// of is x times the factor, rounded.
func (f factor) of(x int64, r rounding) int64 {
	return shifted(f.high(x<<max(f.exponent, 0)), max(-f.exponent, 0), r)
}

// shifted is x/2^n, rounded.
func shifted(x int64, n int, r rounding) int64 {
	if n == 0 {
		return x
	}
	half := int64(1) << (n - 1)
	if r == halvesAway && x < 0 {
		half--
	}
	return (x + half) >> n
}

// clamp is the range that a fused activation leaves of 8-bit integers.
type clamp struct{ lo, hi int64 }

// activationRange returns the range of integers like those of v behind a fused activation.
func (v *value) activationRange(kind int) clamp {
	c := clamp{math.MinInt8, math.MaxInt8}
	at := func(x float32) int64 {
		return int64(v.zero) + int64(math.Round(min(max(float64(x/v.scale), -1<<20), 1<<20)))
	}
	switch kind {
	case actNone:
	case actReLU:
		c.lo = max(c.lo, at(0))
	case actReLU1:
		c.lo, c.hi = max(c.lo, at(-1)), min(c.hi, at(1))
	case actReLU6:
		c.lo, c.hi = max(c.lo, at(0)), min(c.hi, at(6))
	default:
		try.Failf("the fused activation %d is not supported", kind)
	}
	return c
}

func (c clamp) of(x int64) int64 { return min(max(x, c.lo), c.hi) }

// searchUnits is what is charged for each threshold that is searched.
const searchUnits = 32

// steps8Of sets thresholds to the least integers from lo to hi from which on q is −127,
// −126, … or more; q never falls. What is never reached is hi + 1.
func (im *importer) steps8Of(thresholds []float32, lo, hi int64, q func(x int64) int64) {
	try.Check(im.budget.Charge(searchUnits * steps8))
	at, step := lo, int64(0)
	for k := range thresholds {
		level := int64(math.MinInt8 + 1 + k)
		// Steps are about as wide as the last one.
		const near = 3
		from, to := at, hi+1
		if guess := at + step - near; guess > from && guess <= hi && q(guess) < level {
			from = guess
		}
		if guess := at + step + near; guess < to && q(guess) >= level {
			to = guess
		}
		next := from + int64(sort.Search(int(to-from), func(i int) bool { return q(from+int64(i)) >= level }))
		at, step = next, next-at
		thresholds[k] = float32(next)
	}
}

// output8 returns what the 8-bit output of an operator stands for.
func (im *importer) output8(index int) *value {
	t := try.Value(im.model.Tensor(index))
	if t.Type != schema.Int8 {
		try.Failf("an output of %v for an input of INT8 is not supported", t.Type)
	}
	q := &value{typ: schema.Int8}
	try.Check(q.quantized(t))
	return q
}

// scales returns the scales of weights of INT8, one or one for each of so many outputs
// along a dimension, all of which have the zero point 0.
func (c *constant) scales(out, axis int) []float32 {
	t := c.tensor
	if t == nil || t.Type != schema.Int8 {
		try.Failf("its weights must be INT8, like its input")
	}
	if n := len(t.Scale); n != 1 && (n != out || t.Axis != axis) {
		try.Failf("its weights have %d scales along dimension %d, want one, or one for each of %d outputs", n, t.Axis, out)
	}
	for i, s := range t.Scale {
		if t.Zero[i] != 0 || !(s >= 0) || math.IsInf(float64(s), 0) {
			try.Failf("its weights have scale %v and zero point %d, want a finite scale and zero point 0", s, t.Zero[i])
		}
	}
	return t.Scale
}
