package tflite

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Whole numbers of a few levels, as DoReFa and its kin make them: a clip, a factor, ROUND,
// and another factor.

// rounded is a rounding of a value to whole numbers, pending until what stands before or
// behind it has bounded them.
type rounded struct {
	lo, hi float64                 // of the whole numbers
	least  func(k float64) float32 // the least number that becomes k or more
}

// above is the least number greater than x.
func above(x float64) float32 { return math.Nextafter32(float32(x), float32(math.Inf(1))) }

// roundings are the operators that round, and the least number of which they make k.
var roundings = map[string]struct {
	of    func(x float64) float64
	least func(k float64) float32
}{
	"CEIL":  {math.Ceil, func(k float64) float32 { return above(k - 1) }},
	"FLOOR": {math.Floor, func(k float64) float32 { return float32(k) }},
	"ROUND": {math.RoundToEven, func(k float64) float32 {
		if math.RoundToEven(k-0.5) < k {
			return above(k - 0.5)
		}
		return float32(k - 0.5)
	}},
}

// round is ROUND, which rounds halves to even, CEIL or FLOOR.
func (im *importer) round(o *schema.Operator) *value {
	v := im.real(o, 0)
	of := try.Value(im.values.Of(v.layer))
	r := roundings[o.Name]
	out := &value{layer: v.layer, shape: v.shape, typ: v.typ, by: o, stairs: &rounded{r.of(of.Min), r.of(of.Max), r.least}}
	return im.stepped(out)
}

// limited narrows stairs, an input, to the whole numbers from lo to hi, by an operator that
// limits them; ok is false where the limits are no whole numbers, or the input is none of
// stairs.
func (im *importer) limited(o *schema.Operator, i int, lo, hi float64) (y *value, ok bool) {
	r := im.operand(o, i)
	v := r.value
	if v == nil || v.stairs == nil || lo != math.Trunc(lo) || hi != math.Trunc(hi) {
		return nil, false // the error is that of who reads the value
	}
	out, s := *v, *v.stairs
	s.lo, s.hi = max(lo, min(s.lo, hi)), max(lo, min(s.hi, hi))
	out.stairs, out.by = &s, o
	y = im.stepped(&out)
	return y, true
}

// stepped makes levels of stairs with few enough of them; others stay pending.
func (im *importer) stepped(v *value) *value {
	s := v.stairs
	if !(s.hi-s.lo < bcnn.MaxLevels) || max(-s.lo, s.hi) > bcnn.MaxLevels {
		return v
	}
	if s.lo == s.hi {
		return floats(im.affine(v.by, "", v, []float32{0}, []float32{float32(s.lo)}))
	}
	op := bcnn.Quantize{Low: int(s.lo), Levels: int(s.hi-s.lo) + 1}
	op.Thresholds = im.newFloats(op.Levels - 1)
	for i := range op.Thresholds {
		op.Thresholds[i] = s.least(s.lo + 1 + float64(i))
	}
	return floats(im.emit(v.by, "", op, v.shape, v))
}

// byNumber returns the number that is one of the two inputs of an operator, and which input
// is the other one; ok is false for other operators.
func (im *importer) byNumber(o *schema.Operator) (number float32, other int, ok bool) {
	for i := range o.Inputs {
		c := im.operand(o, i).constant
		if c == nil || len(o.Inputs) != 2 {
			continue
		}
		if n := num.Product(c.dims...); n == 1 {
			list, err := try.Do(func() []float32 { return c.floats(im.budget) })
			if err == nil && len(list) == 1 {
				return list[0], 1 - i, true
			}
		}
	}
	return 0, 0, false
}

// limitedByNumber is limited by MAXIMUM or MINIMUM with a number.
func (im *importer) limitedByNumber(o *schema.Operator) (y *value, ok bool) {
	bound, i, ok := im.byNumber(o)
	if !ok {
		return nil, false
	}
	lo, hi := float64(bound), math.Inf(1)
	if o.Name == "MINIMUM" {
		lo, hi = math.Inf(-1), lo
	}
	return im.limited(o, i, lo, hi)
}

// checkBounded refuses stairs that nothing has bounded.
func (v *value) checkBounded() error {
	if v.stairs == nil {
		return nil
	}
	return fmt.Errorf("operator %d (%s) gives integers from %v to %v, but at most %d levels are supported: put a RELU6, MINIMUM or MAXIMUM in front of it or behind it",
		v.by.Index, v.by.Name, v.stairs.lo, v.stairs.hi, bcnn.MaxLevels)
}

// moves says that a value has the numbers of another one in other places.
func (v *value) moves(from *value) *value {
	v.like(from)
	v.by = from.by
	return v
}
