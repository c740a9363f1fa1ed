package eval

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Numbers that the batch size is a factor of, such as how many values a tensor has: PyTorch's
// code computes with them what cancels in the end.

// Sized reports whether the values of a tensor depend on the batch size other than by being it.
func (t *Tensor) Sized() bool { return t.Power != 0 || t.Unknown }

// Known reports whether the values are those of the tensor, times a power of the batch size.
func (t *Tensor) Known() bool { return !t.Unknown }

// sized returns a tensor that is a multiple of the batch size as one with a power of it.
func sized(t *Tensor) *Tensor {
	if t.Batch == nil {
		return t
	}
	if t.Len() != 1 {
		try.Fail(errBatch)
	}
	return &Tensor{Type: t.Type, Dims: t.Dims, I64: []int64{max(t.I64[0], 1)}, Power: 1}
}

// settled returns a tensor that is a multiple of the batch size as such.
func settled(t *Tensor) *Tensor {
	if t.Power != 1 || !t.Known() || len(t.I64) != 1 || t.I64[0] < 1 {
		return t
	}
	times := t.I64[0]
	if times == 1 {
		times = 0
	}
	return &Tensor{Type: t.Type, Dims: t.Dims, I64: []int64{times}, Batch: []bool{true}}
}

// SizedProduct is the product of a list of sizes.
func (e *Evaluator) SizedProduct(t *Tensor, keep bool) *Tensor {
	if len(t.Dims) != 1 || t.Sized() {
		try.Fail(errBatch)
	}
	out := Scalar(t.Type, 1)
	for i, v := range t.I64 {
		try.Check(e.Budget.Charge(1))
		if t.Marked(i) {
			out.Power++
			v = max(v, 1)
		}
		product := float64(out.I64[0]) * float64(v)
		if !holds(t.Type, product) {
			try.Failf("integer overflow")
		}
		out.I64[0] = int64(product)
	}
	if keep {
		out.Dims = []int{1}
	}
	return settled(out)
}

// SizedBinary is Add, Sub, Mul, Div or Pow of tensors of which the batch size is a factor. A sum
// of different powers of it is not known.
func (e *Evaluator) SizedBinary(op string, a, b *Tensor) *Tensor {
	a, b = sized(a), sized(b)
	power, known := a.Power, a.Known() && b.Known()
	switch op {
	case "Mul":
		power += b.Power
	case "Div":
		power -= b.Power
	case "Pow":
		known = known && b.Power == 0 && b.Len() == 1
		if known {
			power *= b.At(0)
		}
	default: // Add, Sub
		known = known && a.Power == b.Power
	}
	if a.Type != b.Type && op != "Pow" {
		try.Failf("operands of %v and %v", a.Type, b.Type)
	}
	f := BinaryOps[op]
	out := e.pointwise(a.Type, []*Tensor{a, b}, func(out *Tensor, i int, at []int) {
		if !known {
			return
		}
		v := f(a.At(at[0]), b.At(at[1]))
		if !a.Type.Real() && (v != math.Trunc(v) || !holds(a.Type, v) || power < 0) {
			known = false // another quotient is rounded for each batch size
			return
		}
		out.Set(i, v)
	})
	if known {
		out.Power = power
	} else {
		out.Unknown = true
	}
	return settled(out)
}

// SizedUnary is Sqrt, Reciprocal, Neg or Abs of a tensor that the batch size is a factor of.
func (e *Evaluator) SizedUnary(op string, t *Tensor) *Tensor {
	t = sized(t)
	power := t.Power
	switch op {
	case "Sqrt":
		power /= 2
	case "Reciprocal":
		power = -power
	}
	of := *t
	of.Power, of.Unknown = 0, false
	out := &of
	if t.Known() {
		out = e.Unary(op)([]*Tensor{&of})
		out.Power = power
	} else {
		out.Unknown = true
	}
	return settled(out)
}

// SizedCast converts a tensor that the batch size is a factor of.
func (e *Evaluator) SizedCast(to pb.DataType, t *Tensor) *Tensor {
	t = sized(t)
	of := *t
	of.Power, of.Unknown = 0, false
	out := e.Cast(to)([]*Tensor{&of})
	if out == &of { // of the same type
		return settled(t)
	}
	out.Power, out.Unknown = t.Power, t.Unknown
	if !to.Real() && t.Type.Real() { // which truncates what is no integer for each batch size
		for i := range of.Len() {
			try.Check(e.Budget.Charge(1))
			out.Unknown = out.Unknown || t.Power < 0 || t.Power != math.Trunc(t.Power) || out.At(i) != of.At(i)
		}
	}
	return settled(out)
}
