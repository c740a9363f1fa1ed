package tflite

import (
	"archive/zip"
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// testFile is a file of LCE with an input and what LCE's interpreter makes of it.
type testFile struct {
	name    string
	data    []byte
	in, out *npy.Array
}

// lceFiles reads the archive that train/lce_files.py writes.
func lceFiles(t testing.TB) []testFile {
	t.Helper()
	z, err := zip.OpenReader("testdata/lce.zip")
	require.NoError(t, err)
	defer z.Close()
	content := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		content[f.Name], err = io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	var list []testFile
	for _, f := range z.File {
		if name, ok := strings.CutSuffix(f.Name, ".tflite"); ok {
			list = append(list, testFile{
				name, content[f.Name], readArray(t, openArrays(t, content[name+".in.npy"]), ""), readArray(t, openArrays(t, content[name+".out.npy"]), ""),
			})
		}
	}
	require.Len(t, content, 3*len(list))
	return list
}

// distance is the largest difference of two lists, relative to the largest number.
func distance(t *testing.T, got, want []float32) float64 {
	t.Helper()
	require.Len(t, got, len(want))
	worst, largest := 0.0, 0.0
	for i := range want {
		worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
		largest = max(largest, math.Abs(float64(want[i])))
	}
	require.NotZero(t, largest)
	return worst / largest
}

// requireRounded compares the numbers of a binary convolution with those of LCE, which
// rounds γ·K + β, (K − x)·γ and their difference, where a network rounds γ·x + β.
func requireRounded(t *testing.T, net *bcnn.Network, got, want []float32) {
	t.Helper()
	require.Len(t, got, len(want))
	taps := 0
	for _, l := range net.Layers {
		switch op := l.Op.(type) {
		case bcnn.Conv2D:
			taps = op.KH * op.KW * net.Inputs[0].Shape.C / max(op.Groups, 1)
		case bcnn.Affine:
			for i := range want {
				c := i % len(op.Scale)
				size := float64(taps)*math.Abs(float64(op.Scale[c])) + math.Abs(float64(op.Bias[c]))
				require.InDelta(t, want[i], got[i], 0x1p-24*6*size, "value %d", i)
			}
		}
	}
	require.NotZero(t, taps)
}

// Files of LCE give what its interpreter gives: integers and bits exactly, numbers but
// for rounding.
func TestFilesOfLCE(t *testing.T) {
	for _, f := range lceFiles(t) {
		t.Run(f.name, func(t *testing.T) {
			net, report, err := Decode(t.Context(), f.data, Options{Name: f.name})
			require.NoError(t, err)
			require.Equal(t, f.in.Shape, report.Inputs[0].Dims)
			require.Equal(t, f.out.Shape, report.Outputs[0].Dims)
			y := run(t, net, report, f.in)
			switch report.Outputs[0].Type {
			case "FLOAT32":
				want := numbersOf[float32](t, f.out, "float32")
				if net.Layers[len(net.Layers)-1].Op.Kind() == (bcnn.Softmax{}).Kind() {
					for i, p := range bcnn.Probabilities(y) {
						y[i] = float32(p)
					}
				}
				if strings.HasPrefix(f.name, "op_bconv") {
					requireRounded(t, net, y, want)
				} else {
					require.LessOrEqual(t, distance(t, y, want), 1e-6)
				}
			case "INT32":
				require.Equal(t, numbersOf[int32](t, f.out, "int32"), report.Outputs[0].Words(y))
			case "INT8":
				require.Equal(t, numbersOf[int8](t, f.out, "int8"), report.Outputs[0].Int8(y))
			case "UINT8":
				for i, q := range numbersOf[uint8](t, f.out, "uint8") {
					require.Equal(t, float32(q), y[i])
				}
			default:
				t.Fatal(report.Outputs[0].Type)
			}

			// What is saved is the same network.
			encoded, err := modelfile.Encode(net)
			require.NoError(t, err)
			again, err := modelfile.Read(t.Context(), encoded, modelfile.Options{})
			require.NoError(t, err)
			twice, err := modelfile.Encode(again)
			require.NoError(t, err)
			require.True(t, bytes.Equal(encoded, twice))
		})
	}
}

// The layers that are meant to be binary, or of few bits, are: how many products of bits
// each of them takes, or that its products are of bytes.
func TestBinaryLayers(t *testing.T) {
	want := map[string]string{
		"net_activations": "1", "net_arithmetic": "", "net_bytes": "bytes bytes", "net_chain": "1 1 1", "net_cropped": "1 3",
		"net_dorefa": "2 6 1", "net_joined": "1 1 1", "net_levels": "1 1 1", "net_parts": "2 3 1 1 6 9 3 3", "net_residual": "1 1",
		"net_roundings": "2 3 2 2 3 2 2", "net_sequence": "1 1", "net_ternary": "2 2", "net_weights": "1 1",
	}
	for _, f := range lceFiles(t) {
		if !strings.HasPrefix(f.name, "net_") {
			continue
		}
		net, _, err := Decode(t.Context(), f.data, Options{Name: f.name})
		require.NoError(t, err)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		var products []string
		for _, l := range plan.Summarize(net, p) {
			switch {
			case l.Bytes && l.Precision <= 4 && strings.Count(want[f.name], " ") >= len(products): // as good as those of bits
				products = append(products, strings.Fields(want[f.name])[len(products)])
			case l.Bytes:
				products = append(products, "bytes")
			case l.Precision < plan.Float:
				products = append(products, strconv.Itoa(l.Planes))
			}
		}
		require.Equal(t, want[f.name], strings.Join(products, " "), f.name)
		delete(want, f.name)
	}
	require.Empty(t, want)
}

// A file with two inputs and two outputs, which are in its order.
func TestSeveralEnds(t *testing.T) {
	dims := []int32{1, 1, 2, 1}
	g := newGraph(dims...)
	g.tensors = g.tensors[:1]
	second := g.tensor(testTensor{name: "second", dims: dims})
	difference := g.add("SUB", nil, dims, 0, second)
	sum := g.add("ADD", nil, dims, second, 0)
	g.inputs, g.outputs = []int32{0, second}, []int32{sum, difference}
	net, report, err := Decode(t.Context(), g.encode(), Options{Name: "ends"})
	require.NoError(t, err)
	require.Equal(t, []string{"x", "second"}, []string{report.Inputs[0].Name, report.Inputs[1].Name})
	require.Equal(t, []string{"add", "sub"}, []string{report.Outputs[0].Name, report.Outputs[1].Name})
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	var in []bcnn.Tensor
	for _, values := range [][]float32{{1, 2}, {10, 30}} {
		in = append(in, bcnn.Tensor{DType: bcnn.Float32, N: 1, Shape: net.Inputs[0].Shape, F32: values})
	}
	out, err := ref.RunAll(t.Context(), plan, in, nil)
	require.NoError(t, err)
	require.Equal(t, []float32{11, 32}, out[0].F32)
	require.Equal(t, []float32{-9, -28}, out[1].F32)

	for want, change := range map[string]func(){
		"tensor 0 is an input twice": func() { g.inputs = []int32{0, 0} },
		"another output is the same": func() { g.inputs, g.outputs = []int32{0, second}, []int32{sum, sum} },
	} {
		change()
		refused(t, g.encode(), want)
	}
	g.inputs, g.outputs = []int32{0, second}, []int32{sum}
	_, _, err = Decode(t.Context(), g.encode(), Options{Mean: []float32{1}})
	require.ErrorContains(t, err, "are for files with one input; this one has 2")
}
