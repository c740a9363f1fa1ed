package tflite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// charged is what the operators of a graph are charged, besides the reading of the file.
func charged(t *testing.T, g *testGraph) int64 {
	t.Helper()
	data := g.encode()
	limits, err := bcnn.Limits{}.WithDefaults()
	require.NoError(t, err)
	b := budget.New(t.Context(), base)
	m, err := schema.Decode(data, limits.Layers, b)
	require.NoError(t, err)
	before := b.Used()
	require.NoError(t, newImporter(m, Options{}, limits, b).run())
	return b.Used() - before
}

// Each more value, row or operator is charged what the cost model says: 4 for each float32
// that is allocated, 1 for each time that a loop runs, and what these are estimated at.
// Whoever changes a charge changes it here.
func TestCharges(t *testing.T) {
	const floats = 4 + 1           // of a constant of the file
	const room = 4 + 1             // a constant that is computed
	const numbers = 8              // of a layer
	const list = 8 + 1             // of positions
	const table = 6 * 256          // of 8-bit values
	const steps = 8 * steps8       // thresholds
	const tensorTable = 256 + 3*24 // for each look at the table of a tensor called neg
	image := func(n int32) *testGraph { return newGraph(1, n, 3, 2) }
	zeros := func(g *testGraph, dims ...int32) int32 { return g.floats(dims, make([]float32, sizeOf(dims))...) }
	quantised := func(n int32, name string, options map[int]any, more ...func(g *testGraph) int32) *testGraph {
		g := newGraph(1, 1, 1, n)
		g.quantised(0, 0.5, 0)
		inputs := []int32{0}
		for _, f := range more {
			inputs = append(inputs, f(g))
		}
		g.outputs[0] = g.add(name, options, []int32{1, 1, 1, n}, inputs...)
		g.quantised(g.outputs[0], 0.5, 0)
		return g
	}
	bytes := func(n int32) func(g *testGraph) int32 {
		return func(g *testGraph) int32 {
			k := g.tensor(testTensor{name: "k", dims: []int32{n}, data: slices.Repeat([]byte{3}, int(n))})
			g.quantised(k, 0.5, 0)
			return k
		}
	}
	for _, c := range []struct {
		name string
		make func(n int32) *testGraph
		each int64 // for one more
	}{
		{"a constant", func(n int32) *testGraph {
			return folded(n, func(g *testGraph) int32 { return zeros(g, n) })
		}, floats + numbers},
		{"a function of a constant", func(n int32) *testGraph {
			return folded(n, func(g *testGraph) int32 { return g.add("NEG", nil, nil, zeros(g, n)) })
		}, floats + room + numbers},
		{"a sum of constants", func(n int32) *testGraph {
			return folded(3*n, func(g *testGraph) int32 { return g.add("ADD", nil, nil, zeros(g, n, 1), zeros(g, 3)) })
		}, floats + 3*room + 3*numbers},
		{"a transposition", func(n int32) *testGraph {
			return folded(2*n, func(g *testGraph) int32 { return g.add("TRANSPOSE", nil, nil, zeros(g, n, 2), g.ints(1, 0)) })
		}, 2*floats + 2*room + 2*numbers},
		{"a mean", func(n int32) *testGraph {
			return folded(n, func(g *testGraph) int32 { return g.add("MEAN", nil, nil, zeros(g, n, 3), g.ints(1)) })
		}, 3*floats + 8 + 3 + room + numbers},
		{"channels of PAD", func(n int32) *testGraph {
			g := image(2)
			g.outputs[0] = g.add("PAD", nil, []int32{1, 2, 3, 2 + n}, 0, g.ints(0, 0, 0, 0, 0, 0, 0, n))
			return g
		}, 8},
		{"rows of PADV2", func(n int32) *testGraph {
			g := image(2)
			g.outputs[0] = g.add("PADV2", nil, []int32{1, 2 + n, 3, 2}, 0, g.ints(0, 0, n, 0, 0, 0, 0, 0), g.floats(nil, 1))
			return g
		}, list},
		{"rows of MIRROR_PAD", func(n int32) *testGraph {
			g := image(n)
			g.outputs[0] = g.add("MIRROR_PAD", nil, []int32{1, 1 + n, 3, 2}, 0, g.ints(0, 0, 1, 0, 0, 0, 0, 0))
			return g
		}, 3 * 16},
		{"rows of a resized image", func(n int32) *testGraph {
			g := image(2)
			g.outputs[0] = g.add("RESIZE_BILINEAR", nil, []int32{1, n, 5, 2}, 0, g.ints(n, 5))
			return g
		}, 32},
		{"columns of a resized image", func(n int32) *testGraph {
			g := image(2)
			g.outputs[0] = g.add("RESIZE_NEAREST_NEIGHBOR", nil, []int32{1, 5, n, 2}, 0, g.ints(5, n))
			return g
		}, 32},
		{"rows of DEPTH_TO_SPACE", func(n int32) *testGraph {
			g := newGraph(1, n, 3, 4)
			g.outputs[0] = g.add("DEPTH_TO_SPACE", map[int]any{0: 2}, []int32{1, 2 * n, 6, 1}, 0)
			return g
		}, 2 * 8},
		{"columns of DEPTH_TO_SPACE", func(n int32) *testGraph {
			g := newGraph(1, 3, n, 4)
			g.outputs[0] = g.add("DEPTH_TO_SPACE", map[int]any{0: 2}, []int32{1, 6, 2 * n, 1}, 0)
			return g
		}, 2 * 8},
		{"channels of SLICE", func(n int32) *testGraph {
			g := newGraph(1, 2, 2, n+1)
			g.outputs[0] = g.add("SLICE", nil, []int32{1, 2, 2, n}, 0, g.ints(0, 0, 0, 1), g.ints(1, 2, 2, n))
			return g
		}, 8},
		{"rows of SLICE", func(n int32) *testGraph {
			g := newGraph(1, n+1, 2, 2)
			g.outputs[0] = g.add("SLICE", nil, []int32{1, n, 2, 2}, 0, g.ints(0, 1, 0, 0), g.ints(1, n, 2, 2))
			return g
		}, list},
		{"inputs of CONCATENATION", func(n int32) *testGraph {
			g := newGraph(1, 2)
			g.outputs[0] = g.add("CONCATENATION", map[int]any{0: 1}, []int32{1, 2 * n}, make([]int32, n)...)
			return g
		}, tensorUnits + tensorUnits},
		{"rows of CONCATENATION", func(n int32) *testGraph {
			g := newGraph(1, n, 3, 2)
			g.outputs[0] = g.add("CONCATENATION", map[int]any{0: 1}, []int32{1, 2 * n, 3, 2}, 0, 0)
			return g
		}, 2 * list},
		{"parts of SPLIT", func(n int32) *testGraph {
			g := newGraph(1, n)
			var parts []int32
			for range n {
				parts = append(parts, g.tensor(testTensor{name: "p", dims: []int32{1, 1}}))
			}
			g.operators = []testOperator{{name: "SPLIT", inputs: []int32{g.ints(1), 0}, outputs: parts}}
			g.outputs = parts[:1]
			return g
		}, 3 * tensorUnits}, // a tensor, an output, and what becomes of it
		{"operators in a row", func(n int32) *testGraph {
			g := newGraph(1, 1)
			g.outputs[0] = 0
			for range n {
				g.outputs[0] = g.add("NEG", nil, []int32{1, 1}, g.outputs[0])
			}
			return g
		}, 4*tensorUnits + operatorUnits + layerUnits + 3*tensorTable + int64(len("neg_11"))},
		{"outputs", func(n int32) *testGraph {
			g := newGraph(1, 1)
			g.outputs = nil
			for range n {
				g.outputs = append(g.outputs, g.add("NEG", nil, []int32{1, 1}, 0))
			}
			return g
		}, 4*tensorUnits + operatorUnits + layerUnits + 4*tensorTable + int64(len("neg_11")) + (30+10)*operatorUnits},
		{"inputs", func(n int32) *testGraph {
			g := newGraph(1, 1)
			for range n {
				g.inputs = append(g.inputs, g.tensor(testTensor{name: "neg", dims: []int32{1, 1}}))
			}
			g.outputs[0] = g.add("NEG", nil, []int32{1, 1}, 0)
			return g
		}, tensorUnits + operatorUnits + tensorTable},
		{"constants of channels of MAXIMUM", func(n int32) *testGraph {
			g := newGraph(1, n)
			g.outputs[0] = g.add("MAXIMUM", nil, []int32{1, n}, 0, zeros(g, n))
			return g
		}, floats + 4},
		{"constants of pixels", func(n int32) *testGraph {
			g := newGraph(1, n, 3, 1)
			g.outputs[0] = g.add("MUL", nil, []int32{1, n, 3, 1}, 0, zeros(g, n, 3, 1))
			return g
		}, 3*floats + 3},
		{"channels of signs", func(n int32) *testGraph {
			g := newGraph(1, 64*n)
			x := g.put("bits", []int32{1, 64 * n}, 0)
			g.outputs[0] = g.add("FULLY_CONNECTED", nil, []int32{1, 2}, x, g.floats([]int32{2, 64 * n}, slices.Repeat(of(1), int(128*n))...))
			return g
		}, 2 * 64 * floats}, // which are not yet bits
		{"taps of DEPTHWISE_CONV_2D", func(n int32) *testGraph {
			g := newGraph(1, n, 1, 2)
			g.outputs[0] = g.add("DEPTHWISE_CONV_2D", map[int]any{0: uint8(1), 1: 1, 2: 1}, []int32{1, 1, 1, 2}, 0, zeros(g, 1, n, 1, 2))
			return g
		}, 2*floats + 2*(8+1)},
		{"filters of LceBconv2d", func(n int32) *testGraph {
			g := bconv(64, 2, bconvOptions(64, 1))
			g.tensors[2].dims[0], g.tensors[2].data = n, make([]byte, 4*9*2*n)
			g.operators[0].inputs = []int32{0, 2, zeros(g, n), -1, -1}
			g.operators[0].inputs[3] = g.operators[0].inputs[2]
			g.tensors[g.outputs[0]].dims = []int32{1, 1, 1, n}
			return g
		}, 9*(8+1+2) + floats},
		{"options of LceBconv2d", func(n int32) *testGraph {
			g := bconv(64, 2, nil)
			g.operators[0].custom = append(make([]byte, 4*n), bconvOptions(64, 1)...)
			return g
		}, 2 * 4},
		{"filters of LceBconv2d of INT8", func(n int32) *testGraph {
			g := bconv(64, 2, bconvOptions(64, 1))
			g.tensors[2].dims[0], g.tensors[2].data = n, make([]byte, 4*9*2*n)
			g.operators[0].inputs = []int32{0, 2, zeros(g, n), -1, -1}
			g.operators[0].inputs[3] = g.operators[0].inputs[2]
			g.tensors[g.outputs[0]].dims = []int32{1, 1, 1, n}
			g.quantised(g.outputs[0], 1, 0)
			return g
		}, 9*(8+1+2) + floats + steps + 4*(2*9*64+1)},
		{"falling filters of LceBconv2d of INT8", func(n int32) *testGraph {
			g := bconv(64, 2, bconvOptions(64, 1))
			g.tensors[2].dims[0], g.tensors[2].data = n, make([]byte, 4*9*2*n)
			k := g.floats([]int32{n}, slices.Repeat(of(-1), int(n))...)
			g.operators[0].inputs = []int32{0, 2, k, k, -1}
			g.tensors[g.outputs[0]].dims = []int32{1, 1, 1, n}
			g.quantised(g.outputs[0], 1, 0)
			return g
		}, 9*(8+1+2) + floats + steps + 4*(2*9*64+1) + 9},
		{"slopes of PRELU of INT8", func(n int32) *testGraph { return quantised(n, "PRELU", nil, bytes(n)) }, 8 + table + steps},
		{"factors of MUL of INT8", func(n int32) *testGraph { return quantised(n, "MUL", nil, bytes(n)) }, 8 + table + steps},
		{"outputs of FULLY_CONNECTED of INT8", func(n int32) *testGraph {
			g := newGraph(1, 3)
			g.quantised(0, 0.5, 0)
			w := g.tensor(testTensor{name: "w", dims: []int32{n, 3}, data: make([]byte, 3*n)})
			g.quantised(w, 0.5, 0)
			g.outputs[0] = g.add("FULLY_CONNECTED", nil, []int32{1, n}, 0, w, -1)
			g.quantised(g.outputs[0], 0.5, 0)
			return g
		}, 3*2 + steps + 3 + 32*steps8}, // copies, thresholds, the range of sums, and searches
		{"inputs of FULLY_CONNECTED of INT8", func(n int32) *testGraph {
			g := newGraph(1, n)
			g.quantised(0, 0.5, 0)
			w := g.tensor(testTensor{name: "w", dims: []int32{2, n}, data: make([]byte, 2*n)})
			g.quantised(w, 0.5, 0)
			g.outputs[0] = g.add("FULLY_CONNECTED", nil, []int32{1, 2}, 0, w, -1)
			g.quantised(g.outputs[0], 0.5, 0)
			return g
		}, 2*2 + 2},
		{"operators that nothing needs", func(n int32) *testGraph {
			g := newGraph(1, 3)
			for range n {
				g.outputs = append(g.outputs, g.add("NEG", nil, []int32{1, 3}, 0))
			}
			g.outputs = g.outputs[1:2]
			return g
		}, 3*tensorUnits + tensorUnits},
	} {
		t.Run(c.name, func(t *testing.T) {
			few, more := charged(t, c.make(10)), charged(t, c.make(30))
			require.Equal(t, c.each, (more-few)/20, fmt.Sprint(more-few))
			require.Zero(t, (more-few)%20)
		})
	}
}
