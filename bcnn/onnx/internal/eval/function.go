package eval

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// slowUnits is the cost of a function such as exp, per value.
const slowUnits = 8

// Map applies a function to every value and rounds the results to typ, which is the type of the
// tensor or BOOL.
func (e *Evaluator) Map(t *Tensor, typ pb.DataType, f func(x float64) float64) *Tensor {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	out := e.NewTensor(typ, t.Dims)
	try.Check(e.Budget.Charge(slowUnits * int64(out.Len())))
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := f(t.At(i))
			if !typ.Real() && !holds(typ, math.Trunc(v)) {
				try.Failf("integer overflow")
			}
			out.Set(i, v)
		}
	}))
	return out
}

// PRelu returns x where x ≥ 0, and slope·x elsewhere. The slope is broadcast to t.
func (e *Evaluator) PRelu(t, slope *Tensor) *Tensor {
	dims := try.Value(Broadcast(t.Dims, slope.Dims))
	if t.Type != slope.Type || t.HasBatch() || slope.HasBatch() || !slices.Equal(dims, t.Dims) {
		try.Failf("a slope of %v and shape %v does not fit %v and shape %v", slope.Type, slope.Dims, t.Type, t.Dims)
	}
	return e.pointwise(t.Type, []*Tensor{t, slope}, func(out *Tensor, i int, at []int) {
		x := t.At(at[0])
		if x < 0 {
			if x *= slope.At(at[1]); !t.Type.Real() && !holds(t.Type, x) {
				try.Failf("integer overflow")
			}
		}
		out.Set(i, x)
	})
}

// Softmax returns e^x divided by its sum along an axis, in float64 with one rounding. With
// LogSoftmax as op it returns the logarithm of that, and with Hardmax 1 at the first maximum and 0
// elsewhere.
func (e *Evaluator) Softmax(t *Tensor, axis int, op string) *Tensor {
	if !t.Type.Real() || t.HasBatch() {
		try.Failf("%s of %v is not supported, only of floating-point numbers", op, t.Type)
	}
	out := e.NewTensor(t.Type, t.Dims)
	size, inner := t.Dims[axis], strides(t.Dims)[axis]
	if out.Len() == 0 {
		return out
	}
	try.Check(e.Budget.Charge(2 * slowUnits * int64(out.Len())))
	try.Check(e.Budget.Loop(t.Len()/size, func(lo, hi int) {
		for lane := lo; lane < hi; lane++ {
			start := lane/inner*inner*size + lane%inner
			most, first := math.Inf(-1), 0
			for k := range size {
				if x := t.At(start + k*inner); x > most {
					most, first = x, k
				}
			}
			sum := 0.0
			for k := range size {
				sum += math.Exp(t.At(start+k*inner) - most)
			}
			for k := range size {
				x := t.At(start+k*inner) - most
				switch op {
				case "LogSoftmax":
					x -= math.Log(sum)
				case "Hardmax":
					x = truth(k == first)
				default:
					x = math.Exp(x) / sum
				}
				out.Set(start+k*inner, x)
			}
		}
	}))
	return out
}

// LpNormalization divides by the norm of order p along an axis: p = 1, the sum of magnitudes, or p
// = 2, the root of the sum of squares. Where the norm is 0, values stay.
func (e *Evaluator) LpNormalization(t *Tensor, axis int, p int64) *Tensor {
	op := map[int64]string{1: "ReduceL1", 2: "ReduceL2"}[p]
	if op == "" || !t.Type.Real() {
		try.Failf("the norm of order %d of %v is not supported, only p = 1 and p = 2 of floating-point numbers", p, t.Type)
	}
	norm := e.Reduce(op, t, []int{axis})
	return e.pointwise(t.Type, []*Tensor{t, norm}, func(out *Tensor, i int, at []int) {
		x, by := t.At(at[0]), norm.At(at[1])
		if by != 0 {
			x /= by
		}
		out.Set(i, x)
	})
}
