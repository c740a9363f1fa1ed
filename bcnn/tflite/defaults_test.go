package tflite

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Options that a file leaves out have the values of the schema: padding is SAME, there is
// no activation, dilations are 1, and slopes are 0.
func TestOptionsLeftOut(t *testing.T) {
	x := of(1, -2, 3, -4)
	row := []int32{1, 1, 4, 1}
	for _, c := range []struct {
		name    string
		options map[int]any
		inputs  func(g *testGraph) []int32
		out     []int32
		want    []float32
	}{
		{"CONV_2D", map[int]any{1: 1, 2: 1}, func(g *testGraph) []int32 {
			return []int32{0, g.floats([]int32{1, 1, 3, 1}, 1, 10, 100)}
		}, row, of(-190, 281, -372, -37)},
		{"DEPTHWISE_CONV_2D", map[int]any{1: 1, 2: 1}, func(g *testGraph) []int32 {
			return []int32{0, g.floats([]int32{1, 1, 3, 1}, 1, 10, 100)}
		}, row, of(-190, 281, -372, -37)},
		{"TRANSPOSE_CONV", map[int]any{1: 2, 2: 1}, func(g *testGraph) []int32 {
			return []int32{g.ints(1, 1, 8, 1), g.floats([]int32{1, 1, 2, 1}, 1, 10), 0}
		}, []int32{1, 1, 8, 1}, of(1, 10, -2, -20, 3, 30, -4, -40)},
		{"MAX_POOL_2D", map[int]any{1: 1, 2: 1, 3: 2, 4: 1}, nil, row, of(1, 3, 3, -4)},
		{"AVERAGE_POOL_2D", map[int]any{1: 1, 2: 1, 3: 2, 4: 1}, nil, row, of(-0.5, 0.5, -0.5, -4)},
		{"LEAKY_RELU", nil, nil, row, of(1, 0, 3, 0)},
		{"FULLY_CONNECTED", nil, func(g *testGraph) []int32 { return []int32{0, g.floats([]int32{1, 4}, 1, 2, 3, 4)} }, []int32{1, 1}, of(-10)},
		{"ADD", nil, func(*testGraph) []int32 { return []int32{0, 0} }, row, of(2, -4, 6, -8)},
		{"SUB", nil, func(g *testGraph) []int32 { return []int32{0, g.floats(nil, 1)} }, row, of(0, -3, 2, -5)},
		{"MUL", nil, func(g *testGraph) []int32 { return []int32{0, g.floats(nil, 2)} }, row, of(2, -4, 6, -8)},
		{"MUL", nil, func(*testGraph) []int32 { return []int32{0, 0} }, row, of(1, 4, 9, 16)},
		{"CONCATENATION", map[int]any{0: 3}, func(*testGraph) []int32 { return []int32{0, 0} }, []int32{1, 1, 4, 2}, of(1, 1, -2, -2, 3, 3, -4, -4)},
		{"STRIDED_SLICE", nil, func(g *testGraph) []int32 {
			return []int32{0, g.ints(0, 0, 1, 0), g.ints(1, 1, 3, 1), g.ints(1, 1, 1, 1)}
		}, []int32{1, 1, 2, 1}, of(-2, 3)},
		{"MEAN", nil, func(g *testGraph) []int32 { return []int32{0, g.ints(2)} }, []int32{1, 1, 1}, of(-0.5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGraph(row...)
			inputs := []int32{0}
			if c.inputs != nil {
				inputs = c.inputs(g)
			}
			g.outputs[0] = g.add(c.name, c.options, c.out, inputs...)
			_, y := runGraph(t, g, x...)
			require.Equal(t, c.want, y)
		})
	}
	for want, name := range map[string]string{
		"a concatenation along the batch": "CONCATENATION",
		"a block size of 0":               "DEPTH_TO_SPACE",
		"kernel 0×0, stride 0×0, dilat":   "AVERAGE_POOL_2D",
	} {
		refused(t, with(name, nil, []int32{1, 4, 4, 2}, func(_ *testGraph, o *testOperator) {
			if name == "CONCATENATION" {
				o.inputs = []int32{0, 0}
			}
		}).encode(), want)
	}
}

// Activations of every operator that fuses one.
func TestFusedActivations(t *testing.T) {
	x := of(0.5, -0.5, 3, -3, 9, -9)
	acts := []func(v float32) float32{
		func(v float32) float32 { return v }, func(v float32) float32 { return max(v, 0) },
		func(v float32) float32 { return min(max(v, -1), 1) }, func(v float32) float32 { return min(max(v, 0), 6) },
	}
	one := func(g *testGraph) []int32 { return []int32{0, g.floats([]int32{1, 1, 1, 1}, 1)} }
	row := []int32{1, 1, 6, 1}
	for _, c := range []struct {
		name   string
		slot   int // of the activation
		more   map[int]any
		inputs func(g *testGraph) []int32
		f      func(v float32) float32
	}{
		{"CONV_2D", 3, map[int]any{1: 1, 2: 1}, one, acts[0]},
		{"DEPTHWISE_CONV_2D", 4, map[int]any{1: 1, 2: 1}, one, acts[0]},
		{"TRANSPOSE_CONV", 3, map[int]any{1: 1, 2: 1}, func(g *testGraph) []int32 { return []int32{g.ints(row...), one(g)[1], 0} }, acts[0]},
		{"MAX_POOL_2D", 5, map[int]any{1: 1, 2: 1, 3: 1, 4: 1}, func(*testGraph) []int32 { return []int32{0} }, acts[0]},
		{"AVERAGE_POOL_2D", 5, map[int]any{1: 1, 2: 1, 3: 1, 4: 1}, func(*testGraph) []int32 { return []int32{0} }, acts[0]},
		{"ADD", 0, nil, func(*testGraph) []int32 { return []int32{0, 0} }, func(v float32) float32 { return v + v }},
		{"ADD", 0, nil, one, func(v float32) float32 { return v + 1 }},
		{"SUB", 0, nil, one, func(v float32) float32 { return v - 1 }},
		{"SUB", 0, nil, func(g *testGraph) []int32 { return []int32{one(g)[1], 0} }, func(v float32) float32 { return 1 - v }},
		{"MUL", 0, nil, func(*testGraph) []int32 { return []int32{0, 0} }, func(v float32) float32 { return v * v }},
		{"MUL", 0, nil, func(g *testGraph) []int32 { return []int32{0, g.floats(nil, -2)} }, func(v float32) float32 { return -2 * v }},
		{"MUL", 0, nil, func(g *testGraph) []int32 { return []int32{g.put("bits", row, 0), g.floats(nil, 2)} }, func(v float32) float32 { return float32(math.Copysign(2, float64(v))) }},
		{"CONCATENATION", 1, map[int]any{0: 3}, func(g *testGraph) []int32 { return []int32{g.add("NEG", nil, row, 0)} }, func(v float32) float32 { return -v }},
	} {
		for kind, act := range acts {
			g := newGraph(row...)
			options := map[int]any{c.slot: uint8(kind)}
			for slot, v := range c.more {
				options[slot] = v
			}
			g.outputs[0] = g.add(c.name, options, row, c.inputs(g)...)
			_, y := runGraph(t, g, x...)
			for i, v := range x {
				require.Equal(t, act(c.f(v)), y[i], "%s %d of %v", c.name, kind, v)
			}
		}
	}
}

// Borders are joined as they are.
func TestConcatenationOfBorders(t *testing.T) {
	g := newGraph(1, 1, 2, 1)
	wide := []int32{1, 1, 4, 1}
	padded := g.add("PAD", nil, wide, 0, g.ints(0, 0, 0, 0, 1, 1, 0, 0))
	g.outputs[0] = g.add("CONCATENATION", map[int]any{0: 3}, []int32{1, 1, 4, 2}, padded, padded)
	_, y := runGraph(t, g, 2, -3)
	require.Equal(t, of(0, 0, 2, 2, -3, -3, 0, 0), y)
}
