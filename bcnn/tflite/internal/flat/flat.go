// Package flat reads FlatBuffers and FlexBuffers that may come from strangers: every
// offset is checked before it is followed, so that nothing outside of the file is
// read. The formats: https://flatbuffers.dev/internals/.
package flat

import (
	"fmt"
	"math"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Buffer is a file of the format. After its first error all that is read of it is 0
// or empty.
type Buffer struct {
	data []byte // where tables may lie
	err  error
}

// New returns the root table of a file, called name in errors. Offsets do not reach
// beyond the first two GiB.
func New(data []byte, name string) (*Buffer, Table) {
	b := &Buffer{data: data[:min(len(data), math.MaxInt32)]}
	root := Table{b: b, name: name, index: -1}
	if len(b.data) < 2*flatbuffers.SizeUOffsetT {
		root.fail("it has only %d bytes", len(data))
		return b, root
	}
	return b, root.at(int64(flatbuffers.GetUOffsetT(b.data)))
}

// Err returns the first error.
func (b *Buffer) Err() error { return b.err }

// inside reports whether size bytes from pos on are in the file.
func (b *Buffer) inside(pos, size int64) bool {
	return pos >= 0 && size >= 0 && pos <= int64(len(b.data)) && size <= int64(len(b.data))-pos
}

// Table is a table of the file: its fields are numbered in the order of the schema.
// The zero table has no fields.
type Table struct {
	b     *Buffer
	table flatbuffers.Table
	size  int64   // of the table itself
	name  string  // in errors
	index int     // of tables in a vector, or −1
	read  *uint64 // a bit for each field that was read; nil where that is not noted
}

// Absent reports whether there is no such table.
func (t Table) Absent() bool { return t.size == 0 }

func (t Table) label() string {
	if t.index < 0 {
		return t.name
	}
	return fmt.Sprintf("%s %d", t.name, t.index)
}

// fail sets the error of the file.
func (t Table) fail(format string, args ...any) {
	if t.b.err == nil {
		t.b.err = fmt.Errorf("%s: %s", t.label(), fmt.Sprintf(format, args...))
	}
}

// at returns the table at a position, with the name of t.
func (t Table) at(pos int64) Table {
	b := t.b
	bad := func() Table {
		t.fail("a table at byte %d lies outside of the file", pos)
		return Table{b: b, name: t.name, index: t.index}
	}
	if b.err != nil || !b.inside(pos, flatbuffers.SizeSOffsetT) {
		return bad()
	}
	vtable := pos - int64(flatbuffers.GetSOffsetT(b.data[pos:]))
	const sizes = 2 * flatbuffers.SizeVOffsetT // of the vtable and of the table
	if !b.inside(vtable, sizes) {
		return bad()
	}
	fields := int64(flatbuffers.GetVOffsetT(b.data[vtable:]))
	size := int64(flatbuffers.GetVOffsetT(b.data[vtable+flatbuffers.SizeVOffsetT:]))
	if fields < sizes || fields%flatbuffers.SizeVOffsetT != 0 || !b.inside(vtable, fields) ||
		size < flatbuffers.SizeSOffsetT || !b.inside(pos, size) {
		return bad()
	}
	t.table = flatbuffers.Table{Bytes: b.data, Pos: flatbuffers.UOffsetT(pos)}
	t.size = size
	return t
}

// field returns the position of a field of so many bytes, or ok = false if the table
// has none.
func (t Table) field(slot int, size int64) (pos int64, ok bool) {
	if t.Absent() || t.b.err != nil {
		return 0, false
	}
	if t.read != nil && slot < maxSlots {
		*t.read |= 1 << slot
	}
	offset := t.offset(slot)
	switch {
	case offset == 0:
		return 0, false
	case size > t.size-offset:
		t.fail("field %d lies outside of its table", slot)
		return 0, false
	}
	return int64(t.table.Pos) + offset, true
}

// offset returns where in the table a field is, 0 if there is none.
func (t Table) offset(slot int) int64 {
	return int64(t.table.Offset(flatbuffers.VOffsetT(2*flatbuffers.SizeVOffsetT + flatbuffers.SizeVOffsetT*slot)))
}

// Uint8 returns a field, or absent if the table has none.
func (t Table) Uint8(slot int, absent uint8) uint8 {
	if pos, ok := t.field(slot, 1); ok {
		return t.b.data[pos]
	}
	return absent
}

// Int32 is Uint8 for a field of another type.
func (t Table) Int32(slot int, absent int32) int32 {
	if pos, ok := t.field(slot, 4); ok {
		return flatbuffers.GetInt32(t.b.data[pos:])
	}
	return absent
}

// Uint64 is Uint8 for a field of another type.
func (t Table) Uint64(slot int) uint64 {
	if pos, ok := t.field(slot, 8); ok {
		return flatbuffers.GetUint64(t.b.data[pos:])
	}
	return 0
}

// Float32 is Uint8 for a field of another type.
func (t Table) Float32(slot int, absent float32) float32 {
	if pos, ok := t.field(slot, 4); ok {
		return flatbuffers.GetFloat32(t.b.data[pos:])
	}
	return absent
}

// follow returns where the offset at pos leads to.
func (t Table) follow(pos int64) int64 {
	return pos + int64(flatbuffers.GetUOffsetT(t.b.data[pos:]))
}

// Table returns the table that a field refers to, called name in errors.
func (t Table) Table(slot int, name string) Table {
	out := Table{b: t.b, name: t.label() + ": " + name, index: -1}
	pos, ok := t.field(slot, flatbuffers.SizeUOffsetT)
	if !ok {
		return out
	}
	return out.at(t.follow(pos))
}

// vector returns the elements, of so many bytes each, of the vector that a field
// refers to.
func (t Table) vector(slot int, size int64) []byte {
	pos, ok := t.field(slot, flatbuffers.SizeUOffsetT)
	if !ok {
		return nil
	}
	pos = t.follow(pos)
	if !t.b.inside(pos, flatbuffers.SizeUOffsetT) {
		t.fail("the vector of field %d lies outside of the file", slot)
		return nil
	}
	n := int64(flatbuffers.GetUOffsetT(t.b.data[pos:]))
	pos += flatbuffers.SizeUOffsetT
	if !t.b.inside(pos, n*size) {
		t.fail("the vector of field %d has %d elements, more than fit into the file", slot, n)
		return nil
	}
	return t.b.data[pos : pos+n*size]
}

// Bytes returns a vector of bytes, or a string, of the file itself.
func (t Table) Bytes(slot int) []byte { return t.vector(slot, 1) }

// Int32s is a vector of integers in the file.
type Int32s []byte

// Int32s returns a vector of integers.
func (t Table) Int32s(slot int) Int32s { return t.vector(slot, 4) }

// Len returns the number of elements.
func (v Int32s) Len() int { return len(v) / 4 }

// At returns element i.
func (v Int32s) At(i int) int32 { return flatbuffers.GetInt32(v[4*i:]) }

// Uint16s returns the bytes of a vector of integers of 16 bits.
func (t Table) Uint16s(slot int) []byte { return t.vector(slot, 2) }

// Float32s is a vector of numbers in the file.
type Float32s []byte

// Float32s returns a vector of numbers.
func (t Table) Float32s(slot int) Float32s { return t.vector(slot, 4) }

// Len returns the number of elements.
func (v Float32s) Len() int { return len(v) / 4 }

// At returns element i.
func (v Float32s) At(i int) float32 { return flatbuffers.GetFloat32(v[4*i:]) }

// Int64s is a vector of integers in the file.
type Int64s []byte

// Int64s returns a vector of integers.
func (t Table) Int64s(slot int) Int64s { return t.vector(slot, 8) }

// Len returns the number of elements.
func (v Int64s) Len() int { return len(v) / 8 }

// At returns element i.
func (v Int64s) At(i int) int64 { return flatbuffers.GetInt64(v[8*i:]) }

// Tables is a vector of tables.
type Tables struct {
	of      Table // whose field it is
	name    string
	offsets []byte
	pos     int64
}

// Tables returns a vector of tables, each called name in errors.
func (t Table) Tables(slot int, name string) Tables {
	offsets := t.vector(slot, flatbuffers.SizeUOffsetT)
	v := Tables{of: t, name: name, offsets: offsets}
	if len(offsets) > 0 {
		pos, _ := t.field(slot, flatbuffers.SizeUOffsetT)
		v.pos = t.follow(pos) + flatbuffers.SizeUOffsetT
	}
	return v
}

// Len returns the number of tables.
func (v Tables) Len() int { return len(v.offsets) / flatbuffers.SizeUOffsetT }

// At returns table i; it is an error if there are less.
func (v Tables) At(i int) Table {
	t := Table{b: v.of.b, name: v.name, index: i}
	if i < 0 || i >= v.Len() {
		t.fail("there are only %d", v.Len())
		return t
	}
	return t.at(t.follow(v.pos + int64(i)*flatbuffers.SizeUOffsetT))
}
