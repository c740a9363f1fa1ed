package pb

import (
	"encoding/json"
	"slices"
)

// reads are the attributes and inputs of a node that an importer has asked for. What a file says of
// an operator must not be ignored, so that whoever imports a node checks that it has read it all.
type reads struct {
	node       *Node
	attributes []bool
	inputs     []bool
}

// Follow begins to note what is read of the node. Rewritten copies of it share the notes: what they
// read by a name or a position counts for the node that has it in the file.
func (n *Node) Follow() {
	n.reads = &reads{node: n, attributes: make([]bool, len(n.Attrs)), inputs: make([]bool, len(n.Inputs))}
}

func (r *reads) attribute(name string) {
	if r == nil {
		return
	}
	if i := slices.IndexFunc(r.node.Attrs, func(a *Attribute) bool { return a.Name == name }); i >= 0 {
		r.attributes[i] = true
	}
}

func (r *reads) input(i int) {
	if r != nil && i < len(r.inputs) {
		r.inputs[i] = true
	}
}

// Unread returns the attributes that nothing has asked for since Follow, and the positions of such
// inputs, without those that are left out.
func (n *Node) Unread() (attributes []*Attribute, inputs []int) {
	for i, read := range n.reads.attributes {
		if !read {
			attributes = append(attributes, n.Attrs[i])
		}
	}
	for i, read := range n.reads.inputs {
		if !read && n.Inputs[i] != "" {
			inputs = append(inputs, i)
		}
	}
	return attributes, inputs
}

// Equal reports whether an attribute has a type and a value that is written as JSON.
func (a *Attribute) Equal(typ int64, value string) bool {
	if a.Type != 0 && a.Type != typ {
		return false
	}
	var own any
	switch typ {
	case AttrFloat:
		own = new(float32)
	case AttrInt:
		own = new(int64)
	case AttrString:
		own = new(string)
	case AttrFloats:
		own = new([]float32)
	case AttrInts:
		own = new([]int64)
	default:
		return false
	}
	if json.Unmarshal([]byte(value), own) != nil {
		return false
	}
	switch v := own.(type) {
	case *float32:
		return a.F == *v
	case *int64:
		return a.I == *v
	case *string:
		return string(a.S) == *v
	case *[]float32:
		return slices.Equal(a.Fs, *v)
	case *[]int64:
		return slices.Equal(a.Is, *v)
	}
	return false
}
