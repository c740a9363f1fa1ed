// Package npy reads and writes the arrays of NumPy: .npy files and the zip files of
// them, .npz. The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
// Files may come from strangers. The type and the shape of an array can be looked at before
// anything else of it is read, and its rows be read some at a time. What they take in memory
// is bounded by the bytes that the file really has for them, compressed ones by what they
// inflate to.
package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/f32"
)

// Array is an array of numbers in C order: the last dimension runs fastest.
type Array struct {
	Shape []int
	typ   dtype
	data  []byte // little-endian
	first int64  // elements in front of it, of the array that it is a part of; for errors
}

// dtype is a type of elements.
type dtype struct {
	kind byte // as in the format: b (bool), i, u, f
	size int  // bytes
}

func (t dtype) String() string {
	switch t.kind {
	case 'b':
		return "bool"
	case 'i':
		return fmt.Sprintf("int%d", 8*t.size)
	case 'u':
		return fmt.Sprintf("uint%d", 8*t.size)
	}
	return fmt.Sprintf("float%d", 8*t.size)
}

// From returns an array with as many values as the shape has.
func From[T int8 | uint8 | int32 | int64 | float32](shape []int, values []T) *Array {
	var one T
	a := &Array{Shape: slices.Clone(shape)}
	switch any(one).(type) {
	case int8:
		a.typ = dtype{'i', 1}
	case uint8:
		a.typ = dtype{'u', 1}
	case int32:
		a.typ = dtype{'i', 4}
	case int64:
		a.typ = dtype{'i', 8}
	default:
		a.typ = dtype{'f', 4}
	}
	a.data = make([]byte, 0, a.typ.size*len(values))
	a.data, _ = binary.Append(a.data, binary.LittleEndian, values) // fails for other types only
	return a
}

// Type returns the name of the type of the elements, as NumPy calls it.
func (a *Array) Type() string { return a.typ.String() }

// Bytes returns the elements, little-endian. They stay the array's.
func (a *Array) Bytes() []byte { return a.data }

// Len returns the number of elements.
func (a *Array) Len() int { return len(a.data) / a.typ.size }

// Index returns the number of an element in the array that was read in parts.
func (a *Array) Index(i int) int64 { return a.first + int64(i) }

// Number is what elements can be read as.
type Number interface{ ~uint8 | ~float32 | ~float64 }

// Values fills dst with elements, from number from on. One that dst cannot hold exactly
// is an error, which says how to round it in NumPy where that is all that it takes.
func Values[T Number](dst []T, a *Array, from int) error {
	for i := range dst {
		v, exact := a.at(from + i)
		dst[i] = T(v)
		same := float64(dst[i]) == v || v != v && dst[i] != dst[i] // NaN
		if !same || !exact {
			hint := ""
			if T(1)/2 != 0 { // a type with fractions, to which NumPy rounds
				hint = fmt.Sprintf(": round the array with .astype(numpy.%T)", dst[i])
			}
			return fmt.Errorf("element %d is %s, which %T cannot hold exactly%s", a.Index(from+i), a.text(from+i), dst[i], hint)
		}
	}
	return nil
}

// at returns an element, and whether float64 holds it exactly.
func (a *Array) at(i int) (v float64, exact bool) {
	b := a.data[i*a.typ.size:]
	switch a.typ {
	case dtype{'f', 4}:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), true
	case dtype{'f', 8}:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), true
	case dtype{'f', 2}:
		return float64(f32.FromHalf(binary.LittleEndian.Uint16(b))), true
	case dtype{'u', 8}:
		u := binary.LittleEndian.Uint64(b)
		return float64(u), float64(u) < 1<<64 && uint64(float64(u)) == u
	}
	n := a.integer(i)
	return float64(n), float64(n) < 1<<63 && int64(float64(n)) == n
}

// integer returns an element of an integer type but uint64.
func (a *Array) integer(i int) int64 {
	b := a.data[i*a.typ.size:]
	signed := a.typ.kind == 'i'
	switch a.typ.size {
	case 1:
		if signed {
			return int64(int8(b[0]))
		}
		return int64(b[0])
	case 2:
		if u := binary.LittleEndian.Uint16(b); signed {
			return int64(int16(u))
		} else {
			return int64(u)
		}
	case 4:
		if u := binary.LittleEndian.Uint32(b); signed {
			return int64(int32(u))
		} else {
			return int64(u)
		}
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// text writes an element for an error.
func (a *Array) text(i int) string {
	switch {
	case a.typ == dtype{'u', 8}:
		return fmt.Sprint(binary.LittleEndian.Uint64(a.data[8*i:]))
	case a.typ.kind != 'f':
		return fmt.Sprint(a.integer(i))
	}
	v, _ := a.at(i)
	return fmt.Sprint(v)
}

// write writes an array as version 1.0 of the format.
func (a *Array) write(w io.Writer) error {
	order := '<'
	if a.typ.size == 1 {
		order = '|'
	}
	dims := make([]string, len(a.Shape))
	for i, d := range a.Shape {
		dims[i] = fmt.Sprint(d)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += ","
	}
	header := fmt.Sprintf("{'descr': '%c%c%d', 'fortran_order': False, 'shape': (%s), }", order, a.typ.kind, a.typ.size, shape)
	const before, alignment = len(magic) + 2 + 2, 64
	header += strings.Repeat(" ", alignment-1-(before+len(header))%alignment) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	if _, err := w.Write(append(b, header...)); err != nil {
		return err
	}
	_, err := w.Write(a.data)
	return err
}
