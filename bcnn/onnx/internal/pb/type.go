package pb

import (
	"fmt"
	"math"
)

// DataType is TensorProto.DataType.
type DataType int32

// The element types that an importer may meet.
const (
	Float    DataType = 1
	Uint8    DataType = 2
	Int8     DataType = 3
	Uint16   DataType = 4
	Int16    DataType = 5
	Int32    DataType = 6
	Int64    DataType = 7
	Bool     DataType = 9
	Float16  DataType = 10
	Double   DataType = 11
	Uint32   DataType = 12
	Uint64   DataType = 13
	BFloat16 DataType = 16
)

var typeNames = map[DataType]string{
	Float: "FLOAT", Uint8: "UINT8", Int8: "INT8", Uint16: "UINT16", Int16: "INT16",
	Int32: "INT32", Int64: "INT64", Bool: "BOOL", Float16: "FLOAT16", Double: "DOUBLE",
	Uint32: "UINT32", Uint64: "UINT64", BFloat16: "BFLOAT16",
	// Of these files are refused, by name.
	8: "STRING", 14: "COMPLEX64", 15: "COMPLEX128", 17: "FLOAT8E4M3FN", 18: "FLOAT8E4M3FNUZ", 19: "FLOAT8E5M2", 20: "FLOAT8E5M2FNUZ",
	21: "UINT4", 22: "INT4", 23: "FLOAT4E2M1", 24: "FLOAT8E8M0", 25: "UINT2", 26: "INT2", 27: "FLOAT6E2M3", 28: "FLOAT6E3M2",
}

func (t DataType) String() string {
	if name := typeNames[t]; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Size returns the bytes of an element in raw_data, 0 for unsupported types.
func (t DataType) Size() int {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Float, Int32, Uint32:
		return 4
	case Double, Int64, Uint64:
		return 8
	}
	return 0
}

// Real reports whether the elements are floating-point numbers.
func (t DataType) Real() bool {
	return t == Float || t == Double || t == Float16 || t == BFloat16
}

// Limits returns the range of an integer type.
func (t DataType) Limits() (lo, hi int64) {
	switch t {
	case Uint8:
		return 0, math.MaxUint8
	case Int8:
		return math.MinInt8, math.MaxInt8
	case Uint16:
		return 0, math.MaxUint16
	case Int16:
		return math.MinInt16, math.MaxInt16
	case Uint32:
		return 0, math.MaxUint32
	case Int32:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// MaxSize bounds every dimension and every number of values.
const MaxSize = 1 << 28
