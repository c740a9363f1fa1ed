package build

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Stairs is a function of a value to whole numbers that never falls, pending: a
// rounding, which a Clip before or behind it bounds. The value is gain times the
// whole number.
//
// Exporters write a quantisation as one operator, Quant of QONNX, or as QuantizeLinear,
// Clip and DequantizeLinear, or as Clip, Mul, Round and Div. In each of them one
// operator rounds, and what stands around it is a limit, a scale, or a zero point.
type Stairs struct {
	base *Value // settled
	// level returns the whole number of a value, as the operators compute it in
	// float32. It is the same for all channels where there is one of them.
	level    func(channel int, x float32) float64
	channels int
	lo, hi   float64 // limits of level
	shift    float64 // is added
	// The values are gain times that, plus offset.
	gain, offset float32
}

// mostStairs is the magnitude beyond which whole numbers are not told apart.
const mostStairs = 1 << 20

// Round makes stairs of a value. The result has the given type.
func (b *Builder) Round(n *pb.Node, v *Value, typ pb.DataType, channels int, level func(channel int, x float32) float64) Operand {
	try.Check(v.CheckReal())
	lo, hi := math.Inf(-1), math.Inf(1)
	base := v
	if v.Clip != nil {
		lo, hi = v.Clip.Lo, v.Clip.Hi
		base = v.With(v.Node)
		base.Clip = nil
	}
	base = b.Settle(base)
	of := try.Value(b.values.Of(base.Layer))
	// What the limits make of the range of the values behind them, which may lie outside.
	lo, hi = max(lo, min(of.Min, hi)), max(lo, min(of.Max, hi))
	s := &Stairs{base: base, level: level, channels: channels, lo: math.Inf(1), hi: math.Inf(-1), gain: 1}
	for c := range channels {
		try.Check(b.budget.Charge(4))
		s.lo = min(s.lo, level(c, float32(max(lo, -math.MaxFloat32))))
		s.hi = max(s.hi, level(c, float32(min(hi, math.MaxFloat32))))
	}
	out := base.With(n)
	out.Stairs, out.Type = s, typ
	return Operand{Value: out}
}

// bounded narrows stairs to the whole numbers of a range of values; ok is false where
// its ends are not just the values of some of them.
func (v *Value) bounded(n *pb.Node, lo, hi float64) (*Value, bool) {
	s := *v.Stairs
	at := func(x float64) (k float64, ok bool) {
		if math.IsInf(x, 0) || math.Abs(x) >= math.MaxFloat32 {
			return math.Copysign(math.Inf(1), x), true
		}
		k = math.Round((x - float64(s.offset)) / float64(s.gain))
		return k - s.shift, math.Abs(k) < mostStairs && float64(f32.FMA(float32(k), s.gain, s.offset)) == x
	}
	low, okLow := at(lo)
	high, okHigh := at(hi)
	if !okLow || !okHigh {
		return nil, false
	}
	s.lo, s.hi = max(low, min(s.lo, high)), max(low, min(s.hi, high))
	out := v.With(n)
	out.Stairs = &s
	return out, true
}

// Scaled multiplies stairs; ok is false for other values.
func (v *Value) Scaled(n *pb.Node, factor float64) (out *Value, ok bool) {
	if !v.whole() {
		return nil, false
	}
	gain, offset := float32(factor*float64(v.Stairs.gain)), float32(factor*float64(v.Stairs.offset))
	return v.rescaled(n, gain, offset), gain > 0 && !math.IsInf(float64(gain), 0) && offset-offset == 0
}

// rescaled returns stairs with another gain and offset.
func (v *Value) rescaled(n *pb.Node, gain, offset float32) *Value {
	s := *v.Stairs
	s.gain, s.offset = gain, offset
	out := v.With(n)
	out.Stairs = &s
	return out
}

// whole reports whether the value is of stairs as real numbers.
func (v *Value) whole() bool { return v.Stairs != nil && v.Type == pb.Float }

// Moved adds a number to stairs; ok is false for other values.
func (v *Value) Moved(n *pb.Node, by float64) (out *Value, ok bool) {
	if !v.whole() {
		return nil, false
	}
	s := v.Stairs
	offset := float32(float64(s.offset) + by)
	k := by / float64(s.gain)
	switch {
	case offset-offset != 0:
		return nil, false
	case s.offset == 0 && k == math.Trunc(k) && math.Abs(k) <= bcnn.MaxLevels:
		return v.Shifted(n, k), true
	}
	return v.rescaled(n, s.gain, offset), s.movedExactly(float32(by), offset)
}

// movedExactly reports whether the values plus a number are what they are with another
// offset: numbers that are added one after the other are rounded one after the other. Of
// more values than levels that is not known.
func (s *Stairs) movedExactly(by, offset float32) bool {
	if s.offset == 0 {
		return true
	}
	lo, hi := s.lo+s.shift, s.hi+s.shift
	if !(hi-lo <= 2*bcnn.MaxLevels) {
		return false
	}
	for k := lo; k <= hi; k++ {
		if f32.FMA(float32(k), s.gain, s.offset)+by != f32.FMA(float32(k), s.gain, offset) {
			return false
		}
	}
	return true
}

// Shifted adds a whole number to stairs, before their gain.
func (v *Value) Shifted(n *pb.Node, by float64) *Value {
	s := *v.Stairs
	s.shift += by
	out := v.With(n)
	out.Stairs = &s
	return out
}

// OneStep is stairs of two whole numbers as a step, whose values may be anything: 2q − 1
// is ±1 where q is 0 or 1. ok is false for other values.
func (b *Builder) OneStep(v *Value) (out *Value, ok bool) {
	s := v.Stairs
	if s == nil || s.hi-s.lo != 1 || s.channels != 1 || v.Type != pb.Float {
		return nil, false
	}
	t := f32.Least(func(x float32) bool { return s.level(0, x) > s.lo })
	value := func(k float64) *eval.Tensor {
		return eval.Scalar(pb.Float, float64(f32.FMA(float32(k+s.shift), s.gain, s.offset)))
	}
	r := b.Threshold(v.Node, s.base, eval.Scalar(pb.Float, float64(t)), value(s.lo), value(s.hi), value(s.hi))
	return r.Value, true
}

// Converted is stairs as another type that holds all of their whole numbers; ok is
// false for other values.
func (v *Value) Converted(n *pb.Node, typ pb.DataType) (out *Value, ok bool) {
	lo, hi := math.Inf(-1), math.Inf(1)
	switch typ {
	case pb.Uint8:
		lo, hi = 0, math.MaxUint8
	case pb.Int8:
		lo, hi = math.MinInt8, math.MaxInt8
	case pb.Float, pb.Int32, pb.Int64:
	default:
		return nil, false
	}
	s := v.Stairs
	if s == nil || s.gain != 1 || s.offset != 0 || s.lo+s.shift < lo || s.hi+s.shift > hi || s.hi-s.lo > mostStairs {
		return nil, false
	}
	out = v.With(n)
	out.Type = typ
	return out, true
}

// stairsLayer emits the layer of stairs.
func (b *Builder) stairsLayer(v *Value) *Value {
	s := v.Stairs
	if !(s.hi-s.lo < mostStairs) {
		try.Failf("it rounds to whole numbers without bounds: a Clip must stand before or behind it")
	}
	low, levels := s.lo+s.shift, int(s.hi-s.lo)+1
	if levels > bcnn.MaxLevels || math.Abs(low) > bcnn.MaxLevels || math.Abs(s.hi+s.shift) > bcnn.MaxLevels {
		try.Failf("it gives whole numbers from %v to %v, of which at most %d levels are supported", low, s.hi+s.shift, bcnn.MaxLevels)
	}
	if levels < 2 { // a constant
		return b.Emit(v.Node, "", bcnn.Affine{Scale: []float32{0}, Bias: []float32{f32.FMA(float32(low), s.gain, s.offset)}}, s.base.Shape, s.base)
	}
	q := bcnn.Quantize{Low: int(low), Levels: levels}
	for c := range s.channels {
		try.Check(b.budget.Charge(64 * int64(levels)))
		for k := 1; k < levels; k++ {
			q.Thresholds = append(q.Thresholds, f32.Least(func(x float32) bool { return s.level(c, x) >= s.lo+float64(k) }))
		}
	}
	return b.scaled(v.Node, b.Emit(v.Node, "", q, s.base.Shape, s.base), []float32{s.gain}, []float32{s.offset})
}

// ternaryLayer emits the layers of a step that has a value of its own at the threshold
// of some channel: the difference to the threshold, negated where the step falls, its
// sign of three values, and the scale of the result.
func (b *Builder) ternaryLayer(v, in *Value, lists stepLists, zeros values.Frequency) *Value {
	channels := lists.channels()
	try.Check(b.budget.Charge(signUnits * int64(channels)))
	g := newBinary(channels)
	const tiny = math.SmallestNonzeroFloat32
	rules := make([]float32, 0, 2*channels) // thresholds
	same, uniform := true, true
	for c := range channels {
		try.Check(b.budget.Charge(signUnits))
		t, lo, mid, hi := lists.at(c)
		rule := []float32{0, tiny}
		if lo == hi && mid == lo {
			g.constant(c, lo)
		} else {
			falls := lo > hi
			if falls {
				lo, hi = hi, lo
			}
			g.compare(c, t, falls)
			g.scale[c], g.shift[c] = b.halves(lo, mid, hi)
			switch mid {
			case hi:
				rule = []float32{0, 0}
			case lo:
				rule = []float32{tiny, tiny}
			case float64(g.shift[c]):
			default:
				option := "SignOfZero"
				if b.options.SignOfZero != 0 {
					option = "OverrideZeros"
				}
				try.Fail(&Choice{option, fmt.Errorf("it gives %v at its threshold, which is not in the middle of %v and %v", mid, lo, hi)})
			}
		}
		rules = append(rules, rule...)
		same = same && rule[0] == rules[0] && rule[1] == rules[1]
		uniform = uniform && g.scale[c] == g.scale[0] && g.shift[c] == g.shift[0] && g.scale[c] != 0
	}
	if same {
		rules = rules[:2]
	}
	q := bcnn.Quantize{Low: -1, Levels: 3, Thresholds: rules}
	if k := g.shift[0] / g.scale[0]; uniform && k == float32(math.Trunc(float64(k))) && max(k, -k) < bcnn.MaxLevels {
		q.Low += int(k) // 0 stays 0
		clear(g.shift)
	}
	out := b.Emit(v.Node, "", q, in.Shape, b.input(g, v, in))
	if b.err == nil {
		b.Ternary = append(b.Ternary, Zero{v.Node, zeros == values.Often, out.Layer})
	}
	return b.scaled(v.Node, out, g.scale, g.shift)
}
