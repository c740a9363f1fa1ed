//go:build unix

package onnx

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipes does not open named pipes, which would wait for a writer.
func TestPipes(t *testing.T) {
	model, _ := splitModel()
	dir := t.TempDir()
	path := filepath.Join(dir, "model.onnx")
	require.NoError(t, os.WriteFile(path, model, 0o600))
	for _, pipe := range []string{"w.bin", "pipe.onnx"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, pipe), 0o600))
	}
	_, _, err := Load(t.Context(), path, Options{})
	require.ErrorContains(t, err, "w.bin: not a regular file")
	_, _, err = Read(t.Context(), os.DirFS(dir), "model.onnx", Options{})
	require.ErrorContains(t, err, "w.bin: not a regular file")
	_, _, err = Load(t.Context(), filepath.Join(dir, "pipe.onnx"), Options{})
	require.ErrorContains(t, err, "pipe.onnx: not a regular file")
}

// TestCachedFiles reads weights through the links of a cache that keeps files by their hashes, and
// through no other ones that lead out of the model's folder.
func TestCachedFiles(t *testing.T) {
	model, data := splitModel()
	hash, other := strings.Repeat("0123abcd", 5), strings.Repeat("0123abcd", 8)
	for _, c := range []struct {
		name   string
		folder string            // of the model
		files  map[string][]byte // that hold the weights
		links  map[string]string
		want   string // in the error
	}{
		{"a revision", "r/snapshots/1", map[string][]byte{"r/blobs/" + hash: data}, map[string]string{"r/snapshots/1/w.bin": "../../blobs/" + hash}, ""},
		{"a folder of a revision", "r/snapshots/1/onnx", map[string][]byte{"r/blobs/" + other: data}, map[string]string{"r/snapshots/1/onnx/w.bin": "../../../blobs/" + other}, ""},
		{"a file beside", "r/snapshots/1", map[string][]byte{"r/snapshots/1/x.bin": data}, map[string]string{"r/snapshots/1/w.bin": "x.bin"}, ""},
		{"the model is a link too", "r/snapshots/1", map[string][]byte{"r/blobs/" + hash: data, "r/blobs/" + other: model}, map[string]string{"r/snapshots/1/w.bin": "../../blobs/" + hash, "r/snapshots/1/model.onnx": "../../blobs/" + other}, ""},
		{"no hash", "r/snapshots/1", map[string][]byte{"r/blobs/secret": data}, map[string]string{"r/snapshots/1/w.bin": "../../blobs/secret"}, "escapes"},
		{"another folder", "r/snapshots/1", map[string][]byte{"r/other/" + hash: data}, map[string]string{"r/snapshots/1/w.bin": "../../other/" + hash}, "escapes"},
		{"another repository", "r/snapshots/1", map[string][]byte{"s/blobs/" + hash: data}, map[string]string{"r/snapshots/1/w.bin": "../../../s/blobs/" + hash}, "escapes"},
		{"no snapshots", "r/models/1", map[string][]byte{"r/blobs/" + hash: data}, map[string]string{"r/models/1/w.bin": "../../blobs/" + hash}, "escapes"},
		{"the snapshots themselves", "r/snapshots", map[string][]byte{"r/blobs/" + hash: data}, map[string]string{"r/snapshots/w.bin": "../blobs/" + hash}, "escapes"},
		{"blobs that are a link", "r/snapshots/1", map[string][]byte{"s/" + hash: data}, map[string]string{"r/blobs": "../s", "r/snapshots/1/w.bin": "../../blobs/" + hash}, "escapes"},
		{"a blob that is a link", "r/snapshots/1", map[string][]byte{"r/secret": data, "r/blobs/x": nil}, map[string]string{"r/blobs/" + hash: "../secret", "r/snapshots/1/w.bin": "../../blobs/" + hash}, "escapes"},
		{"a link without a file", "r/snapshots/1", nil, map[string]string{"r/snapshots/1/w.bin": "../../blobs/" + hash}, "escapes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string {
				path := filepath.Join(dir, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				return path
			}
			for name, data := range c.files {
				require.NoError(t, os.WriteFile(at(name), data, 0o600))
			}
			path := at(c.folder + "/model.onnx")
			if c.links[c.folder+"/model.onnx"] == "" {
				require.NoError(t, os.WriteFile(path, model, 0o600))
			}
			for name, to := range c.links {
				require.NoError(t, os.Symlink(to, at(name)))
			}
			_, _, err := Load(t.Context(), path, Options{})
			if c.want == "" {
				require.NoError(t, err)
				t.Chdir(filepath.Dir(path)) // a path without a folder
				_, _, err = Load(t.Context(), "model.onnx", Options{})
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
	dir := t.TempDir() // an absolute link
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.onnx"), model, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, hash), data, 0o600))
	folder := filepath.Join(dir, "model")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "model.onnx"), model, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, hash), filepath.Join(folder, "w.bin")))
	_, _, err := Load(t.Context(), filepath.Join(folder, "model.onnx"), Options{})
	require.ErrorContains(t, err, "escapes")
}
