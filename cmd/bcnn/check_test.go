package main

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
)

var checkKeys = []string{"model", "device", "images", "tolerance", "ok", "outputs", "layers", "not_compared", "unknown"}

// Every tensor that PyTorch's network and ours have in common is the same.
func TestCheckONNX(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.bcnn")
	succeed(t, "convert", exported(t, bireal), "-o", model)
	for _, batch := range []string{"1", "2", "32"} {
		got := objects(t, succeed(t, "check", "-m", model, "-r", birealReference, "--json", "--batch", batch), checkKeys...)[0]
		require.Equal(t, true, got["ok"])
		require.Equal(t, 3.0, got["images"])
		require.Equal(t, 1e-4, got["tolerance"])
		output := got["outputs"].([]any)[0].(map[string]any)
		require.Equal(t, "output", output["name"])
		require.Equal(t, 3.0, output["same_argmax"])
		var names []any
		for _, l := range got["layers"].([]any) {
			names = append(names, l.(map[string]any)["name"])
			require.Less(t, l.(map[string]any)["relative"], 1e-6)
		}
		require.Equal(t, []any{
			"/stem/stem.0/Conv_output_0", "/sign/Where_output_0", "/down/down.0/AveragePool_output_0", "/down/down.1/Conv_output_0",
			"/bn/BatchNormalization_output_0", "/prelu/PRelu_output_0", "/pool/GlobalAveragePool_output_0",
		}, names)
		require.Equal(t, []any{"/Add_output_0", "/Flatten_output_0", "/conv/Conv_output_0"}, got["not_compared"])
		require.Equal(t, []any{}, got["unknown"])
	}
	// Names that the exported model never had are told from those that became part of layers.
	var list, ends []npy.Named
	for name, a := range arraysOf(t, birealReference) {
		list = append(list, npy.Named{Name: name, Array: npy.From(a.Shape, floatsOf(t, a))})
		if name == "input" || name == "output" || name == "/Add_output_0" {
			ends = append(ends, list[len(list)-1])
		}
	}
	for _, m := range []string{model, exported(t, bireal)} {
		named := saveArray(t, append(list, array("conv1", []int{1}, 1))...)
		require.Contains(t, succeed(t, "check", "-m", m, "-r", named),
			"not compared: /Add_output_0, /Flatten_output_0, /conv/Conv_output_0\nunknown names: conv1; the model has \"/stem/stem.0/Conv_output_0\", ")
		require.Contains(t, fail(t, exitJob, "check", "-m", m, "-r", saveArray(t, ends...)), `the reference has "/Add_output_0", all of which became part of other layers`)
		require.NotContains(t, fail(t, exitJob, "check", "-m", m, "-r", saveArray(t, append(ends, array("conv1", []int{1}, 1))...)), "became part")
	}
	require.Contains(t, succeed(t, "check", "-m", model, "-r", birealReference), "3 images on cpu, 3 with the same arg-max\n")
	r := runCommand(t, "check", "-m", model, "-r", birealReference, "--tolerance", "0")
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, `by more than 0 of the largest value, first in "/stem/stem.0/Conv_output_0"`)
	require.Contains(t, r.stdout, "DIFFERS")
}

// The first tensor that differs is named, whatever comes after it.
func TestCheckFindsTheFirst(t *testing.T) {
	var list []npy.Named
	for name, a := range arraysOf(t, birealReference) {
		values := floatsOf(t, a)
		if name == "/prelu/PRelu_output_0" || name == "output" {
			values[len(values)-1] += 1
		}
		list = append(list, npy.Named{Name: name, Array: npy.From(a.Shape, values)})
	}
	r := runCommand(t, "check", "-m", exported(t, bireal), "-r", saveArray(t, list...), "--json")
	require.Equal(t, exitJob, r.code)
	got := objects(t, r.stdout, append([]string{"first"}, checkKeys...)...)[0]
	require.Equal(t, "/prelu/PRelu_output_0", got["first"])
	require.Equal(t, false, got["ok"])
	require.InDelta(t, 1, got["outputs"].([]any)[0].(map[string]any)["difference"], 1e-5)
}

func TestCheckLight(t *testing.T) {
	model := saveLightNet(t)
	in := array("input", []int{2, 4, 4, 1}, lightPixels(16, 7)...)
	grey := make([]float32, 32)
	for i, p := range lightPixels(16, 7) {
		grey[i] = map[bool]float32{true: 1, false: -1}[p >= 128]
	}
	out := func(values ...float32) npy.Named { return array("output", []int{2, 2}, values...) }
	reference := saveArray(t, in, out(16, -16, -2, 2), array("grey", []int{2, 4, 4, 1}, grey...), array("what", []int{1}, 1))
	require.Equal(t, "tensor  largest difference  of the largest value\n"+
		"grey    0                   0                     ok\n"+
		"output  0                   0                     ok\n"+
		"not compared: what\n"+
		"2 images on cpu, 2 with the same arg-max\n", succeed(t, "check", "-m", model, "-r", reference, "-d", "cpu", "--tolerance", "0"))

	nan := float32(math.NaN())
	for _, c := range []struct {
		values     []float32
		tolerance  string
		code       int
		difference any
		same       float64
	}{
		{[]float32{16, -16, -2, 2}, "0", exitOK, 0.0, 2},
		{[]float32{16, -16, -2, 4}, "0.125", exitOK, 2.0, 2},
		{[]float32{16, -16, -2, 4}, "0.12", exitJob, 2.0, 2},
		{[]float32{16, -16, 2, -2}, "0.5", exitOK, 4.0, 1},
		{[]float32{16, nan, -2, 2}, "0.5", exitJob, nil, 1},
		{[]float32{float32(math.Inf(1)), -16, -2, 2}, "0.5", exitJob, nil, 2},
		{[]float32{0, 0, 0, 0}, "0.5", exitJob, 16.0, 1},
	} {
		x, y := saveArray(t, in), saveArray(t, out(c.values...))
		r := runCommand(t, "check", "-m", model, "-i", x, "-r", y, "--json", "--tolerance", c.tolerance)
		require.Equal(t, c.code, r.code, r.stderr)
		keys := checkKeys
		if c.code != exitOK {
			keys = append([]string{"first"}, checkKeys...)
		}
		output := objects(t, r.stdout, keys...)[0]["outputs"].([]any)[0].(map[string]any)
		require.Equal(t, c.difference, output["difference"])
		require.Equal(t, c.same, output["same_argmax"], c.values)
	}
}

// A file that joins the batch with the outputs (Flatten(0) of PyTorch) gives one row.
func TestCheckFlat(t *testing.T) {
	model := saveLightNet(t)
	in := array("input", []int{2, 4, 4, 1}, lightPixels(16, 7)...)
	for _, dims := range [][]int{{2, 2}, {4}} {
		for _, batch := range []string{"1", "2"} {
			got := succeed(t, "check", "-m", model, "-r", saveArray(t, in, array("output", dims, 16, -16, -2, 2)), "--batch", batch)
			require.Contains(t, got, "output  0                   0                     ok\n2 images on cpu, 2 with the same arg-max\n")
		}
	}
	for _, dims := range [][]int{{2}, {5}, {8}, {1, 4}, {4, 1}} {
		values := make([]float32, dims[0])
		if len(dims) == 2 {
			values = make([]float32, dims[0]*dims[1])
		}
		require.Contains(t, fail(t, exitJob, "check", "-m", model, "-r", saveArray(t, in, array("output", dims, values...))), "want N×2")
	}
	// The input has its batch.
	x := saveArray(t, array("input", []int{32}, lightPixels(16, 7)...), array("output", []int{4}, 16, -16, -2, 2))
	require.Contains(t, fail(t, exitJob, "check", "-m", model, "-r", x), "want N×4×4×1")
}

func TestCheckErrors(t *testing.T) {
	model := saveLightNet(t)
	in := array("input", []int{1, 4, 4, 1}, lightPixels(16)...)
	x := saveArray(t, in)
	for _, c := range []struct{ reference, want string }{
		{saveArray(t, array("y", []int{1, 2}, 1, 2), array("z", []int{1}, 1)), `no array "output"`},
		{saveArray(t, array("output", []int{1, 3}, 1, 2, 3)), `"output": an array of 1×3, want N×2`},
		{saveArray(t, array("output", []int{2, 2}, 1, 2, 3, 4)), `"output": it has 2 images, but the input has 1`},
		{saveArray(t, array("output", []int{1, 2}, 1, 2), array("grey", []int{1, 16}, grey16()...)), `"grey": an array of 1×16, want N×4×4×1`},
	} {
		require.Contains(t, fail(t, exitJob, "check", "-m", model, "-i", x, "-r", c.reference), c.reference+": "+c.want)
	}
	// Names of another program's: nothing inside would be compared.
	inside := saveArray(t, array("output", []int{1, 2}, 1, 2), array("conv1", []int{1, 2}, 1, 2), array("bn1", []int{1}, 1))
	require.Contains(t, fail(t, exitJob, "check", "-m", model, "-i", x, "-r", inside),
		`apart from inputs and outputs, no array is named after a tensor of the model, which has "grey"`)
	y := saveArray(t, array("output", []int{1, 2}, 1, 2))
	require.Contains(t, fail(t, exitJob, "check", "-m", model, "-r", y), `no array for input "input"; give it with --input`)
	require.Contains(t, fail(t, exitUsage, "check", "-m", model), "check needs --reference")
	require.Contains(t, fail(t, exitUsage, "check", "-m", model, "-r", "-", "-i", "-"), "only once")
	require.Contains(t, fail(t, exitUsage, "check", "-m", model, "-r", y, "--tolerance", "2"), "fraction")
}

func grey16() []float32 { return make([]float32, 16) }
