package parity

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Where a fault lies.
func lastRow(s spot) bool     { return s.H > 1 && s.y == s.H-1 }
func lastColumn(s spot) bool  { return s.W > 1 && s.x == s.W-1 }
func lastChannel(s spot) bool { return s.C > 1 && s.c == s.C-1 }
func corner(s spot) bool      { return (s.y == 0 || s.y == s.H-1) && (s.x == 0 || s.x == s.W-1) }

// edit is partly for an operation that is changed wherever there is something to change.
func edit[Op any](f func(op *Op), where func(s spot) bool) ranFunc {
	return partly(func(op *Op, _ bcnn.Shape) bool { f(op); return true }, where)
}

// beforeBlock makes the constants of channels beyond a block those of the block before. Lists
// may have several values for a channel, those of all channels behind each other.
func beforeBlock[T any](list []T, channels, block int) []T {
	list = slices.Clone(list)
	for i := range list {
		if c := i % channels; c >= block {
			list[i] = list[i-block]
		}
	}
	return list
}

func withoutActivation(op *plan.Conv) { op.Activation = plan.Activation{} }

// copied returns thresholds that may be changed.
func copied(t *plan.Threshold) *plan.Threshold {
	if t == nil {
		return nil
	}
	return &plan.Threshold{I32: slices.Clone(t.I32), F32: slices.Clone(t.F32), Flip: slices.Clone(t.Flip)}
}

// withoutFlip clears words of the flip mask of a threshold.
func withoutFlip(t *plan.Threshold, from int) *plan.Threshold {
	if t = copied(t); t != nil {
		clear(t.Flip[min(from, len(t.Flip)):])
	}
	return t
}

// misbordered is the fault that sums of bits get the correction of another class of borders or
// channel: wrong returns its index, of row class r, column class c and output channel o.
func misbordered(wrong func(b *plan.Border, r, c, o, outs int) int) ranFunc {
	return func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		s := x.plan.Steps[step]
		op, ok := s.Op.(*plan.Conv)
		if !ok || op.Border == nil || op.Pool != nil || op.Scale != nil || op.Activation.Kind != plan.ActivationNone {
			return nil
		}
		b := op.Border
		for class := range b.Rows * b.Cols {
			r, c := class/b.Cols, class%b.Cols
			delta, some := make([]int32, op.Out), false
			for o := range delta {
				delta[o] = b.Correction[wrong(b, r, c, o, op.Out)] - b.Correction[class*op.Out+o]
				some = some || delta[o] != 0
			}
			if !some {
				continue
			}
			here := func(s spot) bool { return b.Row[s.y] == r && b.Col[s.x] == c }
			if op.Threshold == nil {
				eachSpot(out, 1, func(s spot) {
					if here(s) {
						out.F32[s.index(1)] += float32(delta[s.c])
					}
				})
				continue
			}
			changed := *op
			changed.Threshold = copied(op.Threshold)
			for i, v := range changed.Threshold.I32 {
				if v != math.MinInt32 && v != math.MaxInt32 {
					changed.Threshold.I32[i] = v - delta[i%op.Out]
				}
			}
			other, err := x.single(s)(&changed, in[0])
			if err != nil {
				return err
			}
			take(out, other, planesOf(op), here)
		}
		return nil
	}
}

func correction(b *plan.Border, r, c, o, outs int) int { return (r*b.Cols+c)*outs + o }

// grouped makes a fault of steps with groups: change changes the operation or its input.
func grouped(change func(op *plan.Conv, in bcnn.Tensor), where func(op *plan.Conv, s spot) bool) ranFunc {
	return func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		s := x.plan.Steps[step]
		op, ok := s.Op.(*plan.Conv)
		if !ok || op.Groups == 1 {
			return nil
		}
		c, input := *op, clone(in[0])
		change(&c, input)
		other, err := x.single(s)(&c, input)
		if err == nil {
			take(out, other, planesOf(op), func(s spot) bool { return where(op, s) })
		}
		return err
	}
}

// channelEarly moves the channels of all pixels by one.
func channelEarly(_ *plan.Conv, in bcnn.Tensor) {
	was := clone(in)
	for i := range in.N * in.Shape.Values() {
		if i%in.Shape.C > 0 {
			put(in, i, was, i-1)
		}
	}
}

// otherGroups are the outputs of all groups but the first, and lastGroup those of the last.
func otherGroups(op *plan.Conv, s spot) bool { return s.c >= op.Out/op.Groups }
func lastGroup(op *plan.Conv, s spot) bool   { return s.c >= op.Out-op.Out/op.Groups }

// weightsOfGroupBefore gives outputs the weights of the group before theirs.
func weightsOfGroupBefore(op *plan.Conv, _ bcnn.Tensor) {
	n := op.Out / op.Groups
	op.Bits = afterGroup(op.Bits, op.Out, n)
	op.Int8 = afterGroup(op.Int8, op.Out, n)
	op.Int16 = afterGroup(op.Int16, op.Out, n)
	op.F32 = afterGroup(op.F32, op.Out, n)
}

func afterGroup[T any](w []T, outs, n int) []T {
	row := len(w) / outs
	return append(slices.Clone(w[:n*row]), w[:len(w)-n*row]...)
}

// brokenEnds are faults of what follows sums in the same step, of borders and of groups, in some
// places only: where a tile is short, or another loop takes over.
var brokenEnds = []brokenDevice{
	{"no activation in the last row", in("conv of bits", edit(withoutActivation, lastRow)), "conv/bits/", "(conv): image"},
	{"no activation in the last column, of bytes", in("conv of uint8", edit(withoutActivation, lastColumn)), "conv/bytes/", "(conv): image"},
	{"no activation of the last channel, of floats", in("conv of float32", edit(withoutActivation, lastChannel)), "conv/float/", "(conv): image"},
	{"no activation of the last output", in("dense of bits", edit(withoutActivation, lastChannel)), "dense/bits/", "(dense): image"},
	{"no activation of the last output, of floats", in("dense of float32", edit(withoutActivation, lastChannel)), "dense/float/", "(dense): image"},
	{"no activation of the last value of affines", in("affine", edit(func(op *plan.Affine) { op.Activation = plan.Activation{} }, func(s spot) bool {
		i, n := values.of(s)
		return i == n-1
	})), "affine1+relu/", "(affine): image"},
	{"slopes of the 32 channels before", in("conv", edit(func(op *plan.Conv) { op.Activation.Slope = beforeBlock(op.Activation.Slope, op.Out, 32) }, everywhere)), "conv/", "(conv): image"},
	{"slopes of the 8 channels before, of affines", in("affine", partly(func(op *plan.Affine, in bcnn.Shape) bool {
		op.Activation.Slope = beforeBlock(op.Activation.Slope, in.C, 8)
		return true
	}, everywhere)), "prelu/", "(affine): image"},
	{"scales of the 16 channels before", in("conv of bits", edit(func(op *plan.Conv) { op.Scale = beforeBlock(op.Scale, op.Out, 16) }, everywhere)), "conv/bits/", "(conv): image"},
	{"scales of the 64 outputs before", in("dense of bits", edit(func(op *plan.Conv) { op.Scale = beforeBlock(op.Scale, op.Out, 64) }, everywhere)), "dense/bits/", "(dense): image"},
	{"no shift in the last channel", in("conv of bits", edit(func(op *plan.Conv) { op.Shift = make([]float32, len(op.Shift)) }, lastChannel)), "conv/bits/", "(conv): image"},
	{"shifts of the 4 channels before, of bytes", in("conv of uint8", edit(func(op *plan.Conv) { op.Shift = beforeBlock(op.Shift, op.Out, 4) }, everywhere)), "conv/bytes/", "(conv): image"},
	{"scales of the 64 channels before, of affines", in("affine of float32", partly(func(op *plan.Affine, in bcnn.Shape) bool {
		op.Scale = beforeBlock(op.Scale, in.C, 64)
		return true
	}, everywhere)), "affine/float/", "(affine): image"},
	{"biases of the 16 channels before", in("conv of float32", edit(func(op *plan.Conv) { op.Bias = beforeBlock(op.Bias, op.Out, 16) }, everywhere)), "conv/float/", "(conv): image"},
	{"thresholds of the 64 channels before", in("conv", edit(func(op *plan.Conv) {
		if op.Threshold = copied(op.Threshold); op.Threshold != nil {
			op.Threshold.I32, op.Threshold.F32 = beforeBlock(op.Threshold.I32, op.Out, 64), beforeBlock(op.Threshold.F32, op.Out, 64)
		}
	}, everywhere)), "conv/", "(conv): image"},
	{"thresholds of the 64 channels before, of signs", in("sign", partly(func(op *plan.Sign, in bcnn.Shape) bool {
		op.Threshold.F32 = beforeBlock(op.Threshold.F32, in.C, 64)
		return true
	}, everywhere)), "", "(sign): image"},
	{"thresholds of levels of the channel before", in("quantize", partly(func(op *plan.Quantize, in bcnn.Shape) bool {
		if len(op.Thresholds) < op.Levels { // one list for all channels
			return false
		}
		op.Thresholds = slices.Concat(op.Thresholds[:op.Levels-1], op.Thresholds[:len(op.Thresholds)-(op.Levels-1)])
		return true
	}, lastChannel)), "levels/", "(quantize): image"},
	{"no flip in the second word", in("conv", edit(func(op *plan.Conv) { op.Threshold = withoutFlip(op.Threshold, 1) }, everywhere)), "conv/", "(conv): image"},
	{"no flip in the last row", in("conv of bits", edit(func(op *plan.Conv) { op.Threshold = withoutFlip(op.Threshold, 0) }, lastRow)), "conv/bits/", "(conv): image"},
	{"no flip in the last column of fused pools", in("conv of uint8", edit(func(op *plan.Conv) {
		if op.Pool != nil {
			op.Threshold = withoutFlip(op.Threshold, 0)
		}
	}, lastColumn)), "conv/bytes/", "(conv): image"},
	{"no flip in the last row of pools", in("maxpool of bits", edit(func(op *plan.MaxPool) { op.Flip = nil }, lastRow)), "conv/bits/", "(maxpool): image"},
	{"the first plane for the second in the last row", in("conv of bits", misplaced(func(s spot) spot {
		if s.plane == 1 && lastRow(s) {
			s.plane = 0
		}
		return s
	})), "levels/", "(conv): image"},
	{"the first plane for the second in the second word", in("sign", misplaced(func(s spot) spot {
		if s.plane == 1 && s.c >= 64 {
			s.plane = 0
		}
		return s
	})), "levels/", "(sign): image"},
	{"planes of the row before", in("maxpool of bits", misplaced(func(s spot) spot {
		if s.plane > 0 && s.y > 0 {
			s.y--
		}
		return s
	})), "levels/", "(maxpool): image"},
	{"no zero point in the last column", in("conv of uint8", edit(func(op *plan.Conv) { op.ZeroPoint = 0 }, lastColumn)), "conv/bytes/", "(conv): image"},
	{"no zero point in corners", in("conv of uint8", edit(func(op *plan.Conv) { op.ZeroPoint = 0 }, corner)), "bytes/", "(conv): image"},

	{"the border of the top at the bottom", in("conv of bits", misbordered(func(b *plan.Border, r, c, o, outs int) int {
		if r > 1 {
			r = 1
		}
		return correction(b, r, c, o, outs)
	})), "conv/bits/", "(conv): image"},
	{"the border of the left at the right", in("conv of bits", misbordered(func(b *plan.Border, r, c, o, outs int) int {
		return correction(b, r, min(c, 1), o, outs)
	})), "conv/bits/", "(conv): image"},
	{"the border of an edge in corners", in("conv of bits", misbordered(func(b *plan.Border, r, c, o, outs int) int {
		if r > 0 {
			c = 0
		}
		return correction(b, r, c, o, outs)
	})), "conv/bits/", "(conv): image"},
	{"borders with a class of columns too few", in("conv of bits", misbordered(func(b *plan.Border, r, c, o, outs int) int {
		return (r*max(b.Cols-1, 1)+min(c, max(b.Cols-2, 0)))*outs + o
	})), "conv/bits/", "(conv): image"},
	{"borders of rows for columns", in("conv of bits", misbordered(func(b *plan.Border, r, c, o, outs int) int {
		return (c*b.Rows+r)*outs + o
	})), "conv/bits/", "(conv): image"},
	{"borders of the 32 channels before", in("conv of bits", misbordered(func(b *plan.Border, r, c, o, outs int) int {
		if o >= 32 {
			o -= 32
		}
		return correction(b, r, c, o, outs)
	})), "conv/bits/", "(conv): image"},
	{"borders of planes left out at the bottom", in("conv of bits", misbordered(func(b *plan.Border, r, c, o, outs int) int {
		if r == b.Rows-1 {
			r = 0
		}
		return correction(b, r, c, o, outs)
	})), "levels/", "(conv): image"},

	{"groups that begin a channel early, of bits", in("conv of bits", grouped(channelEarly, otherGroups)), "conv/bits/", "(conv): image"},
	{"groups that begin a channel early, of bytes", in("conv of uint8", grouped(channelEarly, otherGroups)), "bytes/groups/", "(conv): image"},
	{"groups that begin a channel early, of floats", in("conv of float32", grouped(channelEarly, otherGroups)), "conv/float/", "(conv): image"},
	{"groups that begin at a byte", in("conv of bits", func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		// The last group reads from a multiple of 8 channels on.
		op, ok := x.plan.Steps[step].Op.(*plan.Conv)
		if !ok || op.Groups == 1 {
			return nil
		}
		late := (in[0].Shape.C - in[0].Shape.C/op.Groups) % 8
		return grouped(func(_ *plan.Conv, in bcnn.Tensor) {
			was := clone(in)
			for i := range in.N * in.Shape.Values() {
				if i%in.Shape.C >= late {
					put(in, i, was, i-late)
				}
			}
		}, lastGroup)(x, step, in, out)
	}), "conv/bits/", "(conv): image"},
	{"weights of the group before, of bits", in("conv of bits", grouped(weightsOfGroupBefore, lastGroup)), "conv/bits/", "(conv): image"},
	{"weights of the group before, of bytes", in("conv of uint8", grouped(weightsOfGroupBefore, lastGroup)), "conv/bytes/", "(conv): image"},
	{"weights of the group before, of floats", in("conv of float32", grouped(weightsOfGroupBefore, lastGroup)), "conv/float/", "(conv): image"},
	{"the second word of a group", in("conv of bits", grouped(func(op *plan.Conv, in bcnn.Tensor) {
		words := bits.Words(in.Shape.C / op.Groups)
		op.Bits = slices.Clone(op.Bits)
		for i := range op.Bits {
			if i%words > 0 && i%words == words-1 {
				op.Bits[i] ^= bits.TailMask(in.Shape.C / op.Groups)
			}
		}
	}, otherGroups)), "conv/bits/", "(conv): image"},
}
