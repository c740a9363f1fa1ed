package eval

import (
	"errors"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/internal/fakequantize"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Constants are evaluated in float64 with one rounding to the type of the result. For +, −, ×, ÷
// and √ of FLOAT that is the correctly rounded result.

// PointFunc is an operator on single values, whose operands are broadcast.
type PointFunc func(args []*Tensor) *Tensor

// UnaryOps are the operators with one operand.
var UnaryOps = map[string]func(float64) float64{
	"Abs":        math.Abs,
	"Acos":       math.Acos,
	"Acosh":      math.Acosh,
	"Asin":       math.Asin,
	"Asinh":      math.Asinh,
	"Atan":       math.Atan,
	"Atanh":      math.Atanh,
	"Ceil":       math.Ceil,
	"Cos":        math.Cos,
	"Cosh":       math.Cosh,
	"Erf":        math.Erf,
	"Exp":        math.Exp,
	"Floor":      math.Floor,
	"Log":        math.Log,
	"Neg":        func(x float64) float64 { return -x },
	"Not":        func(x float64) float64 { return 1 - x },
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Relu":       func(x float64) float64 { return max(x, 0) },
	"Round":      math.RoundToEven,
	"Sigmoid":    func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"Sign":       sign,
	"Sin":        math.Sin,
	"Sinh":       math.Sinh,
	"Sqrt":       math.Sqrt,
	"Tan":        math.Tan,
	"Tanh":       math.Tanh,
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	case x == 0:
		return 0 // not −0
	}
	return x // NaN
}

// BinaryOps are the operators with two operands, which are broadcast.
var BinaryOps = map[string]func(x, y float64) float64{
	"Add":  func(x, y float64) float64 { return x + y },
	"Div":  func(x, y float64) float64 { return x / y },
	"Max":  func(x, y float64) float64 { return max(x, y) }, // NaN if one is
	"Min":  func(x, y float64) float64 { return min(x, y) },
	"FMod": math.Mod, // Mod with fmod = 1
	"Mod": func(x, y float64) float64 { // has the sign of y
		r := math.Mod(x, y)
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r
	},
	"Mul": func(x, y float64) float64 { return x * y },
	"Pow": math.Pow,
	"Sub": func(x, y float64) float64 { return x - y },

	"And":            func(x, y float64) float64 { return truth(x != 0 && y != 0) },
	"Equal":          func(x, y float64) float64 { return truth(x == y) },
	"Greater":        func(x, y float64) float64 { return truth(x > y) },
	"GreaterOrEqual": func(x, y float64) float64 { return truth(x >= y) },
	"Less":           func(x, y float64) float64 { return truth(x < y) },
	"LessOrEqual":    func(x, y float64) float64 { return truth(x <= y) },
	"Or":             func(x, y float64) float64 { return truth(x != 0 || y != 0) },
	"Xor":            func(x, y float64) float64 { return truth((x != 0) != (y != 0)) },

	// QONNX: scale where x ≥ 0, −scale elsewhere.
	"BipolarQuant": func(x, scale float64) float64 {
		if x >= 0 {
			return scale
		}
		return -scale
	},
}

var errBatch = errors.New("its result depends on the batch size, which is not supported here")

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Logical reports whether the operator gives BOOL.
func Logical(op string) bool {
	switch op {
	case "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor":
		return true
	}
	return false
}

// slow are operators that take much longer than others.
var slow = map[string]bool{
	"Cos": true, "Erf": true, "Exp": true, "Log": true, "Pow": true, "Sigmoid": true, "Sin": true, "Tanh": true,
}

// chargeOp charges what n values of an operator cost in addition to the walk over them.
func (e *Evaluator) chargeOp(op string, n int) {
	if slow[op] {
		try.Check(e.Budget.Charge(8 * int64(n)))
		return
	}
}

// chargeMod charges a remainder. math.Mod takes a step for each power of two by which x exceeds y:
// up to 2,098.
func (e *Evaluator) chargeMod(x, y float64) {
	if x == 0 || y == 0 || x-x != 0 || y-y != 0 {
		return
	}
	const step = 8
	try.Check(e.Budget.Charge(step * int64(max(0, math.Ilogb(x)-math.Ilogb(y)))))
}

// Unary returns the operator of that name in UnaryOps.
func (e *Evaluator) Unary(op string) PointFunc {
	f := UnaryOps[op]
	return func(args []*Tensor) *Tensor {
		a := args[0]
		switch {
		case a.HasBatch():
			try.Fail(errBatch)
		case (op == "Not") != (a.Type == pb.Bool):
			try.Failf("%s of %v is not supported", op, a.Type)
		}
		out := e.NewTensor(a.Type, a.Dims)
		e.chargeOp(op, out.Len())
		try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out.Set(i, f(a.At(i)))
			}
		}))
		return out
	}
}

// Binary returns the operator of that name in BinaryOps.
func (e *Evaluator) Binary(op string) PointFunc {
	f := BinaryOps[op]
	return func(args []*Tensor) *Tensor {
		a, b := args[0], args[1]
		typ := a.Type
		switch {
		case (a.HasBatch() || b.HasBatch()) && op != "Equal":
			try.Fail(errBatch)
		case a.Type != b.Type && op != "Pow":
			try.Failf("its operands are %v and %v, which must be of one type", a.Type, b.Type)
		case Logical(op):
			typ = pb.Bool
		case !typ.Real() && typ != pb.Int64 && typ != pb.Int32 && op != "Max" && op != "Min":
			try.Failf("arithmetic on %v is not supported", typ)
		}
		mod := op == "Mod" || op == "FMod"
		out := e.pointwise(typ, args, func(out *Tensor, i int, at []int) {
			if mod {
				e.chargeMod(a.At(at[0]), b.At(at[1]))
			}
			v := f(a.At(at[0]), b.At(at[1]))
			if x, y := a.Marked(at[0]), b.Marked(at[1]); x || y {
				// Equal: −1 and 0 in a shape stand for a dimension to infer or to keep, so no batch
				// size equals them. It may equal any other number, so comparing with one fails.
				if v = truth(x && y && a.I64[at[0]] == b.I64[at[1]]); x != y && (!x && a.I64[at[0]] > 0 || !y && b.I64[at[1]] > 0) {
					try.Fail(errBatch)
				}
			}
			if !typ.Real() {
				if v = math.Trunc(v); !holds(typ, v) {
					try.Failf("integer overflow or division by 0")
				}
			}
			out.Set(i, v)
		})
		e.chargeOp(op, out.Len())
		return out
	}
}

// holds reports whether an integer type holds a result, and float64 has not rounded it: its
// magnitude is below 2⁵³.
func holds(typ pb.DataType, v float64) bool {
	least, most := typ.Limits()
	return math.Abs(v) < 1<<53 && float64(least) <= v && v <= float64(most)
}

// Marked reports whether value i stands for the batch size.
func (t *Tensor) Marked(i int) bool { return t.Batch != nil && t.Batch[i] }

// pointwise broadcasts operands and returns a tensor whose value i f sets, from the values of the
// operands at positions at.
func (e *Evaluator) pointwise(typ pb.DataType, args []*Tensor, f func(out *Tensor, i int, at []int)) *Tensor {
	dims := args[0].Dims
	for _, a := range args[1:] {
		dims = try.Value(Broadcast(dims, a.Dims))
	}
	out := e.NewTensor(typ, dims)
	operands := make([][]int, len(args))
	for k, a := range args {
		operands[k] = stretched(a.Dims, len(dims))
	}
	e.walk(dims, operands, func(i int, at []int) { f(out, i, at) })
	return out
}

// Where is the operator Where: a condition, the values if it is true, the values if it is false.
func (e *Evaluator) Where(args []*Tensor) *Tensor {
	c, a, b := args[0], args[1], args[2]
	if c.Type != pb.Bool || a.Type != b.Type {
		try.Failf("its inputs are %v, %v and %v, want a BOOL and two of one type", c.Type, a.Type, b.Type)
	}
	marked := a.HasBatch() || b.HasBatch()
	out := e.pointwise(a.Type, args, func(out *Tensor, i int, at []int) {
		t, from := a, at[1]
		if c.I64[at[0]] == 0 {
			t, from = b, at[2]
		}
		if t.I64 != nil { // float64 would round
			out.I64[i] = t.I64[from]
		} else {
			out.Set(i, t.At(from))
		}
		if marked {
			out.Batch = append(out.Batch, t.HasBatch() && t.Batch[from])
		}
	})
	out.trim()
	return out
}

// Cast converts to a type. Real numbers are truncated to integers.
func (e *Evaluator) Cast(to pb.DataType) PointFunc {
	return func(args []*Tensor) *Tensor {
		a := args[0]
		if a.Type == to {
			return a
		}
		switch to {
		case pb.Float, pb.Double, pb.Float16, pb.BFloat16, pb.Bool,
			pb.Int64, pb.Int32, pb.Int16, pb.Int8, pb.Int4, pb.Int2, pb.Uint32, pb.Uint16, pb.Uint8, pb.Uint4, pb.Uint2:
		default:
			try.Failf("Cast to %v is not supported", to)
		}
		integers := !to.Real() && to != pb.Bool
		if a.HasBatch() && (!integers || to.Bits() < 32) {
			try.Fail(errBatch)
		}
		out := e.NewTensor(to, a.Dims)
		least, most := to.Limits()
		try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				switch {
				case !integers:
					v := a.At(i)
					if to == pb.Bool {
						v = truth(v != 0)
					}
					out.Set(i, v)
					continue
				case !a.Type.Real():
					out.I64[i] = a.I64[i]
				case math.Abs(a.At(i)) <= 1<<53:
					out.Set(i, a.At(i))
				default:
					try.Failf("%v does not fit into %v", a.At(i), to)
				}
				if v := out.I64[i]; (v < least || v > most) && !a.HasBatch() {
					try.Failf("%d does not fit into %v", v, to)
				}
			}
		}))
		out.Batch = a.Batch
		return out
	}
}

// QuantLimits returns the least and the largest integer of a width in bits.
func QuantLimits(width *Tensor, signed, narrow bool) (lo, hi float64, err error) {
	if width.Len() != 1 || width.At(0) < 1 || width.At(0) > 32 || width.At(0) != math.Trunc(width.At(0)) {
		return 0, 0, errors.New("the bit width must be one integer from 1 to 32")
	}
	hi = math.Ldexp(1, int(width.At(0))) - 1
	switch {
	case signed:
		half := math.Ldexp(1, int(width.At(0))-1)
		lo, hi = -half, half-1
		if narrow {
			lo++
		}
	case narrow:
		hi--
	}
	return lo, hi, nil
}

// Quant is the QONNX operator Quant on constants: value, scale, zero point, bit width. One signed
// bit means ±1.
func (e *Evaluator) Quant(signed, narrow bool, round func(float64) float64) PointFunc {
	return func(args []*Tensor) *Tensor {
		x, scale, zero, width := args[0], args[1], args[2], args[3]
		lo, hi := try.Values(QuantLimits(width, signed, narrow))
		bipolar := signed && width.At(0) == 1
		return e.pointwise(x.Type, args[:3], func(out *Tensor, i int, at []int) {
			s, z := scale.At(at[1]), zero.At(at[2])
			// FLOAT arithmetic rounds every operation.
			q := float64(float32(float64(float32(x.At(at[0])/s)) + z))
			if bipolar {
				q = 2*truth(q >= 0) - 1
			} else {
				q = round(max(lo, min(q, hi)))
			}
			out.Set(i, float64(float32(q-z))*s)
		})
	}
}

// FakeQuantize is OpenVINO's operator on constants: value, bounds of the input, bounds of the output.
func (e *Evaluator) FakeQuantize(levels int) PointFunc {
	return func(args []*Tensor) *Tensor {
		return e.pointwise(args[0].Type, args, func(out *Tensor, i int, at []int) {
			bound := func(k int) float32 { return float32(args[k].At(at[k])) }
			q := fakequantize.Quantiser{InLow: bound(1), InHigh: bound(2), OutLow: bound(3), OutHigh: bound(4), Levels: levels}
			try.Check(q.Check())
			out.Set(i, float64(q.Of(bound(0))))
		})
	}
}

// Below returns the largest numbers for which a FakeQuantize of two levels gives the lower one.
func (e *Evaluator) Below(low, high *Tensor) *Tensor {
	const search = 64 * 8 // what it takes to find a threshold
	return e.pointwise(low.Type, []*Tensor{low, high}, func(out *Tensor, i int, at []int) {
		try.Check(e.Budget.Charge(search))
		q := fakequantize.Quantiser{InLow: float32(low.At(at[0])), InHigh: float32(high.At(at[1])), Levels: 2}
		out.Set(i, float64(q.Below()))
	})
}
