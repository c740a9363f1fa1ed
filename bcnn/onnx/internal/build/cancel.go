package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
)

// Sum tells that a tensor is A + B, or A − B.
//
// Straight-through estimators are written as sums that only serve the gradient:
//
//	x + (f(x) − x)        (f(x) − p(x)) + p(x)        (f(x) + p(x)) − p(x)
//
// all of which are f(x), up to the rounding of the two sums. Then f(x) is what the
// network computes, and what p is does not matter. A constant that is added to a value and
// taken away again does matter: it has no other use than to round. Of constants all is
// known: f of weights is what they are if the roundings leave no more of p than the
// tolerance for weights.
type Sum struct {
	A, B  Operand
	Minus bool
}

// term is a part of a sum.
type term struct {
	Operand
	minus bool
}

// terms appends the operand as one term or, split, as the two that it is the sum of.
func (r Operand) terms(list []term, minus, split bool) []term {
	if !split {
		return append(list, term{r, minus})
	}
	return append(list, term{r.Sum.A, minus}, term{r.Sum.B, minus != r.Sum.Minus})
}

// sumUnits is what a sum costs that is remembered.
const sumUnits = 512

// Cancel returns what is left of a sum whose other parts cancel, if that is one
// operand of the dimensions of the sum.
func (b *Builder) Cancel(s *Sum, sum Operand) (rest Operand, ok bool) {
	try.Check(b.budget.Charge(sumUnits))
	constants := sum.Constant != nil
	var buffer [4]term
	for k := 1; k < 4; k++ { // a sum of two that are none themselves leaves nothing
		left, right := k&1 != 0, k&2 != 0
		if left && s.A.Sum == nil || right && s.B.Sum == nil {
			continue
		}
		terms := b.remaining(s.B.terms(s.A.terms(buffer[:0], false, left), s.Minus, right), constants)
		if len(terms) == 1 && !terms[0].minus && terms[0].fits(sum) {
			near := b.near(terms[0].Operand, sum)
			if near {
				return terms[0].Operand, near
			}
		}
	}
	return rest, false
}

// near reports whether a constant is the sum that it shall stand for, up to the tolerance for
// weights as a fraction of the largest; a value always is, and what depends on the batch size.
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

// remaining removes pairs of terms that cancel: of values, or of constants where all are.
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

// fits reports whether an operand has the dimensions of a sum that it is part of.
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
	if f, g := v.Func, w.Func; f != nil && f != g {
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
	}
	return true
}

// equal is Tensor.Equal, charged.
func (b *Builder) equal(x, y *eval.Tensor) bool {
	if x == y {
		return true
	}
	try.Check(b.budget.Charge(int64(x.Len())))
	return x.Equal(y)
}
