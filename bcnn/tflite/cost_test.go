package tflite

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// importCost imports a file and checks that what it takes is charged.
func importCost(t *testing.T, data []byte) costtest.Cost {
	t.Helper()
	limits, err := bcnn.Limits{}.WithDefaults()
	require.NoError(t, err)
	c := costtest.Measure(t, int64(len(data)), costtest.Ever, 16<<20, func(ctx context.Context) (int64, error) {
		b := budget.New(ctx, base)
		b.Grow(perByte * int64(len(data)))
		_, err := decodeWithin(b, data, Options{}, limits)
		require.NotErrorIs(t, err, try.ErrPanic)
		return b.Used(), err
	})
	require.LessOrEqual(t, c.Used, base+perByte*c.Bytes)
	return c
}

// exceeds says that a kind of file exceeds the budget.
const exceeds = "exceeds"

// kinds are files that ask for much work of a kind; ends is the error of large ones.
func kinds() []struct {
	name string
	n    int
	make func(n int) *testGraph
	ends string
} {
	relus := func(n int, name string) *testGraph {
		g := newGraph(1, 2, 2, 1)
		at := int32(0)
		for range n {
			at = g.add("RELU", nil, []int32{1, 2, 2, 1}, at)
			g.tensors[at].name = name
		}
		g.outputs[0] = at
		return g
	}
	return []struct {
		name string
		n    int
		make func(n int) *testGraph
		ends string
	}{
		{"a chain", 20, func(n int) *testGraph { return relus(n, "r") }, ""},
		{"long names", 20, func(n int) *testGraph { return relus(n, strings.Repeat("é", 100)) }, ""},
		{"names beyond the limit", 5, func(n int) *testGraph { return relus(n, strings.Repeat("\x01", 4096)) }, ""},
		{"unknown fields", 20, func(n int) *testGraph {
			g := relus(n, "r")
			g.extra = map[string]map[int]any{}
			for _, table := range []string{"Tensor", "Operator", "OperatorCode", "options"} {
				g.extra[table] = map[int]any{}
				for slot := range 40 {
					g.extra[table][20+slot] = 0
				}
			}
			for i := range g.operators {
				g.operators[i].name, g.operators[i].options = "ABS", map[int]any{}
			}
			return g
		}, ""},
		{"unknown operators", 20, func(n int) *testGraph {
			g := relus(n, "r")
			for i := range g.operators {
				g.operators[i].name = "COS"
			}
			return g
		}, "nodes stand in the way"},
		{"one list of inputs for many operators", 20, func(n int) *testGraph {
			g := newGraph(1, 2, 2, 1)
			g.shared = true
			inputs := slices.Repeat([]int32{0}, 100*n)
			for range n {
				g.outputs[0] = g.add("CONCATENATION", map[int]any{0: 3}, []int32{1, 2, 2, int32(100 * n)}, inputs...)
			}
			return g
		}, exceeds},
		{"one weight for many layers", 50, func(n int) *testGraph {
			g := newGraph(1, 1, 1, int32(n))
			w := g.floats([]int32{int32(n), int32(n)}, make([]float32, n*n)...)
			at := int32(0)
			for range n {
				at = g.add("FULLY_CONNECTED", map[int]any{}, []int32{1, int32(n)}, at, w, -1)
			}
			g.outputs[0] = at
			return g
		}, ""},
		{"constants that grow", 20, func(n int) *testGraph {
			g := newGraph(1, 2, 2, 1)
			row, column := g.floats([]int32{1, int32(n)}, make([]float32, n)...), g.floats([]int32{int32(n), 1}, make([]float32, n)...)
			c := g.add("ADD", nil, []int32{int32(n), int32(n)}, row, column)
			g.outputs[0] = g.add("ADD", nil, []int32{1, 2, 2, 1}, 0, c)
			return g
		}, "a constant of shape [2000 2000] does not fit values of 2×2×1"},
		{"many means", 20, func(n int) *testGraph {
			g := newGraph(1, 2, 2, 1)
			axis := g.ints(0)
			c := g.floats([]int32{100, int32(n)}, make([]float32, 100*n)...)
			for range n {
				m := g.add("MEAN", map[int]any{0: uint8(1)}, []int32{1, int32(n)}, c, axis)
				m = g.add("TRANSPOSE", nil, []int32{int32(n), 1}, m, g.ints(1, 0))
				g.outputs[0] = g.add("ADD", nil, []int32{1, 2, 2, 1}, 0, m)
			}
			return g
		}, "a constant of shape [2000 1] does not fit values of 2×2×1"},
		{"8-bit sums", 1, func(n int) *testGraph { return eightBits(n) }, ""},
		{"functions of 8-bit values", 1, func(n int) *testGraph {
			const channels = 200
			g := newGraph(1, 1, 1, channels)
			number := func(data []byte) int32 {
				return g.tensor(testTensor{
					name: "q", typ: schema.Int8, dims: []int32{1, 1, 1, channels}, data: data, scale: []float32{0.02}, zero: []int64{3},
				})
			}
			g.inputs[0] = number(nil)
			at := g.inputs[0]
			for i := range 8 * n {
				o := testOperator{name: []string{"ADD", "PRELU", "MUL", "HARD_SWISH"}[i%4], inputs: []int32{at}, outputs: []int32{number(nil)}}
				if i%4 < 3 {
					o.inputs = append(o.inputs, number(bytes.Repeat([]byte{byte(i), byte(3 * i)}, channels/2)))
				}
				g.operators = append(g.operators, o)
				at = o.outputs[0]
			}
			g.outputs[0] = at
			return g
		}, exceeds},
		{"parts of channels", 10, func(n int) *testGraph {
			g := newGraph(1, 2, 2, int32(n))
			var parts []int32
			for range n {
				parts = append(parts, g.tensor(testTensor{name: "p", dims: []int32{1, 2, 2, 1}}))
			}
			g.operators = []testOperator{{name: "SPLIT", inputs: []int32{g.ints(3), 0}, outputs: parts}}
			g.outputs[0] = g.add("CONCATENATION", map[int]any{0: -1}, []int32{1, 2, 2, int32(n)}, parts...)
			return g
		}, ""},
		{"paddings of channels", 1, func(n int) *testGraph {
			g := newGraph(1, 2, 2, 1)
			at, c := int32(0), int32(1)
			for range 20 * n {
				c += 60000
				at = g.add("PAD", nil, []int32{1, 2, 2, c}, at, g.ints(0, 0, 0, 0, 0, 0, 0, 60000))
			}
			g.outputs[0] = at
			return g
		}, exceeds},
	}
}

// eightBits is a binary convolution with an output of INT8.
func eightBits(n int) *testGraph {
	const out = 4
	g := newGraph(1, 3, 3, int32(n))
	g.tensors[0].typ = schema.Int32
	filter := g.tensor(testTensor{name: "w", typ: schema.Int32, dims: []int32{out, 3, 3, int32(n)}, data: make([]byte, 4*out*9*n)})
	numbers := g.floats([]int32{out}, 1, 1, 1, 1)
	y := g.tensor(testTensor{name: "y", typ: schema.Int8, dims: []int32{1, 1, 1, out}, scale: []float32{1}, zero: []int64{0}})
	g.operators = []testOperator{{
		name: "LceBconv2d", inputs: []int32{0, filter, numbers, numbers, -1}, outputs: []int32{y},
		custom: bconvOptions(int32(32*n), 1),
	}}
	g.outputs[0] = y
	return g
}

// bconvOptions are the options of LceBconv2d.
func bconvOptions(channels, padding int32) []byte {
	return flexMap([]string{
		"channels_in", "dilation_height_factor", "dilation_width_factor", "fused_activation_function", "pad_values", "padding",
		"stride_height", "stride_width",
	}, []int32{channels, 1, 1, 0, 0, padding, 1, 1})
}

// TestCost imports every kind of file in three sizes: what is done is charged, and what
// is charged does not grow faster than the file.
func TestCost(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			var c []costtest.Cost
			for _, times := range costtest.Sizes() {
				c = append(c, importCost(t, k.make(times*k.n).encode()))
				t.Log(c[len(c)-1])
			}
			if testing.Short() {
				return
			}
			switch last := c[2].Err; k.ends {
			case "":
				require.NoError(t, last)
			case exceeds:
				require.ErrorIs(t, last, budget.ErrExceeded)
			default:
				require.ErrorContains(t, last, k.ends)
				require.NotErrorIs(t, last, budget.ErrExceeded)
			}
		})
	}
}

// TestSteps counts the steps of TestCost and TestCostOfFiles.
func TestSteps(t *testing.T) { costtest.Instrumented(t, "^TestCost$|^TestCostOfFiles$") }

// TestCostOfFiles is TestCost for the files of LCE.
func TestCostOfFiles(t *testing.T) {
	for _, f := range lceFiles(t) {
		importCost(t, f.data)
	}
}
