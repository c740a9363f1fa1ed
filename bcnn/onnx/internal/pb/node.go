package pb

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// String names the node in errors.
func (n *Node) String() string {
	return fmt.Sprintf("node %s (%s, index %d)", text.Quote(n.Name), n.Operator(), n.Index)
}

// Operator returns the name of the operator, behind its domain unless that is empty.
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

// Position returns the index of the node, −1 for nil, which stands for the input.
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

// Attr returns an attribute, or nil. It fails if the attribute has another type; old files state
// none.
func (n *Node) Attr(name string, typ int64) (*Attribute, error) {
	n.reads.attribute(name)
	for _, a := range n.Attrs {
		if a.Name == name {
			if a.Type != 0 && a.Type != typ {
				return nil, fmt.Errorf("attribute %q has type %d of AttributeProto, want %d", name, a.Type, typ)
			}
			return a, nil
		}
	}
	return nil, nil
}

// OnlyAttr returns the attribute of a node that has one. It fails if there are more or none.
func (n *Node) OnlyAttr() *Attribute {
	if len(n.Attrs) != 1 {
		try.Failf("it has %d attributes, want 1", len(n.Attrs))
	}
	n.reads.attribute(n.Attrs[0].Name)
	return n.Attrs[0]
}

// Has reports whether the node has the attribute.
func (n *Node) Has(name string) bool {
	return slices.ContainsFunc(n.Attrs, func(a *Attribute) bool { return a.Name == name })
}

// Float, Int, Text and Ints return the value of an attribute, or the fallback without it. They fail
// if it has another type: see package try.
func (n *Node) Float(name string, fallback float32) float32 {
	if a := try.Value(n.Attr(name, AttrFloat)); a != nil {
		return a.F
	}
	return fallback
}

func (n *Node) Int(name string, fallback int64) int64 {
	if a := try.Value(n.Attr(name, AttrInt)); a != nil {
		return a.I
	}
	return fallback
}

// Bit is Int for an attribute that is 0 or 1. It fails for others, of which ONNX does not say what they
// mean.
func (n *Node) Bit(name string, fallback int64) int64 {
	i := n.Int(name, fallback)
	if i != 0 && i != 1 {
		try.Failf("attribute %q is %d, want 0 or 1", name, i)
	}
	return i
}

func (n *Node) Text(name, fallback string) string {
	a := try.Value(n.Attr(name, AttrString))
	if a == nil {
		return fallback
	}
	if len(a.S) > maxName {
		try.Failf("attribute %q has %d bytes, at most %d are allowed", name, len(a.S), maxName)
	}
	return string(a.S)
}

func (n *Node) Ints(name string) []int64 {
	if a := try.Value(n.Attr(name, AttrInts)); a != nil {
		return a.Is
	}
	return nil
}

// Graph returns the graph of an attribute, or nil. Its nodes get the index of n.
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

// Sizes returns a list of want sizes, none below 0, or want times the fallback.
func (n *Node) Sizes(name string, want int, fallback int) []int {
	list := n.Ints(name)
	if list == nil {
		return slices.Repeat([]int{fallback}, want)
	}
	out := make([]int, want)
	if len(list) != want {
		try.Failf("attribute %q has %d values, want %d: only two-dimensional windows are supported", name, len(list), want)
	}
	for i, v := range list {
		if v < 0 || v > MaxSize {
			try.Failf("attribute %q has a number that is negative or too large: %v", name, list)
		}
		out[i] = int(v)
	}
	return out
}

// Input returns the name of an input, empty if it is left out.
func (n *Node) Input(i int) string {
	n.reads.input(i)
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return ""
}

// maxLabel is the longest label in bytes.
const maxLabel = 200

// Label returns the name for layers made of a node: valid, printable UTF-8. Users know modules of
// PyTorch, and no numbers of nodes. The newer exporter says in which module a node is, which
// names the node if it is the only one there; the older one names nodes "/module/Operator".
func (n *Node) Label() string {
	if n == nil {
		return "input"
	}
	name := strings.TrimPrefix(n.Name, "/")
	if rest, ok := strings.CutSuffix(name, n.OpType); ok && strings.HasSuffix(rest, "/") {
		name = rest[:len(rest)-1]
	}
	if n.alone {
		name = n.module
	} else if n.module != "" {
		name = n.module + "/" + n.OpType
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
