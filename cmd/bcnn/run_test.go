package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// readArrays returns the arrays of a file by their names.
func readArrays(t *testing.T, data []byte) map[string]*npy.Array {
	t.Helper()
	f, err := npy.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	all := map[string]*npy.Array{}
	for _, name := range f.Names() {
		all[name], err = f.Read(name)
		require.NoError(t, err)
	}
	return all
}

func arraysOf(t *testing.T, file string) map[string]*npy.Array {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return readArrays(t, data)
}

func floatsOf(t *testing.T, a *npy.Array) []float32 {
	v := make([]float32, a.Len())
	require.NoError(t, npy.Values(v, a, 0))
	return v
}

// saveArray writes an .npz file of float32 arrays: name, shape and values in turns.
func saveArray(t *testing.T, list ...npy.Named) string {
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, list))
	return writeFile(t, filepath.Join(t.TempDir(), "arrays.npz"), b.String())
}

func array(name string, shape []int, values ...float32) npy.Named {
	return npy.Named{Name: name, Array: npy.From(shape, values)}
}

// lightPixels are the pixels of a batch of images with so many light ones.
func lightPixels(counts ...int) (values []float32) {
	for _, n := range counts {
		for _, p := range lightImage(n).Pix {
			values = append(values, float32(p))
		}
	}
	return values
}

// bireal is a network as PyTorch has exported it; testdata/reference.py has made the
// reference.
const (
	bireal          = "bireal.old"
	birealReference = "testdata/bireal.old.npz"
)

// A network gives what PyTorch gives, from its arrays in NCHW, as an ONNX file and as a
// model file, in batches of any size.
func TestRunONNX(t *testing.T) {
	onnx := exported(t, bireal)
	model := filepath.Join(t.TempDir(), "model.bcnn")
	succeed(t, "convert", onnx, "-o", model)
	want := arraysOf(t, birealReference)["output"]
	for _, args := range [][]string{
		{"--model", onnx}, {"--model", model}, {"--model", model, "--batch", "1"}, {"--model", model, "--batch", "2", "--device", "cpu", "--threads", "1"},
	} {
		file := filepath.Join(t.TempDir(), "y.npz")
		text := succeed(t, append([]string{"run", "--input", birealReference, "--output", file}, args...)...)
		require.Equal(t, file+": output 3×5 float32, on cpu\n", text)
		got := arraysOf(t, file)
		require.Len(t, got, 1)
		require.Equal(t, []int{3, 5}, got["output"].Shape)
		for i, v := range floatsOf(t, got["output"]) {
			require.InDelta(t, floatsOf(t, want)[i], v, 1e-5)
		}
	}
}

// What was not imported reads NHWC and has names of its own.
func TestRunLight(t *testing.T) {
	model := saveLightNet(t)
	want := []float32{16, -16, -16, 16, 2, -2}
	in := array("anything", []int{3, 4, 4, 1}, lightPixels(16, 0, 9)...)
	other := array("other", []int{1}, 7)
	renamed := in
	renamed.Name = "input"
	for _, file := range []string{saveArray(t, in), saveArray(t, other, renamed)} {
		for _, name := range []string{"y.npz", "y.npy"} {
			out := filepath.Join(t.TempDir(), name)
			succeed(t, "run", "-m", model, "-i", file, "-o", out)
			for name, a := range arraysOf(t, out) {
				require.Contains(t, []string{"output", ""}, name)
				require.Equal(t, []int{3, 2}, a.Shape)
				require.Equal(t, want, floatsOf(t, a))
			}
		}
	}
	// Through pipes.
	var b bytes.Buffer
	require.NoError(t, npy.WriteOne(&b, in.Array))
	for _, batch := range []string{"1", "2", "32"} {
		stdin(t, writeFile(t, filepath.Join(t.TempDir(), "x.npy"), b.String()))
		require.Equal(t, want, floatsOf(t, readArrays(t, []byte(succeed(t, "run", "-m", model, "-i", "-", "-o", "-", "--batch", batch)))["output"]))
	}
	stdin(t, saveArray(t, in))
	require.Equal(t, want, floatsOf(t, readArrays(t, []byte(succeed(t, "run", "-m", model, "-i", "-", "-o", "-")))["output"]))
}

// What is no array, or is of another shape, is refused by its first bytes, whatever follows.
func TestRunEndlessInput(t *testing.T) {
	const zeros = "/dev/zero"
	if _, err := os.Stat(zeros); err != nil {
		t.Skip(err)
	}
	stdin(t, zeros)
	require.Contains(t, fail(t, exitJob, "run", "-m", saveLightNet(t), "-i", "-", "-o", "-"), "standard input: neither an .npy nor an .npz file")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	old := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = old }()
	go func() { // until nobody reads
		header := "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 5), }"
		w.WriteString("\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), 0}) + header)
		for err == nil {
			_, err = w.Write(make([]byte, 1<<16))
		}
		w.Close()
	}()
	require.Contains(t, fail(t, exitJob, "run", "-m", saveLightNet(t), "-i", "-", "-o", "-"), `standard input: "input": an array of 1000000000×5, want N×4×4×1`)
	r.Close()
}

// The output of a network that ends in a softmax are probabilities.
func TestRunSoftmax(t *testing.T) {
	net := lightNet()
	net.Append("softmax", bcnn.Softmax{})
	model := filepath.Join(t.TempDir(), "softmax.bcnn")
	require.NoError(t, modelfile.Save(model, net))
	out := filepath.Join(t.TempDir(), "y.npy")
	succeed(t, "run", "-m", model, "-i", saveArray(t, array("x", []int{2, 4, 4, 1}, lightPixels(8, 9)...)), "-o", out)
	p := 1 / (1 + math.Exp(-4))
	require.Equal(t, []float32{0.5, 0.5, float32(p), float32(1 - p)}, floatsOf(t, arraysOf(t, out)[""]))

	net.Layers[len(net.Layers)-1].Op = bcnn.Softmax{Log: true}
	require.NoError(t, modelfile.Save(model, net))
	succeed(t, "run", "-m", model, "-i", saveArray(t, array("x", []int{2, 4, 4, 1}, lightPixels(8, 9)...)), "-o", out)
	got := floatsOf(t, arraysOf(t, out)[""])
	for i, want := range []float64{math.Log(0.5), math.Log(0.5), math.Log(p), math.Log1p(-p)} {
		require.InDelta(t, want, got[i], 1e-6)
	}
}

func TestRunErrors(t *testing.T) {
	model, out := saveLightNet(t), filepath.Join(t.TempDir(), "y.npz")
	pixels := lightPixels(1)
	half := append([]float32{0.5}, pixels[1:]...)
	nobody := array("nobody", []int{1}, 1)
	text := writeFile(t, filepath.Join(t.TempDir(), "x.npz"), "text")
	for _, c := range []struct{ file, want string }{
		{saveArray(t, array("x", []int{1, 4, 4, 1}, half...)), `"input": element 0 is 0.5, which uint8 cannot hold exactly`},
		{saveArray(t, array("x", []int{4, 4, 1}, pixels...)), `"input": an array of 4×4×1, want N×4×4×1, images first`},
		{saveArray(t, array("x", []int{1, 1, 4, 4}, pixels...)), `an array of 1×1×4×4, want N×4×4×1`},
		{saveArray(t, array("x", []int{0, 4, 4, 1})), `"input": an array without images`},
		{saveArray(t, array("x", []int{1, 4, 4, 1}, pixels...), nobody), `no array "input"; there are "x", "nobody"`},
		{text, "neither an .npy nor an .npz file"},
		{filepath.Join(t.TempDir(), "absent.npz"), absent(t)},
	} {
		message := fail(t, exitJob, "run", "-m", model, "-i", c.file, "-o", out)
		require.Contains(t, message, c.file+": ")
		require.Contains(t, message, c.want)
		require.NoFileExists(t, out)
	}
	x := saveArray(t, array("x", []int{1, 4, 4, 1}, pixels...))
	require.Contains(t, fail(t, exitUsage, "run", "-m", model, "-i", x), "run needs --input")
	require.Contains(t, fail(t, exitUsage, "run", "-m", model, "-o", out), "run needs --input")
	require.Contains(t, fail(t, exitUsage, "run", "-m", model, "-i", x, "-o", "y.csv"), "must be named *.npz or *.npy")
	require.Contains(t, fail(t, exitJob, "run", "-m", model, "-i", x, "-o", out, "--isa", "abacus"), "abacus")
	stdin(t, text)
	require.Contains(t, fail(t, exitJob, "run", "-m", model, "-i", "-", "-o", out), "standard input: neither")
}

// Elements of other types serve if they are exact.
func TestRunIntegers(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	header := "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 4, 4, 1), }"
	require.NoError(t, binary.Write(&b, binary.LittleEndian, uint16(len(header))))
	b.WriteString(header)
	for _, p := range lightImage(10).Pix {
		require.NoError(t, binary.Write(&b, binary.LittleEndian, int64(p)))
	}
	file := writeFile(t, filepath.Join(t.TempDir(), "x.npy"), b.String())
	out := filepath.Join(t.TempDir(), "y.npy")
	succeed(t, "run", "-m", saveLightNet(t), "-i", file, "-o", out)
	require.Equal(t, []float32{4, -4}, floatsOf(t, arraysOf(t, out)[""]))
}

// saveSumNet writes a network with two inputs, whose sum and product it gives.
func saveSumNet(t *testing.T) string {
	vector := bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 2}, DType: bcnn.Float32}
	net := &bcnn.Network{Name: "sum", Inputs: []bcnn.Input{vector, vector}, Outputs: []int{1, 0}}
	net.Append("product", bcnn.Mul{}, bcnn.NetworkInput, bcnn.NetworkInput-1)
	net.Append("sum", bcnn.Add{}, bcnn.NetworkInput, bcnn.NetworkInput-1)
	file := filepath.Join(t.TempDir(), "sum.bcnn")
	require.NoError(t, modelfile.Save(file, net))
	return file
}

func TestRunSeveral(t *testing.T) {
	model, out := saveSumNet(t), filepath.Join(t.TempDir(), "y.npz")
	x, y := array("input", []int{3, 2}, 1, 2, 3, 4, 5, 6), array("input 2", []int{3, 2}, 10, 20, 30, 40, 50, 60)
	sum, product := array("output", []int{3, 2}, 11, 22, 33, 44, 55, 66), array("output 2", []int{3, 2}, 10, 40, 90, 160, 250, 360)
	in := saveArray(t, x, y)
	for _, batch := range []string{"1", "2", "3"} {
		require.Equal(t, out+": output 3×2 float32, on cpu\n"+out+": output 2 3×2 float32, on cpu\n",
			succeed(t, "run", "-m", model, "-i", in, "-o", out, "-d", "cpu", "--batch", batch))
		got := arraysOf(t, out)
		require.Len(t, got, 2)
		for _, want := range []npy.Named{sum, product} {
			require.Equal(t, want.Shape, got[want.Name].Shape)
			require.Equal(t, floatsOf(t, want.Array), floatsOf(t, got[want.Name]))
		}
	}
	require.Contains(t, succeed(t, "inspect", model), "arrays: input N×2, input 2 N×2 -> output N×2, output 2 N×2\n")
	require.Contains(t, succeed(t, "check", "-m", model, "-r", saveArray(t, x, y, sum, product), "-d", "cpu", "--tolerance", "0"),
		"3 images on cpu, 3 with the same arg-max of output, 3 with the same arg-max of output 2\n")
	wrong := product
	wrong.Array = npy.From([]int{3, 2}, []float32{10, 40, 90, 160, 250, 361})
	r := runCommand(t, "check", "-m", model, "-r", saveArray(t, x, y, sum, wrong))
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, `first in "output 2"`)

	require.Contains(t, fail(t, exitUsage, "run", "-m", model, "-i", in, "-o", "y.npy"), "the model has 2 outputs")
	require.Contains(t, fail(t, exitJob, "run", "-m", model, "-i", saveArray(t, x), "-o", out), `no array "input 2"; there are "input"`)
	short := array("input 2", []int{2, 2}, 1, 2, 3, 4)
	require.Contains(t, fail(t, exitJob, "run", "-m", model, "-i", saveArray(t, x, short), "-o", out), `"input 2": it has 2 images, but the input has 3`)
	require.Contains(t, fail(t, exitJob, "check", "-m", model, "-r", saveArray(t, x, sum, product)), `no array for input "input 2"`)
	require.Contains(t, fail(t, exitJob, "classify", "-m", model, "x.png"), "the model has 2 inputs and 2 outputs, not one of each; use 'bcnn run'")
	succeed(t, "bench", "-m", model, "-d", "cpu", "--runs", "2")
	succeed(t, "parity", "-m", model, "-d", "cpu")
}

// Files of LCE take and give packed bits and 8-bit integers: what comes out is what its
// interpreter wrote, byte by byte, from the file and from a model file alike.
func TestRunLCE(t *testing.T) {
	archive, err := zip.OpenReader("../../bcnn/tflite/testdata/lce.zip")
	require.NoError(t, err)
	defer archive.Close()
	dir := t.TempDir()
	for _, name := range []string{"op_bconv_00_int32", "op_bconv_00_int8", "op_bconv_04_int32", "op_bconv_04_int8"} {
		for _, ending := range []string{".tflite", ".in.npy", ".out.npy"} {
			data, err := fs.ReadFile(archive, name+ending)
			require.NoError(t, err)
			writeFile(t, filepath.Join(dir, name+ending), string(data))
		}
		file := filepath.Join(dir, name)
		succeed(t, "convert", file+".tflite", "-o", file+".bcnn")
		for _, model := range []string{file + ".tflite", file + ".bcnn"} {
			out := filepath.Join(dir, "y.npy")
			succeed(t, "run", "-m", model, "-i", file+".in.npy", "-o", out)
			want, err := os.ReadFile(file + ".out.npy")
			require.NoError(t, err)
			got, err := os.ReadFile(out)
			require.NoError(t, err)
			require.Equal(t, want, got, name)
			succeed(t, "check", "-m", model, "-i", file+".in.npy", "-r", file+".out.npy", "--tolerance", "0")
		}
	}
}

// What a network computes otherwise than its file is said wherever the file is used, not only where
// it is converted.
func TestDeviationsAreSaid(t *testing.T) {
	file := exported(t, "float64.old")
	const want = "deviates from the file: "
	for _, args := range [][]string{{"inspect", file}, {"convert", file, "-o", filepath.Join(t.TempDir(), "m.bcnn")}} {
		require.Contains(t, succeed(t, args...), want)
	}
	model := filepath.Join(t.TempDir(), "m.bcnn")
	succeed(t, "convert", file, "-o", model)
	require.Contains(t, succeed(t, "inspect", model), want)
	var report struct {
		Report struct {
			Deviations []string `json:"deviations"`
		} `json:"report"`
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "inspect", "--json", model)), &report))
	require.Len(t, report.Report.Deviations, 1)
	x := saveArray(t, array("input", []int{1, 3, 8, 8}, make([]float32, 3*8*8)...))
	r := runCommand(t, "run", "--model", model, "--input", x, "--output", filepath.Join(t.TempDir(), "y.npz"))
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Equal(t, "bcnn: "+model+" "+want+report.Report.Deviations[0]+"\n", r.stderr)
}
