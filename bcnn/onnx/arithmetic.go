package onnx

import (
	"errors"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// arithmetic imports Add, Sub, Mul, Div, Max, Min and Pow.
func (im *importer) arithmetic(n *pb.Node) (result, error) {
	operands, err := im.operands(n, 2)
	if err != nil {
		return result{}, err
	}
	if r, ok, err := im.build.pointwise(n, operands, im.eval.Binary(n.OpType)); ok || err != nil {
		return r, err
	}
	a, b := operands[0], operands[1]
	for _, o := range operands {
		if o.typ() != pb.Float {
			return result{}, errors.New("arithmetic on computed values of " + o.typ().String() + " is not supported: Cast to FLOAT first")
		}
	}
	switch {
	case a.value != nil && b.value != nil:
		return im.sum(n, a.value, b.value)
	case a.value != nil:
		return im.withConstant(n, a.value, b.constant, false)
	}
	return im.withConstant(n, b.value, a.constant, true)
}

// sum is the sum or the difference of two values.
func (im *importer) sum(n *pb.Node, a, b *value) (result, error) {
	if n.OpType != "Add" && n.OpType != "Sub" {
		return result{}, errors.New("of two computed tensors only the sum or difference is supported")
	}
	a, err := im.build.settle(a)
	if err != nil {
		return result{}, err
	}
	if b, err = im.build.settle(b); err != nil {
		return result{}, err
	}
	if a.shape != b.shape || !a.view.Equal(b.view) {
		return result{}, errors.New("two computed tensors must have the same dimensions, in the same order in memory")
	}
	if n.OpType == "Sub" {
		b = im.build.emit(n, "/negative", bcnn.Affine{Scale: []float32{-1}}, b.shape, b)
	}
	return result{value: im.build.emit(n, "", bcnn.Add{}, a.shape, a, b)}, nil
}

// withConstant is an operator between a value and a constant, which stands
// first if swapped is set.
func (im *importer) withConstant(n *pb.Node, v *value, t *eval.Tensor, swapped bool) (result, error) {
	if n.OpType == "Max" || n.OpType == "Min" {
		if t.Len() != 1 {
			return result{}, errors.New("limits per channel are not supported")
		}
		if n.OpType == "Max" {
			return im.build.clipValue(n, v, t.At(0), math.Inf(1))
		}
		return im.build.clipValue(n, v, math.Inf(-1), t.At(0))
	}
	v, err := im.build.settle(v)
	if err != nil {
		return result{}, err
	}
	v, list, err := im.build.broadcast(v, t, n)
	if err != nil {
		return result{}, err
	}
	negative := make([]float32, len(list))
	neutral := map[string]float32{"Mul": 1, "Div": 1}[n.OpType]
	idle := !swapped || n.OpType == "Add" || n.OpType == "Mul"
	for i, c := range list {
		negative[i] = -c
		idle = idle && c == neutral
	}
	if idle {
		return result{value: v.with(n)}, nil
	}
	var op bcnn.Op
	switch {
	case n.OpType == "Add":
		op = bcnn.Affine{Bias: list}
	case n.OpType == "Sub" && swapped:
		op = bcnn.Affine{Scale: []float32{-1}, Bias: list}
	case n.OpType == "Sub":
		op = bcnn.Affine{Bias: negative}
	case n.OpType == "Mul":
		op = bcnn.Affine{Scale: list}
	case n.OpType == "Div" && !swapped:
		if op, err = im.quotient(v, list); err != nil {
			return result{}, err
		}
	default:
		return result{}, errors.New("this operator is not supported with a computed operand here")
	}
	return result{value: im.build.emit(n, "", op, v.shape, v)}, nil
}

// quotient returns the division by constants: by powers of two a scale, by
// others a batch norm of variance c², whose square root and quotient are taken
// in float64, or where c² is no float32 the scale 1/c in float32.
func (im *importer) quotient(v *value, list []float32) (bcnn.Op, error) {
	scale := make([]float32, len(list))
	powers, squares := true, true
	for i, c := range list {
		x := float64(c)
		scale[i] = float32(1 / x)
		if c == 0 || math.IsInf(float64(scale[i]), 0) {
			return nil, errors.New("division by 0")
		}
		powers = powers && float64(scale[i])*x == 1
		square := float64(float32(x * x))
		squares = squares && square == x*x && square > 0
	}
	if powers || !squares {
		return bcnn.Affine{Scale: scale}, nil
	}
	channels := v.shape.C
	if err := im.budget.Charge(16 * int64(channels)); err != nil {
		return nil, err
	}
	norm := bcnn.BatchNorm{
		Gamma: make([]float32, channels), Beta: make([]float32, channels),
		Mean: make([]float32, channels), Var: make([]float32, channels),
	}
	for k := range channels {
		c := list[k%len(list)]
		norm.Gamma[k] = float32(math.Copysign(1, float64(c)))
		norm.Var[k] = c * c
	}
	return norm, nil
}
