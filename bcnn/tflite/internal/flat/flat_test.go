package flat

import (
	"encoding/hex"
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
			tables := root.Tables(slot, "t")
			for i := range min(tables.Len(), 10) {
				tables.At(i).Int32s(i)
			}
		}
	})
}

// Maps as Python's flexbuffers writes them.
const (
	// {"a": -1, "b": 300, "c": True, "d": "text", "e": 70000}
	wide = "610062006300640004746578740065000511100f0e070000070000000100000005000000ffffffff2c01000001000000270000007011010006066a1406192601"
	// integers behind offsets: {"i": -300, "u": 70000}
	indirect = "6900d4fe7500000070110100020d0a020102100b191e042401"
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

// FuzzReadMap reads damaged maps without a panic.
func FuzzReadMap(f *testing.F) {
	for _, text := range []string{wide, indirect} {
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
