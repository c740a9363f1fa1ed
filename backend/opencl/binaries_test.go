//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/internal/tuning"
	"github.com/bitcnn/bitcnn/kernels"
)

// withBinaries is a testDevice that keeps its programs in a folder.
func withBinaries(t *testing.T, dir string) *device {
	d := testDevice(t)
	d.binaries = tuning.ProgramsIn(dir, "opencl")
	return d
}

// TestBinaries: programs are made of what was compiled before, and compiled again where that is
// damaged or the driver does not take it.
func TestBinaries(t *testing.T) {
	dir := t.TempDir()
	files := func() map[string]string {
		all := make(map[string]string)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			all[e.Name()] = string(data)
		}
		return all
	}
	requireReference(t, withBinaries(t, dir), small(), backend.Options{}, 2)
	first := files()
	require.NotEmpty(t, first)
	d := withBinaries(t, dir)
	requireReference(t, d, small(), backend.Options{}, 2)
	require.Equal(t, first, files())
	require.Empty(t, d.Info().Refused)
	spoil := func(data string) string { return data[:len(data)-1] + "!" }
	for name, data := range first {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(spoil(data)), 0o600))
	}
	requireReference(t, withBinaries(t, dir), small(), backend.Options{}, 2)
	require.Len(t, files(), len(first))
	for name, data := range files() {
		require.NotEqual(t, spoil(first[name]), data)
	}
}

// TestBinaryIsTaken puts the binary of another program in the place of one.
func TestBinaryIsTaken(t *testing.T) {
	d := withBinaries(t, t.TempDir())
	text, err := kernels.CL.ReadFile("cl/probe.cl")
	require.NoError(t, err)
	source := string(text)
	spoiled := strings.Replace(source, "fma(a, b, c)", "a * b + c", 1)
	lack, err := d.probeSource(source)
	require.NoError(t, err)
	require.Empty(t, lack)
	p, err := d.compile(spoiled, d.form())
	require.NoError(t, err)
	binary, err := shim.Binary(p.Program)
	require.NoError(t, err)
	require.NotEmpty(t, binary)
	p.Release()
	d.binaries.Put(binary, d.driver, source, d.form())
	lack, err = d.probeSource(source)
	require.NoError(t, err)
	require.Contains(t, lack, "fma")
	require.Empty(t, d.Info().Refused)

	d.binaries.Put([]byte("this is no program"), d.driver, source, d.form())
	for range 2 { // the second time it is there again
		lack, err = d.probeSource(source)
		require.NoError(t, err)
		require.Empty(t, lack)
		require.Len(t, d.Info().Refused, 1)
		require.Contains(t, d.Info().Refused[0], "clCreateProgramWithBinary: CL_INVALID_BINARY")
	}
}
