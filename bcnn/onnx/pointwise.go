package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Evaluation of nodes whose inputs are constant, in float64 with one rounding
// to the type of the result. For +, −, ×, ÷ and √ of FLOAT that is the correctly
// rounded result.

// pointFunc is an operator that works value by value, with broadcasting.
type pointFunc func(args []*tensor) (*tensor, error)

var unaryOps = map[string]func(float64) float64{
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

var binaryOps = map[string]func(x, y float64) float64{
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

// logical reports whether the operator gives BOOL.
func logical(op string) bool {
	switch op {
	case "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor":
		return true
	}
	return false
}

func (e *evaluator) unary(op string) pointFunc {
	f := unaryOps[op]
	return func(args []*tensor) (*tensor, error) {
		a := args[0]
		switch {
		case a.hasBatch():
			return nil, errors.New("it computes with the batch size")
		case (op == "Not") != (a.typ == pb.Bool):
			return nil, fmt.Errorf("%s of %v", op, a.typ)
		}
		out, err := e.newTensor(a.typ, a.dims)
		if err != nil {
			return nil, err
		}
		for i := range out.len() {
			out.set(i, f(a.at(i)))
		}
		return out, nil
	}
}

func (e *evaluator) binary(op string) pointFunc {
	f := binaryOps[op]
	return func(args []*tensor) (*tensor, error) {
		a, b := args[0], args[1]
		typ := a.typ
		switch {
		case a.hasBatch() || b.hasBatch():
			return nil, errors.New("it computes with the batch size")
		case a.typ != b.typ && op != "Pow":
			return nil, fmt.Errorf("operands of %v and %v", a.typ, b.typ)
		case logical(op):
			typ = pb.Bool
		case !typ.Real() && typ != pb.Int64 && typ != pb.Int32:
			return nil, fmt.Errorf("arithmetic on %v is not supported", typ)
		}
		dims, err := broadcast(a.dims, b.dims)
		if err != nil {
			return nil, err
		}
		out, err := e.newTensor(typ, dims)
		if err != nil {
			return nil, err
		}
		for i, at := range walk(dims, a.dims, b.dims) {
			v := f(a.at(at[0]), b.at(at[1]))
			if !typ.Real() {
				// Beyond this float64 would round.
				if v = math.Trunc(v); math.Abs(v) > 1<<53 || v != v {
					return nil, errors.New("integer overflow or division by 0")
				}
			}
			out.set(i, v)
		}
		return out, nil
	}
}

// where is the operator Where: condition, value if true, value if false.
func (e *evaluator) where(args []*tensor) (*tensor, error) {
	c, a, b := args[0], args[1], args[2]
	if c.typ != pb.Bool || a.typ != b.typ {
		return nil, fmt.Errorf("operands of %v, %v and %v", c.typ, a.typ, b.typ)
	}
	dims, err := broadcast(a.dims, b.dims)
	if err == nil {
		dims, err = broadcast(dims, c.dims)
	}
	if err != nil {
		return nil, err
	}
	out, err := e.newTensor(a.typ, dims)
	if err != nil {
		return nil, err
	}
	for i, at := range walk(dims, c.dims, a.dims, b.dims) {
		if c.i64[at[0]] != 0 {
			out.set(i, a.at(at[1]))
		} else {
			out.set(i, b.at(at[2]))
		}
	}
	return out, nil
}

// cast converts to a type; real numbers are truncated to integers.
func (e *evaluator) cast(to pb.DataType) pointFunc {
	return func(args []*tensor) (*tensor, error) {
		a := args[0]
		if a.typ == to {
			return a, nil
		}
		switch to {
		case pb.Float, pb.Double, pb.Int64, pb.Int32, pb.Int8, pb.Uint8, pb.Bool:
		default:
			return nil, fmt.Errorf("conversion to %v is not supported", to)
		}
		integers := !to.Real() && to != pb.Bool
		if a.hasBatch() && (!integers || to.Size() < 4) {
			return nil, errors.New("it computes with the batch size")
		}
		out, err := e.newTensor(to, a.dims)
		if err != nil {
			return nil, err
		}
		for i := range out.len() {
			if !integers || a.typ.Real() {
				v := a.at(i)
				if to == pb.Bool {
					v = truth(v != 0)
				} else if integers && !(math.Abs(v) <= 1<<53) {
					return nil, fmt.Errorf("%v does not fit into %v", v, to)
				}
				out.set(i, v)
			} else {
				out.i64[i] = a.i64[i]
			}
		}
		if integers && !a.hasBatch() {
			lo, hi := to.Limits()
			for _, v := range out.i64 {
				if v < lo || v > hi {
					return nil, fmt.Errorf("%d does not fit into %v", v, to)
				}
			}
		}
		out.batch = a.batch
		return out, nil
	}
}

// quant is the QONNX operator Quant with all inputs constant: value, scale,
// zero point, bit width. One signed bit means ±1 there.
func (e *evaluator) quant(signed, narrow bool, round func(float64) float64) pointFunc {
	return func(args []*tensor) (*tensor, error) {
		x, scale, zero, width := args[0], args[1], args[2], args[3]
		if width.len() != 1 || width.at(0) < 1 || width.at(0) > 32 || width.at(0) != math.Trunc(width.at(0)) {
			return nil, errors.New("the bit width must be one integer from 1 to 32")
		}
		lo, hi := 0.0, math.Ldexp(1, int(width.at(0)))-1
		switch {
		case signed:
			half := math.Ldexp(1, int(width.at(0))-1)
			lo, hi = -half, half-1
			if narrow {
				lo++
			}
		case narrow:
			hi--
		}
		dims, err := broadcast(x.dims, scale.dims)
		if err == nil {
			dims, err = broadcast(dims, zero.dims)
		}
		if err != nil {
			return nil, err
		}
		out, err := e.newTensor(x.typ, dims)
		if err != nil {
			return nil, err
		}
		for i, at := range walk(dims, x.dims, scale.dims, zero.dims) {
			s, z := scale.at(at[1]), zero.at(at[2])
			// FLOAT arithmetic rounds every operation.
			q := float64(float32(float64(float32(x.at(at[0])/s)) + z))
			if signed && width.at(0) == 1 {
				q = 2*truth(q >= 0) - 1
			} else {
				q = round(max(lo, min(q, hi)))
			}
			out.set(i, float64(float32(q-z))*s)
		}
		return out, nil
	}
}
