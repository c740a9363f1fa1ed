package roots_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/roots"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// All powers of two of float32, and what lies between them, against float64. Numbers below
// 2^−126 count as that.
func TestRoots(t *testing.T) {
	var x []float32
	for e := -126; e < 128; e++ {
		for _, m := range []float64{1, 1.0000001, 1.25, 1.5, 1.9999999} {
			x = append(x, float32(math.Ldexp(m, e)))
		}
	}
	for name, c := range map[string]struct {
		write func(roots.Emit[int], int) int
		want  func(x float64) float64
	}{
		"1/x":  {roots.Reciprocal[int], func(x float64) float64 { return 1 / x }},
		"1/√x": {roots.RSqrt[int], func(x float64) float64 { return 1 / math.Sqrt(x) }},
	} {
		t.Run(name, func(t *testing.T) {
			shape := bcnn.Shape{H: 1, W: 1, C: len(x)}
			n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: shape, DType: bcnn.Float32}}}
			last := c.write(func(suffix string, op bcnn.Op, in ...int) int {
				return n.Append(fmt.Sprint(len(n.Layers), suffix), op, in...)
			}, bcnn.NetworkInput)
			require.Equal(t, len(n.Layers)-1, last)
			plan, err := lower.Network(t.Context(), n, lower.Options{})
			require.NoError(t, err)
			in := bcnn.NewTensor(bcnn.Float32, 1, shape)
			copy(in.F32, x)
			out, err := ref.Run(t.Context(), plan, in, nil)
			require.NoError(t, err)
			for i, y := range out.F32 {
				want := c.want(float64(x[i]))
				if want < 0x1p-125 { // of which 1/x has fewer bits
					require.InDelta(t, want, y, 0x1p-140, "of %v", x[i])
					continue
				}
				require.InEpsilon(t, want, y, 4e-7, "of %v", x[i])
			}
		})
	}
}
