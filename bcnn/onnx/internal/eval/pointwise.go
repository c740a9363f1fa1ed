package eval

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Evaluation of nodes whose inputs are constant, in float64 with one rounding
// to the type of the result. For +, −, ×, ÷ and √ of FLOAT that is the correctly
// rounded result.

// PointFunc is an operator that works value by value, with broadcasting.
type PointFunc func(args []*Tensor) (*Tensor, error)

// UnaryOps are the operators with one operand.
var UnaryOps = map[string]func(float64) float64{
	"Abs":        math.Abs,
	"Ceil":       math.Ceil,
	"Exp":        math.Exp,
	"Floor":      math.Floor,
	"Log":        math.Log,
	"Neg":        func(x float64) float64 { return -x },
	"Not":        func(x float64) float64 { return 1 - x },
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Relu":       func(x float64) float64 { return max(x, 0) },
	"Round":      math.RoundToEven,
	"Sign":       sign,
	"Sqrt":       math.Sqrt,
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // 0 and NaN
}

// BinaryOps are the operators with two operands, which are broadcast.
var BinaryOps = map[string]func(x, y float64) float64{
	"Add": func(x, y float64) float64 { return x + y },
	"Div": func(x, y float64) float64 { return x / y },
	"Max": math.Max,
	"Min": math.Min,
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

// Unary returns the operator of that name in UnaryOps.
func (e *Evaluator) Unary(op string) PointFunc {
	f := UnaryOps[op]
	return func(args []*Tensor) (*Tensor, error) {
		a := args[0]
		switch {
		case a.HasBatch():
			return nil, errors.New("it computes with the batch size")
		case (op == "Not") != (a.Type == pb.Bool):
			return nil, fmt.Errorf("%s of %v", op, a.Type)
		}
		out, err := e.NewTensor(a.Type, a.Dims)
		if err != nil {
			return nil, err
		}
		for i := range out.Len() {
			out.Set(i, f(a.At(i)))
		}
		return out, nil
	}
}

// Binary returns the operator of that name in BinaryOps.
func (e *Evaluator) Binary(op string) PointFunc {
	f := BinaryOps[op]
	return func(args []*Tensor) (*Tensor, error) {
		a, b := args[0], args[1]
		typ := a.Type
		switch {
		case a.HasBatch() || b.HasBatch():
			return nil, errors.New("it computes with the batch size")
		case a.Type != b.Type && op != "Pow":
			return nil, fmt.Errorf("operands of %v and %v", a.Type, b.Type)
		case Logical(op):
			typ = pb.Bool
		case !typ.Real() && typ != pb.Int64 && typ != pb.Int32:
			return nil, fmt.Errorf("arithmetic on %v is not supported", typ)
		}
		dims, err := Broadcast(a.Dims, b.Dims)
		if err != nil {
			return nil, err
		}
		out, err := e.NewTensor(typ, dims)
		if err != nil {
			return nil, err
		}
		for i, at := range Walk(dims, a.Dims, b.Dims) {
			v := f(a.At(at[0]), b.At(at[1]))
			if !typ.Real() {
				// Beyond this float64 would round.
				if v = math.Trunc(v); math.Abs(v) > 1<<53 || v != v {
					return nil, errors.New("integer overflow or division by 0")
				}
			}
			out.Set(i, v)
		}
		return out, nil
	}
}

// Where is the operator Where: condition, value if true, value if false.
func (e *Evaluator) Where(args []*Tensor) (*Tensor, error) {
	c, a, b := args[0], args[1], args[2]
	if c.Type != pb.Bool || a.Type != b.Type {
		return nil, fmt.Errorf("operands of %v, %v and %v", c.Type, a.Type, b.Type)
	}
	dims, err := Broadcast(a.Dims, b.Dims)
	if err == nil {
		dims, err = Broadcast(dims, c.Dims)
	}
	if err != nil {
		return nil, err
	}
	out, err := e.NewTensor(a.Type, dims)
	if err != nil {
		return nil, err
	}
	for i, at := range Walk(dims, c.Dims, a.Dims, b.Dims) {
		if c.I64[at[0]] != 0 {
			out.Set(i, a.At(at[1]))
		} else {
			out.Set(i, b.At(at[2]))
		}
	}
	return out, nil
}

// Cast converts to a type; real numbers are truncated to integers.
func (e *Evaluator) Cast(to pb.DataType) PointFunc {
	return func(args []*Tensor) (*Tensor, error) {
		a := args[0]
		if a.Type == to {
			return a, nil
		}
		switch to {
		case pb.Float, pb.Double, pb.Int64, pb.Int32, pb.Int8, pb.Uint8, pb.Bool:
		default:
			return nil, fmt.Errorf("conversion to %v is not supported", to)
		}
		integers := !to.Real() && to != pb.Bool
		if a.HasBatch() && (!integers || to.Size() < 4) {
			return nil, errors.New("it computes with the batch size")
		}
		out, err := e.NewTensor(to, a.Dims)
		if err != nil {
			return nil, err
		}
		for i := range out.Len() {
			if !integers || a.Type.Real() {
				v := a.At(i)
				if to == pb.Bool {
					v = truth(v != 0)
				} else if integers && !(math.Abs(v) <= 1<<53) {
					return nil, fmt.Errorf("%v does not fit into %v", v, to)
				}
				out.Set(i, v)
			} else {
				out.I64[i] = a.I64[i]
			}
		}
		if integers && !a.HasBatch() {
			lo, hi := to.Limits()
			for _, v := range out.I64 {
				if v < lo || v > hi {
					return nil, fmt.Errorf("%d does not fit into %v", v, to)
				}
			}
		}
		out.Batch = a.Batch
		return out, nil
	}
}

// Quant is the QONNX operator Quant with all inputs constant: value, scale,
// zero point, bit width. One signed bit means ±1 there.
func (e *Evaluator) Quant(signed, narrow bool, round func(float64) float64) PointFunc {
	return func(args []*Tensor) (*Tensor, error) {
		x, scale, zero, width := args[0], args[1], args[2], args[3]
		if width.Len() != 1 || width.At(0) < 1 || width.At(0) > 32 || width.At(0) != math.Trunc(width.At(0)) {
			return nil, errors.New("the bit width must be one integer from 1 to 32")
		}
		lo, hi := 0.0, math.Ldexp(1, int(width.At(0)))-1
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
		dims, err := Broadcast(x.Dims, scale.Dims)
		if err == nil {
			dims, err = Broadcast(dims, zero.Dims)
		}
		if err != nil {
			return nil, err
		}
		out, err := e.NewTensor(x.Type, dims)
		if err != nil {
			return nil, err
		}
		for i, at := range Walk(dims, x.Dims, scale.Dims, zero.Dims) {
			s, z := scale.At(at[1]), zero.At(at[2])
			// FLOAT arithmetic rounds every operation.
			q := float64(float32(float64(float32(x.At(at[0])/s)) + z))
			if signed && width.At(0) == 1 {
				q = 2*truth(q >= 0) - 1
			} else {
				q = round(max(lo, min(q, hi)))
			}
			out.Set(i, float64(float32(q-z))*s)
		}
		return out, nil
	}
}
