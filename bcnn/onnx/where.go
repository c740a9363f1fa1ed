package onnx

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// whereNode imports Where: as a function of one value if all operands are that, as a softplus or an
// ELU that is written out, and otherwise as the sum of two products of which one is 0.
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

// choose returns c·a + (1 − c)·b for a condition c of 0 and 1. Products and sum are exact, since
// one product is 0. That needs finite operands: it fails if one may be infinite.
func (im *importer) choose(n *pb.Node, operands []build.Operand) build.Operand {
	var sum build.Operand
	none := true
	for i, o := range operands[1:] {
		if o.Type() != pb.Float {
			try.Failf("a choice between values of %v is not supported, only of FLOAT", o.Type())
		}
		if o.Constant != nil && o.Constant.Len() == 1 && o.Constant.At(0) == 0 {
			continue
		}
		if o.Constant != nil {
			try.Check(im.budget.Loop(o.Constant.Len(), func(lo, hi int) {
				for k := lo; k < hi; k++ {
					if x := o.Constant.At(k); math.IsInf(x, 0) || math.IsNaN(x) {
						try.Failf("an operand holds %v: replace it by a finite number, such as -1e9 in a mask", x)
					}
				}
			}))
		} else if im.build.Overflows(o.Value) {
			try.Failf("an operand may overflow, since it is the exponential of an unbounded input: put a Clip in front of the exponential")
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
