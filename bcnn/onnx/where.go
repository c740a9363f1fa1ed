package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// whereNode imports Where: of constants as a step; as the clip, the softplus or the
// function that it writes out; and else as the sum of two products, of which one is 0.
func (im *importer) whereNode(n *pb.Node) (build.Operand, error) {
	operands, err := im.operands(n, 3)
	if err != nil {
		return build.Operand{}, err
	}
	r, ok, err := im.build.Pointwise(n, operands, im.eval.Where)
	if ok || err != nil {
		return r, err
	}
	if im.linearSoftplus(operands) {
		return operands[2], nil
	}
	cond := operands[0].Value
	if cond == nil || cond.Step == nil || cond.Type != pb.Bool {
		return build.Operand{}, errors.New("only a choice by a comparison is supported")
	}
	if r, ok, err := im.limited(n, cond, operands[1], operands[2]); ok || err != nil {
		return r, err
	}
	if r, ok := im.eluOf(n, cond, operands[1], operands[2]); ok {
		return r, nil
	}
	return im.choose(n, operands)
}

// limited recognises a clip: Where(x < t, t, y), Where(x > t, y, t) and their like, of
// which y is x, or x with other limits.
func (im *importer) limited(n *pb.Node, cond *build.Value, a, b build.Operand) (r build.Operand, ok bool, err error) {
	base, t, above, ok := cond.Step.Side()
	if !ok {
		return r, false, nil
	}
	limit, rest := a, b // of which the limit is there above t
	if a.Value != nil {
		limit, rest, above = b, a, !above
	}
	if limit.Constant == nil || rest.Value == nil || !rest.Value.Limits(base) {
		return r, false, nil
	}
	same := limit.Constant.Len() > 0
	lead := len(base.View) - len(limit.Constant.Dims)
	for i, size := range limit.Constant.Dims {
		same = same && lead >= 0 && (size == 1 || size == base.Size(lead+i))
	}
	err = im.budget.Loop(limit.Constant.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			same = same && limit.Constant.At(i) == t // also where an exporter has expanded it
		}
	})
	if err != nil || !same {
		return r, false, err
	}
	lo, hi := t, math.Inf(1)
	if above {
		lo, hi = math.Inf(-1), t
	}
	if c := rest.Value.Clip; c != nil && (c.Lo > t || c.Hi < t) {
		return r, false, nil
	}
	r, err = im.build.Clip(n, rest.Value, lo, hi)
	return r, true, err
}

// eluOf recognises Where(x > 0, x, α·(exp(x) − 1)).
func (im *importer) eluOf(n *pb.Node, cond *build.Value, a, b build.Operand) (r build.Operand, ok bool) {
	base, t, above, ok := cond.Step.Side()
	if !above {
		a, b = b, a
	}
	if !ok || t != 0 || a.Value == nil || b.Value == nil || !a.Value.Limits(base) || a.Value.Clip != nil {
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
func (im *importer) choose(n *pb.Node, operands []build.Operand) (build.Operand, error) {
	var sum build.Operand
	for i, o := range operands[1:] {
		if o.Type() != pb.Float {
			return build.Operand{}, fmt.Errorf("a choice between values of %v is not supported", o.Type())
		}
		if o.Constant != nil && o.Constant.Len() == 1 && o.Constant.At(0) == 0 {
			continue
		}
		if o.Constant != nil {
			var wrong error
			err := im.budget.Loop(o.Constant.Len(), func(lo, hi int) {
				for k := lo; k < hi; k++ {
					if x := o.Constant.At(k); math.IsInf(x, 0) || math.IsNaN(x) {
						wrong = fmt.Errorf("a choice of %v is not supported", x)
					}
				}
			})
			if err == nil {
				err = wrong
			}
			if err != nil {
				return build.Operand{}, err
			}
		} else if im.build.Overflows(o.Value) {
			return build.Operand{}, errors.New("a value that is chosen may be infinite: it is an exponential of an input without bounds; a Clip in front of that")
		}
		c := operands[0]
		if i == 1 {
			var err error
			if c, _, err = im.build.Pointwise(n, []build.Operand{c}, im.eval.Unary("Not")); err != nil {
				return build.Operand{}, err
			}
		}
		c, err := im.cast(n, c, pb.Float)
		if err != nil {
			return build.Operand{}, err
		}
		if c, err = im.compute(n, "Mul", c, o); err != nil {
			return build.Operand{}, err
		}
		if sum.Value == nil {
			sum = c
			continue
		}
		if sum, err = im.compute(n, "Add", sum, c); err != nil {
			return build.Operand{}, err
		}
	}
	return sum, nil
}
