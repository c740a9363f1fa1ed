// Package eval computes with the constants of a graph: it unpacks tensors from
// the messages of a file and evaluates operators whose operands are all known.
package eval

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// An Evaluator decodes constants and computes with them. Every byte that it
// allocates is charged to the budget.
type Evaluator struct {
	Budget *budget.Budget
	// External reads size bytes of another file.
	External func(location string, offset, size int64) ([]byte, error)
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

// Redim returns the same data with other dimensions.
func (t *Tensor) Redim(dims []int) *Tensor {
	u := *t
	u.Dims = dims
	return &u
}

// Integers returns the values of a tensor of integers without the batch size.
func (t *Tensor) Integers() ([]int64, error) {
	if t.Type.Real() || t.HasBatch() {
		return nil, fmt.Errorf("a constant of %v, want integers that do not depend on the batch size", t.Type)
	}
	return t.I64, nil
}

// Tensor is a constant. Integers and bools are in I64, DOUBLE in F64, the other
// real types, exactly, in F32.
type Tensor struct {
	Type pb.DataType
	Dims []int
	F32  []float32
	F64  []float64
	I64  []int64
	// Batch marks the integers that stand for the batch size; nil for none.
	Batch []bool
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
	case t.F32 != nil:
		t.F32[i] = float32(v)
	case t.F64 != nil:
		t.F64[i] = v
	default:
		t.I64[i] = int64(v)
	}
}

// HasBatch reports whether the tensor holds the batch size.
func (t *Tensor) HasBatch() bool {
	for _, b := range t.Batch {
		if b {
			return true
		}
	}
	return false
}

// Count returns the number of values of the dimensions.
func Count(dims []int) (int, error) {
	n := int64(1)
	for _, d := range dims {
		if d < 0 || d > pb.MaxSize {
			return 0, fmt.Errorf("dimensions %v", dims)
		}
		if n *= int64(d); n > pb.MaxSize {
			return 0, fmt.Errorf("dimensions %v have more than %d values", dims, pb.MaxSize)
		}
	}
	return int(n), nil
}

// NewTensor allocates a tensor, within the budget of the import.
func (e *Evaluator) NewTensor(typ pb.DataType, dims []int) (*Tensor, error) {
	n, err := Count(dims)
	if err != nil {
		return nil, err
	}
	size := int64(8)
	if typ.Real() && typ != pb.Double {
		size = 4
	}
	if err := e.Budget.Charge(size * int64(n)); err != nil {
		return nil, err
	}
	t := &Tensor{Type: typ, Dims: dims}
	switch {
	case typ == pb.Double:
		t.F64 = make([]float64, n)
	case typ.Real():
		t.F32 = make([]float32, n)
	default:
		t.I64 = make([]int64, n)
	}
	return t, nil
}
