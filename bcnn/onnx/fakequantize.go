package onnx

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/fakequantize"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// fakeQuantize imports FakeQuantize of domain org.openvinotoolkit, as NNCF exports it: a value, the bounds of
// what is quantised, and those of the result.
func (im *importer) fakeQuantize(n *pb.Node) build.Operand {
	operands := im.operands(n, 5)
	levels := int(min(max(n.Int("levels", 0), 0), math.MaxInt32))
	if levels < 2 {
		try.Failf("its attribute levels must be 2 or more")
	}
	for i, o := range operands {
		if i > 0 && (o.Constant == nil || o.Constant.Type != pb.Float || o.Constant.Len() == 0) {
			try.Failf("input %d must be a FLOAT constant", i)
		}
	}
	if r, ok := im.build.Pointwise(n, operands, im.eval.FakeQuantize(levels)); ok {
		return r
	}
	v, q := im.quantisers(n, operands, levels)
	if levels == 2 || slices.ContainsFunc(q, func(q fakequantize.Quantiser) bool { return q.InLow == q.InHigh }) {
		return im.twoLevels(n, v, operands[1:], q)
	}
	if levels > bcnn.MaxLevels {
		try.Failf("%d levels are not supported, at most %d are", levels, bcnn.MaxLevels)
	}
	least, channels := q[0].Least(), len(q)
	scale, shift := im.build.NewFloats(channels), im.build.NewFloats(channels)
	shifted := false
	for c := range q {
		scale[c] = float32(q[c].Step())
		if q[c].Least() != least || least == 0 {
			shift[c] = float32(float64(q[c].OutLow) - float64(least)*q[c].Step())
		}
		shifted = shifted || shift[c] != 0
	}
	r := im.build.Round(n, v, v.Type, build.Rounding{Channels: channels, Level: func(c int, x float32) float64 { return float64(q[c].Level(x)) + float64(least) }})
	if channels == 1 && !shifted {
		if out, ok := r.Value.Scaled(n, float64(scale[0])); ok {
			return build.Operand{Value: out}
		}
	}
	v = im.build.Settle(r.Value)
	line := bcnn.Affine{Scale: scale}
	if shifted {
		line.Bias = shift
	}
	return build.Operand{Value: im.build.Emit(n, "/values", line, v.Shape, v)}
}

// quantisers returns what is quantised, and how: one for all channels, or one for each.
func (im *importer) quantisers(n *pb.Node, operands []build.Operand, levels int) (v *build.Value, q []fakequantize.Quantiser) {
	v = operands[0].Value
	var lists [4][]float32
	channels := 1
	for i, o := range operands[1:] {
		lists[i] = o.Constant.F32
		if o.Constant.Len() > 1 {
			v = im.build.Settle(v)
			v, lists[i] = im.build.Broadcast(v, o.Constant, n)
		}
		channels = max(channels, len(lists[i]))
	}
	const search = 64 * 8 // what it takes to find a threshold
	try.Check(im.budget.Charge((64 + search) * int64(channels)))
	q = make([]fakequantize.Quantiser, channels)
	for c := range q {
		at := func(k int) float32 { return lists[k][min(c, len(lists[k])-1)] }
		q[c] = fakequantize.Quantiser{InLow: at(0), InHigh: at(1), OutLow: at(2), OutHigh: at(3), Levels: levels}
		try.Check(q[c].Check())
	}
	return v, q
}

// twoLevels imports one that gives OutHigh for what is above a threshold, and else OutLow.
func (im *importer) twoLevels(n *pb.Node, v *build.Value, bounds []build.Operand, q []fakequantize.Quantiser) build.Operand {
	at := bounds[0].Constant
	for c := range q {
		if q[c].Levels > 2 && q[c].InLow != q[c].InHigh {
			try.Failf("input_low and input_high are equal for some channels only, and there are %d levels", q[c].Levels)
		}
	}
	for c := range q {
		if q[c].InLow == q[c].InHigh {
			continue
		}
		// The bounds are combined as they are broadcast.
		at = im.eval.Below(bounds[0].Constant, bounds[1].Constant)
		break
	}
	low, high := bounds[2].Constant, bounds[3].Constant
	return im.build.Threshold(n, v, at, low, low, high)
}
