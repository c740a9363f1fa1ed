package lower

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Layers that only move values (Concat, Channels, Pixels, Transpose) keep levels: as bit planes if
// all of their inputs have the same levels, and otherwise as numbers, which become levels again
// behind them.

// levelRange is the integers low to low + count − 1 that a layer gives; count is 0 if there are
// none.
type levelRange struct {
	low, count int
	flat       bool // several pixels seen as a vector
}

// with returns the smallest range that has the integers of both, without any if it is too large.
func (s levelRange) with(t levelRange) levelRange {
	if s.count == 0 || t.count == 0 {
		return levelRange{}
	}
	low := min(s.low, t.low)
	count := max(s.low+s.count, t.low+t.count) - low
	if count > bcnn.MaxLevels || low < -bcnn.MaxLevels {
		return levelRange{}
	}
	return levelRange{low: low, count: count}
}

// findRanges finds the layers whose outputs are few integers.
func (lo *lowering) findRanges() {
	lo.ranges = make([]levelRange, len(lo.net.Layers))
	lo.moved = map[int]form{}
	for i, l := range lo.net.Layers {
		if q, ok := l.Op.(bcnn.Quantize); ok {
			lo.ranges[i] = levelRange{low: q.Low, count: q.Levels}
			continue
		}
		var of levelRange
		for j, in := range l.Inputs {
			switch {
			case in <= bcnn.NetworkInput:
				of = levelRange{}
			case j == 0:
				of = lo.ranges[in]
			default:
				of = of.with(lo.ranges[in])
			}
		}
		flat := of.flat
		of.flat = false
		switch op := l.Op.(type) {
		case bcnn.Concat, bcnn.Transpose:
		case bcnn.MaxPool:
			of.flat = flat
		case bcnn.Flatten:
			of.flat = flat || lo.input(i).Pixels() > 1
		case bcnn.Channels:
			if slices.Contains(op.Index, -1) {
				of = of.with(levelRange{low: 0, count: 1})
			}
		case bcnn.Pixels:
			if fill := float64(op.Fill); op.Normal().Filled() {
				if fill != math.Trunc(fill) || math.Abs(fill) > bcnn.MaxLevels {
					of = levelRange{}
				}
				of = of.with(levelRange{low: int(fill), count: 1})
			}
		default:
			of = levelRange{}
		}
		lo.ranges[i] = of
	}
}

// keepsPlanes reports whether layer i, which moves values, can move bit planes: the levels of all
// of its inputs are the same.
func (lo *lowering) keepsPlanes(i int) bool {
	l := lo.net.Layers[i]
	switch op := l.Op.(type) {
	case bcnn.Channels:
		if slices.Contains(op.Index, -1) {
			return false
		}
	case bcnn.Pixels:
		if !op.Normal().KeepsLevels() {
			return false
		}
	}
	for _, in := range l.Inputs {
		if in <= bcnn.NetworkInput || lo.ranges[in] != lo.ranges[l.Inputs[0]] || lo.ranges[in].count == 0 || lo.ranges[in].flat {
			return false
		}
	}
	return true
}

// movedAs returns the form in which layer i, which moves values, takes levels: as planes if it can
// and that costs its readers least, and otherwise as numbers.
func (lo *lowering) movedAs(i int) (form, error) {
	if f, ok := lo.moved[i]; ok {
		return f, nil
	}
	f := asFloats
	if lo.keepsPlanes(i) {
		s := lo.ranges[i]
		costs, err := lo.readersCosts(i, bcnn.Quantize{Low: s.low, Levels: s.count}, planesOf(s.low, s.count).planes)
		if err != nil {
			return 0, err
		}
		// Otherwise it moves numbers, and its readers need levels again.
		values := lo.types[i].Shape.Values()
		costs.floats += count(values, 1, costOfMoving)
		costs.bytes += count(values, 1, costOfMoving+costOfLevels)
		if costs.least() == asPlanes {
			f = asPlanes
		}
	}
	lo.moved[i] = f
	return f, nil
}

// move emits the step of layer i, which moves values. ofBits says that op can move bits that are
// ±1.
func (lo *lowering) move(i int, op plan.Op, in []value, ofBits bool) (value, error) {
	first := in[0].levels
	same := first != nil && lo.keepsPlanes(i)
	for _, v := range in {
		same = same && v.levels != nil && !v.levels.bytes && *v.levels == *first && lo.settled(v)
	}
	if same {
		tensors := make([]int, len(in))
		for j, v := range in {
			tensors[j] = v.tensor
		}
		shape := lo.types[i].Shape
		shape.H *= first.planes
		t, err := lo.emit(op, []int{i}, bcnn.Bits, shape, tensors...)
		if err != nil {
			return value{}, err
		}
		lo.plan.Tensors[t].Coded = true
		return value{tensor: t, levels: first}, nil
	}
	for j := range in {
		var err error
		if in[j], err = lo.plain(in[j]); err != nil {
			return value{}, err
		}
	}
	v, err := lo.joinAs(i, op, in, ofBits && lo.packed(in))
	s := lo.ranges[i]
	if err != nil || s.count < 2 {
		return v, err
	}
	again := bcnn.Quantize{Low: s.low, Levels: s.count}
	if f, err := lo.wanted(i, again, planesOf(s.low, s.count).planes, 0); f == asFloats || err != nil {
		return v, err
	}
	if err := lo.hold(4 * int64(s.count)); err != nil {
		return v, err
	}
	for k := 1; k < s.count; k++ {
		again.Thresholds = append(again.Thresholds, float32(s.low+k))
	}
	out, err := lo.quantize(v, i, again)
	lo.plan.Tensors[v.tensor].Coded = false // it holds the values of the layer
	return out, err
}

// pixels lowers a layer that picks pixels; those of bit planes are rows of their own.
func (lo *lowering) pixels(i int, in []value, op bcnn.Pixels) (value, error) {
	step := plan.Pixels(op)
	if l := in[0].levels; l != nil && !l.bytes && op.KeepsLevels() {
		step.Rows = make([]int32, 0, len(op.Rows)*l.planes)
		for _, y := range op.Rows {
			for j := range l.planes {
				step.Rows = append(step.Rows, y*int32(l.planes)+int32(j))
			}
		}
	}
	return lo.move(i, &step, in, op.KeepsSigns())
}
