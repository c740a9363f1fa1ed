package cpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestPixelsInOrder: pixels that are those of the input in other columns of blocks, and whose values
// stay in order, are copied at once, and no others.
func TestPixelsInOrder(t *testing.T) {
	set, err := sets.Lookup("generic")
	require.NoError(t, err)
	for _, c := range []struct {
		in           bcnn.Shape
		blockH       int
		blockW       int
		swap, cut    bool // the first two rows; the last column
		copiedAtOnce bool
	}{
		{in: bcnn.Shape{H: 1, W: 1, C: 202}, blockH: 101, blockW: 1, copiedAtOnce: true},
		{in: bcnn.Shape{H: 3, W: 1, C: 24}, blockH: 2, blockW: 4, copiedAtOnce: true},
		{in: bcnn.Shape{H: 3, W: 5, C: 24}, blockH: 1, blockW: 4, copiedAtOnce: true},
		{in: bcnn.Shape{H: 3, W: 5, C: 24}, blockH: 1, blockW: 1, copiedAtOnce: true},
		{in: bcnn.Shape{H: 3, W: 5, C: 24}, blockH: 2, blockW: 2},
		{in: bcnn.Shape{H: 3, W: 5, C: 24}, blockH: 2, blockW: 1},
		{in: bcnn.Shape{H: 1, W: 1, C: 202}, blockH: 101, blockW: 1, swap: true},
		{in: bcnn.Shape{H: 3, W: 5, C: 24}, blockH: 1, blockW: 4, cut: true},
	} {
		p := newPlanner(1, input(bcnn.Float32, c.in.H, c.in.W, c.in.C))
		op := &plan.Pixels{BlockH: c.blockH, BlockW: c.blockW, Fill: 7}
		for y := range int32(c.in.H * c.blockH) {
			op.Rows = append(op.Rows, y)
		}
		for x := range int32(c.in.W * c.blockW) {
			op.Cols = append(op.Cols, x)
		}
		if c.swap {
			op.Rows[0], op.Rows[1] = 1, 0
		}
		if c.cut {
			op.Cols = op.Cols[:len(op.Cols)-1]
		}
		p.step("pixels", op, bcnn.Float32, bcnn.Shape{H: len(op.Rows), W: len(op.Cols), C: c.in.C / c.blockH / c.blockW})
		p.affine(plan.ActivationReLU)
		made, in := p.done(), p.input(2)
		want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
		require.NoError(t, err)
		e, err := newExecutable(t.Context(), made, set, driver.Config{MaxBatch: 2, Threads: 2, ISA: set.ISA, ArenaBytes: 1 << 30})
		require.NoError(t, err)
		what := fmt.Sprintf("%+v", c)
		require.Equal(t, c.copiedAtOnce, e.choices[0].Kernel == "copy", what)
		requireOutputs(t, e, want, in, what)
		require.NoError(t, e.Close())
	}
}
