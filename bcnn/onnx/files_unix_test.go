//go:build unix

package onnx

import (
	"os"
	"path/filepath"
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
