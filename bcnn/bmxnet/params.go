package bmxnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/text"
)

// array is a tensor of a file of weights.
type array struct {
	dims  []int
	dtype int32
	data  []byte
	signs bool // all values are +1 or −1
}

// Element types.
const (
	float32s = iota
	float64s
	float16s
	uint8s
	int32s
	int8s
	int64s
)

var sizes = [...]int{float32s: 4, float64s: 8, float16s: 2, uint8s: 1, int32s: 4, int8s: 1, int64s: 8}

// Marks of a file of arrays, and of an array in it by the version of MXNet. The oldest
// one begins with the number of dimensions.
const (
	listMagic = 0x112
	magicV1   = 0xF993FAC8
	magicV2   = 0xF993FAC9
	magicV3   = 0xF993FACA
)

const (
	maxDims   = 32
	maxValues = math.MaxInt32
)

// arrayUnits and nameUnits are what an array and its name cost besides the data, which
// is not copied, and the text.
const (
	arrayUnits = 400
	nameUnits  = 256
)

// reader reads little-endian numbers.
type reader struct {
	data   []byte
	at     int
	failed bool
}

func (r *reader) bytes(n uint64) []byte {
	if r.failed || n > uint64(len(r.data)-r.at) {
		r.failed = true
		return nil
	}
	b := r.data[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

var errEnds = errors.New("the file ends too early")

// decodeParams reads a list of named arrays. Their names have no arg: or aux: before
// them.
func decodeParams(data []byte, b *budget.Budget) (params map[string]array, err error) {
	defer try.Recover(&err)
	r := &reader{data: data}
	if r.u64() != listMagic {
		return nil, errors.New("not a file of weights of MXNet (.params)")
	}
	r.u64() // reserved
	count := r.u64()
	var arrays []array
	for i := uint64(0); i < count && !r.failed; i++ {
		if err := b.Charge(arrayUnits); err != nil {
			return nil, err
		}
		a, err := r.array()
		if err != nil {
			return nil, fmt.Errorf("array %d: %w", i, err)
		}
		arrays = append(arrays, a)
	}
	named := r.u64()
	switch {
	case r.failed:
		return nil, errEnds
	case named != count:
		return nil, fmt.Errorf("%d names for %d arrays", named, count)
	}
	params = make(map[string]array, len(arrays))
	for _, a := range arrays {
		name := r.bytes(r.u64())
		if r.failed {
			return nil, errEnds
		}
		if err := b.Charge(nameUnits + int64(len(name))); err != nil {
			return nil, err
		}
		key := string(name)
		for _, prefix := range []string{"arg:", "aux:"} {
			if rest, ok := strings.CutPrefix(key, prefix); ok {
				key = rest
				break
			}
		}
		if _, twice := params[key]; twice {
			return nil, fmt.Errorf("two arrays are called %s", text.Quote(key))
		}
		params[key] = a
	}
	if r.at != len(data) {
		return nil, fmt.Errorf("%d bytes follow the last name, where the file must end", len(data)-r.at)
	}
	return params, nil
}

// array reads one array.
func (r *reader) array() (array, error) {
	var a array
	dims, wide := r.u32(), true
	switch magic := dims; magic {
	case magicV2, magicV3:
		if storage := int32(r.u32()); storage != 0 && !r.failed {
			return a, fmt.Errorf("storage type %d: sparse arrays are not supported", storage)
		}
		dims = r.u32()
	case magicV1:
		dims = r.u32()
	default:
		wide = false
	}
	if dims > maxDims {
		return a, fmt.Errorf("it has %d dimensions, at most %d are supported", dims, maxDims)
	}
	if dims == 0 || r.failed {
		return a, r.err() // an empty one has neither a type nor data
	}
	values := uint64(1)
	for range dims {
		var d uint64
		if wide {
			d = r.u64()
		} else {
			d = uint64(r.u32())
		}
		if d > maxValues || values*d > maxValues {
			return a, fmt.Errorf("it has more than %d values", maxValues)
		}
		values *= d
		a.dims = append(a.dims, int(d))
	}
	r.u64() // the device that it was on
	a.dtype = int32(r.u32())
	if r.failed {
		return a, errEnds
	}
	if a.dtype < 0 || int(a.dtype) >= len(sizes) {
		return a, fmt.Errorf("element type %d is not supported", a.dtype)
	}
	a.data = r.bytes(values * uint64(sizes[a.dtype]))
	return a, r.err()
}

func (r *reader) err() error {
	if r.failed {
		return errEnds
	}
	return nil
}

// len returns the number of values.
func (a array) len() int { return len(a.data) / sizes[a.dtype] }

// floats reads the values as float32.
func (a array) floats(b *budget.Budget) ([]float32, error) {
	n := a.len()
	if err := b.Charge(4 * int64(n)); err != nil {
		return nil, err
	}
	var value func(i int) float32
	switch a.dtype {
	case float32s:
		value = func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(a.data[4*i:])) }
	case float64s:
		value = func(i int) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(a.data[8*i:]))) }
	case float16s:
		value = func(i int) float32 { return f32.FromHalf(binary.LittleEndian.Uint16(a.data[2*i:])) }
	default:
		return nil, fmt.Errorf("elements of type %d are not supported here, want floating-point numbers", a.dtype)
	}
	out := make([]float32, n)
	err := b.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = value(i)
		}
	})
	return out, err
}

// wordBits returns the number of bits of a word of packed weights.
func (a array) wordBits() (int, error) {
	switch a.dtype {
	case float32s, int32s:
		return 32, nil
	case float64s, int64s:
		return 64, nil
	}
	return 0, fmt.Errorf("packed weights in elements of type %d are not supported", a.dtype)
}

// bit returns bit i of packed weights, the least significant one of every word first.
func (a array) bit(i int) uint64 { return uint64(a.data[i/8]>>(i%8)) & 1 }
