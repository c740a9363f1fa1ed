package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// parts reads an array so many rows at a time, which must be those of the whole.
func parts(t *testing.T, f *File, name string, step int, whole *Array) {
	r, err := f.Array(name)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, whole.Shape, r.Shape())
	require.Equal(t, whole.Type(), r.Type())
	row := whole.Len() / whole.Shape[0]
	for from := 0; from < whole.Shape[0]; from += step {
		a, err := r.Next(step)
		require.NoError(t, err)
		n := min(step, whole.Shape[0]-from)
		require.Equal(t, append([]int{n}, whole.Shape[1:]...), a.Shape)
		require.Equal(t, whole.data[from*row*whole.typ.size:][:len(a.data)], a.data)
		require.Equal(t, int64(from*row), a.Index(0))
		require.Equal(t, n*row, a.Len())
	}
	a, err := r.Next(step)
	require.NoError(t, err)
	require.Zero(t, a.Len())
}

// Rows are the same however many are read at a time, from files and from streams: of all types,
// byte orders and orders of elements that NumPy writes.
func TestRows(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		from := open(t, readFile(t, "numpy.npz"))
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, name := range from.Names() { // as they are, compressed or not
			r, err := from.parts[name].Open()
			require.NoError(t, err)
			method := zip.Store
			if compressed {
				method = zip.Deflate
			}
			w, err := z.CreateHeader(&zip.FileHeader{Name: name + ExtensionNPY, Method: method})
			require.NoError(t, err)
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			_, err = w.Write(data)
			require.NoError(t, err)

			whole, err := from.Read(name)
			require.NoError(t, err)
			if len(whole.Shape) == 0 || whole.Shape[0] == 0 {
				continue
			}
			for step := 1; step < 4; step++ {
				parts(t, open(t, data), "", step, whole)
				stream, err := OpenStream(iotest.OneByteReader(bytes.NewReader(data)))
				require.NoError(t, err)
				parts(t, stream, "", step, whole)
				_, err = stream.Array("")
				require.ErrorContains(t, err, "only once")
			}
		}
		require.NoError(t, z.Close())
		stream, err := OpenStream(&b)
		require.NoError(t, err)
		for _, name := range from.Names() {
			whole, err := from.Read(name)
			require.NoError(t, err)
			if len(whole.Shape) > 0 && whole.Shape[0] > 0 {
				parts(t, stream, name, 2, whole)
			}
		}
	}
}

// endless gives zeros behind what it begins with, and counts them.
type endless struct {
	start []byte
	read  int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.start)
	e.start = e.start[n:]
	if n == 0 {
		clear(b)
		n = len(b)
	}
	e.read += n
	return n, nil
}

// What stands at the front of a stream decides, whatever follows.
func TestStreams(t *testing.T) {
	e := &endless{}
	_, err := OpenStream(e)
	require.ErrorIs(t, err, errKind)
	require.Less(t, e.read, 1<<12)
	e = &endless{start: []byte("PK")}
	_, err = OpenStream(e)
	require.ErrorContains(t, err, "more than 67108864 bytes of an .npz file")
	require.Less(t, e.read, 2*MaxBuffered)
	_, err = OpenStream(bytes.NewReader(nil))
	require.ErrorIs(t, err, errKind)
	_, err = OpenStream(iotest.ErrReader(errors.New("broken pipe")))
	require.ErrorContains(t, err, "broken pipe")

	const header = "{'descr': '<f4', 'fortran_order': %v, 'shape': (%s), }"
	f, err := OpenStream(&endless{start: testFile(fmt.Sprintf(header, "False", "3, 2"))})
	require.NoError(t, err)
	r, err := f.Array("")
	require.NoError(t, err)
	_, err = r.Next(2)
	require.NoError(t, err)
	_, err = r.Next(2)
	require.ErrorIs(t, err, errAfter)

	f, err = OpenStream(&endless{start: testFile(fmt.Sprintf(header, "True", "1000000000, 2"))})
	require.NoError(t, err)
	_, err = f.Array("")
	require.ErrorContains(t, err, "Fortran order of 8000000000 bytes")

	// More than fits is read row by row.
	f, err = OpenStream(&endless{start: testFile(fmt.Sprintf(header, "False", "2000000000, 2"))})
	require.NoError(t, err)
	r, err = f.Array("")
	require.NoError(t, err)
	for range 3 {
		a, err := r.Next(4)
		require.NoError(t, err)
		require.Equal(t, 8, a.Len())
	}
	_, err = r.Next(r.rows)
	require.ErrorContains(t, err, "more than")
}

// allocated returns the bytes that a function takes from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Memory is taken for bytes that are there, whatever the headers claim.
func TestMemory(t *testing.T) {
	huge := testFile("{'descr': '|u1', 'fortran_order': False, 'shape': (400000000,)}", make([]byte, 1000)...)
	lying := zipped(t, "x.npy", string(huge))
	for i := range lying { // the sizes in the directory, too
		if bytes.HasPrefix(lying[i:], []byte("PK\x01\x02")) {
			binary.LittleEndian.PutUint32(lying[i+20:], 4e8+64)
			binary.LittleEndian.PutUint32(lying[i+24:], 4e8+64)
		}
	}
	for _, data := range [][]byte{huge, zipped(t, "x.npy", string(huge)), lying} {
		require.Less(t, allocated(func() {
			f := open(t, data)
			_, err := f.Read(f.Names()[0])
			require.Error(t, err)
		}), uint64(4<<20))
	}
	f, err := OpenStream(bytes.NewReader(huge))
	require.NoError(t, err)
	require.Less(t, allocated(func() {
		_, err := f.Read("")
		require.ErrorContains(t, err, "ends in the middle")
	}), uint64(4<<20))
}

// An array that inflates to a thousand times its size is looked at before it is inflated, and
// then row by row.
func TestInflating(t *testing.T) {
	const columns = 1 << 18
	rows := 1 << 10 // 256 MiB
	if testing.Short() {
		rows = 1 << 9
	}
	file := filepath.Join(t.TempDir(), "zeros.npz")
	w, err := os.Create(file)
	require.NoError(t, err)
	defer w.Close()
	z := zip.NewWriter(w)
	for name, order := range map[string]string{"x": "False", "y": "True"} {
		part, err := z.Create(name + ExtensionNPY)
		require.NoError(t, err)
		_, err = part.Write(testFile(fmt.Sprintf("{'descr': '|u1', 'fortran_order': %s, 'shape': (%d, %d), }", order, rows, columns)))
		require.NoError(t, err)
		_, err = io.CopyN(part, &endless{}, int64(rows)*columns)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	size, err := w.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	require.Less(t, size, int64(1<<20))

	f, err := Open(w, size)
	require.NoError(t, err)
	var r *Reader
	require.Less(t, allocated(func() { r, err = f.Array("x") }), uint64(1<<20))
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, []int{rows, columns}, r.Shape())
	require.Less(t, allocated(func() {
		for range rows / 8 {
			a, err := r.Next(8)
			require.NoError(t, err)
			require.Equal(t, 8*columns, a.Len())
		}
	}), uint64(8<<20))
	_, err = f.Array("y")
	require.ErrorContains(t, err, "numpy.ascontiguousarray")
}
