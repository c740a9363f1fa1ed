package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

func TestInspect(t *testing.T) {
	model := saveLightNet(t)
	require.Equal(t, `light: input 4×4×1 uint8
labels: light, dark
arrays: input N×4×4×1 -> output N×2

layer  kind      output  precision  details
grey   binarize  4×4×1              grey, x ≥ [128]
count  dense     1×1×2   binary

layer         operator  precision  multiplications           float32 bytes           stored bytes           smaller    why float
count         dense     binary     32               100.0 %  128            100.0 %  16            100.0 %  8.0 times
all                                32               100.0 %  128            100.0 %  16            100.0 %  8.0 times
other tables                                                                         4
metadata                                                                             704
file                                                                                 724
multiplications: 100.0 % binary
`, succeed(t, "inspect", model))

	require.Contains(t, succeed(t, "inspect", "--plan", model), `
plan: 2 steps, 192 bytes of tensors per image
step   kind      input        output
grey   binarize  4×4×1 uint8  4×4×1 bits
count  dense     4×4×1 bits   1×1×2 float32

kernels on cpu (`)
	require.Contains(t, succeed(t, "inspect", "--plan", "--isa", "generic", "--threads", "1", model), `kernels on cpu (generic, 1 thread)
step   kernel                            tile                 why
grey   binarize, grey                    16 pixels, 1 tile    one thread
count  packed words, 4 outputs in lanes  1 image × 2 outputs  weights are read once for the images of a tile; one thread
`)
	require.Contains(t, fail(t, 2, "inspect", "--isa", "generic", model), "--isa needs --plan, --passes or --html")

	got := objects(t, succeed(t, "inspect", "--json", model), "name", "input", "labels", "layers", "arrays", "report")[0]
	require.Equal(t, map[string]any{"height": 4.0, "width": 4.0, "channels": 1.0, "type": "uint8"}, got["input"])
	require.Equal(t, map[string]any{
		"inputs":  []any{map[string]any{"name": "input", "dims": []any{4.0, 4.0, 1.0}}},
		"outputs": []any{map[string]any{"name": "output", "dims": []any{2.0}}},
	}, got["arrays"])
	require.Equal(t, 128.0, got["report"].(map[string]any)["float_bytes"])
	require.Equal(t, 16.0, got["report"].(map[string]any)["stored_bytes"])
	require.Equal(t, map[string]any{
		"name": "count", "kind": "dense", "inputs": []any{0.0}, "output": "1×1×2",
		"weights": map[string]any{
			"name": "count", "kind": "dense", "bits": 1.0, "precision": "binary", "params": 32.0, "macs": 32.0,
			"float_bytes": 128.0, "stored_bytes": 16.0, "compression": 8.0,
		},
	}, got["layers"].([]any)[1])

	got = objects(t, succeed(t, "inspect", "--json", "--plan", model), "name", "input", "labels", "layers", "arrays", "report", "plan")[0]
	require.Len(t, got["plan"].(map[string]any)["steps"], 2)
}

// The passes of a file of another format have what the rules found during its import, and the steps that the
// CPU computes with others.
func TestInspectPasses(t *testing.T) {
	file := filepath.Join("..", "..", "bcnn", "onnx", "testdata", "reactnet.dynamo.onnx.gz")
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	unpack, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	data, err := io.ReadAll(unpack)
	require.NoError(t, err)
	model := filepath.Join(t.TempDir(), "reactnet.onnx")
	require.NoError(t, os.WriteFile(model, data, 0o600))
	var got struct {
		Plan   *planInfo
		Passes []passInfo
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "inspect", "--json", "--passes", "--threads", "1", model)), &got))
	require.Nil(t, got.Plan)
	require.Len(t, got.Passes, 3)
	require.Equal(t, "simplify", got.Passes[0].Pass)
	require.Contains(t, got.Passes[0].Did, "rule weights: 4 layers")
	require.Equal(t, []string{"lower", "22 steps"}, []string{got.Passes[1].Pass, got.Passes[1].Leaves})
	require.Contains(t, got.Passes[1].Did, "4 layers binary")
	require.Equal(t, "cpu", got.Passes[2].Pass)
	alone, with := 0, 0
	_, err = fmt.Sscan(got.Passes[2].Leaves, &alone)
	require.NoError(t, err)
	for _, did := range got.Passes[2].Did {
		n := 0
		_, err := fmt.Sscan(did, &n)
		require.NoError(t, err)
		with += n
	}
	require.Positive(t, with)
	require.Equal(t, 22, alone+with)
}

// A layer that is computed in float says why.
func TestInspectFloat(t *testing.T) {
	net := lightNet()
	net.Append("last", bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: []float32{1, 2, 3, 4}}})
	program, err := lower.Compile(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	info, err := inspect(program, false)
	require.NoError(t, err)
	require.Equal(t, plan.Float, info.Layers[2].Weights.Precision)
	require.NotEmpty(t, info.Layers[2].Weights.WhyFloat)
	var text strings.Builder
	printInspection(&output{w: &text}, info)
	require.NotContains(t, text.String(), "WARNING")
	require.Contains(t, text.String(), "times  "+info.Layers[2].Weights.WhyFloat+"\n")
}

func TestDetails(t *testing.T) {
	for want, op := range map[string]bcnn.Op{
		"lbp": bcnn.Binarize{Scheme: bcnn.SchemeLBP},
		"3×5, stride 2×1, dilation 1×3, padding 1,2,3,4 of +1, 4 groups": bcnn.Conv2D{
			Window: bcnn.Window{KH: 3, KW: 5, StrideH: 2, DilationW: 3, Pad: bcnn.Padding{Top: 1, Left: 2, Bottom: 3, Right: 4}},
			Groups: 4, PadValue: 1,
		},
		"2×2, stride 2×2":              bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}},
		"+1 where x ≥ 0":               bcnn.Sign{Zero: bcnn.ZeroIsPlus},
		"":                             bcnn.Softmax{},
		"7×7":                          bcnn.AvgPool{Window: bcnn.Window{KH: 7, KW: 7}},
		"2×2, padding 1, which counts": bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}, CountPadding: true},
		"0 to 6":                       bcnn.Clip{Max: 6},
		"-Inf to 1":                    bcnn.Clip{Min: float32(math.Inf(-1)), Max: 1},
		"slope 0.25":                   bcnn.PReLU{Slope: []float32{0.25}},
	} {
		require.Equal(t, want, details(op))
	}
}

// The steps and kernels that inspect shows are those of a session, also where a network has to be
// simplified first.
func TestInspectShowsWhatRuns(t *testing.T) {
	net := &bcnn.Network{Name: "halves", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 6, W: 6, C: 64}, DType: bcnn.Float32}}}
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	weights := make([]float32, 32*3*3*64)
	for i := range weights {
		weights[i] = float32(i*i%7%2) - 0.5
	}
	net.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3}, Out: 32, Weights: bcnn.Weights{F32: weights}})
	data, err := modelfile.Encode(net)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "halves.bcnn")
	require.NoError(t, os.WriteFile(file, data, 0o600))

	var got struct {
		Plan struct {
			Steps []struct{ Kernel, Tile, Why string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "inspect", "--json", "--plan", "--threads", "1", file)), &got))
	s, err := bitcnn.Open(t.Context(), net, bitcnn.Options{Device: "cpu", Threads: 1})
	require.NoError(t, err)
	defer s.Close()
	for i, c := range s.Explain() {
		require.Equal(t, c.Kernel, got.Plan.Steps[i].Kernel)
		require.Equal(t, c.Tile, got.Plan.Steps[i].Tile)
		require.Equal(t, c.Why, got.Plan.Steps[i].Why)
	}
	require.Len(t, got.Plan.Steps, len(s.Explain()))
	require.Contains(t, succeed(t, "inspect", "--passes", "--isa", "generic", "--threads", "1", file), `
pass      result    what it did
simplify  3 layers  rule weights: 1 layer
lower     2 steps   1 layer binary; 1 layer merged into other steps
cpu       2 steps   each step separately
`)
	require.Contains(t, got.Plan.Steps[1].Kernel, "wide bits")
}
