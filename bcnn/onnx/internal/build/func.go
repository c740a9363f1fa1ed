package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Func is a pending function of one value, its base. Thresholds divide the numbers into pieces; in
// each it is a constant or a line: the base itself, limited or rounded.
//
// Binarisation and quantisation have no operators of their own in ONNX. Exporters compose them of
// comparisons, Sign, Where, Cast, Clip, Round and arithmetic, for instance
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
//	Where(x > 1, 1, x)            Clip(x, −∞, 1)
//	Where(Round(x) > 7, 7, Round(x))  levels, at most 7
//
// So no pattern is matched. A comparison makes a function of two constants. Every operator on a
// function maps its pieces. Several functions of one value become one function (see Pointwise and
// Where). The layer that reads the result finds two values, levels or a limit, whichever way they
// came about (see Settle).
type Func struct {
	base *Value // settled
	// The thresholds, ascending, each a scalar or broadcast to base. The 2·len(t) + 1 pieces are
	// where base < t[0], = t[0], between t[0] and t[1], = t[1], and so on.
	t      []*eval.Tensor
	pieces []piece
	node   *pb.Node // that the layers are named after
}

// piece is a constant or, if that is nil, a line.
type piece struct {
	constant *eval.Tensor
	line     *line
}

func constants(list ...*eval.Tensor) []piece {
	out := make([]piece, len(list))
	for i, t := range list {
		out[i].constant = t
	}
	return out
}

func (p piece) equal(q piece) bool {
	if p.constant == nil || q.constant == nil {
		return p.constant == nil && q.constant == nil && (p.line == q.line || *p.line == *q.line)
	}
	return p.constant == q.constant || p.constant.Equal(q.constant)
}

// steps reports whether f is not nil and all of its pieces are constants.
func (f *Func) steps() bool {
	return f != nil && !slices.ContainsFunc(f.pieces, func(p piece) bool { return p.constant == nil })
}

// IsStep reports whether a function of constants alone is pending on the value, as on truth values.
func (v *Value) IsStep() bool { return v.Func.steps() }

// line returns the pending function if it is one line, and otherwise nil.
func (v *Value) line() *line {
	if v.Func == nil || len(v.Func.pieces) != 1 {
		return nil
	}
	return v.Func.pieces[0].line
}

// OneSided returns base and t if the value is a step that is true on one side of t and false on the
// other, with one t for all channels. above says that it is true above t. Its value at t may be
// either. ok is false for other values.
func (v *Value) OneSided() (base *Value, t float64, above, ok bool) {
	f := v.Func
	if !f.steps() || len(f.t) != 1 || f.t[0].Len() != 1 || f.pieces[0].constant.Len() != 1 || f.pieces[2].constant.Len() != 1 {
		return nil, 0, false, false
	}
	above = f.pieces[2].constant.At(0) != 0
	return f.base, f.t[0].At(0), above, above != (f.pieces[0].constant.At(0) != 0)
}

// Within reports whether the value is a step and no constant of it has a magnitude above most.
func (b *Builder) Within(v *Value, most float64) (ok bool) {
	if ok = v.IsStep(); !ok {
		return false
	}
	for _, p := range v.Func.pieces {
		try.Check(b.budget.Loop(p.constant.Len(), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				ok = ok && math.Abs(p.constant.At(i)) <= most
			}
		}))
	}
	return ok
}

// funcOf returns the function that is pending on a value, or the identity on it.
func (b *Builder) funcOf(v *Value) *Func {
	if v.Windows != nil {
		v = b.Settle(v)
	}
	if v.Func != nil {
		return v.Func
	}
	return &Func{base: v, pieces: []piece{{line: unlimited()}}}
}

// pending returns a value with f pending. The identity becomes the base itself, and a ReLU becomes
// a layer at once.
func (b *Builder) pending(n *pb.Node, typ pb.DataType, f *Func) *Value {
	out := f.base.With(n)
	out.Type = typ
	if len(f.pieces) == 1 && f.pieces[0].line != nil && f.pieces[0].line.rounding == nil {
		switch l := f.pieces[0].line; {
		case l.lo <= -math.MaxFloat32 && l.hi >= math.MaxFloat32:
			return out
		case l.lo == 0 && l.hi >= math.MaxFloat32:
			return b.Emit(n, "", bcnn.ReLU{}, out.Shape, out)
		}
	}
	f.node = n
	out.Func = f
	return out
}

// Threshold returns lo where v < t, at where v = t, and hi where v > t.
func (b *Builder) Threshold(n *pb.Node, v *Value, t, lo, at, hi *eval.Tensor) Operand {
	if t.Type != v.Type {
		try.Failf("its operands are %v and %v, which must be of one type", v.Type, t.Type)
	}
	f := b.funcOf(v)
	var out *Func
	if l := f.pieces[0].line; len(f.pieces) == 1 && l.rounding == nil && b.inside(t, l) { // whose limits do not matter
		out = &Func{base: f.base, t: []*eval.Tensor{t}, pieces: constants(lo, at, hi)}
	} else if out = b.compared(f, t, lo, at, hi); out == nil {
		out = &Func{base: b.Settle(v), t: []*eval.Tensor{t}, pieces: constants(lo, at, hi)}
	}
	of := try.Value(b.values.Of(out.base.Layer))
	last := len(out.t) - 1
	if t := out.t[0]; t.Len() == 1 && t.At(0) == of.Min { // the layers give nothing below t
		out.pieces[0] = out.pieces[1]
	}
	if t := out.t[last]; t.Len() == 1 && t.At(0) == of.Max {
		out.pieces[2*last+2] = out.pieces[2*last+1]
	}
	out = &Func{base: out.base, t: out.t, pieces: slices.Clone(out.pieces)}
	out.merge()
	return Operand{Value: b.pending(n, lo.Type, out)}
}

// Bounds returns between which numbers the values of a settled value lie.
func (b *Builder) Bounds(v *Value) (least, most float64) {
	of := try.Value(b.values.Of(v.Layer))
	return of.Min, of.Max
}

// Moved returns move(v), where a function that is pending on v and the same for all channels stays
// pending: move repeats values.
func (b *Builder) Moved(v *Value, move func(v *Value) *Value) *Value {
	if v.Func == nil || v.Windows != nil || !v.Func.uniform() {
		return move(b.Settle(v))
	}
	bare := v.With(v.Node)
	bare.Layer, bare.Func = v.Func.base.Layer, nil
	out := move(bare)
	f := *v.Func
	f.base = out
	out = out.With(out.Node)
	out.Func = &f
	return out
}

// uniform reports whether a function is the same for all channels and pixels.
func (f *Func) uniform() bool {
	return f.scalar() && !slices.ContainsFunc(f.pieces, func(p piece) bool { return p.constant != nil && p.constant.Len() != 1 })
}

// Permuted returns a value whose dimension i is dimension perm[i] of v. Windows stay pending, and so
// does a function that is the same for all channels: exporters turn images between Round and Clip.
func (b *Builder) Permuted(n *pb.Node, v *Value, perm []int) *Value {
	if v.Windows == nil && v.Func != nil && (!v.Func.uniform() || !v.Func.base.View.Equal(v.View)) {
		v = b.Settle(v) // which may make a vector of it, with another view
	}
	out := v.With(n)
	out.View = v.View.Permuted(perm)
	if v.Func != nil {
		f := *v.Func
		f.base = f.base.With(f.base.Node)
		f.base.View = out.View
		out.Func, out.turned = &f, &permuted{v, perm}
	}
	return out
}

// inside reports whether all numbers of t lie strictly between the limits of a line.
func (b *Builder) inside(t *eval.Tensor, l *line) bool {
	if l.lo <= -math.MaxFloat32 && l.hi >= math.MaxFloat32 {
		return true
	}
	inside := t.Len() > 0
	try.Check(b.budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			inside = inside && l.lo < t.At(i) && t.At(i) < l.hi
		}
	}))
	return inside
}

// compared returns lo where f is below t, at where it is t, and hi above. It is nil if f differs by
// channel, and if t does unless f is one line.
func (b *Builder) compared(f *Func, t, lo, at, hi *eval.Tensor) *Func {
	if !f.scalar() {
		return nil
	}
	if t.Len() != 1 {
		return b.comparedWithEach(f, t, lo, at, hi)
	}
	x := t.At(0)
	side := func(v float64) piece {
		switch {
		case v < x:
			return piece{constant: lo}
		case v > x:
			return piece{constant: hi}
		}
		return piece{constant: at}
	}
	out := &Func{base: f.base}
	for k, p := range f.pieces {
		try.Check(b.budget.Charge(pieceUnits))
		if p.constant != nil {
			out.pieces = append(out.pieces, b.sided(p.constant, t, lo, at, hi))
		} else {
			from, to := f.interval(k)
			if from == to { // at a threshold
				out.pieces = append(out.pieces, side(float64(p.line.value(0, from))))
			} else {
				b.split(out, p.line, from, to, x, func(y float32) piece { return side(float64(p.line.value(0, y))) })
			}
		}
		if k%2 == 1 {
			continue
		}
		if k/2 < len(f.t) {
			out.t = append(out.t, f.t[k/2])
		}
	}
	if len(out.t) == 0 { // one constant
		out.t, out.pieces = []*eval.Tensor{t}, []piece{out.pieces[0], out.pieces[0], out.pieces[0]}
	}
	return out
}

// comparedWithEach is compared for a line and several t. It is nil where the line is there below or
// above some t wherever it is, and where at is neither lo nor hi, which takes two thresholds.
func (b *Builder) comparedWithEach(f *Func, t, lo, at, hi *eval.Tensor) *Func {
	l, above := f.pieces[0].line, at.Equal(hi)
	if len(f.pieces) != 1 || l == nil || t.Type != pb.Float || !above && !at.Equal(lo) {
		return nil
	}
	of, reached := map[float64]float32{}, true
	each := b.eval.Map(t, pb.Float, func(x float64) float64 {
		y, ok := of[x]
		if !ok {
			try.Check(b.budget.Charge(searchUnits))
			is := func(y float32) bool {
				v := float64(l.value(0, y))
				return v > x || above && v == x
			}
			y = f32.Least(is)
			reached = reached && is(y) && !is(-math.MaxFloat32)
			of[x] = y
		}
		return float64(y)
	})
	if !reached {
		return nil
	}
	return &Func{base: f.base, t: []*eval.Tensor{each}, pieces: constants(lo, hi, hi)}
}

// sided returns lo, at or hi for each number of x below t, equal to it, or above.
func (b *Builder) sided(x, t, lo, at, hi *eval.Tensor) piece {
	less := b.eval.Binary("Less")([]*eval.Tensor{x, t})
	more := b.eval.Binary("Greater")([]*eval.Tensor{x, t})
	return piece{constant: b.eval.Where([]*eval.Tensor{less, lo, b.eval.Where([]*eval.Tensor{more, hi, at})})}
}

// split appends the pieces of a line between two thresholds to out, after mapping its values by of,
// which changes only where the line crosses x.
func (b *Builder) split(out *Func, l *line, from, to float32, x float64, of func(y float32) piece) {
	try.Check(b.budget.Charge(2 * searchUnits))
	last := from
	for _, t := range l.crossings(x) {
		if !(t > last && t < to) {
			continue
		}
		out.pieces = append(out.pieces, of(between(last)), of(t))
		out.t = append(out.t, eval.Scalar(pb.Float, float64(t)))
		last = t
	}
	out.pieces = append(out.pieces, of(between(last)))
}

// between returns the float32 next above a number, or the least finite one above −∞.
func between(from float32) float32 {
	if from < -math.MaxFloat32 {
		return -math.MaxFloat32
	}
	return above(from)
}

// scalar reports whether all thresholds and lines of f are the same for all channels.
func (f *Func) scalar() bool {
	return !slices.ContainsFunc(f.t, func(t *eval.Tensor) bool { return t.Len() != 1 || t.Type != pb.Float }) &&
		!slices.ContainsFunc(f.pieces, func(p piece) bool { return p.constant == nil && p.line.channels() > 1 })
}

// interval returns the thresholds between which piece k lies. For a piece at a threshold both are
// that.
func (f *Func) interval(k int) (from, to float32) {
	from, to = float32(math.Inf(-1)), float32(math.Inf(1))
	if k > 0 {
		from = float32(f.t[(k-1)/2].At(0))
	}
	if k%2 == 1 {
		return from, from
	}
	if k/2 < len(f.t) {
		to = float32(f.t[k/2].At(0))
	}
	return from, to
}

// merge removes the thresholds at which the function does not change. A step keeps at least one.
func (f *Func) merge() {
	steps := f.steps()
	t, pieces := f.t[:0:0], f.pieces[:1:1]
	for i := range f.t {
		p, at, q := pieces[len(pieces)-1], f.pieces[2*i+1], f.pieces[2*i+2]
		if p.equal(at) && p.equal(q) && (!steps || len(t) > 0 || i < len(f.t)-1) {
			continue
		}
		t, pieces = append(t, f.t[i]), append(pieces, at, q)
	}
	f.t, f.pieces = t, pieces
}

// Is reports whether the value is w, with nothing pending.
func (v *Value) Is(w *Value) bool {
	return v.Func == nil && v.Windows == nil && !v.Hole && v.Type == w.Type && v.same(w)
}
