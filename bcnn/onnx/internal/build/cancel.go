package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
)

// Sum says that a tensor is A + B, or A − B, or −B if A is nothing.
//
// Straight-through estimators are written as sums that only serve the gradient:
//
//	x + (f(x) − x)        (f(x) − p(x)) + p(x)        (f(x) + p(x)) − p(x)
//
// in any order, and with −x as an operator of its own. All of them are f(x), but for the rounding of the two sums. The network then computes f(x),
// whatever p is. A constant that is added to a value and subtracted again is different: its only
// use is to round, so it stays. Where everything is constant, f(x) replaces the sum only if both
// differ by no more than the tolerance for weights.
type Sum struct {
	A, B  Operand
	Minus bool
}

// term is a part of a sum.
type term struct {
	Operand
	minus bool
}

// negated reports whether an operand is the negative of another one.
func (r Operand) negated() bool {
	return r.Sum != nil && r.Sum.A.Constant == nil && r.Sum.A.Value == nil
}

// Negative returns an operand that remembers to be −a.
func (r Operand) Negative(a Operand) Operand {
	t := term{a, true}.plain()
	r.Sum = &Sum{B: t.Operand, Minus: t.minus}
	return r
}

// plain returns a term without the negation of its operand.
func (t term) plain() term {
	if t.negated() {
		return term{t.Sum.B, t.minus != t.Sum.Minus}
	}
	return t
}

// append appends a term to list or, if split is set and it is a sum, the two terms of that.
func (t term) append(list []term, split bool) []term {
	if !split || t.Sum == nil {
		return append(list, t)
	}
	return append(list, term{t.Sum.A, t.minus}.plain(), term{t.Sum.B, t.minus != t.Sum.Minus}.plain())
}

// sumUnits is the cost of a sum that is remembered.
const sumUnits = 512

// Cancel returns the only part of a sum that is left when others cancel. ok is false if there is no
// such part, or if it does not have the dimensions of the sum.
func (b *Builder) Cancel(s *Sum, sum Operand) (rest Operand, ok bool) {
	try.Check(b.budget.Charge(sumUnits))
	constants := sum.Constant != nil
	first, second := term{s.A, false}.plain(), term{s.B, s.Minus}.plain()
	var buffer [4]term
	for k := 1; k < 4; k++ { // splitting neither operand leaves nothing to cancel
		left, right := k&1 != 0, k&2 != 0
		if left && first.Sum == nil || right && second.Sum == nil {
			continue
		}
		terms := b.remaining(second.append(first.append(buffer[:0], left), right), constants)
		if len(terms) == 1 && !terms[0].minus && terms[0].fits(sum) {
			near := b.near(terms[0].Operand, sum)
			if near {
				return terms[0].Operand, near
			}
		}
	}
	return rest, false
}

// near reports whether a constant differs from the sum that it replaces by no more than the
// tolerance for weights, as a fraction of the largest. It is true for values, and for constants
// that depend on the batch size.
func (b *Builder) near(rest, sum Operand) bool {
	if rest.Constant == nil || sum.Constant.Sized() {
		return true
	}
	largest, off := 0.0, 0.0
	try.Check(b.budget.Loop(rest.Constant.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := rest.Constant.At(i)
			largest = max(largest, math.Abs(x))
			off = max(off, math.Abs(x-sum.Constant.At(i)))
		}
	}))
	return off <= max(b.options.WeightTolerance, 2*b.Rounding)*largest
}

// remaining removes pairs of terms that cancel. Constants cancel only if all terms are constant.
func (b *Builder) remaining(terms []term, constants bool) []term {
	for i := 0; i < len(terms); i++ {
		for k := i + 1; k < len(terms); k++ {
			if terms[i].minus == terms[k].minus {
				continue
			}
			if !constants && (terms[i].Constant != nil || terms[k].Constant != nil) {
				continue
			}
			same := b.same(terms[i].Operand, terms[k].Operand)
			if same {
				terms = slices.Delete(slices.Delete(terms, k, k+1), i, i+1)
				i--
				break
			}
		}
	}
	return terms
}

// fits reports whether a term has the dimensions of the sum.
func (r Operand) fits(sum Operand) bool {
	if r.Constant != nil || sum.Constant != nil {
		return r.Constant != nil && sum.Constant != nil && slices.Equal(r.Constant.Dims, sum.Constant.Dims)
	}
	return r.Value.View != nil && r.Value.Shape == sum.Value.Shape && r.Value.View.Equal(sum.Value.View)
}

// same reports whether two operands are the same tensor.
func (b *Builder) same(x, y Operand) bool {
	if x.Constant != nil || y.Constant != nil {
		if x.Constant == nil || y.Constant == nil {
			return false
		}
		return b.equal(x.Constant, y.Constant)
	}
	v, w := x.Value, y.Value
	if v == w {
		return true
	}
	if v.Layer != w.Layer || v.Type != w.Type || v.Windows != nil || w.Windows != nil ||
		!v.View.Equal(w.View) || (v.Func == nil) != (w.Func == nil) {
		return false
	}
	return v.Func == w.Func || b.sameFunc(v.Func, w.Func)
}

// sameFunc reports whether two functions of one value have the same thresholds and pieces.
func (b *Builder) sameFunc(f, g *Func) bool {
	if len(f.t) != len(g.t) {
		return false
	}
	for i, t := range f.t {
		if !b.equal(t, g.t[i]) {
			return false
		}
	}
	for k, p := range f.pieces {
		q := g.pieces[k]
		if p.constant != nil && q.constant != nil && !b.equal(p.constant, q.constant) || !p.equal(q) {
			return false
		}
	}
	return true
}

// equal is Tensor.Equal, charged to the budget.
func (b *Builder) equal(x, y *eval.Tensor) bool {
	if x == y {
		return true
	}
	try.Check(b.budget.Charge(int64(x.Len())))
	return x.Equal(y)
}
