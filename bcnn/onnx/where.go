package onnx

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// whereNode imports Where: of constants as a step; as the clip, the softplus or the
// function that it writes out; and else as the sum of two products, of which one is 0.
func (im *importer) whereNode(n *pb.Node) build.Operand {
	operands := im.operands(n, 3)
	checkRanks(operands...)
	r, ok := im.build.Pointwise(n, operands, im.eval.Where)
	if ok {
		return r
	}
	if r, ok := im.twice(n, operands); ok {
		return r
	}
	if im.linearSoftplus(operands) {
		return operands[2]
	}
	cond := operands[0].Value
	if c := operands[0].Constant; c != nil && c.Type == pb.Bool {
		return im.choose(n, operands)
	}
	if cond == nil || cond.Step == nil || cond.Type != pb.Bool {
		try.Failf("only a choice by a comparison is supported")
	}
	if r, ok := im.limited(n, cond, operands[1], operands[2]); ok {
		return r
	}
	if r, ok := im.eluOf(n, cond, operands[1], operands[2]); ok {
		return r
	}
	r = im.choose(n, operands)
	if r.Value != nil && r.Value.Settled() == r.Value {
		im.choices[r.Value.Layer] = choice{operands, r.Value.View}
	}
	return r
}

// choice returns the condition and the two operands that a value was chosen of, or nil.
func (im *importer) choice(v *build.Value) []build.Operand {
	if v == nil || v.Settled() != v || v.Layer < 0 {
		return nil
	}
	c, ok := im.choices[v.Layer]
	if !ok || !c.seen.Equal(v.View) || !c.operands[0].Value.View.Equal(v.View) {
		return nil
	}
	return c.operands
}

// twice recognises a choice between constants that is made in two: x[x ≥ 0] = 1 and then
// x[x < 0] = −1 leave nothing of x.
func (im *importer) twice(n *pb.Node, operands []build.Operand) (r build.Operand, ok bool) {
	chosen := slices.Clone(operands)
	for i, o := range operands[1:] {
		first := im.choice(o.Value)
		if first == nil {
			continue
		}
		first = slices.Clone(first)
		for k, o := range first[1:] {
			if o.Value == nil {
				continue
			}
			reached, ok := im.both(n, operands[0], i == 0, first[0], k == 0)
			if !ok {
				return r, false
			}
			if reached.Value != nil && !reached.Value.Step.Never() {
				return r, false
			}
			first[1+k] = build.Operand{Constant: eval.Scalar(pb.Float, 0)}
		}
		if chosen[1+i], ok = im.build.Pointwise(n, first, im.eval.Where); !ok {
			return r, false
		}
		return im.build.Pointwise(n, chosen, im.eval.Where)
	}
	return r, false
}

// both is true where two conditions have the given values. ok is false where they are not
// comparisons of the same value with the same numbers.
func (im *importer) both(n *pb.Node, a build.Operand, is bool, b build.Operand, too bool) (r build.Operand, ok bool) {
	for _, c := range []struct {
		cond *build.Operand
		is   bool
	}{{&a, is}, {&b, too}} {
		if c.is {
			continue
		}
		if *c.cond, ok = im.build.Pointwise(n, []build.Operand{*c.cond}, im.eval.Unary("Not")); !ok {
			return r, false
		}
	}
	return im.build.Pointwise(n, []build.Operand{a, b}, im.eval.Binary("And"))
}

// comparedChoice compares a value with a number that was chosen of a constant and of what
// the choice is about, by the same number: x[x < 0] where x was ±1 or x already.
func (im *importer) comparedChoice(n *pb.Node, v *build.Value, t *eval.Tensor, f func(x, y float64) float64) (r build.Operand, ok bool) {
	first := im.choice(v)
	if first == nil || t.Len() != 1 {
		return r, false
	}
	base, _, _, ok := first[0].Value.Step.Side()
	if !ok {
		return r, false
	}
	parts := slices.Clone(first)
	for i, o := range parts[1:] {
		switch {
		case o.Constant != nil && o.Constant.Len() == 1:
			parts[1+i].Constant = eval.Scalar(pb.Bool, f(o.Constant.At(0), t.At(0)))
		case o.Value != nil && o.Value.Windows == nil && o.Value.Limits(base) && o.Value.Clip == nil:
			parts[1+i] = im.comparison(n, base, t, f)
		default:
			return r, false
		}
	}
	return im.build.Pointwise(n, parts, im.eval.Where)
}

// limited recognises a clip: Where(x < t, t, y), Where(x > t, y, t) and their like, of
// which y is x, or x with other limits.
func (im *importer) limited(n *pb.Node, cond *build.Value, a, b build.Operand) (r build.Operand, ok bool) {
	base, t, above, ok := cond.Step.Side()
	if !ok {
		return r, false
	}
	limit, rest := a, b // of which the limit is there above t
	if a.Value != nil {
		limit, rest, above = b, a, !above
	}
	if limit.Constant == nil || rest.Value == nil || rest.Value.Windows != nil || !rest.Value.Limits(base) {
		return r, false
	}
	same := limit.Constant.Len() > 0
	lead := len(base.View) - len(limit.Constant.Dims)
	for i, size := range limit.Constant.Dims {
		same = same && lead >= 0 && (size == 1 || size == base.Size(lead+i))
	}
	try.Check(im.budget.Loop(limit.Constant.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			same = same && limit.Constant.At(i) == t // also where an exporter has expanded it
		}
	}))
	if !same {
		return r, false
	}
	lo, hi := t, math.Inf(1)
	if above {
		lo, hi = math.Inf(-1), t
	}
	if c := rest.Value.Clip; c != nil && (c.Lo > t || c.Hi < t) {
		return r, false
	}
	r = im.build.Clip(n, rest.Value, lo, hi)
	return r, true
}

// eluOf recognises Where(x > 0, x, α·(exp(x) − 1)).
func (im *importer) eluOf(n *pb.Node, cond *build.Value, a, b build.Operand) (r build.Operand, ok bool) {
	base, t, above, ok := cond.Step.Side()
	if !above {
		a, b = b, a
	}
	if !ok || t != 0 || a.Value == nil || b.Value == nil || a.Value.Windows != nil || !a.Value.Limits(base) || a.Value.Clip != nil {
		return r, false
	}
	y := b.Value.Settled()
	if y == nil || y.Shape != base.Shape || !y.View.Equal(base.View) {
		return r, false
	}
	layers := im.build.Net.Layers
	layer, alpha := y.Layer, 1.0
	if layer >= 0 {
		if by, scales := scale(layers[layer].Op); scales {
			alpha, layer = by, layers[layer].Inputs[0]
		}
	}
	if layer < 0 {
		return r, false
	}
	minus, affine := layers[layer].Op.(bcnn.Affine)
	if !affine || len(minus.Scale) > 0 || len(minus.Bias) != 1 || minus.Bias[0] != -1 {
		return r, false
	}
	e := layers[layer].Inputs[0]
	if e < 0 || layers[e].Op != bcnn.Op(bcnn.Function{Name: bcnn.Exp}) || layers[e].Inputs[0] != base.Layer {
		return r, false
	}
	if alpha == 1 {
		return im.emit(n, "", bcnn.Function{Name: bcnn.ELU}, base), true
	}
	v := im.emit(n, "/elu", bcnn.Function{Name: bcnn.ELU}, base).Value
	return im.emit(n, "", bcnn.PReLU{Slope: []float32{float32(alpha)}}, v), true
}

// choose makes c·a + (1 − c)·b of a condition c, of 0 and 1. The products and their sum
// are exact: one of them is 0, if the other is finite.
func (im *importer) choose(n *pb.Node, operands []build.Operand) build.Operand {
	var sum build.Operand
	none := true
	for i, o := range operands[1:] {
		if o.Type() != pb.Float {
			try.Failf("a choice between values of %v is not supported", o.Type())
		}
		if o.Constant != nil && o.Constant.Len() == 1 && o.Constant.At(0) == 0 {
			continue
		}
		if o.Constant != nil {
			try.Check(im.budget.Loop(o.Constant.Len(), func(lo, hi int) {
				for k := lo; k < hi; k++ {
					if x := o.Constant.At(k); math.IsInf(x, 0) || math.IsNaN(x) {
						try.Failf("a choice of %v is not supported", x)
					}
				}
			}))
		} else if im.build.Overflows(o.Value) {
			try.Failf("a value that is chosen may be infinite: it is an exponential of an input without bounds; a Clip in front of that")
		}
		c := operands[0]
		if i == 1 {
			c, _ = im.build.Pointwise(n, []build.Operand{c}, im.eval.Unary("Not"))
		}
		c = im.cast(n, c, pb.Float)
		c = im.compute(n, "Mul", c, o)
		if none {
			sum, none = c, false
			continue
		}
		sum = im.compute(n, "Add", sum, c)
	}
	return sum
}
