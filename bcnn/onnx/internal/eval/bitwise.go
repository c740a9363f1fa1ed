package eval

import (
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// bitwise are the operators on the bits of two integers.
var bitwise = map[string]func(x, y uint64) uint64{
	"BitwiseAnd": func(x, y uint64) uint64 { return x & y },
	"BitwiseOr":  func(x, y uint64) uint64 { return x | y },
	"BitwiseXor": func(x, y uint64) uint64 { return x ^ y },
	"LEFT":       func(x, y uint64) uint64 { return x << y },
	"RIGHT":      func(x, y uint64) uint64 { return x >> y },
}

// Bitwise returns BitwiseAnd, BitwiseOr or BitwiseXor of two integer tensors of one type, or a
// shift, LEFT or RIGHT.
func (e *Evaluator) Bitwise(op string) PointFunc {
	f := bitwise[op]
	shift := op == "LEFT" || op == "RIGHT"
	return func(args []*Tensor) *Tensor {
		a, b := args[0], args[1]
		width := uint64(a.Type.Bits())
		switch {
		case a.HasBatch() || b.HasBatch():
			try.Fail(errBatch)
		case f == nil:
			try.Failf("direction must be LEFT or RIGHT")
		case a.Type != b.Type || a.Type.Real() || a.Type == pb.Bool:
			try.Failf("its operands are %v and %v, want integers of one type", a.Type, b.Type)
		}
		return e.pointwise(a.Type, args, func(out *Tensor, i int, at []int) {
			x, y := uint64(a.I64[at[0]]), uint64(b.I64[at[1]])
			if shift && y >= width {
				try.Failf("a shift by %d bits is not possible for %v", y, a.Type)
			}
			out.I64[i] = wrapped(a.Type, f(x, y))
		})
	}
}

// BitwiseNot inverts every bit of integers.
func (e *Evaluator) BitwiseNot(t *Tensor) *Tensor {
	if t.Type.Real() || t.Type == pb.Bool || t.HasBatch() {
		try.Failf("BitwiseNot of %v is not supported, only of integers", t.Type)
	}
	out := e.NewTensor(t.Type, t.Dims)
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out.I64[i] = wrapped(t.Type, ^uint64(t.I64[i]))
		}
	}))
	return out
}

// wrapped returns the integer of a type that has the low bits of x.
func wrapped(typ pb.DataType, x uint64) int64 {
	unused := 64 - typ.Bits()
	if least, _ := typ.Limits(); least == 0 {
		return int64(x << unused >> unused)
	}
	return int64(x<<unused) >> unused
}
