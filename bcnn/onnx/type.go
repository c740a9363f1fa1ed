package onnx

import (
	"fmt"
	"math"
)

// limits returns the range of an integer type.
func (t elemType) limits() (lo, hi int64) {
	switch t {
	case typeUint8:
		return 0, math.MaxUint8
	case typeInt8:
		return math.MinInt8, math.MaxInt8
	case typeInt32:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// elemType is TensorProto.DataType.
type elemType int32

const (
	typeFloat    elemType = 1
	typeUint8    elemType = 2
	typeInt8     elemType = 3
	typeUint16   elemType = 4
	typeInt16    elemType = 5
	typeInt32    elemType = 6
	typeInt64    elemType = 7
	typeBool     elemType = 9
	typeFloat16  elemType = 10
	typeDouble   elemType = 11
	typeUint32   elemType = 12
	typeUint64   elemType = 13
	typeBFloat16 elemType = 16
)

var typeNames = map[elemType]string{
	typeFloat: "FLOAT", typeUint8: "UINT8", typeInt8: "INT8", typeUint16: "UINT16", typeInt16: "INT16",
	typeInt32: "INT32", typeInt64: "INT64", typeBool: "BOOL", typeFloat16: "FLOAT16", typeDouble: "DOUBLE",
	typeUint32: "UINT32", typeUint64: "UINT64", typeBFloat16: "BFLOAT16",
}

func (t elemType) String() string {
	if name := typeNames[t]; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// size returns the bytes of an element in raw_data, 0 for unsupported types.
func (t elemType) size() int {
	switch t {
	case typeUint8, typeInt8, typeBool:
		return 1
	case typeUint16, typeInt16, typeFloat16, typeBFloat16:
		return 2
	case typeFloat, typeInt32, typeUint32:
		return 4
	case typeDouble, typeInt64, typeUint64:
		return 8
	}
	return 0
}

func (t elemType) real() bool {
	return t == typeFloat || t == typeDouble || t == typeFloat16 || t == typeBFloat16
}

// maxSize bounds every dimension and every number of values.
const maxSize = 1 << 28
