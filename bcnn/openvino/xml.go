package openvino

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// graph is an .xml file: layers, in the order of the file, and edges.
type graph struct {
	version   int
	name      string
	precision string // of old versions: of layers that have none
	layers    []layer
	edges     []edge
	readers   [][]int // of each layer, by index: see connect
}

// old reports whether the version is one of 4 to 7, whose operators are the layers of the time before
// operator sets: weights hang on them.
func (g *graph) old() bool { return g.version < 10 }

// layer is a node of a graph.
type layer struct {
	index             int
	id, name          string
	typ, version      string
	precision         string            // of old versions: of what has none of its own
	attrs             map[string]string // of <data>
	inputs, outputs   []port
	blobs             map[string]map[string]string // of old versions: their attributes by name
	from              []source                     // what each input port reads
	hasInput, hasData bool                         // an element must not come twice
	hasOutput         bool
}

// port is a port of a layer. A dimension of −1 is not known.
type port struct {
	id        string
	names     string
	precision string
	dims      []int
}

// edge joins an output port to an input port, which are named by their ids.
type edge struct{ fromLayer, fromPort, toLayer, toPort string }

// source is an output port of a layer, by index.
type source struct{ layer, port int }

// What reading costs: xmlUnits for each byte of the file, since the shortest elements are
// tokens of several strings, and what layers, edges and ports take besides.
const (
	xmlUnits  = 64
	nodeUnits = 1024
	edgeUnits = 256
	portUnits = 128
)

// Limits of an .xml file that no honest one comes near.
const (
	maxDepth = 64
	maxDims  = 8 // of a tensor
	maxAttrs = 256
	maxName  = 1 << 12
	maxPorts = 1 << 12 // of a layer
)

// decodeXML reads an .xml file of at most so many layers. No entity but those that XML itself
// defines is known, there must be no DOCTYPE, and the encoding is UTF-8.
func decodeXML(data []byte, most int, b *budget.Budget) (g *graph, err error) {
	defer func() {
		if err != nil && !errors.Is(err, budget.ErrExceeded) && b.Charge(0) == nil {
			err = fmt.Errorf("not a network of OpenVINO (IR): %w", err)
		}
	}()
	defer try.Catch(&err)
	try.Check(b.Charge(xmlUnits * int64(len(data))))
	r := &reader{d: xml.NewDecoder(bytes.NewReader(data)), budget: b, most: most}
	root := r.root()
	if root.Name.Local != "net" {
		r.failf("its element is <%s>, want <net>", text.Escape(short(root.Name.Local)))
	}
	return r.net(root), nil
}

// reader reads elements.
type reader struct {
	d      *xml.Decoder
	budget *budget.Budget
	most   int
	depth  int
}

func (r *reader) failf(format string, args ...any) {
	line, _ := r.d.InputPos()
	try.Failf("line %d: %w", line, fmt.Errorf(format, args...))
}

// token returns the next token that means something.
func (r *reader) token() xml.Token {
	for {
		t, err := r.d.Token()
		if err == io.EOF {
			r.failf("the file ends early")
		}
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) { // which has the line, and words of the file
			r.failf("%s", text.Escape(short(syntax.Msg)))
		}
		if err != nil {
			r.failf("%s", text.Escape(short(err.Error())))
		}
		switch t := t.(type) {
		case xml.Directive:
			r.failf("a declaration <!…> is not supported")
		case xml.ProcInst, xml.Comment:
			continue
		default:
			return t
		}
	}
}

// root returns the element of the file.
func (r *reader) root() xml.StartElement {
	for {
		switch t := r.token().(type) {
		case xml.StartElement:
			return t
		case xml.CharData:
			r.blank(t)
		}
	}
}

func (r *reader) blank(t xml.CharData) {
	if len(bytes.Trim(t, " \t\r\n")) > 0 {
		r.failf("text where an element is expected: %s", text.Quote(short(string(t[:min(len(t), 64)]))))
	}
}

// children calls f for each element inside the one that has begun; f reads it to its end.
func (r *reader) children(f func(e xml.StartElement)) {
	if r.depth++; r.depth > maxDepth {
		r.failf("elements are nested more than %d deep", maxDepth)
	}
	for {
		switch t := r.token().(type) {
		case xml.StartElement:
			f(t)
		case xml.EndElement:
			r.depth--
			return
		case xml.CharData:
			r.blank(t)
		}
	}
}

// skip reads an element to its end, whatever is in it.
func (r *reader) skip() {
	for depth := r.depth; ; {
		switch r.token().(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				r.failf("elements are nested more than %d deep", maxDepth)
			}
		case xml.EndElement:
			if depth--; depth < r.depth {
				return
			}
		}
	}
}

// empty demands that an element has nothing in it.
func (r *reader) empty() {
	r.children(func(e xml.StartElement) { r.unknown(e, "here") })
}

func (r *reader) unknown(e xml.StartElement, where string) {
	r.failf("an element <%s> is not supported %s", text.Escape(short(e.Name.Local)), where)
}

// short cuts a word of the file for an error.
func short(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// attributes returns those of an element. Any but the known ones fail, if those are given.
func (r *reader) attributes(e xml.StartElement, known ...string) map[string]string {
	if len(e.Attr) > maxAttrs {
		r.failf("<%s> has more than %d attributes", text.Escape(short(e.Name.Local)), maxAttrs)
	}
	m := make(map[string]string, len(e.Attr))
	for _, a := range e.Attr {
		name := a.Name.Local
		if _, twice := m[name]; twice || a.Name.Space != "" {
			r.failf("<%s> has the attribute %s twice, or of a namespace", text.Escape(short(e.Name.Local)), text.Escape(short(name)))
		}
		if known != nil && !slices.Contains(known, name) {
			r.failf("<%s> has the attribute %s, which is not supported", text.Escape(short(e.Name.Local)), text.Escape(short(name)))
		}
		m[name] = a.Value
	}
	return m
}

func (r *reader) net(e xml.StartElement) *graph {
	a := r.attributes(e, "name", "version", "batch", "precision")
	version, err := strconv.Atoi(a["version"])
	if err != nil || version < 4 || version > 7 && version != 10 && version != 11 {
		r.failf("its version is %s, want 4 to 7, 10 or 11", text.Quote(short(a["version"])))
	}
	g := &graph{version: version, name: a["name"], precision: a["precision"]}
	seen := map[string]bool{}
	r.children(func(e xml.StartElement) {
		name := e.Name.Local
		switch name {
		case "layers", "edges":
			if seen[name] {
				r.failf("it has <%s> twice", name)
			}
			seen[name] = true
			r.attributes(e)
			r.children(func(e xml.StartElement) {
				switch {
				case name == "layers" && e.Name.Local == "layer":
					r.layer(g, e)
				case name == "edges" && e.Name.Local == "edge":
					r.edge(g, e)
				default:
					r.unknown(e, "in <"+name+">")
				}
			})
		case "rt_info", "meta_data", "cli_parameters", "statistics", "quantization_parameters":
			r.skip() // what made the file, and how well it does
		default:
			// Such as <pre-process>, which would change the input.
			r.unknown(e, "in <net>")
		}
	})
	for r.end() {
	}
	if len(g.layers) == 0 {
		r.failf("it has no layers")
	}
	return g
}

// end reads what follows the element of the file; false at the end.
func (r *reader) end() bool {
	t, err := r.d.Token()
	switch t := t.(type) {
	case xml.CharData:
		r.blank(t)
	case xml.Comment, xml.ProcInst:
	case nil:
		if err != io.EOF {
			r.failf("%s", text.Escape(short(err.Error())))
		}
		return false
	default:
		r.failf("something follows </net>")
	}
	return true
}

func (r *reader) layer(g *graph, e xml.StartElement) {
	if len(g.layers) == r.most {
		r.failf("the graph has more than %d layers; Limits.Layers allows more", r.most)
	}
	try.Check(r.budget.Charge(nodeUnits))
	a := r.attributes(e, "id", "name", "type", "version", "precision", "output_names")
	l := layer{index: len(g.layers), id: a["id"], name: a["name"], typ: a["type"], version: a["version"], precision: cmp.Or(a["precision"], g.precision)}
	if l.id == "" || l.typ == "" {
		r.failf("a layer without an id or a type")
	}
	if len(l.name) > maxName || len(l.id) > maxName || len(l.typ) > maxName || len(l.version) > maxName {
		r.failf("the id, name, type or version of a layer has more than %d bytes", maxName)
	}
	what := fmt.Sprintf("in layer %s of type %s", text.Quote(short(l.name)), text.Escape(short(l.typ)))
	once := func(e xml.StartElement, has *bool) {
		if *has {
			r.failf("<%s> comes twice %s", e.Name.Local, what)
		}
		*has = true
	}
	r.children(func(e xml.StartElement) {
		switch name := e.Name.Local; name {
		case "data":
			once(e, &l.hasData)
			l.attrs = r.attributes(e)
			r.empty()
		case "input":
			once(e, &l.hasInput)
			l.inputs = r.ports(e, what)
		case "output":
			once(e, &l.hasOutput)
			l.outputs = r.ports(e, what)
		case "blobs":
			if l.blobs != nil || !g.old() {
				r.unknown(e, what)
			}
			l.blobs = map[string]map[string]string{}
			r.attributes(e)
			r.children(func(e xml.StartElement) {
				if _, twice := l.blobs[e.Name.Local]; twice || len(l.blobs) == maxAttrs {
					r.unknown(e, "twice "+what)
				}
				l.blobs[e.Name.Local] = r.attributes(e, "offset", "size", "precision")
				r.empty()
			})
		case "rt_info":
			r.skip()
		default: // such as <body> of a loop
			r.unknown(e, what)
		}
	})
	g.layers = append(g.layers, l)
}

func (r *reader) ports(e xml.StartElement, what string) (list []port) {
	r.attributes(e)
	seen := map[string]bool{}
	r.children(func(e xml.StartElement) {
		if e.Name.Local != "port" {
			r.unknown(e, what)
		}
		if len(list) == maxPorts {
			r.failf("more than %d ports %s", maxPorts, what)
		}
		a := r.attributes(e, "id", "precision", "names")
		p := port{id: a["id"], names: a["names"], precision: a["precision"], dims: []int{}}
		try.Check(r.budget.Charge(portUnits))
		if seen[p.id] {
			r.failf("two ports have the id %s %s", text.Quote(short(p.id)), what)
		}
		seen[p.id] = true
		r.children(func(e xml.StartElement) {
			switch e.Name.Local {
			case "dim":
				p.dims = append(p.dims, r.dim(e, what))
				if len(p.dims) > maxDims {
					r.failf("a port has more than %d dimensions %s", maxDims, what)
				}
			case "rt_info":
				r.skip()
			default:
				r.unknown(e, what)
			}
		})
		list = append(list, p)
	})
	return list
}

// dim reads a dimension.
func (r *reader) dim(e xml.StartElement, what string) int {
	r.attributes(e)
	d := -1
	for {
		switch t := r.token().(type) {
		case xml.CharData:
			s := strings.TrimSpace(string(t[:min(len(t), 64)]))
			v, err := strconv.Atoi(s)
			if err != nil || v < -1 || v > maxValues {
				r.failf("a dimension is %s %s, want a number up to %d", text.Quote(s), what, maxValues)
			}
			d = v
		case xml.EndElement:
			return d
		case xml.StartElement:
			r.unknown(t, what)
		}
	}
}

func (r *reader) edge(g *graph, e xml.StartElement) {
	try.Check(r.budget.Charge(edgeUnits))
	a := r.attributes(e, "from-layer", "from-port", "to-layer", "to-port")
	r.empty()
	g.edges = append(g.edges, edge{a["from-layer"], a["from-port"], a["to-layer"], a["to-port"]})
}
