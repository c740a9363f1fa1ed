package onnx

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestHalves computes in float32 what a file has in FLOAT16, on numbers that both hold.
func TestHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 92))
	half := func(t testTensor) testTensor { t.typ = pb.Float16; return t }
	odd := testNode{op: "Cast", name: "odd", in: []string{"x"}, out: []string{"w as FLOAT"}, attrs: map[string]any{"to": int(pb.Float16)}}
	weights := half(randomTensor(r, "w", []int{4, 3, 2, 2}, -1, 0.5, 0.25))
	large := half(randomTensor(r, "large", []int{4, 3, 2, 2}, -300, 300))
	for name, nodes := range map[string][]testNode{
		"any names": {odd, {op: "Conv", name: "conv", in: []string{"w as FLOAT", "w"}, out: []string{"a"}}, op("Conv", "h w", "b"), op("Add", "a b", "c"), op("Cast", "c", "y", "to", int(pb.Float))},
		// A constant that is cast to the type of a value is of the type in the file.
		"CastLike": {op("Conv", "h w", "a"), op("CastLike", "two a", "b"), op("Mul", "b half", "c"), op("Add", "a c", "d"), op("Cast", "d", "y", "to", int(pb.Float))},
		// The squares of ±300 are no numbers of FLOAT16.
		// An input that is left out stands before one that is there.
		"Clip":               {op("Conv", "h w", "a"), op("Clip", "a _ half", "b"), op("Conv", "b sums", "c"), op("Cast", "c", "y", "to", int(pb.Float))},
		"RMSNormalization":   {op("RMSNormalization", "large half", "n", "epsilon", 0.0, "axis", 1), op("Conv", "h n", "a"), op("Cast", "a", "y", "to", int(pb.Float))},
		"BatchNormalization": {op("BatchNormalization", "large ones zeros zeros squares", "n", "epsilon", 0.0), op("Conv", "h n", "a"), op("Cast", "a", "y", "to", int(pb.Float))},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 5, 4), output: "y", inits: []testTensor{weights, number("two", 2), half(number("half", 0.5)), large, half(randomTensor(r, "sums", []int{2, 4, 1, 1}, -1, 0.5)),
				half(floats("ones", []int{3}, 1, 1, 1)), half(floats("zeros", []int{3}, 0, 0, 0)), floats("squares", []int{3}, 90000, 90000, 90000)}}
			m.nodes = append([]testNode{op("Cast", "x", "h", "to", int(pb.Float16))}, nodes...)
			compare(t, r, m, Options{}, false)
		})
	}
}

// TestCastsRound has values that are cast to a type of 16 bits and back: they are rounded, unless the
// type holds them.
func TestCastsRound(t *testing.T) {
	r := rand.New(rand.NewPCG(93, 94))
	values := []float32{0, 1, 1 + 0x1p-11, 1 + 0x1.8p-10, 0.1, -0.3, 2049, 65504, 65519, 65520, -65520, 1e30, -0x1.8p-25, 0x1p-25, 0x1.1p-25, 0x1p-140,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for range 100 {
		values = append(values, float32(math.Ldexp(r.Float64()-0.5, r.IntN(60)-40)))
	}
	c := len(values)
	sign := []testNode{op("Sign", "x", "s")}
	levels := []testNode{op("Clip", "x minus one", "c"), op("Round", "c", "s")}
	for _, test := range []struct {
		name     string
		typ      pb.DataType
		nodes    []testNode // from x to s
		from     string
		to, back []testNode
		rounds   bool
	}{
		{"FLOAT16", pb.Float16, nil, "x", nil, nil, true},
		{"BFLOAT16", pb.BFloat16, nil, "x", nil, nil, true},
		{"FLOAT16 of signs", pb.Float16, sign, "s", nil, nil, false},
		{"FLOAT16 of levels", pb.Float16, levels, "s", nil, nil, false},
		{"BFLOAT16 of sums of signs", pb.BFloat16, append(sign, op("Add", "s s", "s2")), "s2", nil, nil, false},
		{"FLOAT16 like a constant", pb.Float16, nil, "x", []testNode{op("CastLike", "x half", "h")}, []testNode{op("CastLike", "h one", "y")}, true},
		{"twice", pb.Float16, []testNode{op("Cast", "x", "h0", "to", int(pb.Float16)), op("Relu", "h0", "s")}, "s", nil, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			to, back := test.to, test.back
			if to == nil {
				to, back = []testNode{op("Cast", test.from, "h", "to", int(test.typ))}, []testNode{op("Cast", "h", "y", "to", int(pb.Float))}
			}
			half := number("half", 0.5)
			half.typ = pb.Float16
			m := testModel{input: testInput{"x", pb.Float, []any{1, c}}, output: "y", opset: 15, inits: []testTensor{number("one", 1), number("minus", -1), half}}
			m.nodes = slices.Concat(test.nodes, to, back)
			net, report, err := Decode(t.Context(), m.encode(), Options{})
			require.NoError(t, err)
			require.Empty(t, report.Deviations)
			functions := 0
			for _, l := range net.Layers {
				if _, ok := l.Op.(bcnn.Function); ok {
					functions++
				}
			}
			require.Equal(t, test.rounds, functions > 0)
			if !test.rounds {
				return
			}
			plan, err := lower.Network(t.Context(), net, lower.Options{})
			require.NoError(t, err)
			in := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
			copy(in.F32, values)
			out, err := ref.Run(t.Context(), plan, in, nil)
			require.NoError(t, err)
			for i, x := range values {
				e := eval.Scalar(test.typ, 0)
				e.Set(0, float64(x))
				want := e.At(0)
				if test.name == "twice" && !(want > 0) {
					continue // of NaN and of what is not above 0 Relu makes what it makes
				}
				if math.IsNaN(want) {
					require.True(t, out.F32[i] != out.F32[i])
					continue
				}
				require.Equal(t, want+0, float64(out.F32[i])+0, "%v", x)
			}
		})
	}
}

// What is computed in a type of 16 bits, and not only cast to it, is not rounded: the report says so.
func TestUnrounded(t *testing.T) {
	half := number("half", 0.5)
	half.typ = pb.Float16
	m := testModel{input: image(3, 4, 4), output: "y", inits: []testTensor{half}, nodes: []testNode{
		op("Cast", "x", "h", "to", int(pb.Float16)), op("Relu", "h", "r"), op("Mul", "r half", "a"), op("MaxPool", "a", "p", "kernel_shape", []int{2, 2}), op("Add", "p half", "b"), op("Cast", "b", "y", "to", int(pb.Float)),
	}}
	net, report, err := Decode(t.Context(), m.encode(), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"2 tensors of FLOAT16 are computed in float32: without the file's rounding of each value by up to 0.00049 of it, and with numbers above 65504, which are infinite in the file"}, report.Deviations)
	require.Equal(t, report.Deviations, net.Deviations)
}
