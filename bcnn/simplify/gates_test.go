package simplify_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// Products of a value and a function of it, in either order and with factors in front of the
// value, in front of the function and behind it; and what looks like one and is none.
func TestGates(t *testing.T) {
	const root = float32(0.70710678)
	sigmoid, erf, tanh := bcnn.Function{Name: bcnn.Sigmoid}, bcnn.Function{Name: bcnn.Erf}, bcnn.Function{Name: bcnn.Tanh}
	softplus := bcnn.Function{Name: bcnn.Softplus}
	times := func(k float32) bcnn.Op { return bcnn.Affine{Scale: []float32{k}} }
	line := func(k, b float32) bcnn.Op { return bcnn.Affine{Scale: []float32{k}, Bias: []float32{b}} }
	ops := func(list ...bcnn.Op) []bcnn.Op { return list }
	for name, c := range map[string]struct {
		first, gate []bcnn.Op // from the input to the two factors
		want        bcnn.FunctionName
	}{
		"SiLU":                       {nil, ops(sigmoid), bcnn.SiLU},
		"SiLU of a multiple":         {nil, ops(times(1.702), sigmoid), bcnn.SiLU},
		"SiLU of 2x, of 3x":          {ops(times(2)), ops(times(3), sigmoid), bcnn.SiLU},
		"SiLU, times":                {ops(times(0.5)), ops(sigmoid, times(3)), bcnn.SiLU},
		"SiLU of −x":                 {nil, ops(times(-1), sigmoid), bcnn.SiLU},
		"GELU":                       {ops(times(0.5)), ops(times(root), erf, line(1, 1)), bcnn.GELU},
		"GELU, halves behind":        {nil, ops(times(root), erf, line(0.5, 0.5)), bcnn.GELU},
		"GELU, add and times":        {nil, ops(times(root), erf, line(1, 1), times(0.5)), bcnn.GELU},
		"Mish":                       {nil, ops(softplus, tanh), bcnn.Mish},
		"Mish, times":                {ops(times(2)), ops(softplus, tanh, times(0.25)), bcnn.Mish},
		"SiLU with a bias behind":    {nil, ops(sigmoid, line(1, 0.5)), ""},
		"SiLU with a bias within":    {nil, ops(line(1, 0.5), sigmoid), ""},
		"SiLU with a bias in front":  {ops(line(1, 0.5)), ops(sigmoid), ""},
		"a factor for each channel":  {nil, ops(bcnn.Affine{Scale: []float32{1, 2, 3}}, sigmoid), ""},
		"0 within":                   {nil, ops(times(0), sigmoid), ""},
		"an erf of x":                {nil, ops(erf, line(1, 1)), ""},
		"an erf, plus 2":             {nil, ops(times(root), erf, line(1, 2)), ""},
		"the softplus of 2x":         {nil, ops(times(2), softplus, tanh), ""},
		"the tanh of 2·softplus":     {nil, ops(softplus, times(2), tanh), ""},
		"tanh":                       {nil, ops(tanh), ""},
		"another layer between":      {ops(bcnn.ReLU{}), ops(sigmoid), ""},
		"the sigmoid of the sigmoid": {nil, ops(sigmoid, sigmoid), ""},
	} {
		for turned := range 2 {
			t.Run(fmt.Sprint(name, " ", turned), func(t *testing.T) {
				n := network(bcnn.Shape{H: 3, W: 5, C: 3})
				ends := []int{bcnn.NetworkInput, bcnn.NetworkInput}
				for k, list := range [][]bcnn.Op{c.first, c.gate} {
					for _, op := range list {
						ends[k] = then(n, op, ends[k])
					}
				}
				then(n, bcnn.Mul{}, ends[turned], ends[1-turned])
				m, findings, err := simplify.Network(t.Context(), n, simplify.Options{})
				require.NoError(t, err)
				requireSame(t, n, m, 3)
				gates := 0
				for _, f := range findings {
					if f.Rule == simplify.Gates {
						gates++
					}
				}
				if c.want == "" {
					require.Zero(t, gates)
					return
				}
				require.Equal(t, 1, gates)
				functions := []bcnn.FunctionName{}
				for _, l := range m.Layers {
					require.NotEqual(t, "mul", l.Op.Kind())
					if f, ok := l.Op.(bcnn.Function); ok {
						functions = append(functions, f.Name)
					}
				}
				require.Equal(t, []bcnn.FunctionName{c.want}, functions)
				same, _, err := simplify.Network(t.Context(), n, simplify.Options{Without: []simplify.Rule{simplify.Gates}})
				require.NoError(t, err)
				require.Equal(t, "mul", same.Layers[len(same.Layers)-1].Op.Kind())
			})
		}
	}
}
