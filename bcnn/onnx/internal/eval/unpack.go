package eval

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Tensor decodes a TensorProto. It checks the size of the data before it allocates.
func (e *Evaluator) Tensor(p *pb.Tensor) (*Tensor, error) {
	t, err := e.unpack(p)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", text.Quote(p.Name), err)
	}
	return t, nil
}

func (e *Evaluator) unpack(p *pb.Tensor) (*Tensor, error) {
	width := p.Type.Bits()
	if width == 0 {
		return nil, fmt.Errorf("elements of %v are not supported", p.Type)
	}
	dims := make([]int, len(p.Dims))
	for i, d := range p.Dims {
		if d < 0 || d > pb.MaxSize {
			return nil, fmt.Errorf("dimensions %v are negative or too large", p.Dims)
		}
		dims[i] = int(d)
	}
	raw, isRaw, err := e.data(p, dims)
	if err != nil {
		return nil, err
	}
	t, err := try.Do(func() *Tensor { return e.NewTensor(p.Type, dims) })
	if err != nil {
		return nil, err
	}
	var failed error
	varints, packed := p.Varints, uint64(0)
	each := max(1, 8/width) // elements of a byte
	err = e.Budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi && failed == nil; i++ {
			switch {
			case i%each != 0:
				packed >>= width
			case isRaw:
				packed = littleEndian(raw[i/each*max(1, width/8):], max(1, width/8))
			default:
				u, n := protowire.ConsumeVarint(varints)
				if n < 0 {
					failed = protowire.ParseError(n)
					return
				}
				packed, varints = u, varints[n:]
			}
			failed = t.store(i, packed)
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// data returns the elements of a tensor as bytes, packed in little-endian order; isRaw is false if they
// are the numbers in p.Varints. There are as many as the dimensions say.
func (e *Evaluator) data(p *pb.Tensor, dims []int) (raw []byte, isRaw bool, err error) {
	n, err := Count(dims)
	if err != nil {
		return nil, false, err
	}
	width := p.Type.Bits()
	bytes := (int64(n)*int64(width) + 7) / 8
	raw, isRaw = p.Raw, p.HasRaw
	switch {
	case p.External != nil:
		if bytes > e.TensorBytes {
			return nil, false, fmt.Errorf("dimensions %v of %v take %d bytes, at most %d are allowed", dims, p.Type, bytes, e.TensorBytes)
		}
		if raw, err = e.externalData(p.External, bytes); err != nil {
			return nil, false, err
		}
		isRaw = true
	case !isRaw && p.Type == pb.Float:
		raw, isRaw = p.F32, true
	case !isRaw && p.Type == pb.Double:
		raw, isRaw = p.F64, true
	}
	if isRaw {
		if int64(len(raw)) != bytes {
			err = fmt.Errorf("%d bytes of data for dimensions %v of %v, want %d", len(raw), dims, p.Type, bytes)
		}
		return raw, true, err
	}
	count, err := e.countVarints(p.Varints)
	if err == nil && (width >= 8 && count != n || width < 8 && int64(count) != bytes) {
		err = fmt.Errorf("it has %d values for dimensions %v", count, dims)
	}
	return nil, false, err
}

// countVarints returns how many numbers b packs.
func (e *Evaluator) countVarints(b []byte) (int, error) {
	n := 0
	err := e.Budget.Loop(len(b), func(lo, hi int) {
		for _, c := range b[lo:hi] {
			if c < 0x80 { // the last byte of a number
				n++
			}
		}
	})
	return n, err
}

// store sets a value from its bits in the file.
func (t *Tensor) store(i int, u uint64) error {
	switch t.Type {
	case pb.Float:
		t.F32[i] = math.Float32frombits(uint32(u))
	case pb.Float16:
		t.F32[i] = f32.FromHalf(uint16(u))
	case pb.BFloat16:
		t.F32[i] = math.Float32frombits(uint32(uint16(u)) << 16)
	case pb.Double:
		t.F64[i] = math.Float64frombits(u)
	case pb.Bool:
		if u != 0 {
			t.I64[i] = 1
		}
	case pb.Uint64:
		if u > math.MaxInt64 {
			return fmt.Errorf("value %d is too large", u)
		}
		t.I64[i] = int64(u)
	default:
		t.I64[i] = wrapped(t.Type, u)
	}
	return nil
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

// externalData reads the data of a tensor from another file.
func (e *Evaluator) externalData(where *pb.External, size int64) ([]byte, error) {
	if where.Location == "" {
		return nil, errors.New("its data is in another file, whose name is missing")
	}
	number := func(key, s string, fallback int64) (int64, error) {
		if s == "" {
			return fallback, nil
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return 0, fmt.Errorf("external data: %s is %s, want a number of bytes", key, text.Quote(s))
		}
		return v, nil
	}
	offset, err := number("offset", where.Offset, 0)
	if err != nil {
		return nil, err
	}
	length, err := number("length", where.Length, size)
	if err != nil {
		return nil, err
	}
	if length != size {
		return nil, fmt.Errorf("external data: length is %d, want %d", length, size)
	}
	data, err := e.External(where.Location, offset, size)
	if err != nil {
		return nil, fmt.Errorf("external data: %w", err)
	}
	return data, nil
}
