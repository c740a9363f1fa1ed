package onnx

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// arithmetic imports Add, Sub, Mul, Div, Mod, Max, Min and Pow. Max and Min may have
// any number of operands.
func (im *importer) arithmetic(n *pb.Node) build.Operand {
	if n.OpType == "Max" || n.OpType == "Min" {
		return im.oneByOne(n, n.OpType)
	}
	operands := im.operands(n, 2)
	op := n.OpType
	if op == "Mod" {
		if fmod := n.Bit("fmod", 0); fmod != 0 {
			op = "FMod"
		}
	}
	if t := operands[1].Constant; op == "Pow" && t != nil && operands[0].Value != nil && !t.Type.Real() { // the exponent may be an integer
		operands[1] = im.cast(n, operands[1], pb.Float)
	}
	return im.operate(n, op, operands[0], operands[1])
}

// sumNode imports Sum.
func (im *importer) sumNode(n *pb.Node) build.Operand { return im.oneByOne(n, "Add") }

// meanNode imports Mean of several tensors.
func (im *importer) meanNode(n *pb.Node) build.Operand {
	sum := im.oneByOne(n, "Add")
	return im.compute(n, "Div", sum, build.Operand{Constant: eval.Scalar(sum.Type(), float64(len(n.Inputs)))})
}

// oneByOne combines all inputs with a binary operator, from left to right.
func (im *importer) oneByOne(n *pb.Node, op string) build.Operand {
	r := im.operand(n, 0)
	for i := 1; i < len(n.Inputs); i++ {
		r = im.operate(n, op, r, im.operand(n, i))
	}
	return r
}

// operate imports a binary operator. It remembers sums, since a later difference may cancel a part
// of them: see build.Sum.
func (im *importer) operate(n *pb.Node, op string, a, b build.Operand) build.Operand {
	r := im.compute(n, op, a, b)
	if !r.Type().Real() { // integers, such as shapes
		return r
	}
	switch {
	case op == "Sub" && a.Constant != nil && isNumber(a.Constant, 0):
		return r.Negative(b)
	case op == "Add" || op == "Sub":
	case (op == "Mul" || op == "Div") && b.Constant != nil && isNumber(b.Constant, -1):
		return r.Negative(a)
	case op == "Mul" && a.Constant != nil && isNumber(a.Constant, -1):
		return r.Negative(b)
	default:
		return r
	}
	r.Sum = &build.Sum{A: a, B: b, Minus: op == "Sub"}
	rest, ok := im.build.Cancel(r.Sum, r)
	if ok {
		im.cancelled = append(im.cancelled, n.Label())
		return rest
	}
	return r
}

// isNumber reports whether a constant is the number x, without a dimension or with sizes of 1.
func isNumber(t *eval.Tensor, x float64) bool { return t.Len() == 1 && t.At(0) == x && !t.HasBatch() }

// checkRanks fails if a constant has more dimensions than the values beside it.
func checkRanks(operands ...build.Operand) {
	rank := 0
	for _, o := range operands {
		if o.Value != nil {
			rank = max(rank, len(o.Value.View))
		}
	}
	for _, o := range operands {
		if t := o.Constant; t != nil && rank > 0 && len(t.Dims) > rank {
			try.Failf("a constant of shape %v has more dimensions than the computed tensor, which has %d", t.Dims, rank)
		}
	}
}

// compute is operate without remembering and cancelling sums.
func (im *importer) compute(n *pb.Node, op string, a, b build.Operand) build.Operand {
	checkRanks(a, b)
	if (op == "Add" || op == "Sub") && a.Value != nil && b.Constant != nil && b.Constant.Len() == 1 {
		if step, ok := im.build.OneStep(a.Value); ok {
			a.Value = step
		}
	}
	if r, ok := im.build.Pointwise(n, []build.Operand{a, b}, im.eval.Binary(op)); ok {
		return r
	}
	for _, o := range []build.Operand{a, b} {
		if o.Type() != pb.Float {
			try.Failf("arithmetic on computed values of %v is not supported: Cast to FLOAT first", o.Type())
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

// ofValues applies Add, Sub, Mul, Div, Min or Max to two values.
func (im *importer) ofValues(n *pb.Node, op string, a, b *build.Value) build.Operand {
	switch op {
	case "Mul":
		return build.Operand{Value: im.build.Pair(n, bcnn.Mul{}, a, b)}
	case "Min":
		return build.Operand{Value: im.build.Pair(n, bcnn.Min{}, a, b)}
	case "Max":
		return build.Operand{Value: im.build.Pair(n, bcnn.Max{}, a, b)}
	case "Sub":
		if r, ok := im.clipped(n, a, b); ok {
			return r
		}
	case "Div":
		if x, ok := im.sigmoidOf(n, b); ok {
			gate := im.emit(n, "/sigmoid", bcnn.Function{Name: bcnn.Sigmoid}, x)
			return im.ofValues(n, "Mul", a, gate.Value)
		}
		return im.ratio(n, a, b)
	case "Add":
	default:
		try.Failf("of two computed tensors only the sum, difference, product, quotient, minimum or maximum is supported")
	}
	left := im.build.Settle(a)
	right := im.build.Settle(b)
	a, b = im.build.Align(n, left, right)
	if a.Shape != b.Shape || !a.View.Equal(b.View) { // one of them may be repeated
		both := []*build.Value{a, b}
		small, large := 0, 1
		if a.Shape.Values() > b.Shape.Values() {
			small, large = 1, 0
		}
		repeated, like, err := im.build.Repeated(n, both[small], both[large])
		if err != nil {
			try.Failf("two computed tensors must have the same shape, or sizes of 1 in one of them, and no different Transpose before them: %w", err)
		}
		both[small], both[large] = repeated, like
		a, b = both[0], both[1]
	}
	if op == "Sub" {
		b = im.build.Emit(n, "/negative", bcnn.Affine{Scale: []float32{-1}}, b.Shape, b)
	}
	return build.Operand{Value: im.build.Emit(n, "", bcnn.Add{}, a.Shape, a, b)}
}

// withConstant applies a binary operator to a value and a constant. If swapped is set, the constant
// is the first operand.
func (im *importer) withConstant(n *pb.Node, op string, v *build.Value, t *eval.Tensor, swapped bool) build.Operand {
	switch {
	case (op == "Max" || op == "Min") && t.Len() != 1:
		return im.limits(n, op, v, t)
	case op == "Max":
		return im.build.Clip(n, v, t.At(0), math.Inf(1))
	case op == "Min":
		return im.build.Clip(n, v, math.Inf(-1), t.At(0))
	}
	if t.Len() == 1 && len(t.Dims) <= len(v.View) && (!swapped || op == "Add" || op == "Mul") {
		if out, ok := im.ofNumber(n, op, v, t.At(0)); ok {
			return build.Operand{Value: out}
		}
	}
	if op == "Div" && !swapped && t.Len() == 1 {
		if r, ok := im.limitedQuotient(n, v, t); ok {
			return r
		}
	}
	v = im.build.Settle(v)
	switch {
	case op == "Div" && swapped:
		if x, ok := im.sigmoidOf(n, v); ok {
			r := im.emit(n, "/sigmoid", bcnn.Function{Name: bcnn.Sigmoid}, x)
			return im.withConstant(n, "Mul", r.Value, t, true)
		}
		return im.numbersOver(n, t, v)
	case op == "Pow" && !swapped:
		return im.power(n, v, t)
	}
	v = im.repeatAlong(n, v, t)
	v, list, ok := im.build.PerChannel(v, t, n)
	if !ok {
		return im.withPixels(n, op, v, t, swapped)
	}
	if im.idle(op, list, swapped) {
		return build.Operand{Value: v.With(n)}
	}
	return build.Operand{Value: im.build.Emit(n, "", im.withList(op, v, list, swapped), v.Shape, v)}
}

// idle reports whether applying an operator with these numbers changes nothing.
func (im *importer) idle(op string, list []float32, swapped bool) bool {
	neutral := map[string]float32{"Mul": 1, "Div": 1}[op]
	idle := !swapped || op == "Add" || op == "Mul"
	try.Check(im.budget.Loop(len(list), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			idle = idle && list[i] == neutral
		}
	}))
	return idle
}

// limitedQuotient divides a value with pending limits by a number: it divides the value without
// limits by a layer and the limits themselves as the operator does. Values at a limit, which are
// frequent, then give the exact quotient, though the layer multiplies by the rounded reciprocal. ok
// is false without limits, and where both are the same.
func (im *importer) limitedQuotient(n *pb.Node, v *build.Value, t *eval.Tensor) (r build.Operand, ok bool) {
	c := t.At(0)
	bare, lo, hi, ok := v.Limits()
	if fraction, _ := math.Frexp(math.Abs(c)); !ok || fraction == 0.5 || !(math.Abs(c) > 0) || math.IsInf(c, 0) {
		return r, false
	}
	of := func(limit float64) float64 {
		if math.IsInf(limit, 0) {
			return limit * math.Copysign(1, c)
		}
		return im.computed(eval.Scalar(pb.Float, limit), []string{"Div"}, t).At(0)
	}
	if lo, hi = of(lo), of(hi); c < 0 {
		lo, hi = hi, lo
	}
	if math.IsInf(lo, 1) || math.IsInf(hi, -1) {
		return r, false
	}
	q := im.withConstant(n, "Div", bare, t, false)
	return im.build.Clip(n, q.Value, lo, hi), true
}

// ofNumber applies Mul, Div, Add or Sub with a number to a value with a pending rounding; ok is
// false for others.
func (im *importer) ofNumber(n *pb.Node, op string, v *build.Value, x float64) (out *build.Value, ok bool) {
	switch op {
	case "Mul":
		return v.Scaled(n, x)
	case "Div":
		return v.Scaled(n, 1/x)
	case "Add":
		return v.Moved(n, x)
	case "Sub":
		return v.Moved(n, -x)
	}
	return nil, false
}

// withList returns the layer for an operator with one number, or one per channel.
func (im *importer) withList(op string, v *build.Value, list []float32, swapped bool) bcnn.Op {
	switch {
	case op == "Add":
		return bcnn.Affine{Bias: list}
	case op == "Sub" && swapped:
		return bcnn.Affine{Scale: []float32{-1}, Bias: list}
	case op == "Sub":
		negative := im.build.NewFloats(len(list))
		for i, x := range list {
			negative[i] = -x
		}
		return bcnn.Affine{Bias: negative}
	case op == "Mul":
		return bcnn.Affine{Scale: list}
	case op == "Div" && !swapped:
		return im.quotient(v, list)
	}
	panic(try.Errorf("this operator is not supported with a computed operand, except Pow with a constant exponent"))
}

// limits is Max or Min of a value and a constant of several numbers.
func (im *importer) limits(n *pb.Node, op string, v *build.Value, t *eval.Tensor) build.Operand {
	v = im.build.Settle(v)
	v, list, ok := im.build.PerChannel(v, t, n)
	if !ok {
		return im.withPixels(n, op, v, t, false)
	}
	if len(list) == 1 { // expanded
		return im.withConstant(n, op, v, eval.Scalar(pb.Float, float64(list[0])), false)
	}
	like := im.build.FirstPixel(n, v)
	c := im.build.Constant(n, t, like, -1)
	return im.ofValues(n, op, v, c)
}

// withPixels applies an operator with a constant that varies over the pixels of the value.
func (im *importer) withPixels(n *pb.Node, op string, v *build.Value, t *eval.Tensor, swapped bool) build.Operand {
	if op == "Div" {
		if swapped {
			try.Failf("this operator is supported only with a constant as its second operand")
		}
		inverse := im.computed(eval.Scalar(t.Type, 1), []string{"Div"}, t)
		op, t = "Mul", inverse
	}
	c := im.build.Constant(n, t, v, -1)
	if swapped {
		v, c = c, v
	}
	return im.ofValues(n, op, v, c)
}

// quotient returns a layer that divides by constants c, one or one per channel. If all 1/c are
// exact (powers of two) it is an Affine. Otherwise it is a BatchNorm of variance c², which divides
// in float64, or, if some c² is not exact in float32, an Affine with the rounded 1/c.
func (im *importer) quotient(v *build.Value, list []float32) bcnn.Op {
	scale := im.build.NewFloats(len(list))
	powers, squares, zero := true, true, false
	try.Check(im.budget.Loop(len(list), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := float64(list[i])
			scale[i] = float32(1 / x)
			zero = zero || x == 0 || math.IsInf(float64(scale[i]), 0)
			powers = powers && float64(scale[i])*x == 1
			square := float64(float32(x * x))
			squares = squares && square == x*x && square > 0
		}
	}))
	if zero {
		try.Failf("division by 0, or by a constant whose reciprocal overflows float32")
	}
	if powers || !squares {
		return bcnn.Affine{Scale: scale}
	}
	channels := v.Shape.C
	try.Check(im.budget.Charge(16 * int64(channels)))
	norm := bcnn.BatchNorm{
		Gamma: make([]float32, channels), Beta: make([]float32, channels),
		Mean: make([]float32, channels), Var: make([]float32, channels),
	}
	try.Check(im.budget.Loop(channels, func(lo, hi int) {
		for k := lo; k < hi; k++ {
			c := list[k%len(list)]
			norm.Gamma[k] = float32(math.Copysign(1, float64(c)))
			norm.Var[k] = c * c
		}
	}))
	return norm
}

// clipped recognises |x| − |x − a| with a > 0, which is 2·Clip(x, 0, a) − a. PACT writes its clip
// as (|x| − |x − a| + a)/2.
func (im *importer) clipped(n *pb.Node, v, w *build.Value) (r build.Operand, ok bool) {
	if v, w = v.Settled(), w.Settled(); v == nil || w == nil || v.Shape != w.Shape || !v.View.Equal(w.View) {
		return r, false
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
		return r, false
	}
	by, ok := layers[moved].Op.(bcnn.Affine)
	if !ok || len(by.Scale) > 0 || len(by.Bias) != 1 || !(by.Bias[0] < 0) {
		return r, false
	}
	im.cancelled = append(im.cancelled, n.Label())
	a := -by.Bias[0]
	base := v.With(n)
	base.Layer = x
	r = im.build.Clip(n, base, 0, float64(a))
	r = im.withConstant(n, "Mul", r.Value, eval.Scalar(pb.Float, 2), false)
	r = im.withConstant(n, "Sub", r.Value, eval.Scalar(pb.Float, float64(a)), false)
	return r, true
}
