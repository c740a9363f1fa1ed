package tflite

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
)

// openArrays opens an .npz file, or an .npy file, whose one array has no name.
func openArrays(t testing.TB, data []byte) *npy.File {
	t.Helper()
	f, err := npy.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return f
}

// readArray reads an array of a file.
func readArray(t testing.TB, f *npy.File, name string) *npy.Array {
	t.Helper()
	a, err := f.Read(name)
	require.NoError(t, err)
	return a
}

// values decodes an array whose elements have a type of NumPy that T is.
func numbersOf[T int8 | uint8 | int32 | float32](t testing.TB, a *npy.Array, typ string) []T {
	t.Helper()
	require.Equal(t, typ, a.Type())
	numbers := make([]float64, a.Len())
	require.NoError(t, npy.Values(numbers, a, 0))
	out := make([]T, len(numbers))
	for i, v := range numbers {
		out[i] = T(v)
	}
	return out
}
