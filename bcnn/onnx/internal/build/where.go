package build

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Where evaluates the operator Where on a condition and its two choices. ok is false unless they
// are constants and functions of one value.
func (b *Builder) Where(n *pb.Node, operands []Operand) (r Operand, ok bool) {
	c, x, y := operands[0], operands[1], operands[2]
	for _, o := range operands[1:] {
		if c.Value != nil && o.Constant != nil && o.Constant.Type.Real() && !b.finite(o.Constant) { // which no scale of a sign is
			return r, false
		}
	}
	if r, ok = b.Pointwise(n, operands, b.eval.Where); ok {
		return r, true
	}
	if c.Value == nil || !c.Value.IsStep() || c.Type() != pb.Bool || x.Type() != y.Type() || !x.Type().Real() {
		return r, false
	}
	base := c.Value.Func.base
	for _, o := range operands[1:] {
		if v := o.Value; v != nil && (v.Windows != nil || v.Hole || v.Func == nil && !v.same(base)) {
			return r, false
		}
	}
	f, ok := b.combined(operands, func(args []piece) (piece, bool) { return b.pickPiece(base, args) })
	if !ok {
		return r, false
	}
	b.absorb(f, x.Type())
	return Operand{Value: b.pending(n, x.Type(), f)}, true
}

// pickPiece returns which piece a condition picks of its two choices. ok is false where it picks some of
// each that are no constants.
func (b *Builder) pickPiece(base *Value, args []piece) (_ piece, ok bool) {
	if args[1].constant != nil && args[2].constant != nil {
		return piece{constant: b.eval.Where([]*eval.Tensor{args[0].constant, args[1].constant, args[2].constant})}, true
	}
	if args[0].constant.Len() != 1 {
		return piece{}, false
	}
	chosen := args[2]
	if args[0].constant.At(0) != 0 {
		chosen = args[1]
	}
	if chosen.constant != nil {
		if !b.finite(chosen.constant) { // which no scale of a condition is
			return piece{}, false
		}
		chosen.constant = b.Narrowed(base, chosen.constant)
	}
	return chosen, true
}

// Narrowed returns a constant without the dimensions to which an exporter has expanded it: a scalar
// if it is the same for all of base, and 1 where it does not vary along a dimension of base.
func (b *Builder) Narrowed(base *Value, t *eval.Tensor) *eval.Tensor {
	lead := len(base.View) - len(t.Dims)
	if t.Len() < 2 || lead < 0 {
		return t
	}
	along := make([]bool, len(t.Dims))
	all := true
	for i, size := range t.Dims {
		along[i] = size == base.Size(lead+i)
		all = all && (size == 1 || along[i])
	}
	if t = b.eval.Collapse(t, along); all && t.Len() == 1 {
		return eval.Scalar(t.Type, t.At(0))
	}
	return t
}

// finite reports whether a constant has neither infinities nor NaN.
func (b *Builder) finite(t *eval.Tensor) bool {
	finite := true
	try.Check(b.budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			finite = finite && t.At(i)-t.At(i) == 0
		}
	}))
	return finite
}

// absorb turns constants beside lines into limits of the lines: Where(x > 1, 1, x) is x limited to
// 1.
func (b *Builder) absorb(f *Func, typ pb.DataType) {
	f.merge()
	for again := true; again; {
		again = false
		for i := range f.t {
			try.Check(b.budget.Charge(pieceUnits))
			if l := f.limited(i); l != nil {
				f.extend(i, l)
				f.merge()
				again = true
				break
			}
		}
	}
	for i, t := range f.t { // at a single number, a line is a constant
		if at := f.pieces[2*i+1]; at.constant == nil && t.Len() == 1 && at.line.channels() == 1 && !at.equal(f.pieces[2*i]) && !at.equal(f.pieces[2*i+2]) {
			f.pieces[2*i+1].constant = eval.Scalar(typ, float64(at.line.value(0, float32(t.At(0)))))
		}
	}
}

// extend replaces the constant beside threshold i, and the piece at it, by l, which is the line on
// the other side with another limit. Further pieces of the old line become l, too: there the limit
// changes nothing.
func (f *Func) extend(i int, l *line) {
	step, from := 1, 2*i
	if f.pieces[from].constant == nil {
		step, from = -1, 2*i+2
	}
	old := *f.pieces[2*i+1+step].line
	p := piece{line: l}
	f.pieces[from], f.pieces[2*i+1] = p, p
	for k := 2*i + 1 + step; k >= 0 && k < len(f.pieces); k += step {
		if q := f.pieces[k]; q.constant == nil && *q.line == old {
			f.pieces[k] = p
		}
	}
}

// limited returns the line that a constant and a line on the two sides of threshold i are together:
// max(line, constant) or min(line, constant). It is nil if they are no line.
func (f *Func) limited(i int) *line {
	low, at, high := f.pieces[2*i], f.pieces[2*i+1], f.pieces[2*i+2]
	below := low.constant != nil // the constant is below the threshold
	c, l := high.constant, low.line
	if below {
		c, l = low.constant, high.line
	}
	if c == nil || l == nil || c.Len() != 1 || l.channels() > 1 || f.t[i].Len() != 1 {
		return nil
	}
	limit, t := c.At(0), float32(f.t[i].At(0))
	// The last float32 that has the constant, and the first one next to it that has the line.
	ofConstant, ofLine := t, t
	switch {
	case at.constant == nil && *at.line == *l || at.constant != nil && at.constant.Len() == 1 && at.constant.At(0) == float64(l.value(0, t)):
		ofConstant = next(t, !below)
	case at.constant != nil && at.constant.Len() == 1 && at.constant.At(0) == limit:
		ofLine = next(t, below)
	default:
		return nil
	}
	least, most := l.value(0, ofConstant), l.value(0, ofLine)
	lo, hi := limit, math.Inf(1)
	if !below {
		least, most = most, least
		lo, hi = math.Inf(-1), limit
	}
	if float64(least) > limit || limit > float64(most) {
		return nil
	}
	out, _ := l.limit(lo, hi)
	return out
}

// next returns the float32 next above or below a number.
func next(x float32, up bool) float32 {
	if up {
		return above(x)
	}
	return math.Nextafter32(x, -math.MaxFloat32)
}
