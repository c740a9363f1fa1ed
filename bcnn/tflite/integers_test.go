package tflite

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Sums beyond what float32 holds are of levels, of whatever layer the values come from.
func TestLargeSumsOfInt8(t *testing.T) {
	const n = 1200
	for _, zero := range []int64{-128, 5} {
		g := newGraph(1, 1, 2, n)
		g.quantised(0, 0.02, zero)
		x := g.add("MAX_POOL_2D", map[int]any{0: uint8(1), 1: 1, 2: 1, 3: 2, 4: 1}, []int32{1, 1, 1, n}, 0)
		g.quantised(x, 0.02, zero)
		w := g.tensor(testTensor{name: "w", dims: []int32{1, n}, data: slices.Repeat([]byte{127}, n)})
		g.quantised(w, 0.01, 0)
		g.outputs[0] = g.add("FULLY_CONNECTED", nil, []int32{1, 1}, x, w, -1)
		g.quantised(g.outputs[0], 25, 3)
		f := newFactor(float64(float32(0.02)*float32(0.01)) / 25)
		for k := range 8 {
			q := make([]int8, 2*n)
			sum := int64(0)
			for i := range n {
				q[i], q[n+i] = int8(i*k*7%256-128), int8(i*(k+3)%256-128)
				if k == 7 {
					q[i] = 127
				}
				sum += 127 * (int64(max(q[i], q[n+i])) - zero)
			}
			_, y := runInt8(t, g, q...)
			require.Equal(t, float32(clamp{-128, 127}.of(f.of(sum, halvesUp)+3)), y[0], "%d: %d", k, sum)
		}
		net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err)
		names := []string{}
		for _, l := range net.Layers {
			names = append(names, l.Name)
		}
		require.Contains(t, names, "fully_connected/levels")
	}
}

// Means of 8-bit integers round halves away from 0, and a fused activation limits them.
func TestAveragePoolOfInt8(t *testing.T) {
	q := []int8{-128, -127, 3, 4, 127, 127, -5, -6, 10, 11, -1, 0, 60, 63, 17, 20}
	for _, zero := range []int64{0, -20, -128, 100} {
		for act, name := range []string{"none", "RELU", "RELU_N1_TO_1", "RELU6"} {
			t.Run(fmt.Sprint(zero, " ", name), func(t *testing.T) {
				const scale = 0.125
				g := newGraph(1, 1, 16, 1)
				g.quantised(0, scale, zero)
				g.outputs[0] = g.add("AVERAGE_POOL_2D", map[int]any{0: uint8(1), 1: 2, 2: 1, 3: 2, 4: 1, 5: uint8(act)}, []int32{1, 1, 8, 1}, 0)
				g.quantised(g.outputs[0], scale, zero)
				lo, hi := -128.0, 127.0
				z := float64(zero)
				switch act {
				case actReLU:
					lo = max(lo, z)
				case actReLU1:
					lo, hi = max(lo, z-8), min(hi, z+8)
				case actReLU6:
					lo, hi = max(lo, z), min(hi, z+48)
				}
				var want []float32
				for i := range 8 {
					want = append(want, float32(min(max(math.Round(float64(int(q[2*i])+int(q[2*i+1]))/2), lo), hi)))
				}
				_, y := runInt8(t, g, q...)
				require.Equal(t, want, y)
			})
		}
	}
	for _, c := range []struct {
		kernel int32
		scale  float32
		zero   int64
		want   string
	}{
		{64, 0.5, 1, ""}, {65, 0.5, 1, "a mean of 65×64 8-bit values is not supported, only of at most 4096 values"},
		{2, 0.25, 1, "its output has another scale or zero point than its input"}, {2, 0.5, 2, "its output has another scale or zero point than its input"},
	} {
		g := newGraph(1, 65, 64, 1)
		g.quantised(0, 0.5, 1)
		g.outputs[0] = g.add("AVERAGE_POOL_2D", map[int]any{0: uint8(1), 1: 1, 2: 1, 3: 64, 4: int(c.kernel)}, []int32{1, 66 - c.kernel, 1, 1}, 0)
		g.quantised(g.outputs[0], c.scale, c.zero)
		if c.want != "" {
			refused(t, g.encode(), c.want)
			continue
		}
		_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err)
	}
}

// Functions of 8-bit values are within 1 of what float64 makes of them: for scales of
// which fixed-point factors are above and below 1, and for values on both sides of 0.
func TestFunctionsOfInt8(t *testing.T) {
	all := make([]int8, 256)
	for i := range all {
		all[i] = int8(i - 128)
	}
	relu := func(lo, hi float64) func(x float64) float64 {
		return func(x float64) float64 { return min(max(x, lo), hi) }
	}
	leaky := func(slope float64) func(x float64) float64 {
		return func(x float64) float64 {
			if x < 0 {
				return x * slope
			}
			return x
		}
	}
	for _, c := range []struct {
		name    string
		options map[int]any
		f       func(x float64) float64
		out     []float32 // scales
	}{
		{"HARD_SWISH", nil, func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }, []float32{1, 3}},
		{"RELU", nil, relu(0, math.Inf(1)), []float32{0.5, 1, 3}},
		{"RELU6", nil, relu(0, 6), []float32{0.5, 1, 3}},
		{"RELU_N1_TO_1", nil, relu(-1, 1), []float32{0.5, 1, 3}},
		{"LEAKY_RELU", map[int]any{0: float32(0.25)}, leaky(0.25), []float32{0.5, 1, 3}},
		{"LEAKY_RELU", map[int]any{0: float32(-0.5)}, leaky(-0.5), []float32{0.5, 1, 3}},
		{"LEAKY_RELU", nil, leaky(0), []float32{1}},
		{"ABS", nil, math.Abs, []float32{0.5, 1, 3}},
		{"QUANTIZE", nil, func(x float64) float64 { return x }, []float32{0.5, 1, 3}},
		{"ELU", nil, func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) }, []float32{1, 3}},
		{"TANH", nil, math.Tanh, []float32{1}},
		{"LOGISTIC", nil, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, []float32{1}},
		{"EXP", nil, math.Exp, []float32{1, 3}},
		{"GELU", nil, func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }, []float32{1, 3}},
		{"GELU", map[int]any{0: uint8(1)}, func(x float64) float64 {
			return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
		}, []float32{1, 3}},
	} {
		for _, scale := range []float32{0.004, 0.0118, 0.05} {
			for _, zero := range []int64{-128, 0, 90} {
				for _, factor := range c.out {
					name := fmt.Sprint(c.name, " ", c.options, " of ", scale, " from ", zero, " to ", scale*factor)
					out := scale * factor
					if c.name == "LOGISTIC" || c.name == "TANH" || c.name == "EXP" {
						out = 1.0 / 128 * factor
					}
					const to = -3
					g := newGraph(1, 1, 1, 256)
					g.quantised(0, scale, zero)
					y := g.add(c.name, c.options, []int32{1, 1, 1, 256}, 0)
					g.quantised(y, out, to)
					// As numbers behind it, and as the output.
					g.outputs = []int32{g.add("DEQUANTIZE", nil, []int32{1, 1, 1, 256}, y), y}
					_, got := runInt8(t, g, all...)
					for i, q := range all {
						want := min(max(c.f(float64(scale)*float64(int64(q)-zero))/float64(out)+to, -128), 127)
						require.InDelta(t, want, got[i]/out+to, 1, "%s: %d", name, q)
					}
					g.outputs = []int32{y}
					_, integers := runInt8(t, g, all...)
					for i := range all {
						require.InDelta(t, got[i], (integers[i]-to)*out, 1e-4*float64(out), name)
					}
				}
			}
		}
	}
}

// DEQUANTIZE is of integers of 8 bits, and so is QUANTIZE to others.
func TestDequantizeTypes(t *testing.T) {
	unsigned := func() *testGraph {
		g := newGraph(1, 3)
		g.tensors[0].typ, g.tensors[0].scale, g.tensors[0].zero = schema.Uint8, []float32{0.5}, []int64{100}
		return g
	}
	g := unsigned()
	g.outputs[0] = g.add("DEQUANTIZE", nil, []int32{1, 3}, 0)
	net, report, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	require.Equal(t, bcnn.Uint8, net.Inputs[0].DType)
	require.Equal(t, []Tensor{{Name: "x", Type: "UINT8", Dims: []int{1, 3}, Scale: 0.5, ZeroPoint: 100, channels: 3}}, report.Inputs)
	for want, of := range map[string]func() *testGraph{
		"values of FLOAT32 are not supported": func() *testGraph {
			g := newGraph(1, 3)
			g.outputs[0] = g.add("DEQUANTIZE", nil, []int32{1, 3}, 0)
			return g
		},
		"values of INT32 are not supported": func() *testGraph {
			g := newGraph(1, 3)
			x := g.add("LceQuantize", nil, []int32{1, 1}, 0)
			g.tensors[x].typ = schema.Int32
			g.outputs[0] = g.add("DEQUANTIZE", nil, []int32{1, 3}, x)
			return g
		},
		"input 0 is missing": func() *testGraph {
			g := unsigned()
			g.outputs[0] = g.add("DEQUANTIZE", nil, []int32{1, 3}, -1)
			return g
		},
		"values of UINT8 are supported only as inputs and outputs of a model": func() *testGraph {
			g := unsigned()
			g.outputs[0] = g.add("RELU", nil, []int32{1, 3}, 0)
			return g
		},
		"an output of INT32 is not supported": func() *testGraph {
			g := newGraph(1, 3)
			g.outputs[0] = g.add("QUANTIZE", nil, []int32{1, 3}, 0)
			g.tensors[g.outputs[0]].typ = schema.Int32
			return g
		},
		"an output of FLOAT32 for an input of INT8 is not supported": func() *testGraph {
			g := newGraph(1, 3)
			g.quantised(0, 1, 0)
			g.outputs[0] = g.add("RELU", nil, []int32{1, 3}, 0)
			return g
		},
	} {
		refused(t, of().encode(), want)
	}
}
