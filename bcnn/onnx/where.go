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

// whereNode imports Where: as a function of one value if all operands are that, as a softplus or an
// ELU that is written out, and otherwise as the sum of two masked values of which one is 0.
func (im *importer) whereNode(n *pb.Node) build.Operand {
	operands := im.operands(n, 3)
	checkRanks(operands...)
	if r, ok := im.build.Where(n, operands); ok {
		return r
	}
	if im.linearSoftplus(operands) {
		return operands[2]
	}
	cond := operands[0].Value
	if c := operands[0].Constant; c != nil && c.Type == pb.Bool {
		return im.choose(n, operands)
	}
	if cond == nil || !cond.IsStep() || cond.Type != pb.Bool {
		try.Failf("its condition must be a comparison, or made of comparisons")
	}
	if r, ok := im.eluOf(n, cond, operands[1], operands[2]); ok {
		return r
	}
	return im.choose(n, operands)
}

// eluOf recognises Where(x > 0, x, α·(exp(x) − 1)).
func (im *importer) eluOf(n *pb.Node, cond *build.Value, a, b build.Operand) (r build.Operand, ok bool) {
	base, t, above, ok := cond.OneSided()
	if !above {
		a, b = b, a
	}
	if !ok || t != 0 || a.Value == nil || b.Value == nil || !a.Value.Is(base) {
		return r, false
	}
	y := b.Value.Settled()
	if y == nil || y.Shape != base.Shape || !y.View.Equal(base.View) {
		return r, false
	}
	alpha, ok := im.expMinusOne(y.Layer, base.Layer)
	if !ok {
		return r, false
	}
	if alpha == 1 {
		return im.emit(n, "", bcnn.Function{Name: bcnn.ELU}, base), true
	}
	v := im.emit(n, "/elu", bcnn.Function{Name: bcnn.ELU}, base).Value
	return im.emit(n, "", bcnn.PReLU{Slope: []float32{float32(alpha)}}, v), true
}

// expMinusOne returns α of a layer that is α·(exp(x) − 1) of another one; ok is false for others.
func (im *importer) expMinusOne(layer, x int) (alpha float64, ok bool) {
	layers := im.build.Net.Layers
	alpha = 1
	if layer >= 0 {
		if by, scales := scale(layers[layer].Op); scales {
			alpha, layer = by, layers[layer].Inputs[0]
		}
	}
	if layer < 0 {
		return 0, false
	}
	minus, affine := layers[layer].Op.(bcnn.Affine)
	if !affine || len(minus.Scale) > 0 || len(minus.Bias) != 1 || minus.Bias[0] != -1 {
		return 0, false
	}
	e := layers[layer].Inputs[0]
	return alpha, e >= 0 && layers[e].Op == bcnn.Op(bcnn.Function{Name: bcnn.Exp}) && layers[e].Inputs[0] == x
}

// choose returns the sum of a where a condition holds, and of b where it does not. One of both is 0, so
// that the sum is exact, but that −0 becomes +0. Values pass a mask, not a product: 0 times infinity
// is NaN.
func (im *importer) choose(n *pb.Node, operands []build.Operand) build.Operand {
	c := im.cast(n, operands[0], pb.Float)
	if c.Value != nil {
		c.Value = im.build.Settle(c.Value)
	}
	var sum build.Operand
	none := true
	for i, o := range operands[1:] {
		if o.Type() != pb.Float {
			try.Failf("a choice between values of %v is not supported, only of FLOAT", o.Type())
		}
		if i == 1 {
			c = im.otherwise(n, c)
		}
		if o.Constant != nil && o.Constant.Len() == 1 && o.Constant.At(0) == 0 {
			continue
		}
		part := im.kept(n, o, c)
		if none {
			sum, none = part, false
			continue
		}
		sum = im.plus(n, sum, part)
	}
	return sum
}

// otherwise returns 1 − c of a condition of 0 and 1. A second comparison would not do: of NaN both
// would be 0.
func (im *importer) otherwise(n *pb.Node, c build.Operand) build.Operand {
	if c.Constant != nil {
		return build.Operand{Constant: im.computed(eval.Scalar(pb.Float, 1), []string{"Sub"}, c.Constant)}
	}
	return im.emit(n, "/else", bcnn.Affine{Scale: []float32{-1}, Bias: []float32{1}}, c.Value)
}

// kept returns an operand where a condition c is 1, and 0 where it is 0.
func (im *importer) kept(n *pb.Node, o, c build.Operand) build.Operand {
	switch {
	case o.Constant != nil && c.Constant != nil:
		holds := im.cast(n, c, pb.Bool).Constant
		return build.Operand{Constant: im.eval.Where([]*eval.Tensor{holds, o.Constant, eval.Scalar(pb.Float, 0)})}
	case c.Constant != nil:
		return build.Operand{Value: im.keptBy(n, o.Value, c.Constant)}
	case o.Constant == nil:
		return build.Operand{Value: im.build.Mask(n, o.Value, c.Value)}
	}
	im.checkNumbers(o.Constant)
	if half, ok := im.build.Halved(o.Constant); ok {
		v := im.build.Settle(im.compute(n, "Mul", c, build.Operand{Constant: half}).Value)
		return build.Operand{Value: im.build.Twice(n, v)}
	}
	return im.compute(n, "Mul", c, o)
}

// keptBy returns a value where a constant condition is 1, and 0 elsewhere.
func (im *importer) keptBy(n *pb.Node, v *build.Value, c *eval.Tensor) *build.Value {
	checkRanks(build.Operand{Value: v}, build.Operand{Constant: c})
	v = im.repeatAlong(n, im.build.Settle(v), c)
	v, list, ok := im.build.PerChannel(v, c, n)
	if !ok {
		return im.build.Mask(n, v, im.build.Constant(n, c, v, -1))
	}
	if !slices.Contains(list, 0) {
		return v.With(n)
	}
	try.Check(im.budget.Charge(4 * int64(v.Shape.C)))
	index := make([]int32, v.Shape.C)
	for i := range index {
		if index[i] = int32(i); list[i%len(list)] == 0 {
			index[i] = -1
		}
	}
	return im.build.Emit(n, "/kept", bcnn.Channels{Index: index}, v.Shape, v)
}

// plus returns the sum of two operands, of which a constant may hold infinities.
func (im *importer) plus(n *pb.Node, a, b build.Operand) build.Operand {
	if a.Constant != nil {
		a, b = b, a
	}
	if b.Constant != nil {
		im.checkNumbers(b.Constant)
		if _, infinite := im.build.Halved(b.Constant); infinite {
			a.Value = im.repeatAlong(n, im.build.Settle(a.Value), b.Constant)
			b = build.Operand{Value: im.build.Constant(n, b.Constant, a.Value, -1)}
		}
	}
	return im.compute(n, "Add", a, b)
}

// checkNumbers fails where a constant holds NaN, which no layer gives.
func (im *importer) checkNumbers(t *eval.Tensor) {
	try.Check(im.budget.Loop(t.Len(), func(lo, hi int) {
		for k := lo; k < hi; k++ {
			if x := t.At(k); math.IsNaN(x) {
				try.Failf("an operand holds NaN: want numbers or infinities")
			}
		}
	}))
}
