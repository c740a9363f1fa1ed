package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// The published weights of BinCNN, converted, give the published answers.
func TestConvertBinCNN(t *testing.T) {
	weights := testenv.SharedData(t, "bincnn/wgt")
	data, err := os.ReadFile(testenv.SharedData(t, "bincnn/expected.json"))
	require.NoError(t, err)
	type answer struct {
		D3 []any `json:"d3"`
	}
	var expected []struct {
		File              string
		Thresh, Norm, Int answer
	}
	require.NoError(t, json.Unmarshal(data, &expected))
	require.NotEmpty(t, expected)

	for _, mode := range []string{"thresh", "norm", "int"} {
		t.Run(mode, func(t *testing.T) {
			model := filepath.Join(t.TempDir(), mode+".bcnn")
			out := succeed(t, "convert", "--mode", mode, weights, "-o", model)
			require.Contains(t, out, model)

			args := []string{"classify", "--json", "--model", model}
			for _, e := range expected {
				args = append(args, testenv.SharedData(t, "bincnn/images/"+e.File))
			}
			got := objects(t, succeed(t, args...), "file", "label", "index", "probability", "logits", "device", "us")
			require.Len(t, got, len(expected))
			for i, e := range expected {
				want := map[string]answer{"thresh": e.Thresh, "norm": e.Norm, "int": e.Int}[mode].D3
				require.Len(t, want, 4)
				require.Equal(t, want, got[i]["logits"], e.File)
			}
		})
	}
}

// A file of LCE becomes a model of images.
func TestConvertTFLite(t *testing.T) {
	files, err := zip.OpenReader(filepath.Join(testenv.Root(t), "bcnn", "tflite", "testdata", "lce.zip"))
	require.NoError(t, err)
	defer files.Close()
	data, err := fs.ReadFile(files, "net_residual.tflite")
	require.NoError(t, err)
	dir := t.TempDir()
	in, out := writeFile(t, filepath.Join(dir, "residual.tflite"), string(data)), filepath.Join(dir, "residual.bcnn")
	labels := writeFile(t, filepath.Join(dir, "labels.txt"), "a\nb\nc\nd\ne\n")

	text := succeed(t, "convert", in, "-o", out, "--input", "uint8", "--mean", "127.5", "--scale", "0.0078125", "--labels", labels)
	require.Contains(t, text, "11 TensorFlow Lite operators, of which 0 were fused or constant-folded\n")
	net, err := modelfile.Load(t.Context(), out, modelfile.Options{})
	require.NoError(t, err)
	require.Equal(t, "residual", net.Name)
	require.Equal(t, bcnn.Input{
		Shape: bcnn.Shape{H: 13, W: 12, C: 3}, DType: bcnn.Uint8, Source: &bcnn.Source{Name: "serving_default_input_5:0", Dims: []int{13, 12, 3}},
	}, net.Inputs[0])
	require.Equal(t, strings.Split("abcde", ""), net.Labels)

	var c struct{ Nodes, Folded int }
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "convert", "--json", "--from", "tflite", in, "-o", out)), &c))
	require.Equal(t, 11, c.Nodes)
	require.Contains(t, fail(t, exitUsage, "convert", in, "-o", out, "--shape", "13x12x3"), "--shape is for ONNX, BMXNet and OpenVINO models")
	require.Contains(t, fail(t, exitJob, "convert", "--from", "onnx", in, "-o", out), "not a valid ONNX file")
	require.Contains(t, fail(t, exitJob, "convert", "--from", "tflite", labels, "-o", out), "not a valid TensorFlow Lite file")
}

// A network without a name of its own is called as the file that is written.
func TestConvertNames(t *testing.T) {
	dir := t.TempDir()
	named := lightNet()
	sources := map[string]string{
		exported(t, "where.old"): "mine",
		writeFile(t, filepath.Join(dir, "light.bcnn"), string(saved(t, named))):   "mine",
		writeFile(t, filepath.Join(dir, "another.bcnn"), string(saved(t, named))): "light",
	}
	out := filepath.Join(dir, "mine.bcnn")
	name := func() string {
		net, err := modelfile.Load(t.Context(), out, modelfile.Options{})
		require.NoError(t, err)
		return net.Name
	}
	for in, want := range sources {
		succeed(t, "convert", in, "-o", out)
		require.Equal(t, want, name(), in)
	}
	succeed(t, "convert", exported(t, "where.old"), "-o", out, "--name", "ours")
	require.Equal(t, "ours", name())
	succeed(t, "convert", "--from", "zoo", "lfc-1w1a", "-o", out)
	require.Equal(t, "lfc-1w1a", name())
}

func TestConvertONNX(t *testing.T) {
	in := testenv.SharedData(t, "onnx/qonnx_tfc_1w1a.onnx")
	dir := t.TempDir()
	labels := writeFile(t, filepath.Join(dir, "labels.txt"), strings.Join(strings.Split("0123456789", ""), "\n")+"\n")
	out := filepath.Join(dir, "tfc.bcnn")
	args := []string{"convert", in, "-o", out, "--input", "uint8", "--mean", "127.5", "--scale", "0.00784313725",
		"--labels", labels, "--name", "tfc"}
	text := succeed(t, args...)
	require.Contains(t, text, in+" -> "+out)
	require.Equal(t, 4, strings.Count(text, "  binary  ")+strings.Count(text, "  float32  "), text)

	net, err := modelfile.Load(t.Context(), out, modelfile.Options{})
	require.NoError(t, err)
	require.Equal(t, "tfc", net.Name)
	require.Equal(t, bcnn.Uint8, net.Inputs[0].DType)
	require.Equal(t, strings.Split("0123456789", ""), net.Labels)

	// The same bytes again, and no other file.
	before, err := os.ReadFile(out)
	require.NoError(t, err)
	succeed(t, args...)
	after, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, before, after)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// A network of OpenVINO is converted, inspected and run, and what is left out of it is said.
func TestConvertOpenVINO(t *testing.T) {
	data := filepath.Join(testenv.Root(t), "bcnn", "openvino", "testdata")
	in, dir := filepath.Join(data, "two_outputs.xml"), t.TempDir()
	out := filepath.Join(dir, "out.bcnn")
	require.Contains(t, succeed(t, "convert", in, "-o", out), "\nmultiplications: 100.0 % binary\n")
	require.Contains(t, succeed(t, "inspect", in), "arrays: x N×16×8×8 -> counts N×8×8×8, nhwc N×8×8×8\n")
	// Names of arrays are those of the file, as in the answers behind "in_" and "out_".
	answers := readFile(t, filepath.Join(data, "two_outputs.npz"))
	f, err := npy.Open(strings.NewReader(answers), int64(len(answers)))
	require.NoError(t, err)
	var arrays []npy.Named
	for _, name := range f.Names() {
		a, err := f.Read(name)
		require.NoError(t, err)
		_, name, _ = strings.Cut(name, "_")
		arrays = append(arrays, npy.Named{Name: name, Array: a})
	}
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, arrays))
	reference := writeFile(t, filepath.Join(dir, "reference.npz"), b.String())
	for _, model := range []string{in, out} {
		succeed(t, "check", "--model", model, "--reference", reference)
	}
	params := filepath.Join(data, "two_outputs.bin")
	moved := writeFile(t, filepath.Join(dir, "moved.xml"), readFile(t, in))
	require.Contains(t, fail(t, exitJob, "convert", moved, "-o", out), "moved.bin")
	net := filepath.Join(dir, "moved.bcnn")
	succeed(t, "convert", moved, "-o", net, "--params", params)
	require.Contains(t, fail(t, exitUsage, "convert", in, "-o", out, "--mode", "int"), "--mode is for")
}

// The networks published with BMXNet, in the sizes that the documentation has.
func TestConvertBMXNet(t *testing.T) {
	in := testenv.SharedData(t, "bmxnet/binarized_cifar10-resnet18-64bit-symbol.json")
	dir := t.TempDir()
	out := filepath.Join(dir, "resnet18.bcnn")
	args := []string{"convert", in, "-o", out, "--input", "uint8", "--mean", "123.68,116.779,103.939"}
	require.Contains(t, fail(t, exitJob, args...), `input "data": the file does not say how large it is; give its size with 'bcnn convert --shape'`)
	text := succeed(t, append(args, "--shape", "32x32x3")...)
	require.Equal(t, 20, strings.Count(text, "  binary  "), text)
	info, err := os.Stat(out)
	require.NoError(t, err)
	require.EqualValues(t, 1518020, info.Size())

	data, err := os.ReadFile(in)
	require.NoError(t, err)
	symbol := writeFile(t, filepath.Join(dir, "net-symbol.json"), string(data))
	args = []string{"convert", symbol, "-o", out, "--shape", "32x32x3"}
	require.Contains(t, fail(t, exitJob, args...), "there are no weights beside it")
	params := strings.TrimSuffix(in, "-symbol.json") + "-0000.params"
	succeed(t, append(args, "--params", params)...)
	require.Contains(t, fail(t, exitUsage, append(args, "--sign-zero", "plus")...), "--sign-zero is for ONNX models")
	require.Contains(t, fail(t, exitUsage, "convert", "--from", "zoo", "vgg16", "-o", out, "--params", params), "--params is for BMXNet, Darknet and OpenVINO models")
	require.Contains(t, fail(t, exitJob, "convert", params, "-o", out), "name the graph that they belong to")
}

// A network of Darknet, converted and named as it is.
func TestDarknet(t *testing.T) {
	dir := t.TempDir()
	cfg := writeFile(t, filepath.Join(dir, "net.cfg"), "[net]\nheight=4\nwidth=4\nchannels=32\n[convolutional]\nactivation=leaky\nxnor=1\n")
	weights := "\x00\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00" + strings.Repeat("\x00", 8+4*33)
	out := filepath.Join(dir, "net.bcnn")
	require.Contains(t, fail(t, exitJob, "convert", cfg, "-o", out), `there are no weights beside it, "net.weights"`)
	other := writeFile(t, filepath.Join(dir, "other"), weights)
	require.Contains(t, succeed(t, "convert", cfg, "-o", out, "--params", other, "--input", "uint8", "--name", "of Darknet"), "  binary  ")
	net, err := modelfile.Load(t.Context(), out, modelfile.Options{})
	require.NoError(t, err)
	require.Equal(t, "of Darknet", net.Name)
	require.Equal(t, bcnn.Uint8, net.Inputs[0].DType)
	require.Contains(t, fail(t, exitJob, "convert", other, "-o", out), "name the description that they belong to: NAME.cfg")
	require.Contains(t, fail(t, exitUsage, "convert", cfg, "-o", out, "--shape", "4x4x32"), "--shape is for ONNX, BMXNet and OpenVINO models")

	writeFile(t, filepath.Join(dir, "net.weights"), weights)
	succeed(t, "convert", "--from", "darknet", cfg, "-o", out)
	require.Contains(t, succeed(t, "inspect", cfg), "layer_00/sum")
	x := filepath.Join(dir, "x.npy")
	file, err := os.Create(x)
	require.NoError(t, err)
	require.NoError(t, npy.WriteOne(file, npy.From([]int{1, 32, 4, 4}, make([]float32, 512))))
	require.NoError(t, file.Close())
	y := filepath.Join(dir, "y.npz")
	succeed(t, "run", "--model", cfg, "--input", x, "--output", y)
	require.Contains(t, succeed(t, "check", "--model", out, "--input", x, "--reference", y), "layer_00")

	bad := writeFile(t, filepath.Join(dir, "bad.cfg"), "[net]\nheight=4\nwidth=4\nchannels=32\n[lstm]\n")
	writeFile(t, filepath.Join(dir, "bad.weights"), weights)
	require.Contains(t, fail(t, exitJob, "inspect", bad), bad+`: node "layer_00" (lstm, index 0): sections of this kind are not supported; it begins in line 5`)
}

// What a file is shows by what is in it, wherever a model is named.
func TestModelsByContent(t *testing.T) {
	dir := t.TempDir()
	model := writeFile(t, filepath.Join(dir, "model.onnx"), string(saved(t, lightNet())))
	copied := filepath.Join(dir, "copy.bcnn")
	succeed(t, "convert", model, "-o", copied)
	content, err := os.ReadFile(copied)
	require.NoError(t, err)
	require.Equal(t, string(saved(t, lightNet())), string(content))
	require.Contains(t, succeed(t, "inspect", model), "light: input")
	require.Contains(t, fail(t, exitUsage, "convert", model, "-o", copied, "--resize", "3"), "for ONNX, TensorFlow Lite, BMXNet, Darknet and OpenVINO models")

	keras := writeFile(t, filepath.Join(dir, "keras.bcnn"), "\x89HDF\r\n\x1a\n")
	for _, args := range [][]string{
		{"convert", keras, "-o", copied}, {"inspect", keras}, {"classify", "-m", keras, "x.png"}, {"eval", "-m", keras, "--data", dir},
		{"bench", "-m", keras}, {"parity", "-m", keras},
	} {
		require.Contains(t, fail(t, exitJob, args...), keras+": a Keras model (HDF5), not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file; ")
	}
	require.Contains(t, fail(t, exitJob, "convert", dir, "-o", copied), dir+": a folder without a model")
	writeFile(t, filepath.Join(dir, "pkwConv1.bin"), "")
	require.Contains(t, fail(t, exitJob, "inspect", dir), "'bcnn convert --mode")
	require.Contains(t, fail(t, exitUsage, "convert", dir, "-o", copied), `--mode ""`)
}

func saved(t *testing.T, net *bcnn.Network) []byte {
	b, err := modelfile.Encode(net)
	require.NoError(t, err)
	return b
}

// exported returns the path of a network that PyTorch has exported.
func exported(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open("../../bcnn/onnx/testdata/" + name + ".onnx.gz")
	require.NoError(t, err)
	defer file.Close()
	unzip, err := gzip.NewReader(file)
	require.NoError(t, err)
	data, err := io.ReadAll(unzip)
	require.NoError(t, err)
	return writeFile(t, filepath.Join(t.TempDir(), name+".onnx"), string(data))
}

// What the report says of an import, as text and as JSON.
func TestConversion(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.bcnn")
	convert := func(name string, more ...string) []string {
		return append([]string{"convert", exported(t, name), "-o", out}, more...)
	}
	fields := append(reportFields(), "input", "output", "nodes", "folded")

	// Straight-through sums and a rule for zero.
	args := convert("sign_detach.old", "--sign-zero", "plus")
	text := succeed(t, args...)
	require.Contains(t, text, "1 sum with parts that cancel")
	require.Contains(t, text, "1: --sign-zero changes its result for 0\n")
	require.True(t, strings.HasSuffix(text, "WARNING: most multiplications are float32: 36.0 % binary, 64.0 % float32\n"), text)
	require.NoError(t, os.Remove(out))
	require.Contains(t, fail(t, exitJob, append(args, "--require-binary")...), "less than half of the multiplications are binary: 36.0 % binary, 64.0 % float32")
	require.NoFileExists(t, out)
	got := objects(t, succeed(t, append(args, "--json")...), append(fields, "warning", "cancelled", "zeros")...)[0]
	require.Equal(t, []any{map[string]any{"node": "1", "frequent": false}}, got["zeros"])
	require.EqualValues(t, 13, got["nodes"])
	layers := got["layers"].([]any)
	require.Len(t, layers, 3)
	require.EqualValues(t, 1, layers[1].(map[string]any)["bits"])
	require.Equal(t, "2", layers[1].(map[string]any)["name"])

	// Weights that the exporter has rounded.
	args = convert("residual.dynamo", "--sign-zero", "plus")
	text = succeed(t, append(args, "--weight-tolerance", "0")...)
	require.Contains(t, text, "; --weight-tolerance 1e-06 accepts them\n")
	require.True(t, strings.HasSuffix(text, "WARNING: no layer is binary or integer: nothing gets smaller or faster\n"), text)
	args = append(args, "--require-binary")
	text = succeed(t, args...)
	require.Contains(t, text, "and are treated as such\n")
	require.NotContains(t, text, "WARNING")
	require.Len(t, objects(t, succeed(t, append(args, "--json")...), append(fields, "cancelled", "zeros", "nearly_binary")...)[0]["nearly_binary"], 2)

	// Signs of three values, and what makes them binary.
	text = succeed(t, convert("residual.dynamo")...)
	require.Regexp(t, `(?m)^2 signs of three values \(-1, 0, \+1\): node_sign, node_sign_2\nlayers .* --sign-zero plus or minus, makes them binary, which changes what the network computes$`, text)
	text = succeed(t, convert("even_sums.old")...)
	require.Regexp(t, `(?m) 2-bit +\d`, text)
	require.Contains(t, text, "--sign-zero plus or minus with --override-zeros")
	args = convert("even_sums.old", "--sign-zero", "minus")
	got = objects(t, succeed(t, append(args, "--json")...), append(fields, "ternary")...)[0]
	require.Equal(t, true, got["ternary"].([]any)[0].(map[string]any)["frequent"])
	require.EqualValues(t, 2, got["layers"].([]any)[2].(map[string]any)["products"])
	require.Contains(t, succeed(t, append(args, "--override-zeros")...), "changes what the network computes")

	// Obstacles: a line each, with flags of the command.
	obstacles := &bcnn.ObstaclesError{Obstacles: []bcnn.Obstacle{
		{Node: "a", Op: "Where", Index: 1, Err: errors.New("reason"), Option: "SignOfZero"},
		{Node: "b", Op: "Where", Index: 2, Err: errors.New("reason"), Option: "OverrideZeros"},
	}}
	lines := errorLines(fmt.Errorf("file: %w", obstacles))
	require.Len(t, lines, 2)
	require.Regexp(t, `^file: node "a" \(Where, index 1\): reason; .*--sign-zero plus`, lines[0])
	require.Regexp(t, `^file: node "b" \(Where, index 2\): reason; .*--override-zeros`, lines[1])
}

// After an error there is no new file, and an old one is as it was.
func TestConvertLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	bad := writeFile(t, filepath.Join(dir, "bad.onnx"), "\x08\x08\x3a\xff\xff\xff\xff\x0f")
	old := writeFile(t, filepath.Join(dir, "old.bcnn"), "old content")
	fail(t, exitJob, "convert", bad, "-o", old)
	fail(t, exitJob, "convert", bad, "-o", filepath.Join(dir, "new.bcnn"))
	content, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "old content", string(content))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// A file that cannot be put in place leaves no temporary file either.
func TestConvertUnwritable(t *testing.T) {
	weights := testenv.SharedData(t, "bincnn/wgt")
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder.bcnn")
	require.NoError(t, os.Mkdir(folder, 0o755))
	for _, out := range []string{folder, filepath.Join(dir, "absent", "x.bcnn")} {
		require.Contains(t, fail(t, exitJob, "convert", "--from", "bincnn", "--mode", "int", weights, "-o", out), out)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestReadLabels(t *testing.T) {
	dir := t.TempDir()
	labels, err := readLabels(writeFile(t, filepath.Join(dir, "a"), " cat\r\n\ndog \n"))
	require.NoError(t, err)
	require.Equal(t, []string{"cat", "dog"}, labels)
	empty := writeFile(t, filepath.Join(dir, "b"), "\n\n")
	_, err = readLabels(empty)
	require.ErrorContains(t, err, empty)
	long := strings.Repeat("x", 1<<17)
	labels, err = readLabels(writeFile(t, filepath.Join(dir, "c"), "a\n"+long))
	require.NoError(t, err)
	require.Equal(t, []string{"a", long}, labels)
	_, err = readLabels(writeFile(t, filepath.Join(dir, "e"), "caf\xe9\n"))
	require.EqualError(t, err, filepath.Join(dir, "e")+": encoding: invalid UTF-8")
	_, err = readLabels(writeFile(t, filepath.Join(dir, "d"), strings.Repeat("x", maxLabels+1)))
	require.ErrorContains(t, err, filepath.Join(dir, "d"))
	_, err = readLabels(dir)
	require.EqualError(t, err, dir+": is a directory")
}

// The first weights in 16 bits: what the report says, and what the file does.
func TestConvertFirstWeights(t *testing.T) {
	dir := t.TempDir()
	net := &bcnn.Network{Name: "first", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 6, W: 6, C: 3}, DType: bcnn.Uint8}}}
	net.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3}, Out: 2, Weights: bcnn.Weights{F32: make([]float32, 54)}})
	for i := range net.Layers[0].Op.(bcnn.Conv2D).Weights.F32 {
		net.Layers[0].Op.(bcnn.Conv2D).Weights.F32[i] = float32(i*i%37-18) / 11
	}
	in, out := writeFile(t, filepath.Join(dir, "in.bcnn"), string(saved(t, net))), filepath.Join(dir, "out.bcnn")
	text := succeed(t, "convert", in, "-o", out, "--first-weights", "16")
	require.Regexp(t, `(?m)^conv\.integers +conv2d +16-bit +864 +100\.0 %`, text)
	require.Regexp(t, `(?m)^conv: --first-weights rounded its weights to 16-bit integers times a scale: weights change by up to 1\.\de-05 of the largest in their filter, outputs by at most \d\.?\d?e-0\d of the largest possible$`, text)
	require.NotContains(t, text, "WARNING")
	fields := append(reportFields(), "input", "output", "rounded")
	got := objects(t, succeed(t, "convert", in, "-o", out, "--first-weights", "9", "--json"), fields...)[0]
	rounded := got["rounded"].([]any)[0].(map[string]any)
	require.Equal(t, "conv", rounded["layer"])
	require.EqualValues(t, 9, rounded["bits"])
	require.InDelta(t, 0.5/255, rounded["weight"], 0.1/255)
	require.Contains(t, succeed(t, "inspect", "--plan", out), "16-bit weights")
	require.Contains(t, fail(t, exitUsage, "convert", in, "-o", out, "--first-weights", "17"), "want a whole number from 2 to 16")
	require.Contains(t, fail(t, exitJob, "convert", out, "-o", filepath.Join(dir, "again.bcnn"), "--first-weights", "16"), "no layer with real weights reads the bytes of an input")
}

// What made layers binary is said of a model of any format, in lines and in JSON.
func TestConvertExplains(t *testing.T) {
	dir := t.TempDir()
	net := &bcnn.Network{Name: "hand", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 3}, DType: bcnn.Float32}}}
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	net.Append("half", bcnn.Affine{Scale: []float32{0.5}})
	net.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: []float32{0.5, -0.5, 0.5, 2, -2, 2}}})
	in, out := filepath.Join(dir, "hand.bcnn"), filepath.Join(dir, "out.bcnn")
	require.NoError(t, modelfile.Save(in, net))
	require.NotContains(t, succeed(t, "convert", in, "-o", out), "rule")
	require.Contains(t, succeed(t, "convert", in, "-o", out, "--explain"), "dense: its weights are ±α, its input is 0.5·(±1) (rule weights)\n")
	var c conversion
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "convert", in, "-o", out, "--explain", "--json")), &c))
	require.Equal(t, []finding{{Layer: "dense", Rule: "weights", Text: "its weights are ±α, its input is 0.5·(±1)"}}, c.Findings)
	net.Layers[1].Op = bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{0.25}}
	moved := filepath.Join(dir, "moved.bcnn")
	require.NoError(t, modelfile.Save(moved, net))
	require.Contains(t, succeed(t, "convert", moved, "-o", out, "--explain"), "its input is 0.5·(±1) +0.25 (rule weights)\n")
	// Nothing is left to be found.
	require.NotContains(t, succeed(t, "convert", out, "-o", in, "--explain"), "rule")
}
