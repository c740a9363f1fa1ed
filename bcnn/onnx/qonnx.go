package onnx

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// The operators of QONNX, which Brevitas and FINN write.

func (im *importer) bipolarQuant(n *pb.Node) build.Operand {
	operands := im.operands(n, 2)
	return im.bipolar(n, operands[0], operands[1].Constant)
}

// bipolar returns +scale where x ≥ 0 and −scale elsewhere.
func (im *importer) bipolar(n *pb.Node, x build.Operand, scale *eval.Tensor) build.Operand {
	if scale == nil {
		try.Failf("the scale must be constant")
	}
	if r, ok := im.build.Pointwise(n, []build.Operand{x, {Constant: scale}}, im.eval.Binary("BipolarQuant")); ok {
		return r
	}
	minus := im.eval.Unary("Neg")([]*eval.Tensor{scale})
	return im.build.Threshold(n, x.Value, eval.Scalar(x.Value.Type, 0), minus, scale, scale)
}

// quantNode imports Quant and IntQuant of QONNX. One signed bit means ±1.
func (im *importer) quantNode(n *pb.Node) build.Operand {
	operands := im.operands(n, 4)
	var c [4]*eval.Tensor
	for i, o := range operands {
		c[i] = o.Constant
		if i > 0 && (c[i] == nil || c[i].Type != pb.Float) {
			try.Failf("input %d must be a FLOAT constant", i)
		}
	}
	signed := n.Bit("signed", 1)
	narrow := n.Bit("narrow", 1)
	rounding := roundingMode(n, "ROUND")
	if r, ok := im.build.Pointwise(n, operands, im.eval.Quant(signed != 0, narrow != 0, rounding)); ok {
		return r
	}
	zero := zeroPoint(c[2])
	if signed != 0 && c[3].Len() == 1 && c[3].At(0) == 1 {
		if zero != 0 {
			try.Failf("a quantisation to one signed bit (±1) must have the zero point 0")
		}
		return im.bipolar(n, operands[0], c[1])
	}
	least, most := try.Values(eval.QuantLimits(c[3], signed != 0, narrow != 0))
	mode := strings.ToUpper(n.Text("rounding_mode", "ROUND"))
	near := zero == 0 && (mode == "ROUND" || mode == "HALF_EVEN")
	return im.quantValue(n, operands[0].Value, c[1], c[1], near, func(x float32) float64 {
		return rounding(max(least, min(float64(x+zero), most))) - float64(zero)
	})
}

// roundingMode returns the rounding that the attribute rounding_mode names.
func roundingMode(n *pb.Node, fallback string) func(float64) float64 {
	mode := n.Text("rounding_mode", fallback)
	away := func(round func(float64) float64) func(float64) float64 { // from 0
		return func(x float64) float64 { return math.Copysign(round(math.Abs(x)), x) }
	}
	f := map[string]func(float64) float64{
		"ROUND": math.RoundToEven, "HALF_EVEN": math.RoundToEven, "CEIL": math.Ceil, "FLOOR": math.Floor,
		"UP": away(math.Ceil), "DOWN": math.Trunc,
		"HALF_UP":   away(func(x float64) float64 { return math.Floor(x + 0.5) }),
		"HALF_DOWN": away(func(x float64) float64 { return math.Ceil(x - 0.5) }),
	}[strings.ToUpper(mode)]
	if f == nil {
		try.Failf("rounding mode %s is not supported, want ROUND, CEIL, FLOOR, UP, DOWN, HALF_EVEN, HALF_UP or HALF_DOWN", text.Quote(mode))
	}
	return f
}

// zeroPoint returns the zero point of a quantisation, which must be one integer.
func zeroPoint(t *eval.Tensor) float32 {
	if t.Len() != 1 {
		try.Failf("the zero point must be one number for all channels")
	}
	z := t.At(0)
	if z != math.Trunc(z) || math.Abs(z) > bcnn.MaxLevels {
		try.Failf("a zero point of %v is not supported, want a whole number of at most ±%d", z, bcnn.MaxLevels)
	}
	return float32(z)
}

// divisors returns the scales to divide a value by, all above 0: one, or one for each channel in
// memory.
func (im *importer) divisors(n *pb.Node, v *build.Value, scale *eval.Tensor) (*build.Value, []float32) {
	if scale.Type != pb.Float || scale.Len() == 0 {
		try.Failf("its scale is %v of shape %v, want one or more FLOAT numbers", scale.Type, scale.Dims)
	}
	scales := scale.F32
	if scale.Len() > 1 {
		v = im.build.Settle(v)
		v, scales = im.build.Broadcast(v, scale, n)
	}
	positive := true
	try.Check(im.budget.Loop(len(scales), func(lo, hi int) {
		for _, s := range scales[lo:hi] {
			positive = positive && s > 0
		}
	}))
	if !positive {
		try.Failf("every scale must be above 0")
	}
	return v, scales
}

// quantValue returns round(v/scale)·by. near says that round gives the nearest integer within limits.
func (im *importer) quantValue(n *pb.Node, v *build.Value, scale, by *eval.Tensor, near bool, round func(x float32) float64) build.Operand {
	v, scales := im.divisors(n, v, scale)
	how := build.Rounding{Channels: len(scales), Level: func(c int, x float32) float64 { return round(x / scales[c]) }}
	if near {
		how.Scaled = im.dividing(n, scales)
	}
	r := im.build.Round(n, v, v.Type, how)
	if len(scales) == 1 {
		if out, ok := r.Value.Scaled(n, by.At(0)); ok {
			return build.Operand{Value: out}
		}
	}
	v = im.build.Settle(r.Value)
	if by != scale {
		scales = by.F32
	}
	return build.Operand{Value: im.build.Emit(n, "/values", bcnn.Affine{Scale: scales}, v.Shape, v)}
}

// truncNode imports Trunc: integers times a scale, divided by a power of two, rounded, and limited
// to a number of bits. Version 1 of the operator has no scale of its result, and no limits.
func (im *importer) truncNode(n *pb.Node) build.Operand {
	v := im.value(n, 0)
	var c []*eval.Tensor
	for i := 1; i < len(n.Inputs); i++ {
		t := im.required(n, i)
		if t.Type != pb.Float || t.Len() != 1 {
			try.Failf("input %d must be one FLOAT value", i)
		}
		c = append(c, t)
	}
	if len(c) != 4 && len(c) != 5 {
		try.Failf("it has %d inputs, want 5 or 6", len(n.Inputs))
	}
	signed := n.Bit("signed", 1)
	narrow := n.Bit("narrow", 0)
	rounding := roundingMode(n, "FLOOR")
	scale, by := c[0], c[0]
	shift, least, most := c[2].At(0)-c[3].At(0), math.Inf(-1), math.Inf(1)
	if len(c) == 5 {
		by = c[3]
		shift = math.Log2(by.At(0) / scale.At(0))
		least, most = try.Values(eval.QuantLimits(c[4], signed != 0, narrow != 0))
	}
	switch {
	case !(scale.At(0) > 0) || !(by.At(0) > 0):
		try.Failf("every scale must be above 0")
	case c[1].At(0) != 0:
		try.Failf("the zero point must be 0")
	case !(math.Abs(shift) <= 32):
		try.Failf("a division by 2 to the power of %v is not supported, want a power from −32 to 32", shift)
	}
	power := math.Exp2(math.RoundToEven(shift))
	return im.quantValue(n, v, scale, by, false, func(x float32) float64 {
		return rounding(max(least, min(math.RoundToEven(float64(x))/power, most)))
	})
}

// multiThreshold imports MultiThreshold: the number of thresholds that a value reaches, times
// out_scale, plus out_bias. The thresholds are [channel][n] or [1][n].
func (im *importer) multiThreshold(n *pb.Node) build.Operand {
	v := im.value(n, 0)
	t := im.required(n, 1)
	scale := n.Float("out_scale", 1)
	bias := n.Float("out_bias", 0)
	layout := n.Text("data_layout", "")
	if t.Type != pb.Float || len(t.Dims) != 2 || t.Len() == 0 {
		try.Failf("its thresholds are %v of shape %v, want FLOAT of shape [channels thresholds]", t.Type, t.Dims)
	}
	channels, each := t.Dims[0], t.Dims[1]
	dims := slices.Repeat([]int{1}, len(v.View)) // of a constant with one number per channel
	at := 1
	if layout != "" {
		at = strings.IndexByte(layout, 'C')
	}
	if at < 0 || at >= len(dims) || len(layout) > 0 && len(layout) != len(dims) {
		try.Failf("data_layout %s does not fit a tensor of %d dimensions: want a letter for each, with C for the channels", text.Quote(layout), len(dims))
	}
	dims[at] = channels
	if each == 1 { // two values
		first := &eval.Tensor{Type: pb.Float, Dims: dims, F32: t.F32}
		low, high := eval.Scalar(pb.Float, float64(bias)), eval.Scalar(pb.Float, float64(scale+bias))
		return im.build.Threshold(n, v, first, low, high, high)
	}
	// Sort them for a binary search. 64 units each pay for sorting and searching.
	try.Check(im.budget.Charge(64 * int64(t.Len())))
	sorted := slices.Clone(t.F32)
	row := im.eval.NewTensor(pb.Float, dims)
	for c := range channels {
		list := sorted[c*each:][:each]
		slices.Sort(list)
		if list[0] != list[0] {
			try.Failf("a threshold is NaN")
		}
		row.F32[c] = float32(c)
	}
	v, rows := im.build.Broadcast(v, row, n)
	r := im.build.Round(n, v, pb.Float, build.Rounding{Channels: len(rows), Level: func(c int, x float32) float64 {
		list := sorted[int(rows[c])*each:][:each]
		return float64(sort.Search(each, func(i int) bool { return !(x >= list[i]) }))
	}})
	if scale != 1 {
		r = im.compute(n, "Mul", r, build.Operand{Constant: eval.Scalar(pb.Float, float64(scale))})
	}
	if bias != 0 {
		r = im.compute(n, "Add", r, build.Operand{Constant: eval.Scalar(pb.Float, float64(bias))})
	}
	return r
}
