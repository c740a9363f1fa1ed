package tflite

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// loading are models, and what is judged of their import.
var loading = costtest.Format[[]byte]{
	Base: base, PerByte: perByte, Steps: 3, Soon: 16 << 20, Kinds: kinds(),
	Draw: func(program []byte) []byte { return grow(program).encode() },
	Read: func(t testing.TB, ctx context.Context, data []byte) (size, used int64, err error) {
		limits, err := bcnn.Limits{}.WithDefaults()
		require.NoError(t, err)
		b := budget.New(ctx, base)
		b.Grow(perByte * int64(len(data)))
		_, err = decodeWithin(b, data, Options{}, limits)
		require.NotErrorIs(t, err, try.ErrPanic)
		return int64(len(data)), b.Used(), err
	},
}

// kinds are files, each of which shows that a charge is missing that drawn files and TestCharges do
// not show.
func kinds() []costtest.Kind[[]byte] {
	relus := func(n int) *testGraph {
		g := newGraph(1, 2, 2, 1)
		at := int32(0)
		for range n {
			at = g.add("RELU", nil, []int32{1, 2, 2, 1}, at)
		}
		g.outputs[0] = at
		return g
	}
	return []costtest.Kind[[]byte]{
		{Name: "a chain", N: 20, Make: func(n int) []byte { return relus(n).encode() }},
		{Name: "operators that ONNX may have", N: 20, Ends: "tf2onnx", Make: func(n int) []byte {
			g := relus(n)
			for i := range g.operators {
				g.operators[i].name, g.operators[i].options = "TOPK_V2", nil
			}
			return g.encode()
		}},
		{Name: "unknown fields", N: 20, Make: func(n int) []byte {
			g := relus(n)
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
			return g.encode()
		}},
		{Name: "one list of inputs for many operators", N: 20, Ends: costtest.Exceeds, Make: func(n int) []byte {
			g := newGraph(1, 2, 2, 1)
			g.shared = true
			inputs := slices.Repeat([]int32{0}, 100*n)
			for range n {
				g.outputs[0] = g.add("CONCATENATION", map[int]any{0: 3}, []int32{1, 2, 2, int32(100 * n)}, inputs...)
			}
			return g.encode()
		}},
		{Name: "functions of 8-bit values", N: 1, Ends: costtest.Exceeds, Make: func(n int) []byte {
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
			return g.encode()
		}},
	}
}

// bconvOptions are the options of LceBconv2d.
func bconvOptions(channels, padding int32) []byte {
	return flexMap([]string{
		"channels_in", "dilation_height_factor", "dilation_width_factor", "fused_activation_function", "pad_values", "padding",
		"stride_height", "stride_width",
	}, []int32{channels, 1, 1, 0, 0, padding, 1, 1})
}

// TestCost imports every kind of file, and the files of LCE.
func TestCost(t *testing.T) {
	loading.Test(t)
	for _, file := range lceFiles(t) {
		loading.Judge(t, file.data)
	}
}

// TestInterrupt ends the context at different places of imports.
func TestInterrupt(t *testing.T) { loading.Interrupt(t) }

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading.Units(t) }

// FuzzCost builds graphs by structure, as a program of bytes says.
func FuzzCost(f *testing.F) { loading.Fuzz(f, 500) }
