package tflite

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// The channels of each pixel, divided by the root of the sum of their squares: of zeros, too,
// and of numbers whose squares are beyond float32's precision beside others.
func TestL2Normalization(t *testing.T) {
	for _, dims := range [][]int32{{1, 2, 3, 5}, {1, 6, 5}, {1, 30}, {1, 5, 6, 1}} {
		g := newGraph(1, 2, 3, 5)
		x := g.add("RESHAPE", nil, dims, 0)
		if len(dims) == 4 && dims[3] == 5 {
			x = 0
		} else if len(dims) != 2 {
			g = newGraph(dims...)
			x = 0
		}
		g.outputs[0] = g.add("L2_NORMALIZATION", map[int]any{0: uint8(0)}, dims, x)
		net, _, err := Decode(t.Context(), g.encode(), Options{Name: "norm"})
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		in := bcnn.Tensor{N: 1, Shape: net.Inputs[0].Shape, DType: bcnn.Float32, F32: make([]float32, 30)}
		for i := range in.F32 {
			in.F32[i] = float32(i%7-3) * []float32{1, 1e-4, 0, 1e4, 3, 1e-9}[i/5]
		}
		out, err := ref.Run(t.Context(), plan, in, nil)
		require.NoError(t, err)
		channels := int(dims[len(dims)-1])
		for i, y := range out.F32 {
			sum := 0.0
			for _, x := range in.F32[i/channels*channels:][:channels] {
				sum += float64(x) * float64(x)
			}
			require.InDelta(t, float64(in.F32[i])/max(math.Sqrt(sum), 1e-6), y, 1e-6, "%v %d", dims, i)
		}
	}
	g := newGraph(1, 5)
	g.outputs[0] = g.add("L2_NORMALIZATION", map[int]any{0: uint8(1)}, []int32{1, 5}, 0)
	refused(t, g.encode(), "a fused activation is not supported")
}

// Operators that are functions of one value, in float64.
func TestFunctions(t *testing.T) {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for name, c := range map[string]struct {
		op      string
		options map[int]any
		f       func(x float64) float64
	}{
		"LOGISTIC":   {"LOGISTIC", nil, sigmoid},
		"TANH":       {"TANH", nil, math.Tanh},
		"EXP":        {"EXP", nil, math.Exp},
		"ELU":        {"ELU", nil, func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) }},
		"HARD_SWISH": {"HARD_SWISH", nil, func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }},
		"GELU":       {"GELU", map[int]any{}, func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }},
		"GELU, approximate": {"GELU", map[int]any{0: uint8(1)}, func(x float64) float64 {
			return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(1, 2, 3, 5)
			g.outputs[0] = g.add(c.op, c.options, []int32{1, 2, 3, 5}, 0)
			net, _, err := Decode(t.Context(), g.encode(), Options{Name: "function"})
			require.NoError(t, err)
			plan, err := lower.Network(t.Context(), net, lower.Options{})
			require.NoError(t, err)
			x := bcnn.Tensor{N: 1, Shape: net.Inputs[0].Shape, DType: bcnn.Float32, F32: make([]float32, 30)}
			for i := range x.F32 {
				x.F32[i] = float32(i-15) / 3
			}
			y, err := ref.Run(t.Context(), plan, x, nil)
			require.NoError(t, err)
			for i, v := range x.F32 {
				want := c.f(float64(v))
				require.InDelta(t, want, y.F32[i], 2e-7*max(1, math.Abs(want)), v)
			}
		})
	}
}
