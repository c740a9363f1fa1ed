// Package tensor has the tensors of the Open Inference Protocol, version 2: their types,
// shapes and elements, and the bodies of requests and responses over HTTP, as JSON and with
// the extension for binary data. Nothing here knows of models.
package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// The types of elements that models read and write, by the names of the protocol.
const (
	Uint8 = "UINT8"
	Int8  = "INT8"
	Int32 = "INT32"
	Int64 = "INT64"
	FP32  = "FP32"
	Bytes = "BYTES" // of classifications only
)

// ErrJSON is wrapped by the error of an output that has no text in JSON.
var ErrJSON = errors.New("which JSON cannot hold: ask for binary data")

// Size returns the bytes of an element of a type; 0 if it is not one of fixed size from above.
func Size(datatype string) int {
	switch datatype {
	case Uint8, Int8:
		return 1
	case Int32, FP32:
		return 4
	case Int64:
		return 8
	}
	return 0
}

// Tensor is a tensor of a request or a response.
type Tensor struct {
	Name     string
	Datatype string
	Shape    []int64
	// Data are the elements in row-major order, little-endian; those of BYTES have their
	// length in front, in four bytes.
	Data []byte
	// Read, if it is not nil, appends the elements to dst, where a request has them in
	// another form than Data.
	Read func(dst []byte) ([]byte, error)
}

// Elements returns the number of elements of a shape. More than what 31 bits hold are an error,
// as are negative dimensions.
func Elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("a dimension of %d in the shape %v", d, shape)
		}
		if d > math.MaxInt32 || n*d > math.MaxInt32 {
			return 0, fmt.Errorf("the shape %v has more than %d elements", shape, math.MaxInt32)
		}
		n *= d
	}
	return int(n), nil
}

// append one number, as it stands in JSON, to elements of a type.
func appendNumber(dst []byte, datatype, number string) ([]byte, error) {
	if datatype == FP32 {
		v, err := strconv.ParseFloat(number, 32)
		if err != nil {
			return dst, fmt.Errorf("%s is no number of float32", text.Quote(number))
		}
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v))), nil
	}
	size := Size(datatype)
	v, err := strconv.ParseInt(number, 10, 64)
	low, high := int64(math.MinInt64)>>(64-8*size), int64(math.MaxInt64)>>(64-8*size)
	if datatype == Uint8 {
		low, high = 0, math.MaxUint8
	}
	if err != nil || v < low || v > high {
		return dst, fmt.Errorf("%s is no whole number from %d to %d", text.Quote(number), low, high)
	}
	for i := range size {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst, nil
}

// AppendJSON appends the elements of a tensor as a flat JSON array. Float32 numbers are the
// shortest that are read as the same; JSON has none that are not finite.
func AppendJSON(dst []byte, t Tensor) ([]byte, error) {
	if t.Datatype == Bytes {
		return appendStrings(dst, t.Data)
	}
	size := Size(t.Datatype)
	if size == 0 || len(t.Data)%size != 0 {
		return dst, fmt.Errorf("%d bytes of %s", len(t.Data), t.Datatype)
	}
	dst = append(dst, '[')
	for b := t.Data; len(b) > 0; b = b[size:] {
		if len(b) < len(t.Data) {
			dst = append(dst, ',')
		}
		switch t.Datatype {
		case Uint8:
			dst = strconv.AppendUint(dst, uint64(b[0]), 10)
		case Int8:
			dst = strconv.AppendInt(dst, int64(int8(b[0])), 10)
		case Int32:
			dst = strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b))), 10)
		case Int64:
			dst = strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(b)), 10)
		case FP32:
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return dst, fmt.Errorf("output %s has %v, %w", text.Quote(t.Name), v, ErrJSON)
			}
			dst = strconv.AppendFloat(dst, v, 'g', -1, 32)
		}
	}
	return append(dst, ']'), nil
}

// AppendBytes appends an element of BYTES.
func AppendBytes(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
}

func appendStrings(dst, data []byte) ([]byte, error) {
	list, err := Strings(data)
	if err != nil {
		return dst, err
	}
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return append(dst, "["+strings.Join(quoted, ",")+"]"...), nil
}

// Strings returns the elements of BYTES.
func Strings(data []byte) ([]string, error) {
	var list []string
	for len(data) > 0 {
		if len(data) < 4 {
			return nil, fmt.Errorf("%d bytes behind the last element of BYTES", len(data))
		}
		n := binary.LittleEndian.Uint32(data)
		data = data[4:]
		if uint64(n) > uint64(len(data)) {
			return nil, fmt.Errorf("an element of %d bytes, and %d are left", n, len(data))
		}
		list = append(list, string(data[:n]))
		data = data[n:]
	}
	return list, nil
}
