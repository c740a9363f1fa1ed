package tflite

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// sum8 describes ADD or SUB of 8-bit values a and b: with tables of integers, the output is
// a function of their sum that does not fall.
type sum8 struct {
	first, second table8 // of q − zero, from −128 − zero on
	out           factor
	zero          int64
	limits        clamp
}

// table8 is what an operator makes of each of the 8-bit integers.
type table8 [steps8 + 1]int64

// shiftBits are bits behind the point in the sums of ADD and SUB.
const shiftBits = 20

// newSum8 makes the tables, for blocks of values as vectors make them or for the others.
func newSum8(v, w, q *value, sign int64, limits clamp, blocks bool) *sum8 {
	twice := 2 * float64(max(v.scale, w.scale))
	s := &sum8{zero: int64(q.zero), limits: limits}
	s.out = newFactor(twice / (float64(int64(1)<<shiftBits) * float64(q.scale)))
	if s.out.exponent > 0 {
		try.Failf("the scale of its output is too small for the scales of its inputs")
	}
	for k, in := range []*value{v, w} {
		f := newFactor(float64(in.scale) / twice)
		t := &s.first
		if k > 0 {
			t = &s.second
		}
		for i := range t {
			x := int64(i + math.MinInt8 - in.zero)
			if blocks { // where f.exponent is low, bits are lost
				t[i] = f.high(x << shiftBits >> -f.exponent)
			} else {
				t[i] = f.of(x<<shiftBits, halvesAway)
			}
			if k > 0 {
				t[i] *= sign
			}
		}
	}
	return s
}

func (s *sum8) level(i, j int) int64 {
	return s.limits.of(s.out.of(s.first[i]+s.second[j], halvesAway) + s.zero)
}

// add8 is ADD or SUB, with the sign −1, of 8-bit values: a sum of multiples in float32,
// whose thresholds all pairs of integers tell.
func (im *importer) add8(o *schema.Operator, v, w *value, sign int64, act int) *value {
	if w.typ != schema.Int8 || w.shape != v.shape {
		try.Failf("a sum of %v %v and %v %v is not supported: types and shapes must be equal", v.typ, v.shape, w.typ, w.shape)
	}
	q := im.output8(o.Outputs[0])
	limits := q.activationRange(act)
	n := im.many(v)
	blocks := sign > 0 && n >= blockSize
	s := newSum8(v, w, q, sign, limits, blocks)
	if rest := n % blockSize; blocks && rest > 0 {
		other := newSum8(v, w, q, sign, limits, false)
		pairs, most := im.differences(s.level, other.level)
		if pairs > 0 {
			im.deviates(o, "the last %d of %d values may differ by at most %d, for %d of the %d pairs of inputs", rest, n, most, pairs, pairs8)
		}
	}
	a, b, thresholds := im.separate(s, v, w, sign)
	pairs, most := im.differences(s.level, func(i, j int) int64 {
		sum, k := at8(i, v.zero, a)+at8(j, w.zero, b), 0
		for step := (steps8 + 1) / 2; step > 0; step /= 2 {
			if sum >= thresholds[k+step-1] {
				k += step
			}
		}
		return int64(k + math.MinInt8)
	})
	if pairs > 0 {
		im.deviates(o, "results may differ by at most %d, for %d of the %d pairs of inputs", most, pairs, pairs8)
	}
	v = im.multiple(o, "/first", v, a)
	w = im.multiple(o, "/second", w, b)
	y := im.emit(o, "/sum", bcnn.Add{}, v.shape, v, w)
	return im.integers8(o, y, thresholds, q)
}

// multiple emits what at8 computes.
func (im *importer) multiple(o *schema.Operator, suffix string, v *value, factor float32) *value {
	if factor == 1 {
		return im.centred(o, v)
	}
	shifted := v.offset != v.zero
	if v.layer >= 0 {
		_, affine := im.net.Layers[v.layer].Op.(bcnn.Affine)
		shifted = shifted || affine
	}
	if shifted { // a layer that a multiplication would be joined with, which rounds once
		y := im.centred(o, v)
		v = im.emit(o, suffix+"/integers", bcnn.Clip{Min: -steps8, Max: steps8}, y.shape, y)
	}
	return im.affine(o, suffix, v, []float32{factor}, nil)
}

// at8 is the multiple of 8-bit integer number i as a layer computes it.
func at8(i, zero int, factor float32) float32 {
	return float32(float32(i+math.MinInt8-zero) * factor)
}

// pairs8 is the number of pairs of 8-bit integers, and pairUnits what is charged for a
// walk over them.
const (
	pairs8    = (steps8 + 1) * (steps8 + 1)
	pairUnits = 8 * pairs8
)

// differences counts the pairs for which two functions differ, and tells by how much.
func (im *importer) differences(f, g func(i, j int) int64) (pairs int, most int64) {
	try.Check(im.budget.Charge(pairUnits))
	for i := range steps8 + 1 {
		for j := range steps8 + 1 {
			if x, y := f(i, j), g(i, j); x != y {
				pairs++
				most = max(most, x-y, y-x)
			}
		}
	}
	return pairs, most
}

// attempts is how many multiples are tried.
const attempts = 12

// separate finds multiples of two values and thresholds of their float32 sum that tell the
// levels of a sum of tables apart: all of them, or where rounding mixes levels, in no
// attempt.
func (im *importer) separate(s *sum8, v, w *value, sign int64) (a, b float32, thresholds []float32) {
	thresholds = im.newFloats(steps8)
	var best []float32
	for k := range attempts {
		// The larger scale is 1, or a little more.
		unit := 1 + float64(k)/64
		most := float64(max(v.scale, w.scale))
		x, y := float32(unit*float64(v.scale)/most), float32(unit*float64(w.scale)/most*float64(sign))
		try.Check(im.budget.Charge(pairUnits))
		if tell(s, v, w, x, y, thresholds) {
			return x, y, thresholds
		}
		if k == 0 {
			a, b = x, y
			best = im.newFloats(steps8)
			copy(best, thresholds)
		}
	}
	return a, b, best
}

// tell sets thresholds for multiples, and reports whether they tell all levels apart.
func tell(s *sum8, v, w *value, a, b float32, thresholds []float32) bool {
	var least, most [steps8 + 1]float32
	for k := range least {
		least[k], most[k] = math.MaxFloat32, -math.MaxFloat32
	}
	for i := range steps8 + 1 {
		x := at8(i, v.zero, a)
		for j := range steps8 + 1 {
			sum, k := x+at8(j, w.zero, b), s.level(i, j)-math.MinInt8
			least[k], most[k] = min(least[k], sum), max(most[k], sum)
		}
	}
	apart, below := true, float32(-math.MaxFloat32)
	highest := float32(0)
	for _, m := range most {
		highest = max(highest, m)
	}
	above := highest + 1 // never
	for k := steps8; k > 0; k-- {
		above = min(above, least[k])
		thresholds[k-1] = above
	}
	for k, t := range thresholds {
		below = max(below, most[k])
		apart = apart && below < t
	}
	return apart
}
