package openvino

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/fakequantize"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// step is a FakeQuantize of two levels, or a comparison, that no layer has been made of yet: high
// where base > at, or with reached where base ≥ at, else low. A BinaryConvolution reads its signs, other layers its numbers, and each is made once.
type step struct {
	n             *node
	base          *value
	at, low, high []float32 // one, or one for each channel in memory
	reached       bool
	signs         [2]*value // see sign
	settled       *value
}

// settle returns a value with nothing pending.
func (im *importer) settle(n *node, v *value) *value {
	s := v.step
	if s == nil {
		return v
	}
	if s.settled == nil {
		s.settled = im.numbers(s)
		// The operator that reads it may see it otherwise than the FakeQuantize does.
		im.net.Layers[s.settled.layer].Source = im.source(s.n.tensor(0), s.settled.with(s.base.view))
	}
	return s.settled.with(v.view)
}

// sign returns the step as ±1: +1 where it is high, or, turned, where it is low.
func (im *importer) sign(s *step, turned bool) *value {
	k, suffix, op := 0, "/sign", bcnn.Sign{Zero: bcnn.ZeroIsMinus}
	if turned {
		k, suffix = 1, "/turned"
	}
	if turned != s.reached {
		op.Zero = bcnn.ZeroIsPlus
	}
	if s.signs[k] == nil {
		// x − t has the sign of its exact difference in float32, and is 0 only where x = t.
		shift := bcnn.Affine{}
		if turned {
			shift.Scale = []float32{-1}
		}
		if slices.ContainsFunc(s.at, func(t float32) bool { return t != 0 }) {
			shift.Bias = im.newFloats(len(s.at))
			for i, t := range s.at {
				if shift.Bias[i] = -t; turned {
					shift.Bias[i] = t
				}
			}
		}
		v := s.base
		if shift.Scale != nil || shift.Bias != nil {
			v = im.emit(s.n, suffix+"/threshold", shift, v.shape, v.view, v)
		}
		s.signs[k] = im.emit(s.n, suffix, op, v.shape, v.view, v)
	}
	return s.signs[k]
}

// numbers makes the numbers of a step.
func (im *importer) numbers(s *step) *value {
	try.Check(im.budget.Charge(16 * int64(len(s.low)+len(s.high)+len(s.at))))
	all := func(list []float32, want float32) bool {
		return !slices.ContainsFunc(list, func(x float32) bool { return x != want })
	}
	switch {
	case all(s.low, -1) && all(s.high, 1):
		return im.sign(s, false)
	case all(s.low, 1) && all(s.high, -1):
		return im.sign(s, true)
	case all(s.low, 0):
		// Levels 0 and 1: layers behind it sum integers, and 0 pads.
		op := bcnn.Quantize{Levels: 2, Thresholds: im.newFloats(len(s.at))}
		for i, t := range s.at {
			if op.Thresholds[i] = t; !s.reached {
				op.Thresholds[i] = math.Nextafter32(t, float32(math.Inf(1)))
			}
		}
		v := im.emit(s.n, "/levels", op, s.base.shape, s.base.view, s.base)
		if all(s.high, 1) {
			return v
		}
		return im.emit(s.n, "", bcnn.Affine{Scale: s.high}, v.shape, v.view, v)
	}
	v := im.sign(s, false)
	op := bcnn.Affine{Scale: im.newFloats(max(len(s.low), len(s.high)))}
	op.Bias = im.newFloats(len(op.Scale))
	for i := range op.Scale {
		lo, hi := s.low[min(i, len(s.low)-1)], s.high[min(i, len(s.high)-1)]
		op.Scale[i], op.Bias[i] = hi/2-lo/2, hi/2+lo/2
	}
	return im.emit(s.n, "", op, v.shape, v.view, v)
}

// bits returns the signs of a step that a BinaryConvolution reads: 0 and 1 stand for −1 and +1,
// as −1 and 1 do. Where some channels are turned and others not, flip says which; the layer turns
// their weights.
func (im *importer) bits(v *value) (signs *value, flip []bool) {
	s := v.step
	if s == nil {
		try.Failf("its input must be a FakeQuantize of two levels, of which it takes the signs")
	}
	channels := max(len(s.low), len(s.high))
	try.Check(im.budget.Charge(4 * int64(channels)))
	turned := make([]bool, channels)
	for i := range turned {
		lo, hi := s.low[min(i, len(s.low)-1)], s.high[min(i, len(s.high)-1)]
		switch {
		case hi == 1 && (lo == 0 || lo == -1):
		case lo == 1 && (hi == 0 || hi == -1):
			turned[i] = true
		default:
			try.Failf("its input is a FakeQuantize with outputs %v and %v, want 0 and 1 or −1 and 1", lo, hi)
		}
	}
	if slices.Contains(turned, !turned[0]) {
		return im.sign(s, false).with(v.view), turned
	}
	return im.sign(s, turned[0]).with(v.view), nil
}

// fakeQuantize imports FakeQuantize.
func fakeQuantize(im *importer, n *node) operand {
	levels := n.integer("levels", "", 2, math.MaxInt32)
	n.only("auto_broadcast", "numpy")
	v := im.value(n, 0)
	lists := [4][]float32{}
	for k := range lists {
		lists[k] = nil
		v, lists[k] = im.perChannel(n, v, im.ranged(n, k+1, v))
	}
	// A value that became a vector is that for all.
	for k := range lists {
		if len(lists[k]) > 1 && len(lists[k]) != v.shape.C {
			_, lists[k] = im.perChannel(n, v, im.ranged(n, k+1, v))
		}
	}
	return operand{v: im.quantised(n, v, levels, lists)}
}

// ranged returns a bound of a FakeQuantize.
func (im *importer) ranged(n *node, k int, v *value) *constant {
	c := im.constant(n, k)
	if im.graph.old() && len(c.dims) == 1 && c.dims[0] > 1 && len(v.view) > 2 {
		c = &constant{typ: c.typ, dims: append([]int{c.dims[0]}, slices.Repeat([]int{1}, len(v.view)-2)...), floats: c.floats}
	}
	return c
}

// quantised makes a step or levels of a value.
func (im *importer) quantised(n *node, v *value, levels int, lists [4][]float32) *value {
	channels := 1
	for _, list := range lists {
		channels = max(channels, len(list))
	}
	try.Check(im.budget.Charge(32 * int64(channels)))
	q := make([]fakequantize.Quantiser, channels)
	steps := levels == 2
	for i := range q {
		at := func(k int) float32 { return lists[k][min(i, len(lists[k])-1)] }
		q[i] = fakequantize.Quantiser{InLow: at(0), InHigh: at(1), OutLow: at(2), OutHigh: at(3), Levels: levels}
		try.Check(q[i].Check())
		steps = steps || q[i].InLow == q[i].InHigh
	}
	if steps {
		return im.stepped(n, v, q)
	}
	if levels > bcnn.MaxLevels {
		try.Failf("%d levels are not supported, at most %d are", levels, bcnn.MaxLevels)
	}
	return im.levelled(n, v, q)
}

// stepped makes a step.
func (im *importer) stepped(n *node, v *value, q []fakequantize.Quantiser) *value {
	const search = 64 * 8 // what it takes to find a threshold
	s := &step{n: n, base: v, at: im.newFloats(len(q)), low: im.newFloats(len(q)), high: im.newFloats(len(q))}
	for i := range q {
		if q[i].Levels > 2 && q[i].InLow != q[i].InHigh {
			try.Failf("input_low and input_high are equal for some channels only, and there are %d levels", q[i].Levels)
		}
		s.low[i], s.high[i] = q[i].OutLow, q[i].OutHigh
		if q[i].InLow != q[i].InHigh {
			try.Check(im.budget.Charge(search))
		}
		s.at[i] = q[i].Below()
	}
	for _, list := range []*[]float32{&s.at, &s.low, &s.high} {
		*list = shorter(*list)
	}
	return &value{layer: v.layer, shape: v.shape, view: v.view, step: s}
}

// shorter returns a list of equal numbers as one.
func shorter(list []float32) []float32 {
	for _, x := range list {
		if math.Float32bits(x) != math.Float32bits(list[0]) {
			return list
		}
	}
	return list[:1]
}

// levelled makes levels, and the numbers that they stand for.
func (im *importer) levelled(n *node, v *value, q []fakequantize.Quantiser) *value {
	const search = 64 * 8
	same := true
	for i := range q {
		same = same && q[i].InLow == q[0].InLow && q[i].InHigh == q[0].InHigh
	}
	rows := len(q)
	if same {
		rows = 1
	}
	levels := q[0].Levels
	op := bcnn.Quantize{Low: q[0].Least(), Levels: levels, Thresholds: im.newFloats(rows * (levels - 1))}
	for i := range rows {
		try.Check(im.budget.Charge(search * int64(levels)))
		for k := range levels - 1 {
			op.Thresholds[i*(levels-1)+k] = q[i].Threshold(k + 1)
		}
	}
	line := bcnn.Affine{Scale: im.newFloats(len(q)), Bias: im.newFloats(len(q))}
	for i := range q {
		scale := q[i].Step()
		line.Scale[i] = float32(scale)
		if q[i].Least() != op.Low || op.Low == 0 {
			line.Bias[i] = float32(float64(q[i].OutLow) - float64(op.Low)*scale)
		}
	}
	line.Scale, line.Bias = shorter(line.Scale), shorter(line.Bias)
	if len(line.Bias) == 1 && line.Bias[0] == 0 {
		line.Bias = nil
	}
	out := im.emit(n, "/levels", op, v.shape, v.view, v)
	if line.Bias == nil && len(line.Scale) == 1 && line.Scale[0] == 1 {
		return out
	}
	return im.emit(n, "", line, out.shape, out.view, out)
}

// foldQuantize is FakeQuantize of constants, such as weights.
func foldQuantize(im *importer, n *node) *constant {
	levels := n.integer("levels", "", 2, math.MaxInt32)
	n.only("auto_broadcast", "numpy")
	list := make([]*constant, 5)
	for k := range list {
		list[k] = im.constant(n, k)
		list[k].checkReal()
	}
	dims := list[0].dims
	at := [5][]int{}
	for k := range at {
		at[k] = stridesIn(list[k].dims, dims)
	}
	out := &constant{typ: "f32", dims: dims, floats: im.newFloats(list[0].len())}
	im.each(dims, at[:], func(i int, at []int) {
		q := fakequantize.Quantiser{
			InLow: list[1].floats[at[1]], InHigh: list[2].floats[at[2]], OutLow: list[3].floats[at[3]], OutHigh: list[4].floats[at[4]], Levels: levels,
		}
		try.Check(q.Check())
		out.floats[i] = q.Of(list[0].floats[at[0]])
	})
	return out
}
