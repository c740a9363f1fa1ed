package build

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// mostThresholds is the largest number of thresholds of a function, enough for 256 levels.
// mostNumbers is the largest number of values that its thresholds have together: a sum of many
// comparisons visits all of them again and again. pieceUnits is the cost of a piece besides its
// numbers.
const (
	mostThresholds = 255
	mostNumbers    = 1 << 14
	pieceUnits     = 128
)

// Pointwise evaluates an operator on constants, or on constants and steps of one value. ok is false
// if there is another operand, or if the thresholds of the steps cannot be ordered for all channels
// alike.
func (b *Builder) Pointwise(n *pb.Node, operands []Operand, f eval.PointFunc) (r Operand, ok bool) {
	var first *Value
	args := make([]*eval.Tensor, len(operands))
	for i, o := range operands {
		switch args[i] = o.Constant; {
		case o.Value == nil:
			continue
		case !o.Value.IsStep():
			return Operand{}, false
		case first == nil:
			first = o.Value
		}
	}
	if first == nil {
		return Operand{Constant: f(args)}, true
	}
	s, ok := b.combined(operands, func(pieces []piece) (piece, bool) {
		for i, p := range pieces {
			args[i] = p.constant
		}
		return piece{constant: f(args)}, true
	})
	if !ok {
		return Operand{}, false
	}
	v := first.With(n)
	v.Func, v.Type = s, s.pieces[0].constant.Type
	return Operand{Value: v}, true
}

// combined returns the function that f makes of the pieces of its operands, which are constants,
// values, and functions of values. ok is false if these are of different values, if their
// thresholds cannot be ordered, or if f says so.
func (b *Builder) combined(operands []Operand, f func(pieces []piece) (piece, bool)) (out *Func, ok bool) {
	funcs := make([]*Func, len(operands))
	var first *Func
	same := true // all of one base
	for i, o := range operands {
		if o.Value == nil {
			continue
		}
		funcs[i] = b.funcOf(o.Value)
		if first == nil {
			first = funcs[i]
		}
		same = same && funcs[i].base.same(first.base)
	}
	base, all, ok := b.oneBase(funcs, same)
	if !ok {
		return nil, false
	}
	out = &Func{base: base, t: all}
	pieces := make([]piece, len(operands))
	below := make([]int, len(operands)) // how many thresholds of each operand are below the piece
	for k := range 2*len(all) + 1 {
		try.Check(b.budget.Charge(pieceUnits))
		for i, o := range operands {
			at := funcs[i]
			if pieces[i].constant = o.Constant; at == nil {
				continue
			}
			pieces[i] = at.pieces[2*below[i]]
			if k%2 == 1 && below[i] < len(at.t) && at.t[below[i]].Equal(all[k/2]) {
				below[i]++
				pieces[i] = at.pieces[2*below[i]-1]
			}
		}
		p, ok := f(pieces)
		if !ok {
			return nil, false
		}
		out.pieces = append(out.pieces, p)
	}
	out.merge()
	return out, true
}

// oneBase returns the value that functions, some of which may be nil, are of, and all of their
// thresholds, ascending. same says that they have one base already; otherwise functions of |x|
// become functions of x. ok is false without such a value or order.
func (b *Builder) oneBase(funcs []*Func, same bool) (base *Value, all []*eval.Tensor, ok bool) {
	for i, f := range funcs {
		if f == nil {
			continue
		}
		if !same {
			f = b.unfolded(f)
			funcs[i] = f
		}
		if base == nil {
			base = f.base
		}
		if !same && !f.base.same(base) {
			return nil, nil, false
		}
		if all, ok = b.merged(all, f.t); !ok {
			return nil, nil, false
		}
	}
	return base, all, true
}

// same reports whether two settled values are the same tensor.
func (v *Value) same(w *Value) bool { return v.Layer == w.Layer && v.View.Equal(w.View) }

// unfolded returns a step of |x| as a step of x, and other functions as they are.
func (b *Builder) unfolded(f *Func) *Func {
	l, ok := b.made(f.base.Layer)
	if !ok || !f.steps() {
		return f
	}
	abs, ok := l.Op.(bcnn.PReLU)
	if !ok || len(abs.Slope) != 1 || abs.Slope[0] != -1 {
		return f
	}
	out := &Func{base: f.base.With(f.base.Node)}
	out.base.Layer = l.Inputs[0]
	for i, t := range slices.Backward(f.t) {
		if positive, _ := b.ordered(eval.Scalar(t.Type, 0), t); !positive {
			return f
		}
		t := b.eval.Unary("Neg")([]*eval.Tensor{t})
		out.t, out.pieces = append(out.t, t), append(out.pieces, f.pieces[2*i+2], f.pieces[2*i+1])
	}
	out.t, out.pieces = append(out.t, f.t...), append(out.pieces, f.pieces...)
	return out
}

// merged merges two lists of thresholds. ok is false if they cannot be ordered or are too many.
func (b *Builder) merged(x, y []*eval.Tensor) (all []*eval.Tensor, ok bool) {
	try.Check(b.budget.Charge(pieceUnits * int64(len(x)+len(y))))
	for len(x) > 0 && len(y) > 0 {
		less, same := b.ordered(x[0], y[0])
		switch {
		case same:
			all, x, y = append(all, x[0]), x[1:], y[1:]
			continue
		case less:
			all, x = append(all, x[0]), x[1:]
			continue
		}
		if less, _ = b.ordered(y[0], x[0]); !less {
			return nil, false
		}
		all, y = append(all, y[0]), y[1:]
	}
	all = append(append(all, x...), y...)
	numbers := 0
	for _, t := range all {
		numbers += t.Len()
	}
	return all, len(all) <= mostThresholds && numbers <= mostNumbers
}

// ordered reports whether threshold x is below y for all channels, and whether both are the same.
func (b *Builder) ordered(x, y *eval.Tensor) (less, same bool) {
	if x.Len() == 1 && y.Len() == 1 && x.Type == y.Type {
		return x.At(0) < y.At(0), x.Equal(y)
	}
	if same = b.equal(x, y); same {
		return false, same
	}
	if x.Type != y.Type {
		return false, false
	}
	t, err := try.Do(func() *eval.Tensor { return b.eval.Binary("Less")([]*eval.Tensor{x, y}) })
	if err != nil {
		try.Check(b.budget.Charge(0))
		return false, false // they cannot be broadcast to each other
	}
	less = t.Len() > 0
	try.Check(b.budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			less = less && t.At(i) != 0
		}
	}))
	return less, false
}

// stepLists are the threshold of a step, and the values below it, at it and above it, each one
// number or one per channel.
type stepLists [4][]float32

// at returns the four numbers of channel c.
func (l stepLists) at(c int) (t, lo, mid, hi float64) {
	return float64(pick(l[0], c)), float64(pick(l[1], c)), float64(pick(l[2], c)), float64(pick(l[3], c))
}

// channels returns how many channels have numbers of their own, 1 if all have the same.
func (l stepLists) channels() int { return max(len(l[0]), len(l[1]), len(l[2]), len(l[3])) }

// stepLists returns the numbers of a step of one threshold, and its base, which becomes a vector if
// they vary along its flattened pixels. ok is false if they vary over the height or width.
func (b *Builder) stepLists(s *Func) (in *Value, lists stepLists, ok bool) {
	in, ok = s.base, true
	for k, t := range []*eval.Tensor{s.t[0], s.pieces[0].constant, s.pieces[1].constant, s.pieces[2].constant} {
		if ok {
			in, lists[k], ok = b.PerChannel(in, b.inFloat(t), in.Node)
		}
	}
	return in, lists, ok
}

// inFloat returns a constant as FLOAT, unless it is real already.
func (b *Builder) inFloat(t *eval.Tensor) *eval.Tensor {
	if t.Type.Real() {
		return t
	}
	return b.eval.Cast(pb.Float)([]*eval.Tensor{t})
}

// Logical returns And, Or or Xor of two truth values: steps of different values, or a step and a
// constant that varies over its pixels. As ±1 they are combined by the minimum, the maximum or the
// negative product.
func (b *Builder) Logical(n *pb.Node, op string, operands []Operand) Operand {
	signs := make([]*Value, len(operands))
	for i, o := range operands {
		if o.Value == nil || !o.Value.IsStep() || o.Value.Type != pb.Bool {
			try.Failf("its operands must be comparisons, or made of comparisons")
		}
		r, _ := b.Pointwise(n, []Operand{o, {Constant: eval.Scalar(pb.Float, 1)}, {Constant: eval.Scalar(pb.Float, -1)}}, b.eval.Where)
		signs[i] = b.Settle(r.Value)
	}
	y := b.Pair(n, pairOps[op], signs[0], signs[1])
	above := op != "Xor"
	yes, no := eval.Scalar(pb.Bool, truth(above)), eval.Scalar(pb.Bool, truth(!above))
	return b.Threshold(n, y, eval.Scalar(pb.Float, 0), no, yes, yes)
}
