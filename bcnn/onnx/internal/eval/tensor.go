// Package eval computes with the constants of a graph: it unpacks tensors from the messages of a
// file and evaluates operators whose operands are all known. Every byte that it allocates and every
// value that it visits is charged to a budget first.
package eval

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Evaluator computes with tensors.
type Evaluator struct {
	Budget *budget.Budget
	// TensorBytes is the largest size of a tensor in memory.
	TensorBytes int64
	// External returns size bytes from offset on of another file.
	External func(location string, offset, size int64) ([]byte, error)
}

// Tensor is a constant. Integers and BOOL are in I64, DOUBLE in F64, the other real types in F32,
// which holds them exactly.
type Tensor struct {
	Type pb.DataType
	Dims []int
	F32  []float32
	F64  []float64
	I64  []int64
	// Batch marks integers that stand for the batch size: for itself if they are 0 or 1, and
	// otherwise for that multiple of it. nil means none.
	Batch []bool
	// Every value is still to be multiplied by the batch size to the power Power. Unknown says that
	// values depend on the batch size in another way. See Sized.
	Power   float64
	Unknown bool
}

// Len returns the number of values.
func (t *Tensor) Len() int { return len(t.F32) + len(t.F64) + len(t.I64) }

// At returns value i.
func (t *Tensor) At(i int) float64 {
	switch {
	case t.F32 != nil:
		return float64(t.F32[i])
	case t.F64 != nil:
		return t.F64[i]
	}
	return float64(t.I64[i])
}

// Set stores a value, rounded to the type of the tensor.
func (t *Tensor) Set(i int, v float64) {
	switch {
	case t.Type == pb.Float16:
		t.F32[i] = float32(round(v, 10, -14, 16))
	case t.Type == pb.BFloat16:
		t.F32[i] = float32(round(v, 7, -126, 128))
	case t.F32 != nil:
		t.F32[i] = float32(v)
	case t.F64 != nil:
		t.F64[i] = v
	default:
		t.I64[i] = int64(v)
	}
}

// round rounds to even to a floating-point format with the given bits of fraction. least is the
// exponent of the least normal number, infinite the first exponent that overflows.
func round(v float64, bits, least, infinite int) float64 {
	if v == 0 || v-v != 0 {
		return v
	}
	_, exp := math.Frexp(v)
	unit := max(exp-1, least) - bits // exponent of the last place
	r := math.Ldexp(math.RoundToEven(math.Ldexp(v, -unit)), unit)
	if math.Abs(r) >= math.Ldexp(1, infinite) {
		return math.Inf(int(math.Copysign(1, v)))
	}
	return r
}

// HasBatch reports whether values are the batch size, or computed from it.
func (t *Tensor) HasBatch() bool { return t.Batch != nil || t.Sized() }

// Integers returns the values of an integer tensor. It fails if they depend on the batch size.
func (t *Tensor) Integers() ([]int64, error) {
	if t.Type.Real() || t.HasBatch() {
		return nil, fmt.Errorf("a constant is %v, want integers that do not depend on the batch size", t.Type)
	}
	return t.I64, nil
}

// Redim returns a tensor with the same data and other dimensions.
func (t *Tensor) Redim(dims []int) *Tensor {
	u := *t
	u.Dims = dims
	return &u
}

// Equal reports whether two tensors have the same type, dimensions and values.
func (t *Tensor) Equal(u *Tensor) bool {
	return t.Type == u.Type && slices.Equal(t.Dims, u.Dims) && t.Power == u.Power && !t.Unknown && !u.Unknown &&
		slices.Equal(t.F32, u.F32) && slices.Equal(t.F64, u.F64) && slices.Equal(t.I64, u.I64)
}

// Scalar makes a tensor without dimensions.
func Scalar(typ pb.DataType, v float64) *Tensor {
	t := &Tensor{Type: typ, Dims: []int{}}
	switch {
	case typ == pb.Double:
		t.F64 = []float64{v}
	case typ.Real():
		t.F32 = []float32{float32(v)}
	default:
		t.I64 = []int64{int64(v)}
	}
	return t
}

// Sizes makes a list of integers. batch marks those that stand for the batch size.
func Sizes(values []int64, batch []bool) *Tensor {
	t := &Tensor{Type: pb.Int64, Dims: []int{len(values)}, I64: values, Batch: batch}
	t.trim()
	return t
}

// trim drops marks of the batch size if none is set.
func (t *Tensor) trim() {
	if !slices.Contains(t.Batch, true) {
		t.Batch = nil
	}
}

// Count returns the number of values of the dimensions. It fails if it is above pb.MaxSize.
func Count(dims []int) (int, error) {
	n := int64(1)
	for _, d := range dims {
		if d < 0 || d > pb.MaxSize {
			return 0, fmt.Errorf("dimensions %v are negative or too large", dims)
		}
		if n *= int64(d); n > pb.MaxSize {
			return 0, fmt.Errorf("dimensions %v have more than %d values", dims, pb.MaxSize)
		}
	}
	return int(n), nil
}

// tensorUnits is the cost of a tensor without its values.
const tensorUnits = 256

// NewTensor allocates a tensor of the given type.
func (e *Evaluator) NewTensor(typ pb.DataType, dims []int) *Tensor {
	n := try.Value(Count(dims))
	bytes := 8 * int64(n)
	if typ.Real() && typ != pb.Double {
		bytes = 4 * int64(n)
	}
	if bytes > e.TensorBytes {
		try.Failf("dimensions %v of %v take %d bytes, at most %d are allowed", dims, typ, bytes, e.TensorBytes)
	}
	try.Check(e.Budget.Charge(tensorUnits + bytes))
	t := &Tensor{Type: typ, Dims: dims}
	switch {
	case typ == pb.Double:
		t.F64 = make([]float64, n)
	case typ.Real():
		t.F32 = make([]float32, n)
	default:
		t.I64 = make([]int64, n)
	}
	return t
}
