package flat

import (
	"encoding/hex"
	"strings"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/stretchr/testify/require"
)

// file is a FlatBuffer of one table with a field of each kind.
func file() []byte {
	b := flatbuffers.NewBuilder(0)
	text := b.CreateString("text")
	b.StartVector(4, 2, 4)
	b.PrependInt32(-8)
	b.PrependInt32(7)
	ints := b.EndVector(2)
	b.StartVector(8, 1, 8)
	b.PrependInt64(-1 << 40)
	longs := b.EndVector(1)
	b.StartObject(1)
	b.PrependInt32Slot(0, 5, 0)
	inner := b.EndObject()
	b.StartVector(4, 2, 4)
	b.PrependUOffsetT(inner)
	b.PrependUOffsetT(inner)
	tables := b.EndVector(2)
	b.StartObject(9)
	b.PrependByteSlot(0, 3, 0)
	b.PrependInt32Slot(1, -4, 0)
	b.PrependUint64Slot(2, 1<<50, 0)
	b.PrependFloat32Slot(3, 0.5, 0)
	b.PrependUOffsetTSlot(4, text, 0)
	b.PrependUOffsetTSlot(5, ints, 0)
	b.PrependUOffsetTSlot(6, longs, 0)
	b.PrependUOffsetTSlot(7, inner, 0)
	b.PrependUOffsetTSlot(8, tables, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

func TestTable(t *testing.T) {
	b, root := New(file(), "the file")
	require.Equal(t, uint8(3), root.Uint8(0, 9))
	require.Equal(t, int32(-4), root.Int32(1, 9))
	require.Equal(t, uint64(1<<50), root.Uint64(2))
	require.Equal(t, float32(0.5), root.Float32(3, 9))
	require.Equal(t, "text", string(root.Bytes(4)))
	ints := root.Int32s(5)
	require.Equal(t, []int32{7, -8}, []int32{ints.At(0), ints.At(1)})
	require.Equal(t, 2, ints.Len())
	require.Equal(t, int64(-1<<40), root.Int64s(6).At(0))
	require.Equal(t, int32(5), root.Table(7, "inner").Int32(0, 9))
	tables := root.Tables(8, "one")
	require.Equal(t, 2, tables.Len())
	require.Equal(t, int32(5), tables.At(1).Int32(0, 9))
	require.NoError(t, b.Err())

	// What is absent has its default.
	require.Equal(t, uint8(9), root.Uint8(20, 9))
	require.Equal(t, float32(9), root.Float32(20, 9))
	require.Empty(t, root.Bytes(20))
	require.True(t, root.Table(20, "none").Absent())
	require.Zero(t, root.Tables(20, "none").Len())
	require.NoError(t, b.Err())

	require.Zero(t, tables.At(2).Int32(0, 0))
	require.EqualError(t, b.Err(), "one 2: there are only 2")
	require.Zero(t, root.Int32(1, 0), "nothing is read after an error")
}

// A table that is tracked tells which of its fields were not read.
func TestUnread(t *testing.T) {
	b, root := New(file(), "the file")
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	require.Equal(t, all, root.Unread(), "where that is not noted")
	tracked := root.Tracked()
	require.Equal(t, all, tracked.Unread())
	tracked.Uint8(0, 0)
	tracked.Tables(8, "one")
	copied := tracked
	copied.Int32s(5)
	tracked.Int32(40, 0)  // which is absent
	tracked.Int32(400, 0) // and cannot be noted
	tracked.Untracked().Int32(1, 0)
	require.Equal(t, []int{1, 2, 3, 4, 6, 7}, tracked.Unread())
	require.Equal(t, all, root.Tracked().Unread(), "another note")
	require.Empty(t, root.Table(20, "none").Tracked().Unread())
	require.NoError(t, b.Err())

	many := flatbuffers.NewBuilder(0)
	many.StartObject(maxSlots + 1)
	many.PrependByteSlot(maxSlots-1, 1, 0)
	many.PrependByteSlot(maxSlots, 1, 0)
	many.Finish(many.EndObject())
	b, root = New(many.FinishedBytes(), "the file")
	require.Empty(t, root.Unread())
	require.EqualError(t, b.Err(), "the file: it has 65 fields, at most 64 are supported")
}

// The value of a field of any type is 0 or not, and what it refers to empty or not.
func TestZeroAndEmpty(t *testing.T) {
	f := flatbuffers.NewBuilder(0)
	empty, inner := f.CreateString(""), flatbuffers.UOffsetT(0)
	f.StartObject(0)
	inner = f.EndObject()
	text := f.CreateString("x")
	f.StartObject(20)
	put := []func(){
		func() { f.PrependByte(0) }, func() { f.PrependByte(1) },
		func() { f.PrependInt32(0) }, func() { f.PrependInt32(1 << 24) }, func() { f.PrependInt32(1 << 8) },
		func() { f.PrependUint64(0) }, func() { f.PrependUint64(1 << 63) },
		func() { f.PrependByte(0) }, func() { f.PrependInt16(1 << 8) },
		func() { f.PrependUOffsetT(empty) }, func() { f.PrependUOffsetT(inner) }, func() { f.PrependUOffsetT(text) },
	}
	for slot, p := range put {
		p()
		f.Slot(slot)
	}
	f.Finish(f.EndObject())
	b, root := New(f.FinishedBytes(), "the file")
	for slot, zero := range []bool{true, false, true, false, false, true, false, true, false} {
		require.Equal(t, zero, root.Zero(slot), slot)
	}
	require.True(t, root.Zero(19), "absent")
	require.True(t, root.Empty(19), "absent")
	require.True(t, root.Empty(9))
	require.False(t, root.Empty(10), "a table")
	require.False(t, root.Empty(11))
	require.NoError(t, b.Err())
	require.True(t, root.Empty(3), "2^24 is no offset")
	require.ErrorContains(t, b.Err(), "what field 3 refers to lies outside of the file")
	require.Empty(t, root.Unread(), "nothing after an error")
	require.True(t, root.Zero(1))
}

// Damaged files are read without a panic.
func FuzzTable(f *testing.F) {
	f.Add(file())
	f.Fuzz(func(t *testing.T, data []byte) {
		_, root := New(data, "the file")
		for slot := range 10 {
			root.Uint8(slot, 0)
			root.Int32(slot, 0)
			root.Uint64(slot)
			root.Float32(slot, 0)
			root.Bytes(slot)
			for _, list := range []interface{ Len() int }{root.Int32s(slot), root.Float32s(slot), root.Int64s(slot)} {
				require.LessOrEqual(t, list.Len(), len(data))
			}
			root.Table(slot, "t").Table(0, "u").Int32(0, 0)
			root.Zero(slot)
			root.Empty(slot)
			root.Unread()
			tables := root.Tables(slot, "t")
			for i := range min(tables.Len(), 10) {
				tables.At(i).Int32s(i)
			}
		}
	})
}

// Maps as Python's flexbuffers writes them.
const (
	// {"a": -1, "b": 300, "c": True, "e": 70000}
	wide = "61006200630065000409080706000000070000000100000004000000ffffffff2c010000010000007011010006066a06142601"
	// {"a": -1, "b": 300, "c": True, "d": "text", "e": 70000}
	mixed = "610062006300640004746578740065000511100f0e070000070000000100000005000000ffffffff2c01000001000000270000007011010006066a1406192601"
	// integers behind offsets: {"i": -300, "u": 70000}
	indirect = "6900d4fe7500000070110100020d0a020102100b191e042401"
	// {"f": 0.5} and {"v": [1, 2]}
	float  = "660001030100000001000000010000000000003f0e052601"
	vector = "7600020102040401080101010928022401"
)

func TestReadMap(t *testing.T) {
	for text, want := range map[string]Map{
		wide: {"a": -1, "b": 300, "c": 1, "e": 70000}, indirect: {"i": -300, "u": 70000},
	} {
		data, err := hex.DecodeString(text)
		require.NoError(t, err)
		m, err := ReadMap(data)
		require.NoError(t, err)
		require.Equal(t, want, m)
		for n := range data { // no part of it is another map
			_, err := ReadMap(data[:n])
			require.Error(t, err, "%d bytes", n)
		}
	}
}

// What is no integer is an error and not left out, and so is a key that is there twice.
func TestReadMapRefuses(t *testing.T) {
	for text, want := range map[string]string{
		mixed:                                    `option "d" is of type 5 of FlexBuffers, want an integer or a truth value`,
		float:                                    `option "f" is of type 3 of FlexBuffers`,
		vector:                                   `option "v" is of type `,
		strings.Replace(wide, "6200", "6100", 1): `option "a" is there twice`,
	} {
		data, err := hex.DecodeString(text)
		require.NoError(t, err)
		m, err := ReadMap(data)
		require.ErrorContains(t, err, want)
		require.Nil(t, m)
	}
}

// FuzzReadMap reads damaged maps without a panic.
func FuzzReadMap(f *testing.F) {
	for _, text := range []string{wide, indirect, mixed, float, vector} {
		data, err := hex.DecodeString(text)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ReadMap(data)
		if err == nil {
			require.LessOrEqual(t, len(m), maxKeys)
		}
	})
}
