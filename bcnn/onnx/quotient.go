package onnx

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/roots"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Quotients and roots of computed tensors: see package roots.

// layers returns a function that emits layers of node n.
func (im *importer) layers(n *pb.Node) roots.Emit[*build.Value] {
	return func(suffix string, op bcnn.Op, in ...*build.Value) *build.Value {
		return im.build.Emit(n, suffix, op, in[0].Shape, in...)
	}
}

// reciprocal returns 1/v of a settled value. If v is a square root, it is one reciprocal root.
func (im *importer) reciprocal(n *pb.Node, v *build.Value) *build.Value {
	if x := im.rootOf(v); x != nil {
		return im.rsqrt(n, x)
	}
	return roots.Reciprocal(im.layers(n), v)
}

// rootOf returns the value of which a settled one is the square root, or nil.
func (im *importer) rootOf(v *build.Value) *build.Value {
	if x := im.roots[v.Layer]; x != nil && x.View.Equal(v.View) {
		return x
	}
	return nil
}

// rsqrt returns 1/√v.
func (im *importer) rsqrt(n *pb.Node, v *build.Value) *build.Value {
	return roots.RSqrt(im.layers(n), v)
}

// sqrt returns √v.
func (im *importer) sqrt(n *pb.Node, v *build.Value) *build.Value {
	y := roots.Sqrt(im.layers(n), v)
	im.roots[y.Layer] = v
	return y
}

// ratio returns a/b. The reciprocal is taken before b is repeated to the dimensions of a.
func (im *importer) ratio(n *pb.Node, a, b *build.Value) build.Operand {
	b = im.build.Settle(b)
	if r, ok := im.repeated[b.Layer]; ok && r.seen.Equal(b.View) && len(r.of.View) == len(b.View) {
		b = r.of
	}
	if c := b.Shape; c.Values() > a.Shape.Values() {
		try.Failf("a quotient of computed tensors is supported only if the divisor has the dimensions of the dividend, or 1 for some of them")
	}
	if im.rootOf(b) != nil { // whose reciprocals float32 holds
		return im.ofValues(n, "Mul", a, im.reciprocal(n, b))
	}
	return im.over(n, a, roots.Invert(im.layers(n), b))
}

// over returns a/b of the factors of 1/b.
func (im *importer) over(n *pb.Node, a *build.Value, inverse roots.Inverse[*build.Value]) build.Operand {
	times := func(a, b *build.Value) *build.Value { return im.build.Pair(n, bcnn.Mul{}, a, b) }
	return build.Operand{Value: inverse.Quotient(times, a)}
}

// numbersOver returns t/v of constants t.
func (im *importer) numbersOver(n *pb.Node, t *eval.Tensor, v *build.Value) build.Operand {
	invert := roots.Invert[*build.Value]
	if x := im.rootOf(v); x != nil {
		v, invert = x, roots.InvertRoot[*build.Value]
	}
	inverse := invert(im.layers(n), v)
	scaled := im.withConstant(n, "Mul", inverse.Power, t, true)
	return im.ofValues(n, "Mul", scaled.Value, inverse.Rest)
}

// softsign imports x/(1 + |x|).
func (im *importer) softsign(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	b := im.emit(n, "/magnitude", bcnn.PReLU{Slope: []float32{-1}}, v).Value
	b = im.emit(n, "/one", bcnn.Affine{Bias: []float32{1}}, b).Value
	return im.ratio(n, v, b)
}

// mostPower is the largest magnitude of an exponent.
const mostPower = 4

// nearQuarter is the largest distance of an exponent from a multiple of ¼. PyTorch's older exporter
// writes the root of a distance as the power of 1/(2 + 1e-6).
const nearQuarter = 1e-6

// power returns v to a constant power, a multiple of ¼, as a product of v or 1/v and roots of them.
func (im *importer) power(n *pb.Node, v *build.Value, exponent *eval.Tensor) build.Operand {
	quarters := 0.0
	if exponent.Len() == 1 {
		quarters = math.Round(4 * exponent.At(0))
	}
	if quarters == 0 || math.Abs(quarters) > 4*mostPower || !(math.Abs(exponent.At(0)-quarters/4) <= nearQuarter) {
		try.Failf("the exponent must be a single number, of the multiples of ¼ from −%d to %d except 0", mostPower, mostPower)
	}
	y := roots.Power(im.layers(n), v, int(quarters), func() *build.Value { return im.reciprocal(n, v) })
	if quarters == 2 {
		im.roots[y.Layer] = v
	}
	return build.Operand{Value: y.With(n)}
}

// distance imports ReduceL1, ReduceL2 and ReduceSumSquare.
func (im *importer) distance(n *pb.Node, v *build.Value) build.Operand {
	v = im.settledValue(v)
	if n.OpType == "ReduceL1" {
		v = im.emit(n, "/magnitude", bcnn.PReLU{Slope: []float32{-1}}, v).Value
	} else {
		v = im.build.Emit(n, "/square", bcnn.Mul{}, v.Shape, v, v)
	}
	sum := im.reduceOver(n, "ReduceSum", v)
	if n.OpType == "ReduceL2" {
		sum = im.sqrt(n, sum)
	}
	return build.Operand{Value: sum}
}

// normed returns (v − mean)/√(variance + epsilon) with mean and variance over the given axes, the mean,
// and 1/√(variance + epsilon). Without centred the mean counts as 0 and is nil.
func (im *importer) normed(n *pb.Node, v *build.Value, axes []int, epsilon float64, centred bool) (y, mean, inverse *build.Value) {
	v = im.settledValue(v)
	if centred {
		mean = im.reduced(n, "ReduceMean", v, axes)
		r := im.ofValues(n, "Sub", v, mean)
		v = r.Value
	}
	variance := im.reduced(n, "ReduceMean", im.build.Emit(n, "/square", bcnn.Mul{}, v.Shape, v, v), axes)
	variance = im.emit(n, "/epsilon", bcnn.Affine{Bias: []float32{float32(epsilon)}}, variance).Value
	inverse = im.rsqrt(n, variance)
	r := im.ofValues(n, "Mul", v, inverse)
	return r.Value, mean, inverse
}

// norm imports the operators that normalise each image with its own mean and variance.
func (im *importer) norm(n *pb.Node) build.Operand {
	if r := im.operand(n, 0); r.Constant != nil {
		return im.standardised(n, r.Constant)
	}
	v := im.settled(n, 0)
	epsilon := n.Float("epsilon", 1e-5)
	scale := im.constant(n, 1)
	shift := im.constant(n, 2)
	rank := len(v.View)
	dims := make([]int, 0, rank)
	for a := 1; a < rank; a++ {
		dims = append(dims, v.Size(a))
	}
	from, groups := 2, 0 // the first dimension that is averaged
	switch n.OpType {
	case "InstanceNormalization":
	case "GroupNormalization":
		v, groups = im.inGroups(n, v)
	default: // LayerNormalization, RMSNormalization
		from = axisIndex(n.Int("axis", -1), rank)
	}
	var axes []int
	for a := from; a < len(v.View); a++ {
		axes = append(axes, a)
	}
	if from < 1 || len(axes) == 0 {
		try.Failf("the axes to normalise over must exist and must not include the batch")
	}
	y, mean, inverse := im.normed(n, v, axes, float64(epsilon), n.OpType != "RMSNormalization")
	for i, r := range []*build.Value{mean, inverse} { // the other outputs of a LayerNormalization
		if n.OpType == "LayerNormalization" && i+1 < len(n.Outputs) && n.Outputs[i+1] != "" {
			im.env[n.Outputs[i+1]] = build.Operand{Value: r.With(n)}
		}
	}
	// Scale and shift of a GroupNormalization are one per group (opset 18), and apply before the
	// groups are split into channels again, or one per channel, and apply after.
	perGroup := groups > 0 && scale != nil && len(scale.Dims) == 1 && scale.Dims[0] == groups
	if perGroup {
		y = im.scaleAndShift(n, y, scale, shift)
	}
	if groups > 0 { // the dimensions that the input has
		y = y.With(n)
		y.View = try.Value(y.View.Reshape(dims))
	}
	if !perGroup {
		y = im.scaleAndShift(n, y, scale, shift)
	}
	return build.Operand{Value: y}
}

// inGroups returns the input of a GroupNormalization with a group of channels in each row.
func (im *importer) inGroups(n *pb.Node, v *build.Value) (_ *build.Value, groups int) {
	count, size := n.Int("num_groups", 0), int64(0)
	if len(v.View) > 2 {
		size = int64(v.Size(1))
	}
	if count < 1 || size%count != 0 || size == 0 {
		try.Failf("num_groups must divide the number of channels")
	}
	groups = int(count)
	rest := v.Shape.Values() / groups
	v = v.With(n)
	v.View = try.Value(v.View.Reshape([]int{groups, rest}))
	return v, groups
}

// scaleAndShift applies the scale and the shift of a normalisation; nil stands for none.
func (im *importer) scaleAndShift(n *pb.Node, y *build.Value, scale, shift *eval.Tensor) *build.Value {
	for i, t := range []*eval.Tensor{scale, shift} {
		if t == nil {
			continue
		}
		if n.OpType == "InstanceNormalization" || n.OpType == "GroupNormalization" {
			if len(t.Dims) != 1 || t.Dims[0] != y.Size(1) {
				try.Failf("scale and bias must have one value for each channel (or group) of its input")
			}
			dims := slices.Repeat([]int{1}, len(y.View)-1)
			dims[0] = t.Dims[0]
			t = t.Redim(dims)
		}
		y = im.withConstant(n, []string{"Mul", "Add"}[i], y, t, false).Value
	}
	return y
}

// meanVariance imports MeanVarianceNormalization.
func (im *importer) meanVariance(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	axes, given := im.axes(n, 1, len(v.View))
	if !given {
		try.Failf("without axes it would join the batch too: give axes that leave out the first dimension")
	}
	y, _, _ := im.normed(n, v, axes, math.Pow(1e-9, 2), true)
	return build.Operand{Value: y}
}

// lpNormalization imports LpNormalization: v divided by its L1 or L2 norm.
func (im *importer) lpNormalization(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	p := n.Int("p", 2)
	a := n.Int("axis", -1)
	axis := axisIndex(a, len(v.View))
	var sum *build.Value
	switch p {
	case 1:
		sum = im.reduced(n, "ReduceSum", im.emit(n, "/magnitude", bcnn.PReLU{Slope: []float32{-1}}, v).Value, []int{axis})
	case 2:
		sum = im.reduced(n, "ReduceSum", im.build.Emit(n, "/square", bcnn.Mul{}, v.Shape, v, v), []int{axis})
	default:
		try.Failf("only norms of order p = 1 and p = 2 are supported")
	}
	if p == 2 {
		return im.ofValues(n, "Mul", v, roots.RSqrtSum(im.layers(n), sum))
	}
	return im.over(n, v, roots.InvertSum(im.layers(n), sum))
}
