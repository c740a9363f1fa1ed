package pb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// MaxRank is the largest number of dimensions.
const MaxRank = 8

type decoder struct{ budget *budget.Budget }

// Decode decodes a ModelProto. The model refers to data.
func Decode(data []byte, b *budget.Budget) (*Model, error) {
	d := &decoder{b}
	m := &Model{Metadata: map[string][]byte{}, Functions: map[string]bool{}}
	err := fields(b, data, func(f field) error {
		switch f.num {
		case 2:
			return f.text(&m.Producer)
		case 7:
			if m.Graph != nil {
				return errors.New("it has two graphs")
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
			if domain == "" || domain == onnxDomain {
				m.Opset = version
			}
			return err
		case 14:
			key, value, err := d.entry(f)
			m.Metadata[key] = value
			return err
		case 25:
			name, err := d.function(f)
			m.Functions[name] = true
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
	return m, m.Graph.countModules(b)
}

// countModules finds the nodes that are alone in their module, those on constants aside, such as
// the sign of a convolution's weights.
func (g *Graph) countModules(b *budget.Budget) error {
	nodes, constants := map[string]int{}, map[string]bool{}
	for _, n := range g.Nodes {
		if n.module == "" {
			continue
		}
		if err := b.Charge(nameUnits * int64(1+len(n.Inputs)+len(n.Outputs))); err != nil {
			return err
		}
		if slices.ContainsFunc(n.Inputs, func(name string) bool { return name != "" && g.Initializers[name] == nil && !constants[name] }) {
			nodes[n.module]++
			continue
		}
		for _, name := range n.Outputs {
			constants[name] = true
		}
	}
	for _, n := range g.Nodes {
		n.alone = nodes[n.module] == 1
	}
	return nil
}

// function returns the operator that a FunctionProto defines.
func (d *decoder) function(f field) (string, error) {
	if err := d.budget.Charge(entryUnits); err != nil {
		return "", err
	}
	n := &Node{}
	err := f.message(func(f field) (err error) {
		switch f.num {
		case 1:
			err = f.text(&n.OpType)
		case 10:
			err = n.domain(f)
		}
		return err
	})
	return n.Operator(), err
}

// domain decodes the domain of an operator.
func (n *Node) domain(f field) error {
	err := f.text(&n.Domain)
	if n.Domain == onnxDomain {
		n.Domain = ""
	}
	return err
}

// entry decodes a StringStringEntryProto.
func (d *decoder) entry(f field) (key string, value []byte, err error) {
	if err := d.budget.Charge(entryUnits); err != nil {
		return "", nil, err
	}
	err = f.message(func(f field) (err error) {
		switch f.num {
		case 1:
			err = f.text(&key)
		case 2:
			value, err = f.bytes()
		}
		return err
	})
	return key, value, err
}

func (d *decoder) graphField(g *Graph, f field) error {
	switch f.num {
	case 1:
		if err := d.budget.Charge(nodeUnits); err != nil {
			return err
		}
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
			return fmt.Errorf("two initialisers are called %s", text.Quote(t.Name))
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
	case 13:
		if err := d.budget.Charge(infoUnits); err != nil {
			return err
		}
		g.infos = append(g.infos, f)
	case 15:
		return errors.New("sparse initialisers are not supported")
	}
	return nil
}

// ValueInfos returns what the file declares of tensors between the nodes, by name. It leaves out
// what cannot be decoded. The error is that of the budget.
func (g *Graph) ValueInfos(b *budget.Budget) (map[string]ValueInfo, error) {
	d := &decoder{b}
	infos := make(map[string]ValueInfo, len(g.infos))
	for _, f := range g.infos {
		if v, err := d.valueInfo(f); err == nil {
			infos[v.Name] = v
		}
	}
	return infos, b.Charge(0)
}

func (d *decoder) valueInfo(f field) (ValueInfo, error) {
	var v ValueInfo
	var typ int64
	if err := d.budget.Charge(infoUnits); err != nil {
		return v, err
	}
	dimension := func(f field) error {
		if f.num != 1 {
			return nil
		}
		if len(v.Dims) == MaxRank {
			return fmt.Errorf("it has more than %d dimensions", MaxRank)
		}
		if err := d.budget.Charge(dimUnits); err != nil {
			return err
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
		if size.Size == -1 { // Paddle writes an open dimension so
			size.Size = 0
		}
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
		if err := d.budget.Charge(nameUnits); err != nil {
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
		if err := d.budget.Charge(attributeUnits); err != nil {
			return err
		}
		a := &Attribute{}
		n.Attrs = append(n.Attrs, a)
		return f.message(func(f field) error { return d.attributeField(a, f) })
	case 7:
		return n.domain(f)
	case 9:
		key, value, err := d.entry(f)
		if err != nil || key != scopesKey || len(value) > maxName {
			return err
		}
		n.module = innermost(string(value))
		return d.budget.Charge(2 * int64(len(value)))
	}
	return nil
}

// scopesKey is the entry of a node's metadata in which PyTorch's newer exporter lists the modules
// that the node is in, the innermost last, and behind them the node of its own graph: a list of
// Python, such as [”, 'blocks', 'blocks.0', 'conv2d'].
const scopesKey = "pkg.torch.onnx.name_scopes"

// innermost returns the last but one string of such a list, and "" if there is none.
func innermost(scopes string) string {
	const separator = "', '"
	end := strings.LastIndex(scopes, separator)
	if !strings.HasPrefix(scopes, "['") || !strings.HasSuffix(scopes, "']") || end < 0 {
		return ""
	}
	modules := scopes[len("['"):end]
	if last := strings.LastIndex(modules, separator); last >= 0 {
		modules = modules[last+len(separator):]
	}
	return modules
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
		a.T, err = d.tensor(f)
	case 6:
		a.graph, err = f.bytes()
	case 7:
		var b []byte
		if err := f.elements(&b); err != nil {
			return err
		}
		for ; len(b) >= 4 && err == nil; b = b[4:] {
			a.Fs = append(a.Fs, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			err = d.budget.Charge(integerUnits / 2)
		}
	case 8:
		err = f.integers(&a.Is)
	case 20:
		return f.integer(&a.Type)
	}
	return err
}

func (d *decoder) tensor(f field) (*Tensor, error) {
	if err := d.budget.Charge(tensorUnits); err != nil {
		return nil, err
	}
	t := &Tensor{}
	var location int64
	var external External
	err := f.message(func(f field) error {
		var err error
		switch f.num {
		case 1:
			if len(f.data) > 10*MaxRank {
				return fmt.Errorf("it has more than %d dimensions", MaxRank)
			}
			if err = f.integers(&t.Dims); err == nil && len(t.Dims) > MaxRank {
				return fmt.Errorf("it has more than %d dimensions", MaxRank)
			}
		case 2:
			var typ int64
			err = f.integer(&typ)
			t.Type = DataType(typ)
		case 3:
			return errors.New("segmented tensors are not supported")
		case 4:
			return f.elements(&t.F32)
		case 5, 7, 11: // int32_data, int64_data, uint64_data
			return f.elements(&t.Varints)
		case 8:
			return f.text(&t.Name)
		case 9:
			t.HasRaw = true
			t.Raw, err = f.bytes()
		case 10:
			return f.elements(&t.F64)
		case 13:
			err = d.external(&external, f)
		case 14:
			return f.integer(&location)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", text.Quote(t.Name), err)
	}
	if location == 1 {
		t.External = &external
	}
	return t, nil
}

// external decodes an entry of external_data.
func (d *decoder) external(to *External, f field) error {
	key, value, err := d.entry(f)
	if err == nil && len(value) > maxName {
		err = fmt.Errorf("external data: an entry has %d bytes, which is too long", len(value))
	}
	if err != nil {
		return err
	}
	switch key {
	case "location":
		to.Location = string(value)
	case "offset":
		to.Offset = string(value)
	case "length":
		to.Length = string(value)
	}
	return d.budget.Charge(int64(len(value)))
}
