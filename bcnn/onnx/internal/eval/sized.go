package eval

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Numbers computed from the batch size, such as how many values a tensor has. Code of PyTorch
// computes with them, and the batch size cancels in the end.

// Sized reports whether values are computed from the batch size, and are not just sizes in a shape
// (see Batch).
func (t *Tensor) Sized() bool { return t.Power != 0 || t.Unknown }

// Known reports whether the values are those that are stored, times a power of the batch size.
func (t *Tensor) Known() bool { return !t.Unknown }

// sized returns a single multiple of the batch size with Power in place of Batch.
func sized(t *Tensor) *Tensor {
	if t.Batch == nil {
		return t
	}
	if t.Len() != 1 {
		try.Fail(errBatch)
	}
	return &Tensor{Type: t.Type, Dims: t.Dims, I64: []int64{max(t.I64[0], 1)}, Power: 1}
}

// settled returns a single multiple of the batch size with Batch in place of Power.
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

// SizedProduct returns the product of a list of sizes, as a list of one if keep is set.
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

// SizedBinary returns Add, Sub, Mul, Div or Pow of tensors that may have the batch size as a
// factor. A sum of different powers of it is unknown.
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
		try.Failf("its operands are %v and %v, which must be of one type", a.Type, b.Type)
	}
	f := BinaryOps[op]
	out := e.pointwise(a.Type, []*Tensor{a, b}, func(out *Tensor, i int, at []int) {
		if !known {
			return
		}
		v := f(a.At(at[0]), b.At(at[1]))
		if !a.Type.Real() && (v != math.Trunc(v) || !holds(a.Type, v) || power < 0) {
			known = false // the rounded quotient depends on the batch size
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

// SizedUnary returns Sqrt, Reciprocal, Neg or Abs of a tensor that may have the batch size as a
// factor.
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

// SizedCast converts a tensor that may have the batch size as a factor.
func (e *Evaluator) SizedCast(to pb.DataType, t *Tensor) *Tensor {
	t = sized(t)
	of := *t
	of.Power, of.Unknown = 0, false
	out := e.Cast(to)([]*Tensor{&of})
	if out == &of { // of the same type
		return settled(t)
	}
	out.Power, out.Unknown = t.Power, t.Unknown
	if !to.Real() && t.Type.Real() { // truncation may depend on the batch size
		for i := range of.Len() {
			try.Check(e.Budget.Charge(1))
			out.Unknown = out.Unknown || t.Power < 0 || t.Power != math.Trunc(t.Power) || out.At(i) != of.At(i)
		}
	}
	return settled(out)
}
