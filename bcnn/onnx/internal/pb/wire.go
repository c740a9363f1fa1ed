package pb

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	u    uint64 // varint, fixed32 or fixed64
	data []byte // length-delimited
}

func (f field) bytes() ([]byte, error) {
	if f.typ != protowire.BytesType {
		return nil, fmt.Errorf("field %d has wire type %d, want a string of bytes", f.num, f.typ)
	}
	return f.data, nil
}

func (f field) text(s *string) error {
	b, err := f.bytes()
	*s = string(b)
	return err
}

func (f field) integer(i *int64) error {
	if f.typ != protowire.VarintType {
		return fmt.Errorf("field %d has wire type %d, want an integer", f.num, f.typ)
	}
	*i = int64(f.u)
	return nil
}

// integers appends a repeated integer, packed or not.
func (f field) integers(to *[]int64) error {
	if f.typ == protowire.VarintType {
		*to = append(*to, int64(f.u))
		return nil
	}
	b, err := f.bytes()
	for err == nil && len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*to = append(*to, int64(v))
		b = b[n:]
	}
	return err
}

// fixed appends a repeated float or double, packed or not, as little-endian
// bytes.
func (f field) fixed(to *[]byte) error {
	switch f.typ {
	case protowire.Fixed32Type:
		*to = binary.LittleEndian.AppendUint32(*to, uint32(f.u))
	case protowire.Fixed64Type:
		*to = binary.LittleEndian.AppendUint64(*to, f.u)
	default:
		b, err := f.bytes()
		if err != nil {
			return err
		}
		if *to == nil {
			*to = b[:len(b):len(b)]
		} else {
			*to = append(*to, b...)
		}
	}
	return nil
}

// fields calls f for every field of a message.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		v := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			v.u, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var u uint32
			u, n = protowire.ConsumeFixed32(b)
			v.u = uint64(u)
		case protowire.Fixed64Type:
			v.u, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.data, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// message decodes the message in a field.
func (f field) message(each func(field) error) error {
	b, err := f.bytes()
	if err != nil {
		return err
	}
	return fields(b, each)
}
