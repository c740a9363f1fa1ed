package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// rounding is how a value is rounded.
type rounding struct {
	level    func(channel int, x float32) float64
	channels int // 1 if level is the same function for all channels
	// scaled makes layers of a settled value whose integers in a direction, plus those of zeros, are
	// the levels. It is nil for other roundings.
	scaled    func(v *Value) *Value
	direction Direction
	zeros     []float32
}

// Direction is which integer a number becomes: the next one above, the next one below, or the nearest
// one, ties to even.
type Direction int

// The directions of Floor, Round and Ceil.
const (
	Down Direction = iota - 1
	Nearest
	Up
)

// Rounding is how Round rounds a value.
type Rounding struct {
	// Level returns the integer of a number of a channel; with Channels of 1 it is the same
	// function for all.
	Level    func(channel int, x float32) float64
	Channels int
	// Scaled, if it is not nil, makes layers of a value: Level takes their integers in a direction,
	// adds that of Zeros, one number or one per channel, and limits the sums. With it there may be any
	// number of levels.
	Scaled    func(v *Value) *Value
	Direction Direction
	Zeros     []float32
}

// at returns the integer of a number of a channel, as the operators compute it in float32. A value
// may have more channels than the rounding, whose scales one operand of the file gives.
func (r *rounding) at(channel int, x float32) float64 {
	if r.channels == 1 {
		channel = 0
	}
	return r.level(channel, x)
}

// Round rounds a value. The result is of type typ.
func (b *Builder) Round(n *pb.Node, v *Value, typ pb.DataType, how Rounding) Operand {
	try.Check(v.CheckReal())
	f := b.funcOf(v)
	if how.Channels > 1 && (len(f.pieces) > 1 || f.pieces[0].line.channels() > 1) {
		f = b.funcOf(b.Settle(v))
	}
	of := try.Value(b.values.Of(f.base.Layer))
	out := &Func{base: f.base, t: f.t}
	for _, p := range f.pieces {
		if p.constant == nil {
			p.line = b.rounded(p.line, &rounding{how.Level, how.Channels, how.Scaled, how.Direction, how.Zeros}, of)
		} else {
			t := b.eval.NewTensor(typ, p.constant.Dims)
			try.Check(b.budget.Loop(t.Len(), func(lo, hi int) {
				for i := lo; i < hi; i++ {
					t.Set(i, how.Level(0, float32(p.constant.At(i))))
				}
			}))
			p.constant = t
		}
		out.pieces = append(out.pieces, p)
	}
	b.absorb(out, typ)
	return Operand{Value: b.pending(n, typ, out)}
}

// rounded returns the line that rounds the values of l. Its limits are the integers that the base
// can have, whose values are in the set of.
func (b *Builder) rounded(l *line, outer *rounding, of sets.Set) *line {
	r := &rounding{outer.at, max(outer.channels, l.channels()), outer.scaled, outer.direction, outer.zeros}
	if outer.scaled != nil && *l != *unlimited() {
		r.scaled = func(v *Value) *Value { return outer.scaled(b.Settle(b.pending(v.Node, pb.Float, b.funcOf(v).with(l)))) }
	}
	if l.rounding != nil || r.channels > 1 && l.lo > -math.MaxFloat32 || r.channels > 1 && l.hi < math.MaxFloat32 {
		inner := *l
		r.level = func(c int, x float32) float64 { return outer.at(c, inner.value(c, x)) }
	}
	out := &line{rounding: r, lo: math.Inf(1), hi: math.Inf(-1), gain: 1}
	lo, hi := max(of.Min, -math.MaxFloat32), min(of.Max, math.MaxFloat32)
	if l.rounding == nil { // the limits may exclude numbers of the set
		lo, hi = float64(l.value(0, float32(lo))), float64(l.value(0, float32(hi)))
	}
	for c := range r.channels {
		try.Check(b.budget.Charge(4))
		out.lo, out.hi = min(out.lo, r.at(c, float32(lo))), max(out.hi, r.at(c, float32(hi)))
	}
	return out
}

// manyLevels emits layers that round to more integers than there may be levels. It is nil for fewer,
// and for roundings that no layers compute.
func (b *Builder) manyLevels(v *Value) *Value {
	s, r, n := v.line(), v.line().rounding, v.Node
	if r.scaled == nil || s.levelled() == nil {
		return nil
	}
	limited := func(y *Value, lo, hi float64) *Value {
		return b.Settle(b.Clip(n, y, lo, hi).Value)
	}
	y, shift := r.scaled(v.Func.base), float32(s.shift)
	if bounded := s.lo >= -mostNear && s.hi <= mostNear && r.direction == Nearest && len(r.zeros) == 0; bounded {
		y = b.plus(n, b.plus(n, limited(y, s.lo, s.hi), 3*mostNear), shift-3*mostNear)
	} else {
		// The shift is in front of the limits: behind them lowering would multiply it by the gain, and
		// round the product.
		shifts := make([]float32, max(len(r.zeros), 1))
		for c := range shifts {
			if shifts[c] = shift; len(r.zeros) > 0 {
				shifts[c] += r.zeros[c]
			}
		}
		y = limited(b.plus(n, b.wholes(n, y, r.direction), shifts...), s.lo+s.shift, s.hi+s.shift)
	}
	return b.scaled(n, y, []float32{s.gain}, []float32{s.offset})
}

// mostNear is the magnitude up to which the sum with three times of it is rounded to an integer.
const mostNear = 1 << 22

// plus adds one number, or one per channel, to a settled value.
func (b *Builder) plus(n *pb.Node, y *Value, list ...float32) *Value {
	if !slices.ContainsFunc(list, func(x float32) bool { return x != 0 }) {
		return y
	}
	return b.Emit(n, "/sum", bcnn.Affine{Bias: list}, y.Shape, y)
}

// wholes emits the integers of a settled value in a direction, exactly for all numbers: from 2²³ on all
// of them are integers, and below the sum of a magnitude with 2²³ is rounded to one.
func (b *Builder) wholes(n *pb.Node, x *Value, direction Direction) *Value {
	emit := func(suffix string, op bcnn.Op, in ...*Value) *Value { return b.Emit(n, suffix, op, x.Shape, in...) }
	const whole = 1 << 23
	size := emit("/magnitude", bcnn.PReLU{Slope: []float32{-1}}, x)
	small := b.plus(n, b.plus(n, emit("/limits", bcnn.Clip{Max: whole}, size), whole), -whole)
	size = emit("/sum", bcnn.Add{}, small, emit("/beyond", bcnn.ReLU{}, b.plus(n, size, -whole)))
	y := emit("/nearest", bcnn.Mul{}, size, emit("/sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, x))
	if direction == Nearest {
		return y
	}
	// The rest is 1 where the nearest integer is on the wrong side. It is 0 beyond 2²³, also where
	// the number is infinite.
	inside := emit("/limits", bcnn.Clip{Min: -whole, Max: whole}, x)
	near := emit("/limits", bcnn.Clip{Min: -whole, Max: whole}, y)
	scale := float32(direction)
	rest := emit("/rest", bcnn.Affine{Scale: []float32{scale}}, emit("/rest", bcnn.Add{}, inside, emit("/negative", bcnn.Affine{Scale: []float32{-1}}, near)))
	beyond := emit("/wrong", bcnn.Quantize{Levels: 2, Thresholds: []float32{math.SmallestNonzeroFloat32}}, rest)
	return emit("", bcnn.Add{}, y, emit("/step", bcnn.Affine{Scale: []float32{scale}}, beyond))
}
