package onnx

import (
	"fmt"
	"strings"
)

func (n *node) String() string {
	op := n.opType
	if n.domain != "" {
		op = n.domain + "." + op
	}
	return fmt.Sprintf("node %q (%s, index %d)", n.name, op, n.index)
}

// Attribute types, AttributeProto.AttributeType.
const (
	attrFloat  = 1
	attrInt    = 2
	attrString = 3
	attrTensor = 4
	attrFloats = 6
	attrInts   = 7
)

// attr returns the attribute, or nil. Old files do not state types.
func (n *node) attr(name string, typ int64) (*attribute, error) {
	for i := range n.attrs {
		if a := &n.attrs[i]; a.name == name {
			if a.typ != 0 && a.typ != typ {
				return nil, fmt.Errorf("attribute %q has type %d, want %d", name, a.typ, typ)
			}
			return a, nil
		}
	}
	return nil, nil
}

func (n *node) has(name string) bool {
	for i := range n.attrs {
		if n.attrs[i].name == name {
			return true
		}
	}
	return false
}

func (n *node) float(name string, fallback float32) (float32, error) {
	if a, err := n.attr(name, attrFloat); a == nil {
		return fallback, err
	} else {
		return a.f, nil
	}
}

func (n *node) int(name string, fallback int64) (int64, error) {
	if a, err := n.attr(name, attrInt); a == nil {
		return fallback, err
	} else {
		return a.i, nil
	}
}

func (n *node) string(name, fallback string) (string, error) {
	if a, err := n.attr(name, attrString); a == nil {
		return fallback, err
	} else {
		return string(a.s), nil
	}
}

func (n *node) ints(name string) ([]int64, error) {
	a, err := n.attr(name, attrInts)
	if a == nil {
		return nil, err
	}
	return a.is, nil
}

// sizes returns a list of want non-negative sizes, or the fallback for all.
func (n *node) sizes(name string, want int, fallback int) ([]int, error) {
	list, err := n.ints(name)
	if err != nil {
		return nil, err
	}
	out := make([]int, want)
	if list == nil {
		for i := range out {
			out[i] = fallback
		}
		return out, nil
	}
	if len(list) != want {
		return nil, fmt.Errorf("attribute %q has %d values, want %d: only two-dimensional windows are supported", name, len(list), want)
	}
	for i, v := range list {
		if v < 0 || v > maxSize {
			return nil, fmt.Errorf("attribute %q is %v", name, list)
		}
		out[i] = int(v)
	}
	return out, nil
}

// input returns the name of an input, empty if it is left out.
func (n *node) input(i int) string {
	if i < len(n.inputs) {
		return n.inputs[i]
	}
	return ""
}

// label is the name that layers made of a node have. PyTorch names nodes
// "/module/Operator"; the module is what a user knows.
func (n *node) label() string {
	if n == nil {
		return "input"
	}
	name := strings.TrimPrefix(n.name, "/")
	if name = strings.TrimSuffix(name, "/"+n.opType); name != "" {
		return name
	}
	return fmt.Sprintf("%s_%d", n.opType, n.index)
}
