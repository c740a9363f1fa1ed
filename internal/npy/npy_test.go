package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return f
}

func readFile(t testing.TB, name string) []byte {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

func floats(t testing.TB, a *Array) []float64 {
	v := make([]float64, a.Len())
	require.NoError(t, Values(v, a, 0))
	return v
}

// What NumPy has written: testdata/make.py.
func TestFilesOfNumPy(t *testing.T) {
	f := open(t, readFile(t, "numpy.npz"))
	types := map[string]bool{}
	for _, name := range f.Names() {
		a, err := f.Read(name)
		require.NoError(t, err, name)
		want := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		switch name {
		case "scalar":
			require.Equal(t, []int{}, a.Shape)
			want = []float64{7}
		case "vector":
			require.Equal(t, []int{5}, a.Shape)
			want = want[:5]
		case "empty":
			require.Equal(t, []int{0, 3}, a.Shape)
			want = []float64{}
		default:
			dtype, _, _ := strings.Cut(name, " ")
			require.Equal(t, dtype, a.Type())
			require.Equal(t, []int{2, 3, 2}, a.Shape, name)
			types[dtype] = true
			if dtype == "bool" {
				want = []float64{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
			}
		}
		require.Equal(t, want, floats(t, a), name)
	}
	require.Len(t, types, 12)
	require.Len(t, f.Names(), 12*2*2+3)

	f = open(t, readFile(t, "stored.npz"))
	require.Equal(t, []string{"x", "a/b:0"}, f.Names())
	a, err := f.Read("a/b:0")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2}, floats(t, a))
	_, err = f.Read("y")
	require.ErrorIs(t, err, fs.ErrNotExist)

	for version := 1; version <= 3; version++ {
		f := open(t, readFile(t, fmt.Sprintf("version%d.npy", version)))
		require.Equal(t, []string{""}, f.Names())
		a, err := f.Read("")
		require.NoError(t, err)
		require.Equal(t, []int{2, 3}, a.Shape)
		require.Equal(t, []float64{0, 1, 2, 3, 4, 5}, floats(t, a))
	}
}

// What is written is what NumPy writes, byte by byte, and can be read.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	a := From([]int{2, 3}, []float32{0, 1, 2, 3, 4, 5})
	require.NoError(t, WriteOne(&b, a))
	require.Equal(t, readFile(t, "version1.npy"), b.Bytes())

	b.Reset()
	inf := float32(math.Inf(1))
	list := []Named{{"x", a}, {"a/b:0", From([]int{3}, []float32{-0.5, inf, 1e-45})}, {"/none", From([]int{0, 2}, []float32(nil))}, {"one", From(nil, []float32{9})}}
	require.NoError(t, Write(&b, list))
	f := open(t, b.Bytes())
	for _, want := range list {
		got, err := f.Read(want.Name)
		require.NoError(t, err)
		require.Equal(t, append([]int{}, want.Shape...), got.Shape)
		require.Equal(t, floats(t, want.Array), floats(t, got))
	}
	for _, name := range []string{"", "../x", "a/../b"} {
		require.ErrorContains(t, Write(&b, []Named{{name, a}}), "cannot be called")
	}
}

// Elements are taken exactly or not at all.
func TestValues(t *testing.T) {
	array := func(descr string, v any) *Array {
		var data bytes.Buffer
		require.NoError(t, binary.Write(&data, binary.LittleEndian, v))
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,)}", descr, binary.Size(v)/int(descr[2]-'0'))
		a, err := open(t, testFile(header, data.Bytes()...)).Read("")
		require.NoError(t, err)
		return a
	}
	for _, c := range []struct {
		a                     *Array
		bytes, single, double string // what the last element is refused with
	}{
		{array("<f8", []float64{1, 255}), "", "", ""},
		{array("<f8", []float64{1, 256}), "element 1 is 256, which uint8 cannot hold exactly", "", ""},
		{array("<f8", []float64{1, -1}), "element 1 is -1", "", ""},
		{array("<f8", []float64{1, 0.5}), "element 1 is 0.5", "", ""},
		{array("<f8", []float64{1, 0.1}), "element 1 is 0.1", "element 1 is 0.1, which float32 cannot hold exactly: round the array with .astype(numpy.float32)", ""},
		{array("<f8", []float64{1, 1e300}), "element 1 is 1e+300", "element 1 is 1e+300", ""},
		{array("<f8", []float64{1, math.Inf(-1)}), "element 1 is -Inf", "", ""},
		{array("<f8", []float64{1, math.NaN()}), "element 1 is NaN", "", ""},
		{array("<i4", []int32{1, 1 << 24}), "element 1 is 16777216", "", ""},
		{array("<i4", []int32{1, -1<<24 - 1}), "element 1 is -16777217", "element 1 is -16777217", ""},
		{array("<i8", []int64{1, 1<<53 + 1}), "element 1 is 9007199254740993", "element 1 is 9007199254740993", "element 1 is 9007199254740993, which float64 cannot hold exactly"},
		{array("<i8", []int64{1, math.MaxInt64}), "element 1", "element 1", "element 1 is 9223372036854775807"},
		{array("<u8", []uint64{1, math.MaxUint64}), "element 1", "element 1", "element 1 is 18446744073709551615"},
		{array("<u8", []uint64{1, 1 << 63}), "element 1", "", ""},
		{array("<f2", []uint16{1, 0x3c00}), "", "", ""},     // 1
		{array("<f2", []uint16{1, 1}), "element 1", "", ""}, // 2⁻²⁴
		{array("|i1", []int8{1, -128}), "element 1", "", ""},
	} {
		last := c.a.Len() - 1
		check := func(err error, want string) {
			t.Helper()
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
		check(Values(make([]uint8, 1), c.a, last), c.bytes)
		check(Values(make([]float32, 1), c.a, last), c.single)
		check(Values(make([]float64, 1), c.a, last), c.double)
	}
	halves := array("<f2", []uint16{0x3555, 0xc000, 0x7bff, 0x0001, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0x0400})
	got := floats(t, halves)
	require.True(t, math.IsNaN(got[7]))
	got[7] = 0
	require.Equal(t, []float64{0.333251953125, -2, 65504, math.Ldexp(1, -24), math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 0, math.Ldexp(1, -14)}, got)
}

// testFile is an .npy file with this header and data.
func testFile(header string, data ...byte) []byte {
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), data...)
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	const good = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }"
	replaced := func(old, new string) []byte {
		require.Contains(t, good, old)
		return testFile(strings.Replace(good, old, new, 1), 1, 2)
	}
	_, err := open(t, testFile(good, 1, 2)).Read("")
	require.NoError(t, err)
	valid := readFile(t, "version1.npy")
	patched := func(at int, b ...byte) []byte {
		c := bytes.Clone(valid)
		copy(c[at:], b)
		return c
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{testFile(good, 1), "ends in the middle"},
		{testFile(good, 1, 2, 3), "bytes after the array"},
		{testFile(good), "ends in the middle"},
		{valid[:7], "ends in the middle"},
		{valid[:9], "ends in the middle"},
		{valid[:50], "ends in the middle"},
		{patched(6, 4), "version 4 of the .npy format"},
		{patched(6, 2), "a header of"},
		{replaced("|u1", "<O8"), `elements of type "<O8" are not supported`},
		{replaced("|u1", "<U3"), `elements of type "<U3"`},
		{replaced("|u1", "<c8"), `elements of type "<c8"`},
		{replaced("|u1", "|f4"), `elements of type "|f4"`},
		{replaced("|u1", ""), `elements of type ""`},
		{replaced("'|u1'", "[('a', '<f4')]"), "record arrays"},
		{replaced("'descr': '|u1', ", ""), "it lacks one of"},
		{replaced("'descr'", "'shape'"), "no '('"},
		{replaced("'descr'", "'x'"), `unknown key "x"`},
		{replaced("'descr': '|u1', ", "'descr': '|u1', 'descr': '|u1', "), `"descr" occurs twice`},
		{replaced("'descr': '|u1', ", "'descr': '|u1' "), "no comma"},
		{replaced("False", "None"), "neither True nor False"},
		{replaced("(2,)", "(2)"), "not a tuple"},
		{replaced("(2,)", "(-2,)"), "not a number"},
		{replaced("(2,)", "(99999999999999999999,)"), "not a number"},
		{replaced("(2,)", "(2147483647, 2147483647, 2147483647)"), "more than 9223372036854775807 bytes"},
		{replaced("(2,)", "("+strings.Repeat("1,", 65)+")"), "more than 64 dimensions"},
		{replaced("}", "} x"), "after the end"},
		{replaced("}", ""), "no quoted name"},
		{replaced("{", ""), `no '{'`},
		{testFile(strings.Replace(good, "|u1", "|b1", 1), 1, 2), "a bool is 2"},
	} {
		_, err := open(t, c.data).Read("")
		require.ErrorContains(t, err, c.want, "%q", c.data)
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "neither"},
		{[]byte("\x89PNG"), "neither"},
		{[]byte("PK\x03\x04 and no directory"), "not a valid .npz file"},
		{zipped(t, "x.txt", good), "without arrays"},
		{zipped(t, "x.npy", good, "x.npy", good), `two arrays have the name "x"`},
	} {
		_, err := Open(bytes.NewReader(c.data), int64(len(c.data)))
		require.ErrorContains(t, err, c.want)
	}
	_, err = open(t, zipped(t, "x.npy", string(valid[:90]))).Read("x")
	require.ErrorContains(t, err, `array "x": the file ends in the middle`)
	spoilt := zipped(t, "x.npy", string(valid))
	at := bytes.Index(spoilt, valid[140:])
	spoilt[at+3]++
	_, err = open(t, spoilt).Read("x")
	require.ErrorIs(t, err, zip.ErrChecksum)
	turned := bytes.Replace(spoilt, []byte("False, "), []byte(" True, "), 1)
	_, err = open(t, turned).Array("x") // whose rows do not come in the order of the file
	require.ErrorIs(t, err, zip.ErrChecksum)
}

// zipped is a zip file of names and contents.
func zipped(t testing.TB, parts ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: parts[i], Method: zip.Store})
		require.NoError(t, err)
		_, err = w.Write([]byte(parts[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

// FuzzOpen reads arbitrary files: errors, or arrays that survive writing and reading.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"stored.npz", "version1.npy", "version2.npy"} {
		f.Add(readFile(f, name))
	}
	f.Add(testFile("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1, 3), }", make([]byte, 12)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, name := range file.Names() {
			a, err := file.Read(name)
			if err != nil {
				continue
			}
			n := 1
			for _, d := range a.Shape {
				n *= d
			}
			require.Equal(t, n, a.Len())
			if n < 1<<12 && len(a.Shape) > 0 && a.Shape[0] > 0 {
				parts(t, file, name, 1+len(data)%3, a)
			}
			values := make([]float64, n)
			failed := Values(values, a, 0)
			var b bytes.Buffer
			require.NoError(t, WriteOne(&b, a))
			back, err := open(t, b.Bytes()).Read("")
			require.NoError(t, err)
			require.Equal(t, a, back)
			if failed == nil && n > 0 {
				require.NoError(t, Values(values[:1], back, n-1))
			}
		}
	})
}
