//go:build linux && (amd64 || arm64) && cgo

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
)

// A network of PyTorch gives a C program what PyTorch gives, for values in PyTorch's order.
func TestLayoutOfPyTorch(t *testing.T) {
	dir := lib(t)
	packed, err := os.Open("../bcnn/onnx/testdata/bireal.old.onnx.gz")
	require.NoError(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	require.NoError(t, err)
	model, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "bireal.onnx")
	require.NoError(t, os.WriteFile(file, model, 0o600))

	reference, err := os.Open("../cmd/bcnn/testdata/bireal.old.npz")
	require.NoError(t, err)
	defer reference.Close()
	arrays, err := npy.OpenStream(reference)
	require.NoError(t, err)
	read := func(name string) []float32 {
		a, err := arrays.Read(name)
		require.NoError(t, err)
		values := make([]float32, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		return values
	}
	x, err := binary.Append(nil, binary.NativeEndian, read("input"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), compile(t, dir, "testdata/layout.c", shared(dir)...), file)
	cmd.Stdin = bytes.NewReader(x)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	answer, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	want := read("output")
	got := make([]float32, len(want))
	n, err := binary.Decode(answer, binary.NativeEndian, got)
	require.NoError(t, err)
	require.Len(t, answer, n)
	for i, v := range got {
		require.InDelta(t, want[i], v, 1e-5)
	}
}
