package build

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Step is a step function of a value, pending.
//
// Binarisation has no operator of its own in ONNX. Exporters compose it of
// comparisons, Sign, Where, Cast and arithmetic, for instance
//
//	Where(x ≥ 0, 1, −1)           +1 at 0
//	Where(Less(x, 0), −1, 1)      +1 at 0
//	Where(x > 0, 1, −1)           −1 at 0
//	2·Cast(x > 0) − 1             −1 at 0
//	2·Round(Clip(x/2 + ½)) − 1    −1 at 0: Round takes ½ to the even 0
//	Sign(Sign(x) + 0.1)           +1 at 0
//	BipolarQuant(x, scale)        +scale at 0
//	Sign(Relu(x))                 0 at 0, and never −1
//	Sign(x)                       0 at 0: three values, unless x is never 0, see values.Meets
//
// All of them are step functions of x: constant below a threshold, at it, and
// above it. So no pattern is matched. The first operator that makes a step
// gives a step value, every operator on a step maps its three constants, and a
// layer that reads it finds −1, ±1 and +1, or three values, whichever way they came
// about. Steps of one value at several thresholds become one, of more constants: see
// Pointwise, and piecesLayer for what becomes of it.
type Step struct {
	base *Value // settled
	// The thresholds, ascending, each a scalar or broadcast to base, and the values where
	// base < t[0], = t[0], between t[0] and t[1], = t[1], and so on: 2·len(t) + 1.
	t, values []*eval.Tensor
}

// Side returns the value and the number that it is compared with, where the step is true
// above one number for all channels (above) or below it, and the other way on the other
// side. What it is at the number does not count.
func (s *Step) Side() (base *Value, t float64, above, ok bool) {
	if len(s.t) != 1 {
		return nil, 0, false, false
	}
	for _, part := range []*eval.Tensor{s.t[0], s.values[0], s.values[2]} {
		if part.Len() != 1 {
			return nil, 0, false, false
		}
	}
	above = s.values[2].At(0) != 0
	return s.base, s.t[0].At(0), above, above != (s.values[0].At(0) != 0)
}

// Within reports whether all values of a step are numbers of at most a magnitude.
func (b *Builder) Within(s *Step, most float64) (ok bool) {
	ok = true
	for _, part := range s.values {
		try.Check(b.budget.Loop(part.Len(), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				ok = ok && math.Abs(part.At(i)) <= most
			}
		}))
	}
	return ok
}

// Never reports whether the step is 0, or false, everywhere.
func (s *Step) Never() bool {
	for _, part := range s.values {
		if part.Len() != 1 || part.At(0) != 0 {
			return false
		}
	}
	return true
}

// Limits reports whether the value is base, or base with limits.
func (v *Value) Limits(base *Value) bool {
	return v.Layer == base.Layer && v.Type == base.Type && v.Step == nil && v.Stairs == nil && !v.Hole &&
		v.View.Equal(base.View)
}

// Threshold makes a step of a value at t.
func (b *Builder) Threshold(n *pb.Node, v *Value, t, lo, at, hi *eval.Tensor) Operand {
	if t.Type != v.Type {
		try.Failf("operands of %v and %v", v.Type, t.Type)
	}
	base := v
	if c := v.Clip; c != nil {
		base = v.With(v.Node)
		base.Clip = nil
		inside := t.Len() > 0
		try.Check(b.budget.Loop(t.Len(), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				inside = inside && c.Lo < t.At(i) && t.At(i) < c.Hi
			}
		}))
		switch {
		case inside:
		case t.Len() != 1 || t.At(0) != c.Lo && t.At(0) != c.Hi: // the clip counts
			base = b.Settle(v)
		default: // at a bound, below or above it does not exist
			if t.At(0) == c.Lo {
				lo = at
			}
			if t.At(0) == c.Hi {
				hi = at
			}
		}
	}
	base = b.Settle(base)
	if t.Len() == 1 { // likewise at a bound of what the layers can give
		of := try.Value(b.values.Of(base.Layer))
		if t.At(0) == of.Min {
			lo = at
		}
		if t.At(0) == of.Max {
			hi = at
		}
	}
	out := base.With(n)
	out.Type = lo.Type
	out.Step = &Step{base: base, t: []*eval.Tensor{t}, values: []*eval.Tensor{lo, at, hi}}
	return Operand{Value: out}
}

// Settle returns a value with nothing pending: it makes a Sign layer of a step, a Clip layer of
// a clip, and pixels of windows.
func (b *Builder) Settle(v *Value) *Value {
	switch {
	case v.Clip == nil && v.Step == nil && v.Stairs == nil && v.Windows == nil:
		return v
	case v.settled != nil:
		return v.settled
	case v.Windows != nil:
		return b.spread(v)
	}
	if v.Clip != nil {
		v.settled = b.clipLayer(v)
		return v.settled
	}
	try.Check(v.CheckReal())
	layer, what := b.signLayer, "as a binarisation"
	if v.Stairs != nil {
		layer, what = b.stairsLayer, "as a quantisation"
	}
	out, err := try.Do(func() *Value { return layer(v) })
	if err == nil {
		v.settled = out
		return out
	}
	try.Check(b.budget.Charge(0))
	like := v.With(v.Node)
	like.Step, like.Stairs, like.Type = nil, nil, pb.Float
	v.settled = b.Hole(v.Node, fmt.Errorf("%s: %w", what, err), like, []*Value{v})
	return v.settled
}

// Settled returns what Settle has made of the value, nil if it has not been asked.
func (v *Value) Settled() *Value {
	if v != nil && (v.Clip != nil || v.Step != nil || v.Stairs != nil || v.Windows != nil) {
		v = v.settled
	}
	if v == nil || v.Hole || v.View == nil {
		return nil
	}
	return v
}

// signUnits is what a channel of signLayer costs: four numbers and several looks
// at each.
const signUnits = 32

// binary are the layers of a step of one threshold: the sign of direction·x + offset, times
// scale, plus shift, by channel.
type binary struct{ direction, offset, scale, shift []float32 }

func newBinary(channels int) binary {
	return binary{make([]float32, channels), make([]float32, channels), make([]float32, channels), make([]float32, channels)}
}

// constant makes a channel the sign of ±1, times its magnitude.
func (g binary) constant(c int, x float64) {
	g.offset[c], g.scale[c] = float32(math.Copysign(1, x)), float32(math.Abs(x))
}

// compare has a channel compare with t, or the negative with −t.
func (g binary) compare(c int, t float64, negative bool) {
	if g.direction[c], g.offset[c] = 1, float32(-t); negative {
		g.direction[c], g.offset[c] = -1, float32(t)
	}
}

// input emits what the sign is of.
func (b *Builder) input(g binary, v, in *Value) *Value {
	for c := range g.direction {
		if g.direction[c] != 1 || g.offset[c] != 0 {
			return b.Emit(v.Node, "/threshold", bcnn.Affine{Scale: g.direction, Bias: g.offset}, in.Shape, in)
		}
	}
	return in
}

// signLayer emits the layers of a step: the difference to the threshold,
// negated where the step falls, its sign, and the scale of the result.
func (b *Builder) signLayer(v *Value) *Value {
	s := v.Step
	if len(s.t) > 1 {
		return b.piecesLayer(v)
	}
	in, lists, ok := b.stepLists(s)
	if !ok {
		return b.piecesLayer(v)
	}
	// Where all channels fall, the input is negated, so that the result is plain
	// ±1. Where only some do, theirs get a negative scale.
	falls := true
	ternary := false // a channel has a value of its own at the threshold
	for c := range lists.channels() {
		try.Check(b.budget.Charge(signUnits))
		_, lo, mid, hi := lists.at(c)
		if lo == hi && mid != lo {
			return b.piecesLayer(v)
		}
		falls = falls && lo >= hi
		ternary = ternary || mid != lo && mid != hi
	}
	zeros := values.Never
	if ternary {
		zeros = try.Value(b.values.Meets(in.Layer, lists[0]))
		if zeros != values.Never && (b.options.SignOfZero == 0 || zeros == values.Often && !b.options.OverrideZeros) {
			return b.ternaryLayer(v, in, lists, zeros)
		}
	}
	g, rule, exact := b.binaryOf(lists, falls, zeros)
	if !ternary && !exact {
		// The two values are none of ±1, to the last place: as levels they may be, and as a
		// sum of which one part is 0 they are.
		p := b.piecesOf(s)
		if out := b.levelled(v, p); out != nil {
			return out
		}
		return b.chosen(v, p)
	}
	out := b.Emit(v.Node, "", bcnn.Sign{Zero: rule}, in.Shape, b.input(g, v, in))
	if ternary && zeros != values.Never && b.err == nil {
		b.Zeros = append(b.Zeros, Zero{v.Node, zeros == values.Often, out.Layer})
	}
	return b.scaled(v.Node, out, g.scale, g.shift)
}

// binaryOf returns a step as a sign; exact says that ±1, scaled and shifted, are just its two
// values.
func (b *Builder) binaryOf(lists stepLists, falls bool, zeros values.Frequency) (g binary, rule bcnn.ZeroRule, exact bool) {
	g, exact = newBinary(lists.channels()), true
	for c := range g.scale {
		t, lo, mid, hi := lists.at(c)
		if lo == hi && mid == lo {
			g.constant(c, lo)
			continue
		}
		above := b.zeroRule(lo, mid, hi, zeros)
		if falls {
			lo, hi, above = hi, lo, !above
		}
		g.compare(c, t, falls)
		r := bcnn.ZeroIsMinus
		if above {
			r = bcnn.ZeroIsPlus
		}
		if rule != 0 && r != rule {
			try.Failf("its channels differ in the rule for 0")
		}
		rule = r
		g.scale[c], g.shift[c] = b.halves(lo, mid, hi)
		exact = exact && float64(g.shift[c]+g.scale[c]) == hi && float64(g.shift[c]-g.scale[c]) == lo
	}
	if rule == 0 {
		rule = bcnn.ZeroIsPlus // every channel is constant
	}
	return g, rule, exact
}

// scaled emits what makes values of a sign or of levels, if they are not just that.
func (b *Builder) scaled(n *pb.Node, v *Value, scale, shift []float32) *Value {
	one, none := true, true
	for c := range scale {
		one, none = one && scale[c] == 1, none && shift[c] == 0
	}
	if one && none {
		return v
	}
	op := bcnn.Affine{Scale: common(scale), Bias: common(shift)}
	if none {
		op.Bias = nil
	}
	return b.Emit(n, "/values", op, v.Shape, v)
}

// common returns a list of equal numbers as one.
func common(list []float32) []float32 {
	for _, x := range list {
		if x != list[0] {
			return list
		}
	}
	return list[:1]
}

// searchUnits is what a search for a float32 costs.
const searchUnits = 256

// halves returns a scale and a shift with which ±1 become hi and lo, and 0 becomes mid if
// that is between them: an exporter has rounded all three to float32.
func (b *Builder) halves(lo, mid, hi float64) (scale, shift float32) {
	if lo > hi {
		scale, shift = b.halves(hi, mid, lo)
		return -scale, shift
	}
	low, high := float32(lo), float32(hi)
	fits := func(scale, shift float32) bool { return shift+scale == high && shift-scale == low }
	// What rounds to both may lie beside the middle.
	middle := float32((hi + lo) / 2)
	more, less := math.Nextafter32(middle, high), math.Nextafter32(middle, low)
	shifts := [...]float32{float32(mid), middle, more, less, math.Nextafter32(more, high), math.Nextafter32(less, low)}
	between := mid > lo && mid < hi
	for i, shift := range shifts {
		if i == 0 && !between {
			continue
		}
		if scale := float32((hi - lo) / 2); fits(scale, shift) {
			return scale, shift
		}
		try.Check(b.budget.Charge(searchUnits))
		// The smallest scale with which both sums are rounded so.
		scale := max(f32.Least(func(x float32) bool { return shift+x >= high }), f32.Least(func(x float32) bool { return shift-x <= low }))
		if fits(scale, shift) {
			return scale, shift
		}
	}
	// Nothing fits: the last place of one of them is another, or 0 becomes another number.
	shift = middle
	if between && math.Abs(mid-float64(shift)) <= weights.OfFloat32*max(-lo, hi) {
		shift = shifts[0]
	}
	return float32((hi - lo) / 2), shift
}

// zeroRule reports whether the value at the threshold is the one above it.
func (b *Builder) zeroRule(lo, mid, hi float64, zeros values.Frequency) (above bool) {
	switch {
	case mid == hi && lo != hi:
		return true
	case mid == lo && lo != hi:
		return false
	case lo == hi:
		try.Failf("it is %v at its threshold and %v elsewhere", mid, lo)
	case zeros == values.Never:
		return true
	}
	return b.options.SignOfZero == bcnn.ZeroIsPlus
}
