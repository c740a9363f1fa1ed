package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

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
