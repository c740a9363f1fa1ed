package onnx

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Report tells what became of a model.
type Report struct {
	File, Producer string
	Opset          int
	Nodes          int // in the file
	// Layers are the layers with weights: binary or float, their bytes, and why
	// a layer stayed float.
	Layers []bcnn.LayerReport
	// Folded are the nodes that did not become layers of their own.
	Folded []Folded
}

// Folded is a node that is no layer.
type Folded struct {
	Node, Op string
	// Into is the layer that took the node in, "" for a node that was
	// evaluated on import and for one that the output does not depend on.
	Into string
}

// report tells where every node went. A node without a layer went into the
// layer of the first node that reads it.
func (im *importer) report() *Report {
	g := im.model.Graph
	r := &Report{Producer: im.model.Producer, Opset: int(im.model.Opset), Nodes: len(g.Nodes)}
	into := make([]string, len(g.Nodes))
	reader := map[string]int{} // the first node that reads a tensor
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		switch {
		case !im.needed[i] || im.folded[i]:
		case im.build.Made[i] != "":
			into[i] = im.build.Made[i]
		case len(im.build.Net.Layers) > 0:
			into[i] = im.build.Net.Layers[len(im.build.Net.Layers)-1].Name
			if k, ok := reader[n.Outputs[0]]; ok {
				into[i] = into[k]
			}
		}
		if im.needed[i] {
			for _, name := range n.Inputs {
				reader[name] = i
			}
		}
	}
	for i, n := range g.Nodes {
		if im.build.Made[i] == "" {
			r.Folded = append(r.Folded, Folded{n.Label(), n.OpType, into[i]})
		}
	}
	return r
}

// String returns the report as a table.
func (r *Report) String() string {
	var b strings.Builder
	r.Write(&b) // a Builder does not fail
	return b.String()
}

// Write prints the report as a table.
func (r *Report) Write(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "layer\tkind\toutput\tweights\tbytes as float32\tstored\twhy float\n")
	var before, after int64
	for _, l := range r.Layers {
		weights := "binary"
		if !l.Binary {
			weights = "float"
		}
		fmt.Fprintf(tab, "%s\t%s\t%v\t%s\t%d\t%d\t%s\n", l.Layer, l.Kind, l.Output, weights, l.BytesFloat, l.BytesStored, l.WhyFloat)
		before += l.BytesFloat
		after += l.BytesStored
	}
	fmt.Fprintf(tab, "total\t\t\t\t%d\t%d\t\n", before, after)
	if err := tab.Flush(); err != nil {
		return err
	}
	constant, merged := 0, 0
	for _, f := range r.Folded {
		if f.Into == "" {
			constant++
		} else {
			merged++
		}
	}
	_, err := fmt.Fprintf(w, "%d nodes: %d constant or unused, %d merged into layers\n", r.Nodes, constant, merged)
	return err
}
