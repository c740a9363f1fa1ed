package tflite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// run executes a network on one image given as the file's input: numbers, packed words
// or 8-bit integers.
func run(t *testing.T, net *bcnn.Network, report *Report, in *npy.Array) []float32 {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	x := bcnn.Tensor{DType: net.Inputs[0].DType, N: 1, Shape: net.Inputs[0].Shape}
	switch report.Inputs[0].Type {
	case "FLOAT32":
		x.F32 = numbersOf[float32](t, in, "float32")
	case "INT32":
		x.F32 = report.Inputs[0].Signs(numbersOf[int32](t, in, "int32"))
	case "INT8":
		x.U8 = report.Inputs[0].Bytes(numbersOf[int8](t, in, "int8"))
	case "UINT8":
		x.U8 = numbersOf[uint8](t, in, "uint8")
	}
	y, err := ref.Run(t.Context(), plan, x, nil)
	require.NoError(t, err)
	return y.F32
}

// The one-layer files of XMOS, whose outputs are integers: bit for bit those of LCE's
// interpreter.
func TestOneLayerFiles(t *testing.T) {
	dir := testenv.SharedData(t, "lce")
	names, err := filepath.Glob(filepath.Join(dir, "*.tflite"))
	require.NoError(t, err)
	require.Len(t, names, 20)
	for _, name := range names {
		base := strings.TrimSuffix(filepath.Base(name), ".tflite")
		t.Run(base, func(t *testing.T) {
			net, report, err := Load(t.Context(), name, Options{})
			require.NoError(t, err)
			require.Equal(t, base, net.Name)
			require.Equal(t, "INT32", report.Inputs[0].Type)
			stored, err := os.ReadFile(filepath.Join(dir, "answers", base+".npz"))
			require.NoError(t, err)
			answers := openArrays(t, stored)
			for i := range 3 {
				in, want := readArray(t, answers, fmt.Sprintf("in0_%d", i)), readArray(t, answers, fmt.Sprintf("out0_%d", i))
				require.Equal(t, in.Shape, report.Inputs[0].Dims)
				require.Equal(t, want.Shape, report.Outputs[0].Dims)
				y := run(t, net, report, in)
				if report.Outputs[0].Type == "INT8" {
					require.Equal(t, numbersOf[int8](t, want, "int8"), report.Outputs[0].Int8(y))
				} else {
					require.Equal(t, numbersOf[int32](t, want, "int32"), report.Outputs[0].Words(y))
				}
			}
			p, err := lower.Network(context.Background(), net, lower.Options{})
			require.NoError(t, err)
			layers := plan.Summarize(net, p)
			require.Len(t, layers, 1)
			require.Equal(t, plan.Binary, layers[0].Precision, layers[0].WhyFloat)
		})
	}
}
