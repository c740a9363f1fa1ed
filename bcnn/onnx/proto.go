package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of onnx.proto3, as far as they are needed. Unknown fields are
// skipped.

type model struct {
	producer string
	opset    int64 // of the default domain
	graph    *graph
	metadata map[string]string
}

type graph struct {
	nodes        []*node
	initializers map[string]*tensorProto
	inputs       []valueInfo
	outputs      []valueInfo
}

type valueInfo struct {
	name string
	typ  elemType
	dims []dim
	// ranked tells a shape without dimensions from none.
	ranked bool
}

// dim is a dimension of a graph input: a size, or a name for a dynamic one.
type dim struct {
	size int64
	name string
}

type node struct {
	index                int
	name, opType, domain string
	inputs, outputs      []string
	attrs                []attribute
}

type attribute struct {
	name string
	typ  int64
	f    float32
	i    int64
	s    []byte
	t    *tensorProto
	fs   []float32
	is   []int64
}

type tensorProto struct {
	name     string
	dims     []int64
	typ      elemType
	raw      []byte // raw_data, little-endian
	hasRaw   bool
	f32, f64 []byte // float_data, double_data, little-endian
	ints     []int64
	external map[string]string // nil unless the data is in another file
}

// Limits against small files that decode to large structures.
const (
	maxObjects = 1 << 18 // nodes, attributes, names, initialisers …
	maxRank    = 8
	maxInts    = 1 << 16 // of one attribute
)

type decoder struct{ objects int }

func (d *decoder) object() error {
	if d.objects++; d.objects > maxObjects {
		return fmt.Errorf("more than %d nodes, names and attributes", maxObjects)
	}
	return nil
}

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

func decodeModel(b []byte) (*model, error) {
	d := &decoder{}
	m := &model{metadata: map[string]string{}}
	err := fields(b, func(f field) error {
		switch f.num {
		case 2:
			return f.text(&m.producer)
		case 7:
			if m.graph != nil {
				return errors.New("two graphs")
			}
			m.graph = &graph{initializers: map[string]*tensorProto{}}
			return f.message(func(f field) error { return d.graphField(m.graph, f) })
		case 8:
			var domain string
			var version int64
			err := f.message(func(f field) error {
				switch f.num {
				case 1:
					return f.text(&domain)
				case 2:
					return f.integer(&version)
				}
				return nil
			})
			if domain == "" || domain == "ai.onnx" {
				m.opset = version
			}
			return err
		case 14:
			key, value, err := d.entry(f)
			m.metadata[key] = value
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.graph == nil {
		return nil, errors.New("it has no graph")
	}
	return m, nil
}

// entry decodes a StringStringEntryProto.
func (d *decoder) entry(f field) (key, value string, err error) {
	if err := d.object(); err != nil {
		return "", "", err
	}
	err = f.message(func(f field) error {
		switch f.num {
		case 1:
			return f.text(&key)
		case 2:
			return f.text(&value)
		}
		return nil
	})
	return key, value, err
}

func (d *decoder) graphField(g *graph, f field) error {
	switch f.num {
	case 1, 5, 11, 12, 15:
		if err := d.object(); err != nil {
			return err
		}
	}
	switch f.num {
	case 1:
		n := &node{index: len(g.nodes)}
		g.nodes = append(g.nodes, n)
		if err := f.message(func(f field) error { return d.nodeField(n, f) }); err != nil {
			return fmt.Errorf("node %d: %w", n.index, err)
		}
	case 5:
		t, err := d.tensor(f)
		if err != nil {
			return err
		}
		if g.initializers[t.name] != nil {
			return fmt.Errorf("two initialisers %q", t.name)
		}
		g.initializers[t.name] = t
	case 11, 12:
		v, err := d.valueInfo(f)
		if err != nil {
			return err
		}
		if f.num == 11 {
			g.inputs = append(g.inputs, v)
		} else {
			g.outputs = append(g.outputs, v)
		}
	case 15:
		return errors.New("sparse initialisers are not supported")
	}
	return nil
}

func (d *decoder) valueInfo(f field) (valueInfo, error) {
	var v valueInfo
	var typ int64
	dimension := func(f field) error {
		if f.num != 1 {
			return nil
		}
		if len(v.dims) == maxRank {
			return fmt.Errorf("more than %d dimensions", maxRank)
		}
		var size dim
		err := f.message(func(f field) error {
			switch f.num {
			case 1:
				return f.integer(&size.size)
			case 2:
				return f.text(&size.name)
			}
			return nil
		})
		v.dims = append(v.dims, size)
		return err
	}
	tensorType := func(f field) error {
		switch f.num {
		case 1:
			return f.integer(&typ)
		case 2:
			v.ranked = true
			return f.message(dimension)
		}
		return nil
	}
	err := f.message(func(f field) error {
		switch f.num {
		case 1:
			return f.text(&v.name)
		case 2:
			return f.message(func(f field) error {
				if f.num == 1 {
					return f.message(tensorType)
				}
				return nil
			})
		}
		return nil
	})
	v.typ = elemType(typ)
	return v, err
}

func (d *decoder) nodeField(n *node, f field) error {
	var name string
	switch f.num {
	case 1, 2:
		if err := d.object(); err != nil {
			return err
		}
		if err := f.text(&name); err != nil {
			return err
		}
		if f.num == 1 {
			n.inputs = append(n.inputs, name)
		} else {
			n.outputs = append(n.outputs, name)
		}
	case 3:
		return f.text(&n.name)
	case 4:
		return f.text(&n.opType)
	case 5:
		if err := d.object(); err != nil {
			return err
		}
		n.attrs = append(n.attrs, attribute{})
		a := &n.attrs[len(n.attrs)-1]
		return f.message(func(f field) error { return d.attributeField(a, f) })
	case 7:
		return f.text(&n.domain)
	}
	return nil
}

func (d *decoder) attributeField(a *attribute, f field) error {
	var err error
	switch f.num {
	case 1:
		return f.text(&a.name)
	case 2:
		a.f = math.Float32frombits(uint32(f.u))
	case 3:
		return f.integer(&a.i)
	case 4:
		a.s, err = f.bytes()
	case 5:
		if err := d.object(); err != nil {
			return err
		}
		a.t, err = d.tensor(f)
	case 7:
		var b []byte
		if err := f.fixed(&b); err != nil {
			return err
		}
		for ; len(b) >= 4 && len(a.fs) <= maxInts; b = b[4:] {
			a.fs = append(a.fs, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	case 8:
		if len(f.data) > 10*maxInts {
			return fmt.Errorf("attribute %q has more than %d values", a.name, maxInts)
		}
		err = f.integers(&a.is)
	case 20:
		return f.integer(&a.typ)
	}
	if len(a.fs) > maxInts || len(a.is) > maxInts {
		return fmt.Errorf("attribute %q has more than %d values", a.name, maxInts)
	}
	return err
}

func (d *decoder) tensor(f field) (*tensorProto, error) {
	t := &tensorProto{}
	var location int64
	external := map[string]string{}
	err := f.message(func(f field) error {
		var err error
		switch f.num {
		case 1:
			if len(f.data) > 10*maxRank {
				return fmt.Errorf("more than %d dimensions", maxRank)
			}
			if err = f.integers(&t.dims); err == nil && len(t.dims) > maxRank {
				return fmt.Errorf("more than %d dimensions", maxRank)
			}
		case 2:
			var typ int64
			err = f.integer(&typ)
			t.typ = elemType(typ)
		case 3:
			return errors.New("segmented tensors are not supported")
		case 4:
			return f.fixed(&t.f32)
		case 5, 7, 11: // int32_data, int64_data, uint64_data
			return f.integers(&t.ints)
		case 8:
			return f.text(&t.name)
		case 9:
			t.hasRaw = true
			t.raw, err = f.bytes()
		case 10:
			return f.fixed(&t.f64)
		case 13:
			key, value, entryErr := d.entry(f)
			external[key], err = value, entryErr
		case 14:
			return f.integer(&location)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.name, err)
	}
	if location == 1 {
		t.external = external
	}
	return t, nil
}
