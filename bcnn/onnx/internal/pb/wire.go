package pb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// maxName is the longest name in bytes: of a node, a tensor, an operator.
const maxName = 1 << 16

// The cost of the structures that a message becomes: their bytes, five times for elements of a
// slice that grows, and what maps take.
const (
	nodeUnits      = 288
	nameUnits      = 96
	attributeUnits = 192
	tensorUnits    = 384
	infoUnits      = 512
	dimUnits       = 96
	entryUnits     = 256
	integerUnits   = 40
	fieldUnits     = 4 // of any kind
)

// Forbidden is a string that no name in a decoded model contains.
const Forbidden = "\x00"

// field is one field of a message.
type field struct {
	budget *budget.Budget
	num    protowire.Number
	typ    protowire.Type
	u      uint64 // varint, fixed32 or fixed64
	data   []byte // length-delimited
}

func (f field) bytes() ([]byte, error) {
	if f.typ != protowire.BytesType {
		return nil, fmt.Errorf("field %d has wire type %d, want a string of bytes", f.num, f.typ)
	}
	return f.data, nil
}

func (f field) text(s *string) error {
	b, err := f.bytes()
	if err != nil {
		return err
	}
	if len(b) > maxName {
		return fmt.Errorf("a name of %d bytes, at most %d are allowed", len(b), maxName)
	}
	if bytes.Contains(b, []byte(Forbidden)) {
		return fmt.Errorf("a name with the character %q", Forbidden)
	}
	*s = string(b)
	return f.budget.Charge(int64(len(b)))
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
		return f.budget.Charge(integerUnits)
	}
	b, err := f.bytes()
	for err == nil && len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*to = append(*to, int64(v))
		b = b[n:]
		err = f.budget.Charge(integerUnits)
	}
	return err
}

// elements appends a repeated number, packed or not, in packed form: as varints or little-endian
// bytes. A list that is one packed field is not copied.
func (f field) elements(to *[]byte) error {
	var b []byte
	switch f.typ {
	case protowire.VarintType:
		b = protowire.AppendVarint(nil, f.u)
	case protowire.Fixed32Type:
		b = binary.LittleEndian.AppendUint32(nil, uint32(f.u))
	case protowire.Fixed64Type:
		b = binary.LittleEndian.AppendUint64(nil, f.u)
	default:
		var err error
		if b, err = f.bytes(); err != nil {
			return err
		}
		if *to == nil {
			*to = b[:len(b):len(b)]
			return nil
		}
	}
	cost := int64(16 + len(b))
	if n := len(*to) + len(b); n > cap(*to) {
		cost += 2 * int64(n) // what append may allocate
	}
	if err := f.budget.Charge(cost); err != nil {
		return err
	}
	*to = append(*to, b...)
	return nil
}

// message decodes the message in a field.
func (f field) message(each func(field) error) error {
	b, err := f.bytes()
	if err != nil {
		return err
	}
	return fields(f.budget, b, each)
}

// fields calls f for every field of a message.
func fields(work *budget.Budget, b []byte, f func(field) error) error {
	for len(b) > 0 {
		if err := work.Charge(fieldUnits); err != nil {
			return err
		}
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		v := field{budget: work, num: num, typ: typ}
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
		default: // the only ones whose end must be searched for
			return errors.New("it has protobuf groups, which ONNX does not use")
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
