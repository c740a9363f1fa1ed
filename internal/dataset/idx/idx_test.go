package idx

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func encode(t testing.TB, a *Array) []byte {
	var b bytes.Buffer
	require.NoError(t, Write(&b, a))
	return b.Bytes()
}

func compress(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestReadIsTheInverseOfWrite(t *testing.T) {
	for _, a := range []*Array{
		{Dims: []int{3}, Data: []uint8{7, 8, 9}},
		{Dims: []int{0, 28, 28}, Data: []uint8{}},
		{Dims: []int{2, 1, 2, 3}, Data: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}},
	} {
		data := encode(t, a)
		back, err := Read(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, a, back)
		back, err = Read(bytes.NewReader(compress(t, data)))
		require.NoError(t, err)
		require.Equal(t, a, back)
	}
}

func TestHeaderBytes(t *testing.T) {
	a := &Array{Dims: []int{2, 258}, Data: make([]uint8, 516)}
	require.Equal(t, []byte{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 1, 2}, encode(t, a)[:12])
}

func TestLoadNamesTheFileAndTheCause(t *testing.T) {
	good := encode(t, &Array{Dims: []int{3}, Data: []uint8{7, 8, 9}})
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "no IDX file"},
		{"text", []byte("hello world"), "two zero bytes"},
		{"floats", []byte{0, 0, 0x0d, 1, 0, 0, 0, 1, 0, 0, 0, 0}, "type 0x0d"},
		{"no dimensions", []byte{0, 0, 8, 0}, "0 dimensions"},
		{"many dimensions", []byte{0, 0, 8, 9}, "9 dimensions"},
		{"short header", good[:6], "dimensions: unexpected EOF"},
		{"short data", good[:len(good)-1], "2 bytes of data"},
		{"long data", append(bytes.Clone(good), 0), "goes on"},
		{"huge", []byte{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, "more than"},
		{"claims 1 GiB", []byte{0, 0, 8, 1, 64, 0, 0, 0, 1}, "1 bytes of data"},
		{"broken gzip", compress(t, good)[:12], "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.idx")
			require.NoError(t, os.WriteFile(path, c.data, 0o644))
			_, err := Load(path)
			require.ErrorContains(t, err, "x.idx")
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(os.DevNull)
	require.EqualError(t, err, os.DevNull+": not a regular file")
}

func TestWriteRefusesWhatReadWould(t *testing.T) {
	for _, a := range []*Array{
		{}, {Dims: []int{1, 1, 1, 1, 1}, Data: []uint8{1}}, {Dims: []int{2}, Data: []uint8{1}}, {Dims: []int{-1}},
	} {
		require.Error(t, Write(&bytes.Buffer{}, a))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(f, &Array{Dims: []int{3}, Data: []uint8{7, 8, 9}}))
	f.Add(compress(f, encode(f, &Array{Dims: []int{1, 2, 2}, Data: []uint8{1, 2, 3, 4}})))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 { // a small gzip file may unpack to very much
			return
		}
		a, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		back, err := Read(bytes.NewReader(encode(t, a)))
		require.NoError(t, err)
		require.Equal(t, a, back)
	})
}
