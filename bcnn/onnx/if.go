package onnx

import (
	"fmt"
	"maps"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxNesting is how deep If operators may be nested.
const maxNesting = 8

// branches are the attributes of If: for a true condition, then for a false one.
var branches = [2]string{"then_branch", "else_branch"}

// ifNode imports If with a constant condition. PyTorch's older exporter writes one in front of a
// Squeeze, to ask whether the dimension is 1. The nodes of the branch become part of the graph.
func (im *importer) ifNode(n *pb.Node) build.Operand {
	cond := im.operand(n, 0)
	t := cond.Constant
	if t == nil {
		try.Failf("its condition is computed from the input, but a network cannot branch: export the model with only the branch that is used")
	}
	if t.Type != pb.Bool || t.Len() != 1 {
		try.Failf("its condition is %v of shape %v, want a single BOOL", t.Type, t.Dims)
	}
	name := branches[1-t.I64[0]]
	g := try.Value(n.Graph(name, im.budget))
	if g == nil || len(g.Outputs) != len(n.Outputs) {
		try.Failf("%s does not give its %d outputs", name, len(n.Outputs))
	}
	results := im.branch(g)
	for i, out := range n.Outputs {
		if out != "" {
			im.env[out] = results[i]
		}
	}
	return results[0]
}

// branch imports the nodes of a branch and returns its outputs. It forgets the names of the tensors
// afterwards, since another branch may have the same.
func (im *importer) branch(g *pb.Graph) []build.Operand {
	initializers := im.model.Graph.Initializers
	for name := range g.Initializers {
		if initializers[name] != nil {
			try.Failf("two initialisers are called %s", text.Quote(name))
		}
	}
	maps.Copy(initializers, g.Initializers)
	defer func() {
		for name := range g.Initializers {
			delete(initializers, name)
			delete(im.env, name)
		}
		for _, m := range g.Nodes {
			for _, name := range m.Outputs {
				delete(im.env, name)
				delete(im.lines, name)
				delete(im.distances, name)
			}
		}
	}()
	for _, m := range g.Nodes {
		if len(m.Outputs) == 0 || m.Outputs[0] == "" {
			try.Failf("%v has no output", m)
		}
		if err := im.node(m); err != nil {
			try.Failf("%v: %w", m, err)
		}
	}
	results := make([]build.Operand, len(g.Outputs))
	for i, out := range g.Outputs {
		results[i] = im.lookup(out.Name)
	}
	return results
}

// reads lists the tensors that a node reads: its inputs and, for an If, whatever the nodes and
// outputs of its branches read.
func (im *importer) reads(n *pb.Node) ([]string, error) {
	if n.OpType != "If" || n.Domain != "" {
		return n.Inputs, nil
	}
	return im.within(n, nil, 0)
}

// within appends to list what an If reads that lies depth others deep.
func (im *importer) within(n *pb.Node, list []string, depth int) ([]string, error) {
	if depth == maxNesting {
		return nil, fmt.Errorf("%v: more than %d If nodes are nested", n, maxNesting)
	}
	list = append(list, n.Inputs...)
	for _, name := range branches {
		g, err := n.Graph(name, im.budget)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", n, err)
		}
		if g == nil {
			continue
		}
		for _, out := range g.Outputs {
			list = append(list, out.Name)
		}
		for _, m := range g.Nodes {
			if err := im.budget.Charge(nameUnits * int64(1+len(m.Inputs))); err != nil {
				return nil, err
			}
			if m.OpType != "If" || m.Domain != "" {
				list = append(list, m.Inputs...)
			} else if list, err = im.within(m, list, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}
