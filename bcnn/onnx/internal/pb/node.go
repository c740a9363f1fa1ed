package pb

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// String names the node in errors.
func (n *Node) String() string {
	return fmt.Sprintf("node %s (%s, index %d)", text.Quote(n.Name), n.Operator(), n.Index)
}

// Operator is the operator's name, with its domain unless that is ONNX's own.
func (n *Node) Operator() string {
	op := n.OpType
	if n.Domain != "" {
		op = n.Domain + "." + op
	}
	if len(op) > maxLabel || strings.ContainsFunc(op, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '.' }) {
		op = text.Quote(op)
	}
	return op
}

// Position is the index of the node, −1 for nil, the input.
func (n *Node) Position() int {
	if n == nil {
		return -1
	}
	return n.Index
}

// Attribute types, AttributeProto.AttributeType.
const (
	AttrFloat  = 1
	AttrInt    = 2
	AttrString = 3
	AttrTensor = 4
	AttrGraph  = 5
	AttrFloats = 6
	AttrInts   = 7
)

// Attr returns the attribute, or nil. Old files do not state types.
func (n *Node) Attr(name string, typ int64) (*Attribute, error) {
	for _, a := range n.Attrs {
		if a.Name == name {
			if a.Type != 0 && a.Type != typ {
				return nil, fmt.Errorf("attribute %q has type %d, want %d", name, a.Type, typ)
			}
			return a, nil
		}
	}
	return nil, nil
}

// Has reports whether the node has the attribute.
func (n *Node) Has(name string) bool {
	return slices.ContainsFunc(n.Attrs, func(a *Attribute) bool { return a.Name == name })
}

// Float, Int, Text and Ints return the value of an attribute, or the fallback if
// there is none. An attribute of another type is an error.
func (n *Node) Float(name string, fallback float32) (float32, error) {
	if a, err := n.Attr(name, AttrFloat); a == nil {
		return fallback, err
	} else {
		return a.F, nil
	}
}

func (n *Node) Int(name string, fallback int64) (int64, error) {
	if a, err := n.Attr(name, AttrInt); a == nil {
		return fallback, err
	} else {
		return a.I, nil
	}
}

func (n *Node) Text(name, fallback string) (string, error) {
	a, err := n.Attr(name, AttrString)
	switch {
	case a == nil:
		return fallback, err
	case len(a.S) > maxName:
		return "", fmt.Errorf("attribute %q has %d bytes, at most %d are allowed", name, len(a.S), maxName)
	}
	return string(a.S), nil
}

func (n *Node) Ints(name string) ([]int64, error) {
	a, err := n.Attr(name, AttrInts)
	if a == nil {
		return nil, err
	}
	return a.Is, nil
}

// Graph returns the graph in an attribute, or nil. Its nodes have the index of this one.
func (n *Node) Graph(name string, b *budget.Budget) (*Graph, error) {
	a, err := n.Attr(name, AttrGraph)
	switch {
	case a == nil:
		return nil, err
	case a.decoded != nil:
		return a.decoded, nil
	}
	d := &decoder{b}
	g := &Graph{Initializers: map[string]*Tensor{}}
	if err := fields(b, a.graph, func(f field) error { return d.graphField(g, f) }); err != nil {
		return nil, fmt.Errorf("attribute %q: %w", name, err)
	}
	for _, m := range g.Nodes {
		m.Index = n.Index
	}
	a.decoded = g
	return g, nil
}

// Sizes returns a list of want non-negative sizes, or the fallback for all.
func (n *Node) Sizes(name string, want int, fallback int) ([]int, error) {
	list, err := n.Ints(name)
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
		if v < 0 || v > MaxSize {
			return nil, fmt.Errorf("attribute %q is %v", name, list)
		}
		out[i] = int(v)
	}
	return out, nil
}

// Input returns the name of an input, empty if it is left out.
func (n *Node) Input(i int) string {
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return ""
}

// maxLabel is the longest label in bytes.
const maxLabel = 200

// Label is the name that layers made of a node have: valid UTF-8 that can be
// printed. PyTorch names nodes "/module/Operator"; the module is what a user
// knows.
func (n *Node) Label() string {
	if n == nil {
		return "input"
	}
	name := strings.TrimPrefix(n.Name, "/")
	if rest, ok := strings.CutSuffix(name, n.OpType); ok && strings.HasSuffix(rest, "/") {
		name = rest[:len(rest)-1]
	}
	if name == "" {
		name = fmt.Sprintf("%.*s_%d", maxLabel/2, n.OpType, n.Index)
	}
	if cut := maxLabel; len(name) > cut {
		for cut > maxLabel-utf8.UTFMax && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
}
