package eval

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Tensor decodes a TensorProto. Nothing is allocated before the data is known
// to have the claimed size.
func (e *Evaluator) Tensor(p *pb.Tensor) (*Tensor, error) {
	t, err := e.decodeTensor(p)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", p.Name, err)
	}
	return t, nil
}

func (e *Evaluator) decodeTensor(p *pb.Tensor) (*Tensor, error) {
	size := p.Type.Size()
	if size == 0 {
		return nil, fmt.Errorf("elements of %v are not supported", p.Type)
	}
	dims := make([]int, len(p.Dims))
	for i, d := range p.Dims {
		if d < 0 || d > pb.MaxSize {
			return nil, fmt.Errorf("dimensions %v", p.Dims)
		}
		dims[i] = int(d)
	}
	n, err := Count(dims)
	if err != nil {
		return nil, err
	}
	raw, isRaw := p.Raw, p.HasRaw
	switch {
	case p.External != nil:
		if raw, err = e.externalData(p.External, int64(n)*int64(size)); err != nil {
			return nil, err
		}
		isRaw = true
	case !isRaw && p.Type == pb.Float:
		raw, isRaw = p.F32, true
	case !isRaw && p.Type == pb.Double:
		raw, isRaw = p.F64, true
	}
	if isRaw && len(raw) != n*size {
		return nil, fmt.Errorf("%d bytes of data for dimensions %v of %v, want %d", len(raw), dims, p.Type, n*size)
	}
	if !isRaw && len(p.Ints) != n {
		return nil, fmt.Errorf("%d values for dimensions %v", len(p.Ints), dims)
	}
	t, err := e.NewTensor(p.Type, dims)
	if err != nil {
		return nil, err
	}
	for i := range n {
		var u uint64
		if isRaw {
			u = littleEndian(raw[i*size:], size)
		} else {
			u = uint64(p.Ints[i])
		}
		switch p.Type {
		case pb.Float:
			t.F32[i] = math.Float32frombits(uint32(u))
		case pb.Float16:
			t.F32[i] = float16(uint16(u))
		case pb.BFloat16:
			t.F32[i] = math.Float32frombits(uint32(uint16(u)) << 16)
		case pb.Double:
			t.F64[i] = math.Float64frombits(u)
		case pb.Int8:
			t.I64[i] = int64(int8(u))
		case pb.Int16:
			t.I64[i] = int64(int16(u))
		case pb.Int32:
			t.I64[i] = int64(int32(u))
		case pb.Bool:
			if u != 0 {
				t.I64[i] = 1
			}
		case pb.Uint64:
			if u > math.MaxInt64 {
				return nil, fmt.Errorf("value %d is too large", u)
			}
			t.I64[i] = int64(u)
		default:
			t.I64[i] = int64(u & (1<<(8*size) - 1))
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

// externalData reads the data of a tensor from another file.
func (e *Evaluator) externalData(where map[string]string, size int64) ([]byte, error) {
	location := where["location"]
	if location == "" {
		return nil, errors.New("its data is in another file, which is not named")
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
	data, err := e.External(location, offset, size)
	if err != nil {
		return nil, fmt.Errorf("external data: %w", err)
	}
	return data, nil
}
