package tflite

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// array is an array of NumPy in C order, little-endian.
type array struct {
	dtype string // such as "<f4"
	dims  []int
	data  []byte
}

var npyHeader = regexp.MustCompile(`'descr': '([^']*)', 'fortran_order': False, 'shape': \(([^)]*)\)`)

// readArrays reads the arrays of an .npz file.
func readArrays(t *testing.T, file string) map[string]array {
	t.Helper()
	z, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer z.Close()
	out := map[string]array{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		out[strings.TrimSuffix(f.Name, ".npy")] = readArray(t, data)
	}
	return out
}

// readArray reads an .npy file.
func readArray(t testing.TB, data []byte) array {
	t.Helper()
	require.True(t, bytes.HasPrefix(data, []byte("\x93NUMPY\x01\x00")))
	n := 10 + int(binary.LittleEndian.Uint16(data[8:]))
	m := npyHeader.FindStringSubmatch(string(data[:n]))
	require.NotNil(t, m, "%s", data[:n])
	a := array{dtype: m[1], data: data[n:]}
	for d := range strings.SplitSeq(m[2], ",") {
		if d = strings.TrimSpace(d); d != "" {
			size, err := strconv.Atoi(d)
			require.NoError(t, err)
			a.dims = append(a.dims, size)
		}
	}
	return a
}

// values decodes an array whose elements have the type T.
func values[T any](t *testing.T, a array, dtype string) []T {
	t.Helper()
	require.Equal(t, dtype, a.dtype)
	n := 1
	for _, d := range a.dims {
		n *= d
	}
	out := make([]T, n)
	require.NoError(t, binary.Read(bytes.NewReader(a.data), binary.LittleEndian, out))
	return out
}
