package tflite

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// int8Case is a file with 8-bit tensors, inputs, and what LCE's interpreter makes of them.
type int8Case struct {
	name string
	data []byte
	in   []*npy.Array
	out  *npy.Array
}

// int8Cases reads the archive that train/lce_int8.py writes.
func int8Cases(t testing.TB) []int8Case {
	t.Helper()
	z, err := zip.OpenReader("testdata/int8.zip")
	require.NoError(t, err)
	defer z.Close()
	var list []int8Case
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		name, kind, _ := strings.Cut(f.Name, ".")
		if kind == "tflite" {
			list = append(list, int8Case{name: name, data: content})
			continue
		}
		c := &list[len(list)-1]
		require.Equal(t, c.name, name)
		if a := readArray(t, openArrays(t, content), ""); kind == "out.npy" {
			c.out = a
		} else {
			c.in = append(c.in, a)
		}
	}
	return list
}

// runAll executes a network on the inputs of a file.
func runAll(t *testing.T, net *bcnn.Network, report *Report, in []*npy.Array) []float32 {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	var x []bcnn.Tensor
	for i, a := range in {
		x = append(x, bcnn.Tensor{DType: net.Inputs[i].DType, N: 1, Shape: net.Inputs[i].Shape})
		if report.Inputs[i].Type == "INT8" {
			x[i].U8 = report.Inputs[i].Bytes(numbersOf[int8](t, a, "int8"))
		} else {
			x[i].F32 = numbersOf[float32](t, a, "float32")
		}
	}
	y, err := ref.RunAll(t.Context(), plan, x, nil)
	require.NoError(t, err)
	return y[0].F32
}

// Integers are those of LCE's interpreter, bit for bit, and a file for which they may
// not be says so.
func TestInt8(t *testing.T) {
	deviations := map[string]string{
		"op_log_softmax": "at most 1", "op_softmax": "at most 1", "net_quick_int8": "at most 1", "net_quick_float32": "at most 1",
	}
	for _, c := range int8Cases(t) {
		t.Run(c.name, func(t *testing.T) {
			net, report, err := Decode(t.Context(), c.data, Options{Name: c.name})
			require.NoError(t, err)
			if want := deviations[c.name]; want != "" {
				require.Len(t, report.Deviations, 1, "%q", report.Deviations)
				require.Contains(t, report.Deviations[0], want)
			} else {
				require.Empty(t, report.Deviations)
			}
			y := runAll(t, net, report, c.in)
			if _, softmax := net.Layers[len(net.Layers)-1].Op.(bcnn.Softmax); softmax {
				requireShares(t, net, report.Outputs[0], y, c.out)
				return
			}
			if report.Outputs[0].Type == "FLOAT32" {
				require.LessOrEqual(t, distance(t, y, numbersOf[float32](t, c.out, "float32")), 1e-6)
				return
			}
			require.Equal(t, fmt.Sprint(numbersOf[int8](t, c.out, "int8")), fmt.Sprint(report.Outputs[0].Int8(y)))
		})
	}
}

// requireShares compares the probabilities of logits, or their logarithms, with the numbers of a
// file, of which integers may differ by 1.
func requireShares(t *testing.T, net *bcnn.Network, out Tensor, logits []float32, want *npy.Array) {
	t.Helper()
	of, delta := bcnn.Probabilities, 1./256
	if net.Layers[len(net.Layers)-1].Op.(bcnn.Softmax).Log {
		of, delta = bcnn.LogProbabilities, 1e-5
	}
	shares := make([]float32, len(logits))
	for i, p := range of(logits) {
		shares[i] = float32(p)
	}
	if want.Type() != "int8" {
		require.Equal(t, "FLOAT32", out.Type)
		require.InDeltaSlice(t, numbersOf[float32](t, want, "float32"), shares, delta)
		return
	}
	require.Equal(t, "INT8", out.Type)
	require.InDeltaSlice(t, numbersOf[int8](t, want, "int8"), out.Int8(shares), 1)
	ports, err := arrays.PortsOf(net)
	require.NoError(t, err)
	ports.Outputs[0].Results(shares)
	array := ports.Outputs[0].Array(1, shares)
	require.Equal(t, "int8", array.Type())
	require.InDeltaSlice(t, numbersOf[int8](t, want, "int8"), numbersOf[int8](t, array, "int8"), 1)
}

// int8Graph is a graph of one operator on INT8 values with two inputs, the second one
// constant where it has data.
func int8Graph(name string, in, out []int32, scale float32, second testTensor) *testGraph {
	g := newGraph(in...)
	second.name, second.typ = "second", schema.Int8
	i := g.tensor(second)
	if second.data == nil {
		g.inputs = append(g.inputs, i)
	}
	g.tensors[0].typ, g.tensors[0].scale, g.tensors[0].zero = schema.Int8, []float32{0.02}, []int64{-128}
	g.tensors[1] = testTensor{name: "y", typ: schema.Int8, dims: out, scale: []float32{scale}, zero: []int64{3}}
	g.operators = []testOperator{{name: name, inputs: []int32{0, i}, outputs: []int32{1}}}
	return g
}

// Sums that neither float32 nor int32 holds are refused, and changes of the output at
// sums that float32 does not hold.
func TestInt8Sums(t *testing.T) {
	dense := func(n int, scale float32, zero int64) []byte {
		weights := testTensor{dims: []int32{1, int32(n)}, data: bytes.Repeat([]byte{127}, n), scale: []float32{0.01}, zero: []int64{zero}}
		return int8Graph("FULLY_CONNECTED", []int32{1, int32(n)}, []int32{1, 1}, scale, weights).encode()
	}
	refused(t, dense(70000, 1, 0), "sums of 8-bit products may reach 2266950000 in channel 0")
	refused(t, dense(1200, 40, 0), "the output of channel 0 changes between sums of 0 and 38862000, but float32 holds all integers only up to 16777216")
	refused(t, dense(1200, 1, 1), "its weights have scale 0.01 and zero point 1, want a finite scale and zero point 0")
	_, _, err := Decode(t.Context(), dense(1200, 25, 0), Options{})
	require.NoError(t, err)
}

// A sum whose last value the interpreter's kernels round otherwise is named.
func TestInt8Deviations(t *testing.T) {
	second := testTensor{dims: []int32{1, 17}, scale: []float32{0.03}, zero: []int64{7}}
	_, report, err := Decode(t.Context(), int8Graph("ADD", []int32{1, 17}, []int32{1, 17}, 0.04, second).encode(), Options{})
	require.NoError(t, err)
	require.NotEmpty(t, report.Deviations)
	require.Contains(t, report.Deviations[0], "operator 0 (ADD): the last 1 of 17 values may differ by at most 1, for ")
	require.Contains(t, report.Deviations[0], " of the 65536 pairs of inputs")
}

// Constants that have no exact integers are refused.
func TestInt8Constants(t *testing.T) {
	in := []int32{1, 1, 2, 3}
	for _, c := range []struct {
		name, op string
		change   func(g *testGraph, second *testTensor)
		want     string
	}{
		{"of two scales", "ADD", func(_ *testGraph, s *testTensor) { s.scale, s.zero = []float32{1, 2, 3}, []int64{0, 0, 0} }, "its quantisation has 3 scales, want 1"},
		{"without a scale", "MUL", func(_ *testGraph, s *testTensor) { s.scale, s.zero = nil, nil }, "its quantisation has 0 scales, want 1"},
		{"of floats", "SUB", func(g *testGraph, s *testTensor) {
			g.tensors[2] = testTensor{name: "second", typ: schema.Float32, dims: []int32{3}, data: make([]byte, 12)}
		}, "its constant must be INT8, like its input"},
		{"that differs by pixel", "ADD", func(g *testGraph, s *testTensor) { s.dims, s.data = []int32{1, 1, 2, 3}, []byte{1, 2, 3, 1, 2, 4} }, "with different values per pixel"},
		{"of another size", "PRELU", func(g *testGraph, s *testTensor) { s.dims, s.data = []int32{2}, []byte{1, 2} }, "a constant of shape [2] does not fit values of"},
		{"of another scale, in MAXIMUM", "MAXIMUM", func(_ *testGraph, s *testTensor) { s.scale = []float32{0.03} }, "its inputs and its output have different scales or zero points"},
		{"of a scale that leaves 32 bits", "MUL", func(_ *testGraph, s *testTensor) { s.scale = []float32{1e9} }, "exceed 32 bits"},
		{"of a scale that leaves 32 bits, in slopes", "PRELU", func(_ *testGraph, s *testTensor) { s.scale = []float32{1e9} }, "exceed 32 bits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := int8Graph(c.op, in, in, 0.03, testTensor{dims: []int32{3}, data: []byte{1, 2, 3}, scale: []float32{0.01}, zero: []int64{4}})
			if c.op == "MAXIMUM" {
				for _, t := range g.tensors {
					copy(t.scale, g.tensors[0].scale)
					copy(t.zero, g.tensors[0].zero)
				}
			}
			_, report, err := Decode(t.Context(), g.encode(), Options{})
			require.NoError(t, err)
			require.Empty(t, report.Deviations)
			c.change(g, &g.tensors[2])
			refused(t, g.encode(), c.want)
		})
	}
}

// Functions of scales too far apart are refused, and tables
// that come from floats name the integers that lie in the middle of two.
func TestInt8Functions(t *testing.T) {
	one := func(name string, inScale, outScale float32, zero int64) []byte {
		g := newGraph(1, 1, 1, 1)
		g.tensors[0].typ, g.tensors[0].scale, g.tensors[0].zero = schema.Int8, []float32{inScale}, []int64{zero}
		g.tensors[1] = testTensor{name: "y", typ: schema.Int8, dims: []int32{1, 1, 1, 1}, scale: []float32{outScale}, zero: []int64{0}}
		g.operators = []testOperator{{name: name, inputs: []int32{0}, outputs: []int32{1}}}
		return g.encode()
	}
	_, report, err := Decode(t.Context(), one("ELU", 0.5, 1, 0), Options{})
	require.NoError(t, err)
	require.Len(t, report.Deviations, 1)
	require.Contains(t, report.Deviations[0], "(ELU): results may differ by at most 1, for at most 64 of the 256 integers")
	refused(t, one("HARD_SWISH", 0.5, 1e-6, 0), "an input scale of 0.5 and an output scale of 1e-06 differ too much")
	refused(t, one("HARD_SWISH", 1e-3, 1, 0), "an input scale of 0.001 and an output scale of 1 differ too much")
}
