package onnx

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

func gunzip(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	unzip, err := gzip.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	data, err := io.ReadAll(unzip)
	require.NoError(t, err)
	return data
}

// TestExports imports networks that PyTorch has exported, in many styles, and
// compares their outputs with those of PyTorch and the number of binary layers with
// the one that was meant. train/onnx_exports.py and train/onnx_wild.py make the files.
func TestExports(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.onnx.gz")
	require.NoError(t, err)
	networks := 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".onnx.gz")
		if name == "folding" {
			continue
		}
		networks++
		t.Run(name, func(t *testing.T) {
			data := gunzip(t, path)
			s := &source{}
			require.NoError(t, s.begin(t.Context(), bcnn.Limits{}))
			require.NoError(t, s.add(int64(len(data))))
			m, err := pb.Decode(data, s.budget)
			require.NoError(t, err)
			tensor := func(name string) *eval.Tensor {
				x, err := s.eval.Tensor(m.Graph.Initializers[name])
				require.NoError(t, err)
				return x
			}
			opts := Options{}
			switch zero := string(m.Metadata["test zero"]); zero {
			case "":
			case "plus":
				opts.SignOfZero = bcnn.ZeroIsPlus
			case "minus":
				opts.SignOfZero = bcnn.ZeroIsMinus
			default:
				t.Fatal(zero)
			}
			rule := opts.SignOfZero
			opts.SignOfZero = 0
			net, report, err := Decode(t.Context(), data, opts)
			require.NoError(t, err)
			number := func(key string, fallback int) int {
				text, ok := m.Metadata["test "+key]
				if !ok {
					return fallback
				}
				n, err := strconv.Atoi(string(text))
				require.NoError(t, err)
				return n
			}
			require.Len(t, report.Ternary, number("ternary", 0))
			require.Empty(t, report.Zeros)
			require.Equal(t, string(m.Metadata["test tolerance"]) != "", len(report.NearlyBinary) > 0)
			coarse := strings.HasPrefix(string(m.Metadata["test type"]), "torch.float16")
			for _, n := range report.NearlyBinary {
				rounded := n.Deviation <= 15*weights.OfFloat32 // of weights of up to 4 bits
				require.Equal(t, n.Deviation <= DefaultWeightTolerance || rounded || coarse, n.Taken, n)
			}
			require.Equal(t, string(m.Metadata["test type"]) != "", len(report.Deviations) > 0, report.Deviations)
			within := 1e-4
			if coarse { // the newer exporter rounds the weights into which it folds a batch norm
				within = math.Ldexp(1, -11)
			}
			binary := 0
			for _, l := range summarize(t, net) {
				if l.small {
					binary++
				} else {
					t.Log(l.Layer, "is float:", l.WhyFloat)
				}
			}
			require.Equal(t, number("binary", -1), binary, "binary layers")
			if want := string(m.Metadata["test products"]); want != "" {
				requireProducts(t, want, summarize(t, net))
			}
			checkOutputs(t, net, tensor("test input"), tensor("test output"), within)
			if rule == 0 {
				return
			}
			// Where zeros are coincidences, a rule for them makes the same network here.
			opts.SignOfZero = rule
			net, report, err = Decode(t.Context(), data, opts)
			require.NoError(t, err)
			require.Empty(t, report.Ternary)
			require.NotEmpty(t, report.Zeros)
			for _, l := range summarize(t, net) {
				require.True(t, !l.small || l.Planes == 1, l.Layer)
			}
			checkOutputs(t, net, tensor("test input"), tensor("test output"), within)
		})
	}
	require.GreaterOrEqual(t, networks, 230)
}

// checkOutputs runs a network on images in NCHW and compares its logits with those
// of PyTorch, up to a fraction of the largest.
func checkOutputs(t *testing.T, net *bcnn.Network, in, want *eval.Tensor, within float64) {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	shape := net.Inputs[0].Shape
	require.Equal(t, shape.Values(), in.Len()/in.Dims[0])
	x := bcnn.NewTensor(bcnn.Float32, in.Dims[0], shape)
	for i := range x.F32 {
		c, pixel, image := i%shape.C, i/shape.C%shape.Pixels(), i/shape.Values()
		x.F32[i] = in.F32[(image*shape.C+c)*shape.Pixels()+pixel]
	}
	got, err := ref.Run(t.Context(), plan, x, nil)
	require.NoError(t, err)
	require.Len(t, got.F32, want.Len())
	require.Equal(t, in.Dims[1:], net.Inputs[0].Source.Dims)
	require.Equal(t, shape.C > 1, net.Inputs[0].Source.ChannelsFirst)
	output := net.Layers[len(net.Layers)-1].Source
	require.Equal(t, want.Dims[1:], output.Dims)
	require.False(t, output.ChannelsFirst)
	largest, difference := 0.0, 0.0
	if want.I64 != nil {
		require.Equal(t, bcnn.SourceInt64, output.Type)
	}
	for i, v := range got.F32 {
		largest = max(largest, math.Abs(want.At(i)))
		difference = max(difference, math.Abs(want.At(i)-float64(v)))
	}
	t.Logf("difference %.2g of %.3g", difference, largest)
	require.LessOrEqual(t, difference, within*largest)
}
