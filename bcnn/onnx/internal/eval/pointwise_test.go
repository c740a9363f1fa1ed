package eval

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

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
		_, err := e.Binary(op)([]*Tensor{x, y})
		require.NoError(t, err)
		require.Greater(t, e.Budget.Used(), int64(n*2000))
		e = &Evaluator{Budget: budget.New(t.Context(), n*2000), TensorBytes: 1 << 30}
		_, err = e.Binary(op)([]*Tensor{x, y})
		require.ErrorIs(t, err, budget.ErrExceeded)
	}
}
