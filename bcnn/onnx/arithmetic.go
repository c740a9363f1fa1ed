package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// arithmetic imports Add, Sub, Mul, Div, Mod, Max, Min and Pow. Max and Min may have
// any number of operands.
func (im *importer) arithmetic(n *pb.Node) (build.Operand, error) {
	if n.OpType == "Max" || n.OpType == "Min" {
		return im.oneByOne(n, n.OpType)
	}
	operands, err := im.operands(n, 2)
	if err != nil {
		return build.Operand{}, err
	}
	op := n.OpType
	if op == "Mod" {
		if fmod, err := n.Int("fmod", 0); err != nil {
			return build.Operand{}, err
		} else if fmod != 0 {
			op = "FMod"
		}
	}
	if t := operands[1].Constant; op == "Pow" && t != nil && operands[0].Value != nil && !t.Type.Real() { // which may be of another type
		if operands[1], err = im.cast(n, operands[1], pb.Float); err != nil {
			return build.Operand{}, err
		}
	}
	return im.operate(n, op, operands[0], operands[1])
}

// sumNode imports Sum.
func (im *importer) sumNode(n *pb.Node) (build.Operand, error) { return im.oneByOne(n, "Add") }

// oneByOne applies an operator to the first two operands, to the result and the
// third, and so on.
func (im *importer) oneByOne(n *pb.Node, op string) (build.Operand, error) {
	r, err := im.operand(n, 0)
	for i := 1; i < len(n.Inputs) && err == nil; i++ {
		var next build.Operand
		if next, err = im.operand(n, i); err == nil {
			r, err = im.operate(n, op, r, next)
		}
	}
	return r, err
}

// operate imports an operator of two operands. Sums are remembered, because what is
// added often is subtracted again: see build.Sum.
func (im *importer) operate(n *pb.Node, op string, a, b build.Operand) (build.Operand, error) {
	r, err := im.compute(n, op, a, b)
	if err != nil || op != "Add" && op != "Sub" || !r.Type().Real() { // as of shapes
		return r, err
	}
	r.Sum = &build.Sum{A: a, B: b, Minus: op == "Sub"}
	rest, ok, err := im.build.Cancel(r.Sum, r)
	if ok {
		im.cancelled = append(im.cancelled, n.Label())
		return rest, nil
	}
	return r, err
}

// checkRanks checks that no constant gives the result of an operator more dimensions than its
// values have.
func checkRanks(operands ...build.Operand) error {
	rank := 0
	for _, o := range operands {
		if o.Value != nil {
			rank = max(rank, len(o.Value.View))
		}
	}
	for _, o := range operands {
		if t := o.Constant; t != nil && rank > 0 && len(t.Dims) > rank {
			return fmt.Errorf("a constant of dimensions %v has more than the %d of the tensor", t.Dims, rank)
		}
	}
	return nil
}

// compute is operate for the operands as they are.
func (im *importer) compute(n *pb.Node, op string, a, b build.Operand) (build.Operand, error) {
	if err := checkRanks(a, b); err != nil {
		return build.Operand{}, err
	}
	if (op == "Add" || op == "Sub") && a.Value != nil && b.Constant != nil && b.Constant.Len() == 1 {
		if step, ok, err := im.build.OneStep(a.Value); err != nil {
			return build.Operand{}, err
		} else if ok {
			a.Value = step
		}
	}
	if r, ok, err := im.build.Pointwise(n, []build.Operand{a, b}, im.eval.Binary(op)); ok || err != nil {
		return r, err
	}
	for _, o := range []build.Operand{a, b} {
		if o.Type() != pb.Float {
			return build.Operand{}, errors.New("arithmetic on computed values of " + o.Type().String() + " is not supported: Cast to FLOAT first")
		}
	}
	switch {
	case a.Value != nil && b.Value != nil:
		return im.ofValues(n, op, a.Value, b.Value)
	case a.Value != nil:
		return im.withConstant(n, op, a.Value, b.Constant, false)
	}
	return im.withConstant(n, op, b.Value, a.Constant, true)
}

// ofValues is the sum, the difference, the product, the quotient, the minimum or the maximum
// of two values.
func (im *importer) ofValues(n *pb.Node, op string, a, b *build.Value) (build.Operand, error) {
	switch op {
	case "Mul":
		if r, ok, err := im.gate(n, a, b); ok || err != nil {
			return r, err
		}
		v, err := im.build.Pair(n, bcnn.Mul{}, a, b)
		return build.Operand{Value: v}, err
	case "Min":
		v, err := im.build.Pair(n, bcnn.Min{}, a, b)
		return build.Operand{Value: v}, err
	case "Max":
		v, err := im.build.Pair(n, bcnn.Max{}, a, b)
		return build.Operand{Value: v}, err
	case "Sub":
		if r, ok, err := im.clipped(n, a, b); ok || err != nil {
			return r, err
		}
	case "Div":
		if x, ok := im.sigmoidOf(n, b); ok {
			gate := im.emit(n, "/sigmoid", bcnn.Function{Name: bcnn.Sigmoid}, x)
			return im.ofValues(n, "Mul", a, gate.Value)
		}
		return im.ratio(n, a, b)
	case "Add":
	default:
		return build.Operand{}, errors.New("of two computed tensors only the sum, difference, product, quotient, minimum or maximum is supported")
	}
	left, err := im.build.Settle(a)
	if err != nil {
		return build.Operand{}, err
	}
	right, err := im.build.Settle(b)
	if err != nil {
		return build.Operand{}, err
	}
	if a, b, err = im.build.Same(n, left, right); err != nil {
		return build.Operand{}, err
	}
	if a.Shape != b.Shape || !a.View.Equal(b.View) { // one of them may be repeated
		both := []*build.Value{a, b}
		small, large := 0, 1
		if a.Shape.Values() > b.Shape.Values() {
			small, large = 1, 0
		}
		if both[small], err = im.build.Repeated(n, both[small], both[large]); err != nil {
			return build.Operand{}, fmt.Errorf("two computed tensors must have the same dimensions, in the same order in memory, or 1 in one of them: %w", err)
		}
		a, b = both[0], both[1]
	}
	if op == "Sub" {
		b = im.build.Emit(n, "/negative", bcnn.Affine{Scale: []float32{-1}}, b.Shape, b)
	}
	return build.Operand{Value: im.build.Emit(n, "", bcnn.Add{}, a.Shape, a, b)}, nil
}

// withConstant is an operator between a value and a constant, which stands
// first if swapped is set.
func (im *importer) withConstant(n *pb.Node, op string, v *build.Value, t *eval.Tensor, swapped bool) (build.Operand, error) {
	switch {
	case (op == "Max" || op == "Min") && t.Len() != 1:
		return im.limits(n, op, v, t)
	case op == "Max":
		return im.build.Clip(n, v, t.At(0), math.Inf(1))
	case op == "Min":
		return im.build.Clip(n, v, math.Inf(-1), t.At(0))
	}
	if t.Len() == 1 && (op == "Mul" || op == "Div" && !swapped) && len(t.Dims) <= len(v.View) {
		factor := t.At(0)
		if op == "Div" {
			factor = 1 / factor
		}
		if out, ok := v.Scaled(n, factor); ok {
			return build.Operand{Value: out}, nil
		}
	}
	if t.Len() == 1 && (op == "Add" || op == "Sub" && !swapped) && len(t.Dims) <= len(v.View) {
		by := t.At(0)
		if op == "Sub" {
			by = -by
		}
		if out, ok := v.Moved(n, by); ok {
			return build.Operand{Value: out}, nil
		}
	}
	v, err := im.build.Settle(v)
	if err != nil {
		return build.Operand{}, err
	}
	if op == "Div" && swapped {
		if x, ok := im.sigmoidOf(n, v); ok {
			r := im.emit(n, "/sigmoid", bcnn.Function{Name: bcnn.Sigmoid}, x)
			return im.withConstant(n, "Mul", r.Value, t, true)
		}
		return im.withConstant(n, "Mul", im.reciprocal(n, v), t, true)
	}
	if op == "Pow" && !swapped {
		return im.power(n, v, t)
	}
	if v, err = im.across(n, v, t); err != nil {
		return build.Operand{}, err
	}
	v, list, err := im.build.Broadcast(v, t, n)
	if errors.Is(err, build.ErrPixels) {
		return im.withPixels(n, op, v, t, swapped)
	}
	if err != nil {
		return build.Operand{}, err
	}
	negative, err := im.build.Floats(len(list))
	if err != nil {
		return build.Operand{}, err
	}
	neutral := map[string]float32{"Mul": 1, "Div": 1}[op]
	idle := !swapped || op == "Add" || op == "Mul"
	err = im.budget.Loop(len(list), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			negative[i] = -list[i]
			idle = idle && list[i] == neutral
		}
	})
	if err != nil {
		return build.Operand{}, err
	}
	if idle {
		return build.Operand{Value: v.With(n)}, nil
	}
	var layer bcnn.Op
	switch {
	case op == "Add":
		layer = bcnn.Affine{Bias: list}
	case op == "Sub" && swapped:
		layer = bcnn.Affine{Scale: []float32{-1}, Bias: list}
	case op == "Sub":
		layer = bcnn.Affine{Bias: negative}
	case op == "Mul":
		layer = bcnn.Affine{Scale: list}
	case op == "Div" && !swapped:
		if layer, err = im.quotient(v, list); err != nil {
			return build.Operand{}, err
		}
	default:
		return build.Operand{}, errors.New("this operator is not supported with a computed operand here")
	}
	return build.Operand{Value: im.build.Emit(n, "", layer, v.Shape, v)}, nil
}

// limits is the maximum or the minimum of a value and a constant of several numbers.
func (im *importer) limits(n *pb.Node, op string, v *build.Value, t *eval.Tensor) (build.Operand, error) {
	v, err := im.build.Settle(v)
	if err != nil {
		return build.Operand{}, err
	}
	v, list, err := im.build.Broadcast(v, t, n)
	if errors.Is(err, build.ErrPixels) {
		return im.withPixels(n, op, v, t, false)
	}
	if err != nil {
		return build.Operand{}, err
	}
	if len(list) == 1 { // expanded
		return im.withConstant(n, op, v, eval.Scalar(pb.Float, float64(list[0])), false)
	}
	like, err := im.build.Single(n, v)
	if err != nil {
		return build.Operand{}, err
	}
	c, err := im.build.Constant(n, t, like, -1)
	if err != nil {
		return build.Operand{}, err
	}
	return im.ofValues(n, op, v, c)
}

// withPixels is an operator between a value and a constant that varies over its pixels.
func (im *importer) withPixels(n *pb.Node, op string, v *build.Value, t *eval.Tensor, swapped bool) (build.Operand, error) {
	if op == "Div" {
		if swapped {
			return build.Operand{}, errors.New("this operator is not supported with a computed operand here")
		}
		inverse, err := im.computed(eval.Scalar(t.Type, 1), []string{"Div"}, t)
		if err != nil {
			return build.Operand{}, err
		}
		op, t = "Mul", inverse
	}
	c, err := im.build.Constant(n, t, v, -1)
	if err != nil {
		return build.Operand{}, err
	}
	if swapped {
		v, c = c, v
	}
	return im.ofValues(n, op, v, c)
}

// quotient returns the division by constants: by powers of two a scale, by
// others a batch norm of variance c², whose square root and quotient are taken
// in float64, or where c² is no float32 the scale 1/c in float32.
func (im *importer) quotient(v *build.Value, list []float32) (bcnn.Op, error) {
	scale, err := im.build.Floats(len(list))
	if err != nil {
		return nil, err
	}
	powers, squares, zero := true, true, false
	err = im.budget.Loop(len(list), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := float64(list[i])
			scale[i] = float32(1 / x)
			zero = zero || x == 0 || math.IsInf(float64(scale[i]), 0)
			powers = powers && float64(scale[i])*x == 1
			square := float64(float32(x * x))
			squares = squares && square == x*x && square > 0
		}
	})
	switch {
	case err != nil:
		return nil, err
	case zero:
		return nil, errors.New("division by 0")
	}
	if powers || !squares {
		return bcnn.Affine{Scale: scale}, nil
	}
	channels := v.Shape.C
	if err := im.budget.Charge(16 * int64(channels)); err != nil {
		return nil, err
	}
	norm := bcnn.BatchNorm{
		Gamma: make([]float32, channels), Beta: make([]float32, channels),
		Mean: make([]float32, channels), Var: make([]float32, channels),
	}
	err = im.budget.Loop(channels, func(lo, hi int) {
		for k := lo; k < hi; k++ {
			c := list[k%len(list)]
			norm.Gamma[k] = float32(math.Copysign(1, float64(c)))
			norm.Var[k] = c * c
		}
	})
	return norm, err
}

// clipped recognises |x| − |x − a| with a > 0, which is 2·Clip(x, 0, a) − a: PACT writes
// its clip as (|x| − |x − a| + a)/2.
func (im *importer) clipped(n *pb.Node, v, w *build.Value) (r build.Operand, ok bool, err error) {
	if v, w = v.Settled(), w.Settled(); v == nil || w == nil || v.Shape != w.Shape || !v.View.Equal(w.View) {
		return r, false, nil
	}
	layers := im.build.Net.Layers
	within := func(v *build.Value) (layer int, ok bool) {
		if v.Layer < 0 {
			return 0, false
		}
		op, ok := layers[v.Layer].Op.(bcnn.PReLU)
		return layers[v.Layer].Inputs[0], ok && len(op.Slope) == 1 && op.Slope[0] == -1
	}
	x, ok := within(v)
	moved, ok2 := within(w)
	if !ok || !ok2 || moved < 0 || layers[moved].Inputs[0] != x {
		return r, false, nil
	}
	by, ok := layers[moved].Op.(bcnn.Affine)
	if !ok || len(by.Scale) > 0 || len(by.Bias) != 1 || !(by.Bias[0] < 0) {
		return r, false, nil
	}
	im.cancelled = append(im.cancelled, n.Label())
	a := -by.Bias[0]
	base := v.With(n)
	base.Layer = x
	if r, err = im.build.Clip(n, base, 0, float64(a)); err != nil {
		return r, true, err
	}
	if r, err = im.withConstant(n, "Mul", r.Value, eval.Scalar(pb.Float, 2), false); err == nil {
		r, err = im.withConstant(n, "Sub", r.Value, eval.Scalar(pb.Float, float64(a)), false)
	}
	return r, true, err
}
