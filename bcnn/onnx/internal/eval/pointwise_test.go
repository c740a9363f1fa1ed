package eval

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Remainders of numbers far apart take long, and are charged before they are taken.
func TestRemaindersAreCharged(t *testing.T) {
	const n = 1000
	x, y := Scalar(pb.Double, math.MaxFloat64), &Tensor{Type: pb.Double, Dims: []int{n}, F64: make([]float64, n)}
	for i := range y.F64 {
		y.F64[i] = 0x1.8p-1022
	}
	for _, op := range []string{"Mod", "FMod"} {
		e := &Evaluator{Budget: budget.New(t.Context(), 1<<30), TensorBytes: 1 << 30}
		e.Binary(op)([]*Tensor{x, y})
		require.Greater(t, e.Budget.Used(), int64(n*2000))
		e = &Evaluator{Budget: budget.New(t.Context(), n*2000), TensorBytes: 1 << 30}
		_, err := try.Do(func() *Tensor { return e.Binary(op)([]*Tensor{x, y}) })
		require.ErrorIs(t, err, budget.ErrExceeded)
	}
}

// Integers that do not fit into their type are errors, the largest that do are not.
func TestIntegerOverflow(t *testing.T) {
	e := &Evaluator{Budget: budget.New(t.Context(), 1<<30), TensorBytes: 1 << 30}
	list := func(typ pb.DataType, v ...int64) *Tensor { return &Tensor{Type: typ, Dims: []int{len(v)}, I64: v} }
	for typ, most := range map[pb.DataType]int64{pb.Int32: math.MaxInt32, pb.Int64: 1<<53 - 1} {
		for name, f := range map[string]func(x *Tensor) *Tensor{
			"Add":       func(x *Tensor) *Tensor { return e.Binary("Add")([]*Tensor{x, list(typ, 3)}) },
			"ReduceSum": func(x *Tensor) *Tensor { return e.Reduce("ReduceSum", x, []int{0}) },
			"CumSum":    func(x *Tensor) *Tensor { return e.CumSum(x, 0, false, false) },
			"CumSum, exclusive": func(x *Tensor) *Tensor {
				return e.CumSum(list(typ, x.I64[0], x.I64[1], most), 0, true, false)
			},
		} {
			require.Contains(t, f(list(typ, most-3, 3)).I64, most)
			_, err := try.Do(func() *Tensor { return f(list(typ, most-2, 3)) })
			require.ErrorContains(t, err, "integer overflow", "%s of %v", name, typ)
		}
	}
}
