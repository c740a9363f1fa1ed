package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

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

// tensor is a constant. Integers and bools are in i64, DOUBLE in f64, the other
// real types, exactly, in f32.
type tensor struct {
	typ  elemType
	dims []int
	f32  []float32
	f64  []float64
	i64  []int64
	// batch marks the integers that stand for the batch size; nil for none.
	batch []bool
}

func (t *tensor) len() int { return len(t.f32) + len(t.f64) + len(t.i64) }

func (t *tensor) at(i int) float64 {
	switch {
	case t.f32 != nil:
		return float64(t.f32[i])
	case t.f64 != nil:
		return t.f64[i]
	}
	return float64(t.i64[i])
}

// set stores a value, rounded to the type of the tensor.
func (t *tensor) set(i int, v float64) {
	switch {
	case t.f32 != nil:
		t.f32[i] = float32(v)
	case t.f64 != nil:
		t.f64[i] = v
	default:
		t.i64[i] = int64(v)
	}
}

// hasBatch reports whether the tensor holds the batch size.
func (t *tensor) hasBatch() bool {
	for _, b := range t.batch {
		if b {
			return true
		}
	}
	return false
}

// count returns the number of values of the dimensions.
func count(dims []int) (int, error) {
	n := int64(1)
	for _, d := range dims {
		if d < 0 || d > maxSize {
			return 0, fmt.Errorf("dimensions %v", dims)
		}
		if n *= int64(d); n > maxSize {
			return 0, fmt.Errorf("dimensions %v have more than %d values", dims, maxSize)
		}
	}
	return int(n), nil
}

// newTensor allocates a tensor, within the budget of the import.
func (im *importer) newTensor(typ elemType, dims []int) (*tensor, error) {
	n, err := count(dims)
	if err != nil {
		return nil, err
	}
	size := int64(8)
	if typ.real() && typ != typeDouble {
		size = 4
	}
	if err := im.charge(size * int64(n)); err != nil {
		return nil, err
	}
	t := &tensor{typ: typ, dims: dims}
	switch {
	case typ == typeDouble:
		t.f64 = make([]float64, n)
	case typ.real():
		t.f32 = make([]float32, n)
	default:
		t.i64 = make([]int64, n)
	}
	return t, nil
}

// The memory that an import may use for constants and weights: unpackFactor
// bytes for each byte read, as an INT8 becomes several FLOATs on the way, and
// baseBudget to begin with.
const (
	baseBudget   = 64 << 20
	unpackFactor = 32
	maxBudget    = 16 << 30
)

// charge takes bytes from the memory that the import may use, which keeps small
// files from unpacking to large networks, and from reading the same constant
// for hours.
func (im *importer) charge(bytes int64) error {
	if im.budget -= bytes; im.budget < 0 {
		return errBudget
	}
	return nil
}

// tensor decodes a TensorProto. Nothing is allocated before the data is known
// to have the claimed size.
func (im *importer) tensor(p *tensorProto) (*tensor, error) {
	t, err := im.decodeTensor(p)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", p.name, err)
	}
	return t, nil
}

func (im *importer) decodeTensor(p *tensorProto) (*tensor, error) {
	size := p.typ.size()
	if size == 0 {
		return nil, fmt.Errorf("elements of %v are not supported", p.typ)
	}
	dims := make([]int, len(p.dims))
	for i, d := range p.dims {
		if d < 0 || d > maxSize {
			return nil, fmt.Errorf("dimensions %v", p.dims)
		}
		dims[i] = int(d)
	}
	n, err := count(dims)
	if err != nil {
		return nil, err
	}
	raw, isRaw := p.raw, p.hasRaw
	switch {
	case p.external != nil:
		if raw, err = im.external(p.external, int64(n)*int64(size)); err != nil {
			return nil, err
		}
		isRaw = true
	case !isRaw && p.typ == typeFloat:
		raw, isRaw = p.f32, true
	case !isRaw && p.typ == typeDouble:
		raw, isRaw = p.f64, true
	}
	if isRaw && len(raw) != n*size {
		return nil, fmt.Errorf("%d bytes of data for dimensions %v of %v, want %d", len(raw), dims, p.typ, n*size)
	}
	if !isRaw && len(p.ints) != n {
		return nil, fmt.Errorf("%d values for dimensions %v", len(p.ints), dims)
	}
	t, err := im.newTensor(p.typ, dims)
	if err != nil {
		return nil, err
	}
	for i := range n {
		var u uint64
		if isRaw {
			u = littleEndian(raw[i*size:], size)
		} else {
			u = uint64(p.ints[i])
		}
		switch p.typ {
		case typeFloat:
			t.f32[i] = math.Float32frombits(uint32(u))
		case typeFloat16:
			t.f32[i] = float16(uint16(u))
		case typeBFloat16:
			t.f32[i] = math.Float32frombits(uint32(uint16(u)) << 16)
		case typeDouble:
			t.f64[i] = math.Float64frombits(u)
		case typeInt8:
			t.i64[i] = int64(int8(u))
		case typeInt16:
			t.i64[i] = int64(int16(u))
		case typeInt32:
			t.i64[i] = int64(int32(u))
		case typeBool:
			if u != 0 {
				t.i64[i] = 1
			}
		case typeUint64:
			if u > math.MaxInt64 {
				return nil, fmt.Errorf("value %d is too large", u)
			}
			t.i64[i] = int64(u)
		default:
			t.i64[i] = int64(u & (1<<(8*size) - 1))
		}
	}
	return t, nil
}

func littleEndian(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// float16 converts from IEEE binary16.
func float16(h uint16) float32 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		if v = math.Inf(1); fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if h>>15 != 0 {
		v = -v
	}
	return float32(v)
}

// external reads the data of a tensor from another file in the model's folder.
// os.Root keeps "..", absolute paths and symbolic links inside.
func (im *importer) external(where map[string]string, size int64) ([]byte, error) {
	location := where["location"]
	if im.dir == "" || location == "" {
		return nil, errors.New("its data is in another file, which is not named or not allowed here")
	}
	number := func(key string, fallback int64) (int64, error) {
		s, ok := where[key]
		if !ok {
			return fallback, nil
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return 0, fmt.Errorf("external data: %s is %q", key, s)
		}
		return v, nil
	}
	offset, err := number("offset", 0)
	if err != nil {
		return nil, err
	}
	length, err := number("length", size)
	if err != nil {
		return nil, err
	}
	if length != size {
		return nil, fmt.Errorf("external data: length %d, want %d", length, size)
	}
	root, err := os.OpenRoot(im.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Stat first: opening a named pipe would wait for a writer.
	info, err := root.Stat(location)
	switch {
	case err != nil:
		return nil, fmt.Errorf("external data: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("external data: %s is not a regular file", location)
	case offset > info.Size() || size > info.Size()-offset:
		return nil, fmt.Errorf("external data: bytes %d to %d of %s, which has %d", offset, offset+size, location, info.Size())
	}
	file, err := root.Open(location)
	if err != nil {
		return nil, fmt.Errorf("external data: %w", err)
	}
	defer file.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(file, offset, size), data); err != nil {
		return nil, fmt.Errorf("external data: %s: %w", location, err)
	}
	if !im.credited[location] {
		im.credited[location] = true
		im.budget = min(im.budget+unpackFactor*min(info.Size(), maxFile), maxBudget)
	}
	return data, nil
}
