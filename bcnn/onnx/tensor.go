package onnx

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// An evaluator decodes constants and computes with them. Every byte that it
// allocates is charged to the budget.
type evaluator struct {
	budget *budget.Budget
	// external reads size bytes of another file. It is nil where a model has
	// none.
	external func(location string, offset, size int64) ([]byte, error)
}

// scalar makes a tensor without dimensions.
func scalar(typ pb.DataType, v float64) *tensor {
	t := &tensor{typ: typ, dims: []int{}}
	switch {
	case typ == pb.Double:
		t.f64 = []float64{v}
	case typ.Real():
		t.f32 = []float32{float32(v)}
	default:
		t.i64 = []int64{int64(v)}
	}
	return t
}

// redim returns the same data with other dimensions.
func (t *tensor) redim(dims []int) *tensor {
	u := *t
	u.dims = dims
	return &u
}

// integers returns the values of a tensor of integers without the batch size.
func (t *tensor) integers() ([]int64, error) {
	if t.typ.Real() || t.hasBatch() {
		return nil, fmt.Errorf("a constant of %v, want integers that do not depend on the batch size", t.typ)
	}
	return t.i64, nil
}

// tensor is a constant. Integers and bools are in i64, DOUBLE in f64, the other
// real types, exactly, in f32.
type tensor struct {
	typ  pb.DataType
	dims []int
	f32  []float32
	f64  []float64
	i64  []int64
	// batch marks the integers that stand for the batch size; nil for none.
	batch []bool
}

func (t *tensor) len() int { return len(t.f32) + len(t.f64) + len(t.i64) }

func (t *tensor) at(i int) float64 {
	switch {
	case t.f32 != nil:
		return float64(t.f32[i])
	case t.f64 != nil:
		return t.f64[i]
	}
	return float64(t.i64[i])
}

// set stores a value, rounded to the type of the tensor.
func (t *tensor) set(i int, v float64) {
	switch {
	case t.f32 != nil:
		t.f32[i] = float32(v)
	case t.f64 != nil:
		t.f64[i] = v
	default:
		t.i64[i] = int64(v)
	}
}

// hasBatch reports whether the tensor holds the batch size.
func (t *tensor) hasBatch() bool {
	for _, b := range t.batch {
		if b {
			return true
		}
	}
	return false
}

// count returns the number of values of the dimensions.
func count(dims []int) (int, error) {
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

// newTensor allocates a tensor, within the budget of the import.
func (e *evaluator) newTensor(typ pb.DataType, dims []int) (*tensor, error) {
	n, err := count(dims)
	if err != nil {
		return nil, err
	}
	size := int64(8)
	if typ.Real() && typ != pb.Double {
		size = 4
	}
	if err := e.budget.Charge(size * int64(n)); err != nil {
		return nil, err
	}
	t := &tensor{typ: typ, dims: dims}
	switch {
	case typ == pb.Double:
		t.f64 = make([]float64, n)
	case typ.Real():
		t.f32 = make([]float32, n)
	default:
		t.i64 = make([]int64, n)
	}
	return t, nil
}
