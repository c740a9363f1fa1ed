package pb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Limits against small files that decode to large structures.
const (
	maxObjects = 1 << 18 // nodes, attributes, names, initialisers …
	MaxRank    = 8
	maxInts    = 1 << 16 // of one attribute
)

type decoder struct{ objects int }

func (d *decoder) object() error {
	if d.objects++; d.objects > maxObjects {
		return fmt.Errorf("more than %d nodes, names and attributes", maxObjects)
	}
	return nil
}

// Decode decodes a ModelProto. The model keeps slices of b.
func Decode(b []byte) (*Model, error) {
	d := &decoder{}
	m := &Model{Metadata: map[string]string{}}
	err := fields(b, func(f field) error {
		switch f.num {
		case 2:
			return f.text(&m.Producer)
		case 7:
			if m.Graph != nil {
				return errors.New("two graphs")
			}
			m.Graph = &Graph{Initializers: map[string]*Tensor{}}
			return f.message(func(f field) error { return d.graphField(m.Graph, f) })
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
				m.Opset = version
			}
			return err
		case 14:
			key, value, err := d.entry(f)
			m.Metadata[key] = value
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.Graph == nil {
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

func (d *decoder) graphField(g *Graph, f field) error {
	switch f.num {
	case 1, 5, 11, 12, 15:
		if err := d.object(); err != nil {
			return err
		}
	}
	switch f.num {
	case 1:
		n := &Node{Index: len(g.Nodes)}
		g.Nodes = append(g.Nodes, n)
		if err := f.message(func(f field) error { return d.nodeField(n, f) }); err != nil {
			return fmt.Errorf("node %d: %w", n.Index, err)
		}
	case 5:
		t, err := d.tensor(f)
		if err != nil {
			return err
		}
		if g.Initializers[t.Name] != nil {
			return fmt.Errorf("two initialisers %q", t.Name)
		}
		g.Initializers[t.Name] = t
	case 11, 12:
		v, err := d.valueInfo(f)
		if err != nil {
			return err
		}
		if f.num == 11 {
			g.Inputs = append(g.Inputs, v)
		} else {
			g.Outputs = append(g.Outputs, v)
		}
	case 15:
		return errors.New("sparse initialisers are not supported")
	}
	return nil
}

func (d *decoder) valueInfo(f field) (ValueInfo, error) {
	var v ValueInfo
	var typ int64
	dimension := func(f field) error {
		if f.num != 1 {
			return nil
		}
		if len(v.Dims) == MaxRank {
			return fmt.Errorf("more than %d dimensions", MaxRank)
		}
		var size Dim
		err := f.message(func(f field) error {
			switch f.num {
			case 1:
				return f.integer(&size.Size)
			case 2:
				return f.text(&size.Name)
			}
			return nil
		})
		v.Dims = append(v.Dims, size)
		return err
	}
	tensorType := func(f field) error {
		switch f.num {
		case 1:
			return f.integer(&typ)
		case 2:
			v.Ranked = true
			return f.message(dimension)
		}
		return nil
	}
	err := f.message(func(f field) error {
		switch f.num {
		case 1:
			return f.text(&v.Name)
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
	v.Type = DataType(typ)
	return v, err
}

func (d *decoder) nodeField(n *Node, f field) error {
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
			n.Inputs = append(n.Inputs, name)
		} else {
			n.Outputs = append(n.Outputs, name)
		}
	case 3:
		return f.text(&n.Name)
	case 4:
		return f.text(&n.OpType)
	case 5:
		if err := d.object(); err != nil {
			return err
		}
		n.Attrs = append(n.Attrs, Attribute{})
		a := &n.Attrs[len(n.Attrs)-1]
		return f.message(func(f field) error { return d.attributeField(a, f) })
	case 7:
		return f.text(&n.Domain)
	}
	return nil
}

func (d *decoder) attributeField(a *Attribute, f field) error {
	var err error
	switch f.num {
	case 1:
		return f.text(&a.Name)
	case 2:
		a.F = math.Float32frombits(uint32(f.u))
	case 3:
		return f.integer(&a.I)
	case 4:
		a.S, err = f.bytes()
	case 5:
		if err := d.object(); err != nil {
			return err
		}
		a.T, err = d.tensor(f)
	case 7:
		var b []byte
		if err := f.fixed(&b); err != nil {
			return err
		}
		for ; len(b) >= 4 && len(a.Fs) <= maxInts; b = b[4:] {
			a.Fs = append(a.Fs, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	case 8:
		if len(f.data) > 10*maxInts {
			return fmt.Errorf("attribute %q has more than %d values", a.Name, maxInts)
		}
		err = f.integers(&a.Is)
	case 20:
		return f.integer(&a.Type)
	}
	if len(a.Fs) > maxInts || len(a.Is) > maxInts {
		return fmt.Errorf("attribute %q has more than %d values", a.Name, maxInts)
	}
	return err
}

func (d *decoder) tensor(f field) (*Tensor, error) {
	t := &Tensor{}
	var location int64
	external := map[string]string{}
	err := f.message(func(f field) error {
		var err error
		switch f.num {
		case 1:
			if len(f.data) > 10*MaxRank {
				return fmt.Errorf("more than %d dimensions", MaxRank)
			}
			if err = f.integers(&t.Dims); err == nil && len(t.Dims) > MaxRank {
				return fmt.Errorf("more than %d dimensions", MaxRank)
			}
		case 2:
			var typ int64
			err = f.integer(&typ)
			t.Type = DataType(typ)
		case 3:
			return errors.New("segmented tensors are not supported")
		case 4:
			return f.fixed(&t.F32)
		case 5, 7, 11: // int32_data, int64_data, uint64_data
			return f.integers(&t.Ints)
		case 8:
			return f.text(&t.Name)
		case 9:
			t.HasRaw = true
			t.Raw, err = f.bytes()
		case 10:
			return f.fixed(&t.F64)
		case 13:
			key, value, entryErr := d.entry(f)
			external[key], err = value, entryErr
		case 14:
			return f.integer(&location)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if location == 1 {
		t.External = external
	}
	return t, nil
}
