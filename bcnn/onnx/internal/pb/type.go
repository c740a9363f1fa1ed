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
	Uint4    DataType = 21
	Int4     DataType = 22
	Uint2    DataType = 25
	Int2     DataType = 26
)

var typeNames = map[DataType]string{
	Float: "FLOAT", Uint8: "UINT8", Int8: "INT8", Uint16: "UINT16", Int16: "INT16",
	Int32: "INT32", Int64: "INT64", Bool: "BOOL", Float16: "FLOAT16", Double: "DOUBLE",
	Uint32: "UINT32", Uint64: "UINT64", BFloat16: "BFLOAT16",
	Uint4: "UINT4", Int4: "INT4", Uint2: "UINT2", Int2: "INT2",
	// Of these files are refused, by name.
	8: "STRING", 14: "COMPLEX64", 15: "COMPLEX128", 17: "FLOAT8E4M3FN", 18: "FLOAT8E4M3FNUZ", 19: "FLOAT8E5M2", 20: "FLOAT8E5M2FNUZ",
	23: "FLOAT4E2M1", 24: "FLOAT8E8M0", 27: "FLOAT6E2M3", 28: "FLOAT6E3M2",
}

func (t DataType) String() string {
	if name := typeNames[t]; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Bits returns the bits of an element in raw_data, 0 for unsupported types. Elements of less than a
// byte are packed, the first one in the lowest bits.
func (t DataType) Bits() int {
	switch t {
	case Uint2, Int2:
		return 2
	case Uint4, Int4:
		return 4
	case Uint8, Int8, Bool:
		return 8
	case Uint16, Int16, Float16, BFloat16:
		return 16
	case Float, Int32, Uint32:
		return 32
	case Double, Int64, Uint64:
		return 64
	}
	return 0
}

// Quantised reports whether QuantizeLinear gives such integers.
func (t DataType) Quantised() bool { return !t.Real() && t != Bool && t.Bits() > 0 && t.Bits() <= 16 }

// Real reports whether the elements are floating-point numbers.
func (t DataType) Real() bool {
	return t == Float || t == Double || t == Float16 || t == BFloat16
}

// Limits returns the range of an integer type.
func (t DataType) Limits() (lo, hi int64) {
	switch t {
	case Uint2, Uint4, Uint8, Uint16, Uint32:
		return 0, 1<<t.Bits() - 1
	case Int2, Int4, Int8, Int16, Int32:
		return -1 << (t.Bits() - 1), 1<<(t.Bits()-1) - 1
	}
	return math.MinInt64, math.MaxInt64
}

// MaxSize bounds every dimension and every number of values.
const MaxSize = 1 << 28
