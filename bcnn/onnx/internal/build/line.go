package build

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// line is a function that never falls: the value itself, or the integers that it is rounded to,
// within limits.
//
// Exporters write a quantisation as one operator, Quant of QONNX, or as QuantizeLinear, Clip and
// DequantizeLinear, or as Clip, Mul, Round and Div. In each of them one operator rounds, and those
// around it are a limit, a scale, or a zero point.
type line struct {
	lo, hi   float64   // limits of the value or, if it is rounded, of the integers
	rounding *rounding // nil for the value itself
	shift    float64   // added to the integers behind the limits
	// A rounded value is gain·(integer + shift) + offset.
	gain, offset float32
}

func unlimited() *line { return &line{lo: math.Inf(-1), hi: math.Inf(1)} }

// channels returns how many channels have a function of their own, 1 if all have the same.
func (l *line) channels() int {
	if l.rounding == nil {
		return 1
	}
	return l.rounding.channels
}

// value evaluates the line for a number of a channel.
func (l *line) value(channel int, x float32) float32 {
	if l.rounding == nil {
		return float32(max(l.lo, min(float64(x), l.hi)))
	}
	return l.number(max(l.lo, min(l.rounding.at(channel, x), l.hi)))
}

// number returns what integer k stands for.
func (l *line) number(k float64) float32 { return f32.FMA(float32(k+l.shift), l.gain, l.offset) }

// crossings returns, ascending, the numbers at which the line of channel 0 may pass from below x to
// x, and from x to above it.
func (l *line) crossings(x float64) []float32 {
	var list []float32
	if l.rounding == nil {
		for _, t := range []float64{l.lo, x, l.hi} {
			if t >= -math.MaxFloat32 && t <= math.MaxFloat32 {
				list = append(list, float32(t))
			}
		}
	} else {
		list = append(list, f32.Least(func(y float32) bool { return float64(l.value(0, y)) >= x }),
			f32.Least(func(y float32) bool { return float64(l.value(0, y)) > x }))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// limit limits a line to values from lo to hi. ok is false if one of them is not exactly what an
// integer stands for or, without a rounding, no float32.
func (l *line) limit(lo, hi float64) (out *line, ok bool) {
	at := func(x float64) (k float64, ok bool) {
		switch {
		case math.Abs(x) >= math.MaxFloat32:
			return math.Copysign(math.Inf(1), x), true
		case l.rounding == nil:
			return x, float64(float32(x)) == x
		}
		k = math.Round((x - float64(l.offset)) / float64(l.gain))
		return k - l.shift, math.Abs(k) < mostWhole && float64(f32.FMA(float32(k), l.gain, l.offset)) == x
	}
	low, okLow := at(lo)
	high, okHigh := at(hi)
	if !okLow || !okHigh {
		return nil, false
	}
	limited := *l
	limited.lo, limited.hi = max(low, min(l.lo, high)), max(low, min(l.hi, high))
	return &limited, true
}

// mostWhole is the magnitude up to which roundings are followed.
const mostWhole = 1 << 20

// Clip limits a value to min(max(v, lo), hi). If lo is above hi, all values are hi, as ONNX has it
// since opset 13.
func (b *Builder) Clip(n *pb.Node, v *Value, lo, hi float64) Operand {
	if math.IsNaN(lo) || math.IsNaN(hi) {
		try.Failf("limits %v and %v must not be NaN", lo, hi)
	}
	lo = min(lo, hi)
	f := b.funcOf(v)
	if l := v.line(); l != nil && l.rounding != nil {
		if out, ok := l.limit(lo, hi); ok {
			return Operand{Value: b.pending(n, v.Type, f.with(out))}
		}
	}
	try.Check(v.CheckReal())
	for _, limit := range []float64{lo, hi} {
		if math.Abs(limit) <= math.MaxFloat32 && float64(float32(limit)) != limit {
			try.Failf("the limit %v has no exact float32 value", limit)
		}
	}
	if f.steps() || !f.scalar() {
		f = b.funcOf(b.Settle(v))
	}
	if l := f.pieces[0].line; len(f.pieces) == 1 && l.rounding == nil {
		l, _ = l.limit(lo, hi)
		return Operand{Value: b.pending(n, pb.Float, f.with(l))}
	}
	return b.clipByChoice(n, v, lo, hi)
}

// clipByChoice is Clip as Where(x < lo, lo, x) and Where(x > hi, hi, x).
func (b *Builder) clipByChoice(n *pb.Node, v *Value, lo, hi float64) Operand {
	r := Operand{Value: v}
	yes, no := eval.Scalar(pb.Bool, 1), eval.Scalar(pb.Bool, 0)
	for i, limit := range []float64{lo, hi} {
		if math.Abs(limit) > math.MaxFloat32 {
			continue
		}
		t := eval.Scalar(pb.Float, limit)
		c := b.Threshold(n, r.Value, t, yes, no, no)
		if i == 1 {
			c = b.Threshold(n, r.Value, t, no, no, yes)
		}
		chosen, ok := b.Where(n, []Operand{c, {Constant: t}, r})
		if !ok {
			return b.Clip(n, b.Settle(v), lo, hi)
		}
		r = chosen
	}
	return r
}

// WithoutLimits returns a value without its pending limits, and a function that makes them pending on
// another value. A maximum over pixels commutes with limits.
func (v *Value) WithoutLimits() (bare *Value, again func(out *Value)) {
	bare, _, _, ok := v.Limits()
	if !ok {
		return v, func(*Value) {}
	}
	return bare, func(out *Value) {
		f := v.Func.with(v.line())
		f.base = out.With(out.Node)
		out.Func = f
	}
}

// Limits returns the pending limits of a value, and the value without them. ok is false if nothing
// or something else is pending.
func (v *Value) Limits() (bare *Value, lo, hi float64, ok bool) {
	l := v.line()
	if l == nil || l.rounding != nil || math.IsInf(l.lo, -1) && math.IsInf(l.hi, 1) {
		return nil, 0, 0, false
	}
	return v.Func.base, l.lo, l.hi, true
}

// with returns the function of the same base that is one line.
func (f *Func) with(l *line) *Func {
	return &Func{base: f.base, pieces: []piece{{line: l}}, node: f.node}
}

// roundedLine returns the line of a rounded value, nil for others.
func (v *Value) roundedLine() *line {
	if l := v.line(); l != nil && l.rounding != nil {
		return l
	}
	return nil
}

// IsRounded reports whether a rounding to integers is pending on the value.
func (v *Value) IsRounded() bool { return v.roundedLine() != nil }

// Scaled multiplies a rounded FLOAT value by a positive factor. ok is false for other values and
// factors.
func (v *Value) Scaled(n *pb.Node, factor float64) (out *Value, ok bool) {
	s := v.roundedLine()
	if s == nil || v.Type != pb.Float {
		return nil, false
	}
	gain, offset := float32(factor*float64(s.gain)), float32(factor*float64(s.offset))
	return v.rescaled(n, gain, offset), gain > 0 && !math.IsInf(float64(gain), 0) && offset-offset == 0
}

// rescaled returns a rounded value with another gain and offset.
func (v *Value) rescaled(n *pb.Node, gain, offset float32) *Value {
	s := *v.line()
	s.gain, s.offset = gain, offset
	out := v.With(n)
	out.Func = v.Func.with(&s)
	return out
}

// Moved adds a number to a rounded FLOAT value. ok is false for other values, and if it is not
// exact.
func (v *Value) Moved(n *pb.Node, by float64) (out *Value, ok bool) {
	s := v.roundedLine()
	if s == nil || v.Type != pb.Float {
		return nil, false
	}
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

// movedExactly reports whether adding by to the values gives what the new offset gives. Without the
// check it might not: numbers that are added one after the other are rounded each time. It is false
// if there are more values than levels.
func (l *line) movedExactly(by, offset float32) bool {
	if l.offset == 0 {
		return true
	}
	lo, hi := l.lo+l.shift, l.hi+l.shift
	if !(hi-lo <= 2*bcnn.MaxLevels) {
		return false
	}
	for k := lo; k <= hi; k++ {
		if f32.FMA(float32(k), l.gain, l.offset)+by != f32.FMA(float32(k), l.gain, offset) {
			return false
		}
	}
	return true
}

// Shifted adds an integer to a rounded value, before its gain.
func (v *Value) Shifted(n *pb.Node, by float64) *Value {
	s := *v.line()
	s.shift += by
	out := v.With(n)
	out.Func = v.Func.with(&s)
	return out
}

// OneStep returns a rounding to two integers as a step, whose constants need not be evenly spaced:
// 2q − 1 is ±1 where q is 0 or 1. ok is false for other values.
func (b *Builder) OneStep(v *Value) (out *Value, ok bool) {
	s := v.roundedLine()
	if s == nil || s.hi-s.lo != 1 || s.channels() != 1 || v.Type != pb.Float {
		return nil, false
	}
	lo, hi := eval.Scalar(pb.Float, float64(s.number(s.lo))), eval.Scalar(pb.Float, float64(s.number(s.hi)))
	t, at := s.least(0, s.hi), hi
	if last := math.Nextafter32(t, -math.MaxFloat32); rounder(last, t) {
		t, at = last, lo
	}
	return b.Threshold(v.Node, v.Func.base, eval.Scalar(pb.Float, float64(t)), lo, at, hi).Value, true
}

// rounder reports whether x has fewer significant bits than y, as ½ has than its neighbours.
func rounder(x, y float32) bool {
	return bits.TrailingZeros32(math.Float32bits(x)) > bits.TrailingZeros32(math.Float32bits(y))
}

// Convert returns a rounded value as another type that holds all of its integers. ok is false for
// other values.
func (v *Value) Convert(n *pb.Node, typ pb.DataType) (out *Value, ok bool) {
	lo, hi := math.Inf(-1), math.Inf(1)
	switch {
	case typ.Quantised():
		least, most := typ.Limits()
		lo, hi = float64(least), float64(most)
	case typ != pb.Float && typ != pb.Int32 && typ != pb.Int64:
		return nil, false
	}
	s := v.roundedLine()
	if s == nil || s.gain != 1 || s.offset != 0 || s.lo+s.shift < lo || s.hi+s.shift > hi || s.hi-s.lo > mostWhole {
		return nil, false
	}
	out = v.With(n)
	out.Type = typ
	return out, true
}

// Integers returns the integers of a quantised value as a settled FLOAT value.
func (b *Builder) Integers(n *pb.Node, v *Value) *Value {
	out, ok := v.Convert(n, pb.Float)
	if !ok {
		out = v.With(n)
		out.Type = pb.Float
	}
	return b.Settle(out)
}

// Lowered emits settled integers of a type of at most 8 bits less a zero point, as levels: what scales
// them is exact then, as it is not behind a sum.
func (b *Builder) Lowered(n *pb.Node, v *Value, typ pb.DataType, zero float64) *Value {
	least, most := typ.Limits()
	lo, hi := b.Bounds(v)
	lo, hi = max(lo, float64(least)), min(hi, float64(most))
	switch {
	case zero == 0:
		return v
	case lo >= hi: // a constant
		return b.always(n, v, float32(lo-zero))
	}
	q := bcnn.Quantize{Low: int(lo - zero), Levels: int(hi-lo) + 1}
	for k := lo + 1; k <= hi; k++ {
		q.Thresholds = append(q.Thresholds, float32(k))
	}
	return b.Emit(n, "/levels", q, v.Shape, v)
}

// lineLayer emits a Clip, or a Quantize with its gain and offset, for a line.
func (b *Builder) lineLayer(v *Value) *Value {
	s, base := v.line(), v.Func.base
	if s.rounding == nil {
		limit := func(x float64) float32 {
			if math.Abs(x) > math.MaxFloat32 {
				return float32(math.Inf(int(math.Copysign(1, x))))
			}
			return float32(x)
		}
		return b.Emit(v.Func.node, "", bcnn.Clip{Min: limit(s.lo), Max: limit(s.hi)}, v.Shape, base)
	}
	if out := b.manyLevels(v); out != nil {
		return out
	}
	s.checkBounded()
	low, levels := s.lo+s.shift, int(s.hi-s.lo)+1
	if levels < 2 { // a constant
		return b.always(v.Node, base, s.number(s.lo))
	}
	q := bcnn.Quantize{Low: int(low), Levels: levels}
	for c := range s.channels() {
		try.Check(b.budget.Charge(64 * int64(levels)))
		for k := 1; k < levels; k++ {
			q.Thresholds = append(q.Thresholds, s.least(c, s.lo+float64(k)))
		}
	}
	return b.scaled(v.Node, b.Emit(v.Node, "", q, base.Shape, base), []float32{s.gain}, []float32{s.offset})
}

// least returns the least number that is rounded to k or more.
func (l *line) least(channel int, k float64) float32 {
	return f32.Least(func(x float32) bool { return l.rounding.at(channel, x) >= k })
}

// checkBounded fails if a line has more integers than there may be levels.
func (l *line) checkBounded() { try.Check(l.levelled()) }

// levelled returns why a line has no levels: it has too many integers.
func (l *line) levelled() error {
	if !(l.hi-l.lo < mostWhole) {
		return errors.New("it rounds to whole numbers without bounds: a Clip must stand before or behind it")
	}
	low, high := l.lo+l.shift, l.hi+l.shift
	if high-low+1 > bcnn.MaxLevels || max(-low, high, low, -high) > bcnn.MaxLevels {
		return fmt.Errorf("it gives whole numbers from %v to %v, of which at most %d levels are supported", low, high, bcnn.MaxLevels)
	}
	return nil
}
