package onnx

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestExternalData reads weights from a file beside the model and nowhere else.
func TestExternalData(t *testing.T) {
	weights := testTensor{name: "w", typ: pb.Float, dims: []int{2, 3, 1, 1}, values: []float64{1, -1, 1, 1, 1, -1}}
	raw := weights.raw()
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "w.bin"), raw, 0o600))
	dir := filepath.Join(outside, "model")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.bin"), append(make([]byte, 8), raw...), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "w.bin"), raw, 0o600))
	links := map[string]string{
		"link.bin": filepath.Join(outside, "w.bin"), "up.bin": filepath.Join("..", "w.bin"), "inside.bin": filepath.Join("sub", "w.bin"),
	}
	tests := []struct {
		location, offset, length, want string
	}{
		{"w.bin", "8", "24", ""},
		{"w.bin", "8", "", ""},
		{"sub/w.bin", "", "", ""},
		{"sub/../w.bin", "8", "24", ""},
		{"inside.bin", "0", "24", ""},
		{"w.bin", "9", "24", "but the file has 32"},
		{"w.bin", "0", "20", "length is 20, want 24"},
		{"w.bin", "-1", "24", `offset is "-1"`},
		{"w.bin", "9223372036854775807", "24", "but the file has 32"},
		{"w.bin", "0", "many", `length is "many"`},
		{"absent.bin", "0", "24", "absent.bin"},
		{"../w.bin", "0", "24", "outside"},
		{filepath.Join(outside, "w.bin"), "0", "24", "outside"},
		{"link.bin", "0", "24", "escapes"},
		{"up.bin", "0", "24", "escapes"},
		{"sub", "0", "24", "sub: is a directory"},
		{"", "0", "24", "whose name is missing"},
	}
	for _, test := range tests {
		t.Run(test.location+" "+test.offset+" "+test.length, func(t *testing.T) {
			if target := links[test.location]; target != "" {
				testenv.Symlink(t, target, filepath.Join(dir, test.location))
			}
			w := weights
			w.external = map[string]string{}
			for k, v := range map[string]string{"location": test.location, "offset": test.offset, "length": test.length} {
				if v != "" {
					w.external[k] = v
				}
			}
			m := testModel{input: image(3, 4, 4), nodes: []testNode{op("Conv", "x w", "y")}, inits: []testTensor{w}, output: "y"}
			path := filepath.Join(dir, "model.onnx")
			require.NoError(t, os.WriteFile(path, m.encode(), 0o600))
			net, _, err := Load(t.Context(), path, Options{})
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				require.ErrorContains(t, err, path)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []uint64{0b101, 0b011}, net.Layers[0].Op.(bcnn.Conv2D).Weights.Bits)
		})
	}
}

// splitModel is a model whose weights are in another file.
func splitModel() (model, weights []byte) {
	w := testTensor{name: "w", typ: pb.Float, dims: []int{2, 3, 1, 1}, values: []float64{1, -1, 1, 1, 1, -1}}
	weights = append(make([]byte, 8), w.raw()...)
	w.external = map[string]string{"location": "w.bin", "offset": "8"}
	m := testModel{input: image(3, 4, 4), nodes: []testNode{op("Conv", "x w", "y")}, inits: []testTensor{w}, output: "y"}
	return m.encode(), weights
}

// TestRead reads a model and the file that it refers to from file systems: one
// whose files can be read anywhere, and one whose files cannot.
func TestRead(t *testing.T) {
	model, weights := splitModel()
	files := map[string][]byte{"a/b/model.onnx": model, "a/b/w.bin": weights}
	memory := fstest.MapFS{}
	var buffer bytes.Buffer
	z := zip.NewWriter(&buffer)
	for name, data := range files {
		memory[name] = &fstest.MapFile{Data: data}
		f, err := z.Create(name)
		require.NoError(t, err)
		_, err = f.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	archive, err := zip.NewReader(bytes.NewReader(buffer.Bytes()), int64(buffer.Len()))
	require.NoError(t, err)
	for name, fsys := range map[string]fs.FS{"memory": memory, "zip": archive} {
		t.Run(name, func(t *testing.T) {
			net, _, err := Read(t.Context(), fsys, "a/b/model.onnx", Options{})
			require.NoError(t, err)
			require.Equal(t, "model", net.Name)
			require.Equal(t, []uint64{0b101, 0b011}, net.Layers[0].Op.(bcnn.Conv2D).Weights.Bits)

			_, _, err = Read(t.Context(), fsys, "a/model.onnx", Options{})
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.ErrorContains(t, err, "a/model.onnx")
			_, _, err = Read(t.Context(), fsys, "a/b", Options{})
			require.ErrorContains(t, err, "a/b: is a directory")
		})
	}
	memory["a/b/w.bin"].Data = weights[:31]
	_, _, err = Read(t.Context(), memory, "a/b/model.onnx", Options{})
	require.ErrorContains(t, err, `tensor "w": external data: w.bin: the tensor takes 24 bytes from byte 8 on, but the file has 31`)
}

// TestDecode imports from memory, where there are no other files.
func TestDecode(t *testing.T) {
	m := testModel{input: image(3, 4, 4), nodes: []testNode{op("Relu", "x", "y")}, output: "y"}
	net, _, err := Decode(t.Context(), m.encode(), Options{Name: "n"})
	require.NoError(t, err)
	require.Equal(t, "n", net.Name)
	model, _ := splitModel()
	_, _, err = Decode(t.Context(), model, Options{})
	require.ErrorContains(t, err, `external data of 1 tensor: "w.bin" cannot be read`)
}

// TestFileBytes holds the files of a model against the limit, as a whole.
func TestFileBytes(t *testing.T) {
	model, weights := splitModel()
	dir := t.TempDir()
	path := filepath.Join(dir, "model.onnx")
	require.NoError(t, os.WriteFile(path, model, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.bin"), weights, 0o600))
	all := int64(len(model) + len(weights))
	for _, limit := range []int64{1, int64(len(model)) - 1, int64(len(model)), all - 1} {
		_, _, err := Load(t.Context(), path, Options{Limits: bcnn.Limits{FileBytes: limit}})
		require.ErrorContains(t, err, "bytes that are allowed", "%d", limit)
		require.ErrorContains(t, err, path)
	}
	_, _, err := Load(t.Context(), path, Options{Limits: bcnn.Limits{FileBytes: all}})
	require.NoError(t, err)
	_, _, err = Decode(t.Context(), model, Options{Limits: bcnn.Limits{FileBytes: int64(len(model)) - 1}})
	require.ErrorContains(t, err, "bytes that are allowed")
	_, _, err = Decode(t.Context(), model, Options{Limits: bcnn.Limits{FileBytes: -1}})
	require.ErrorContains(t, err, "negative")

	// A file of more than 2 GiB is refused before it is read.
	require.NoError(t, os.Truncate(path, 1<<31))
	_, _, err = Load(t.Context(), path, Options{})
	require.ErrorContains(t, err, "2147483648 bytes are more than an ONNX file can have")
}

// TestLinks opens a model through a link, whose folder is that of the link.
func TestLinks(t *testing.T) {
	model, weights := splitModel()
	elsewhere, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "m"), model, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.bin"), weights, 0o600))
	path := filepath.Join(dir, "model.onnx")
	testenv.Symlink(t, filepath.Join(elsewhere, "m"), path)
	_, _, err := Load(t.Context(), path, Options{})
	require.NoError(t, err)
}

// TestMissingFile says of a file that is not there once how many tensors are in it.
func TestMissingFile(t *testing.T) {
	m := testModel{input: image(3, 4, 4), output: "y2"}
	from := "x"
	for i := range 3 {
		w := testTensor{name: fmt.Sprint("w", i), typ: pb.Float, dims: []int{3, 3, 1, 1}, external: map[string]string{"location": "w.data"}}
		m.inits = append(m.inits, w)
		to := fmt.Sprint("y", i)
		m.nodes = append(m.nodes, op("Conv", from+" "+w.name, to))
		from = to
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	require.NoError(t, os.WriteFile(path, m.encode(), 0o600))
	_, _, err := Load(t.Context(), path, Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path+": external data of 3 tensors: w.data: ")
	require.NotContains(t, err.Error(), "\n")
}
