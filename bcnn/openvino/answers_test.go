package openvino

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// arrays opens an .npz file.
func arrays(t testing.TB, file string) *npy.File {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	f, err := npy.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return f
}

// numbers returns the values of an array in order, and its dimensions.
func numbers(t testing.TB, f *npy.File, name string) ([]float32, []int) {
	t.Helper()
	a, err := f.Read(name)
	require.NoError(t, err)
	list := make([]float32, a.Len())
	require.NoError(t, npy.Values(list, a, 0))
	return list, a.Shape
}

// inOrder puts the values of an image, or of a batch, in the order of the file, or with back those
// of the file in that of the network.
func inOrder(list []float32, shape bcnn.Shape, s *bcnn.Source, back bool) []float32 {
	out := append([]float32(nil), list...)
	if !s.ChannelsFirst {
		return out
	}
	values := shape.Values()
	for i := range list {
		n, rest := i/values, i%values
		p, c := rest/shape.C, rest%shape.C
		k := n*values + c*shape.Pixels() + p
		if back {
			out[i] = list[k]
		} else {
			out[k] = list[i]
		}
	}
	return out
}

// run runs a network on values in the order of the file, and returns those of its outputs, by the
// names in the file.
func run(t testing.TB, net *bcnn.Network, input []float32) map[string][]float32 {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	in := net.Inputs[0]
	input = inOrder(input, in.Shape, in.Source, true)
	n := len(input) / in.Shape.Values()
	require.Len(t, input, n*in.Shape.Values())
	x := bcnn.NewTensor(in.DType, n, in.Shape)
	copy(x.F32, input)
	for i := range x.U8 {
		x.U8[i] = uint8(input[i])
	}
	outs, err := ref.RunAll(t.Context(), plan, []bcnn.Tensor{x}, nil)
	require.NoError(t, err)
	return named(t, net, outs)
}

// named returns the outputs of a network in the order of the file, by their names in it.
func named(t testing.TB, net *bcnn.Network, outs []bcnn.Tensor) map[string][]float32 {
	t.Helper()
	named := map[string][]float32{}
	for i, k := range net.OutputLayers() {
		l := net.Layers[k]
		require.NotNil(t, l.Source, l.Name)
		y := outs[i].F32
		if _, ok := l.Op.(bcnn.Softmax); ok {
			y = probabilities(outs[i])
		}
		named[l.Source.Name] = inOrder(y, outs[i].Shape, l.Source, false)
	}
	return named
}

// probabilities is the softmax of the channels of each pixel.
func probabilities(t bcnn.Tensor) []float32 {
	out := make([]float32, 0, len(t.F32))
	for i := 0; i < len(t.F32); i += t.Shape.C {
		for _, p := range bcnn.Probabilities(t.F32[i : i+t.Shape.C]) {
			out = append(out, float32(p))
		}
	}
	return out
}

func requireClose(t testing.TB, want, got []float32, tolerance float64) {
	t.Helper()
	require.Len(t, got, len(want))
	most := 0.0
	for _, v := range want {
		most = max(most, float64(v), -float64(v))
	}
	for i := range want {
		require.InDelta(t, want[i], got[i], tolerance*most, "value %d", i)
	}
}

// TestAnswers imports small networks of which each has what another implementation computes.
func TestAnswers(t *testing.T) { testFolder(t, "testdata", 10) }

// TestSharedAnswers imports more of them.
func TestSharedAnswers(t *testing.T) { testFolder(t, testenv.SharedData(t, "openvino/small"), 25) }

func testFolder(t *testing.T, folder string, many int) {
	found, err := filepath.Glob(filepath.Join(folder, "*.xml"))
	require.NoError(t, err)
	require.Len(t, found, many)
	for _, file := range found {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".xml"), func(t *testing.T) { testFile(t, file) })
	}
}

// defined is the answer of int8_weights as the operators are defined, which OpenVINO gives without
// its low-precision transformations (LP_TRANSFORMS_MODE NO). These move the zero point of the
// FakeQuantize, 127.5, to a whole number.
var defined = []float32{-2.0000916, 0.8488106, -13.319757, 9.199211, 8.490296, -4.6921377, -3.0944617}

func testFile(t *testing.T, file string) {
	net, report, err := Load(t.Context(), file, Options{})
	require.NoError(t, err)
	old := strings.HasPrefix(filepath.Base(file), "ir10_")
	require.Equal(t, map[bool]int{true: 10, false: 11}[old], report.Version)
	f := arrays(t, strings.TrimSuffix(file, ".xml")+".npz")
	runs := []string{""}
	for _, name := range f.Names() {
		if name == "in_x_1" {
			runs = []string{"_0", "_1"}
		}
	}
	for _, suffix := range runs {
		x, _ := numbers(t, f, "in_x"+suffix)
		got := run(t, net, x)
		for i, k := range net.OutputLayers() {
			name := net.Layers[k].Source.Name
			at := "out_" + name + suffix
			if old {
				at = "out_" + strconv.Itoa(i)
			}
			want, _ := numbers(t, f, at)
			if strings.HasPrefix(filepath.Base(file), "int8_weights") {
				want = defined
			}
			requireClose(t, want, got[name], 1e-5)
		}
	}
}
