package parity

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// when limits a fault to operations of a type that a kernel of their own executes; to is the type
// of the output.
func when[Op any](ok func(op *Op, in bcnn.Shape, to bcnn.DType) bool, f ranFunc) fake {
	return fake{ran: func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		if op, is := any(x.plan.Steps[step].Op).(*Op); !is || !ok(op, in[0].Shape, out.DType) {
			return nil
		}
		return f(x, step, in, out)
	}}
}

// squares are convolutions that backends may make in squares of four outputs (Winograd).
func squares(op *plan.Conv, in bcnn.Shape, _ bcnn.DType) bool {
	return op.Int8 != nil && op.KH == 3 && op.KW == 3 && op.StrideH == 1 && op.StrideW == 1 && op.DilationH == 1 && op.DilationW == 1 &&
		op.Groups == 1 && in.C%64 == 0 && op.Out%64 == 0
}

func weights8(op *plan.Conv, _ bcnn.Shape, _ bcnn.DType) bool  { return op.Int8 != nil }
func weights16(op *plan.Conv, _ bcnn.Shape, _ bcnn.DType) bool { return op.Int16 != nil }

// lists reports whether a table has one for each channel.
func lists(op *plan.Table) bool { return len(op.Values) > plan.TableSize }

// beforeIt is the fault that the last channel, or row, where there is an odd number of them, is
// the one before.
func beforeIt(along dimension) ranFunc {
	return misplaced(func(s spot) spot {
		if i, n := along.of(s); n > 1 && n%2 == 1 && i == n-1 {
			return along.at(s, i-1)
		}
		return s
	})
}

// lost is the fault that values are left out.
func lost(where func(s spot) bool) ranFunc {
	return misplaced(func(s spot) spot {
		if where(s) {
			return nowhere
		}
		return s
	})
}

// brokenKernels are faults of kernels that only some sizes, weights, lists or tables take.
var brokenKernels = []brokenDevice{
	{"squares beyond the right edge", when(squares, beforeIt(cols)), "levels/squares/", "(conv): image"},
	{"squares beyond the lower edge", when(squares, lost(func(s spot) bool { return s.H%2 == 1 && s.y == s.H-1 })), "levels/squares/", "(conv): image"},
	{"the next row for padding of squares", when(squares, edgeRight), "levels/squares/", "(conv): image"},
	{"dilated columns side by side, of 8-bit weights", when(weights8, dilatedColumns), "bytes/", "(conv): image"},
	{"weights of 8 bits of the group before", when(weights8, grouped(weightsOfGroupBefore, otherGroups)), "bytes/groups/", "(conv): image"},
	{"channels of 16-bit weights beyond pairs", when(weights16, wordsBeyond(2, 1)), "bytes/image", "(conv): image"},
	{"outputs of 16-bit weights beyond blocks of 8", when(weights16, misplaced(func(s spot) spot {
		if s.C%8 > 0 && s.c == s.C-1 && s.c >= 8 {
			s.c -= 8
		}
		return s
	})), "bytes/image", "): image"},
	{"no zero point of 16-bit weights in the last row", when(weights16, edit(func(op *plan.Conv) { op.ZeroPoint = 0 }, lastRow)), "bytes/image", "(conv): image"},

	{"levels that do not rise evenly", when(func(op *plan.Quantize, _ bcnn.Shape, to bcnn.DType) bool {
		return to == bcnn.Uint8 && op.Levels > 4
	}, edit(func(op *plan.Quantize) {
		n := op.Levels - 1
		op.Thresholds = slices.Clone(op.Thresholds)
		for i := 0; i < len(op.Thresholds); i += n {
			list := op.Thresholds[i : i+n]
			first, last := list[0], list[n-1]
			for k := range list {
				list[k] = first + float32(k)*((last-first)/float32(n-1))
			}
		}
	}, everywhere)), "bytes/", "(quantize): image"},
	{"lists of levels of the 8 channels before", when(func(op *plan.Quantize, in bcnn.Shape, to bcnn.DType) bool {
		return to == bcnn.Uint8 && len(op.Thresholds) == in.C*(op.Levels-1)
	}, edit(func(op *plan.Quantize) {
		n := op.Levels - 1
		was := slices.Clone(op.Thresholds)
		op.Thresholds = slices.Clone(was)
		copy(op.Thresholds[min(8*n, len(was)):], was)
	}, everywhere)), "bytes/", "(quantize): image"},
	{"numbers of levels beyond blocks of 16", when(func(_ *plan.Quantize, _ bcnn.Shape, to bcnn.DType) bool { return to == bcnn.Uint8 }, lost(func(s spot) bool {
		i, n := values.of(s)
		return n%16 > 0 && i == n-1
	})), "bytes/", "(quantize): image"},
	{"uneven levels in float32", when(func(op *plan.Quantize, _ bcnn.Shape, to bcnn.DType) bool { return to == bcnn.Float32 && op.Levels > 3 }, edit(func(op *plan.Quantize) {
		op.Thresholds = slices.Clone(op.Thresholds)
		for i := 1; i < len(op.Thresholds); i++ {
			if i%(op.Levels-1) > 0 && op.Thresholds[i] == op.Thresholds[i-1] {
				op.Thresholds[i]++ // two levels that are one
			}
		}
	}, everywhere)), "levels/", "(quantize): image"},

	{"tables of bits beyond the first word", when(func(_ *plan.Table, in bcnn.Shape, to bcnn.DType) bool { return to == bcnn.Bits && in.C > 64 }, lost(func(s spot) bool { return s.c == s.C-1 })),
		"table/", "(table): image"},
	{"the first plane of tables for the second", when(func(op *plan.Table, _ bcnn.Shape, _ bcnn.DType) bool { return op.Planes > 1 }, misplaced(func(s spot) spot {
		if s.plane == 1 && lastRow(s) {
			s.plane = 0
		}
		return s
	})), "table/planes/", "(table): image"},
	{"the table of the channel before, to bytes", when(func(op *plan.Table, _ bcnn.Shape, to bcnn.DType) bool { return to == bcnn.Uint8 && lists(op) }, edit(func(op *plan.Table) {
		op.Values = slices.Concat(op.Values[:plan.TableSize], op.Values[:len(op.Values)-plan.TableSize])
	}, lastChannel)), "table/bytes/", "(table): image"},
	{"bytes of one table beyond words", when(func(op *plan.Table, _ bcnn.Shape, to bcnn.DType) bool { return to == bcnn.Uint8 && !lists(op) }, lost(func(s spot) bool {
		i, n := values.of(s)
		return n%4 > 0 && i >= n-n%4
	})), "table/bytes/", "(table): image"},

	{"bits of pixels of more than 8 channels", in("binarize", lost(func(s spot) bool { return s.C > 8 && s.C <= 64 && s.c == s.C-1 })), "binarize/", "(binarize): image"},
	{"thresholds that no byte reaches", when(func(op *plan.Binarize, _ bcnn.Shape, _ bcnn.DType) bool { return op.Threshold != nil }, edit(func(op *plan.Binarize) {
		op.Threshold = copied(op.Threshold)
		for i, v := range op.Threshold.I32 {
			if v > 255 {
				op.Threshold.I32[i] = 0
			}
		}
	}, everywhere)), "binarize/", "(binarize): image"},
	{"the last copy of a row", func() fake {
		return fake{ran: func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
			op, ok := x.plan.Steps[step].Op.(*plan.Pixels)
			if !ok {
				return nil
			}
			return misplaced(func(s spot) spot {
				if y := s.y; y > 0 && y+1 < s.H && op.Rows[y] == op.Rows[y-1] && op.Rows[y] != op.Rows[y+1] {
					s.y++
				}
				return s
			})(x, step, in, out)
		}}
	}(), "pixels/", "(pixels): image"},
	{"wide rows of pixels, of which each is copied twice", in("pixels", misplaced(func(s spot) spot {
		if s.W >= 64 && s.x%2 == 1 && s.x >= s.W-s.W%16 {
			s.x--
		}
		return s
	})), "pixels/wide/", "(pixels): image"},
}
