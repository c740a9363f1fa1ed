package flat

import (
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"
)

// maxSlots is how many fields a table may have of which Unread tells; the largest table of the
// schema has a quarter of that.
const maxSlots = 64

// Tracked returns the table with a note of the fields that are read of it and of its copies,
// whether they are there or not.
func (t Table) Tracked() Table {
	t.read = new(uint64)
	return t
}

// Untracked returns the table without a note, for who looks at what was not read.
func (t Table) Untracked() Table {
	t.read = nil
	return t
}

// Unread returns the fields that a table has and that were not read, in order; all of them
// where that is not noted. A table with more fields than could be noted is an error of the file.
func (t Table) Unread() []int {
	if t.Absent() || t.b.err != nil {
		return nil
	}
	vtable := int64(t.table.Pos) - int64(flatbuffers.GetSOffsetT(t.table.Bytes[t.table.Pos:]))
	slots := int(flatbuffers.GetVOffsetT(t.table.Bytes[vtable:]))/flatbuffers.SizeVOffsetT - 2
	if slots > maxSlots {
		t.fail("it has %d fields, at most %d are supported", slots, maxSlots)
		return nil
	}
	var list []int
	for slot := range slots {
		if t.offset(slot) != 0 && (t.read == nil || *t.read>>slot&1 == 0) {
			list = append(list, slot)
		}
	}
	return list
}

// Zero reports whether a field of a number is 0, whatever its type, which has at most 8 bytes:
// those up to the next field of the table.
func (t Table) Zero(slot int) bool {
	pos, ok := t.field(slot, 1)
	if !ok {
		return true
	}
	const longest = 8
	from := t.offset(slot)
	to := min(t.size, from+longest)
	for other := range maxSlots {
		if next := t.offset(other); next > from {
			to = min(to, next)
		}
	}
	return !slices.ContainsFunc(t.b.data[pos:pos+to-from], func(b byte) bool { return b != 0 })
}

// Empty reports whether a field that refers to a vector or a string refers to one without
// elements. No table is empty.
func (t Table) Empty(slot int) bool {
	pos, ok := t.field(slot, flatbuffers.SizeUOffsetT)
	if !ok {
		return true
	}
	if pos = t.follow(pos); !t.b.inside(pos, flatbuffers.SizeUOffsetT) {
		t.fail("what field %d refers to lies outside of the file", slot)
		return true
	}
	return flatbuffers.GetUOffsetT(t.b.data[pos:]) == 0
}
