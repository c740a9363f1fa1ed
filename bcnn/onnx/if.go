package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxNesting is how deep operators If may lie in each other.
const maxNesting = 8

// branches are the attributes of If, the one of a true condition first.
var branches = [2]string{"then_branch", "else_branch"}

// ifNode imports If with a constant condition: PyTorch's older exporter asks a shape
// whether a dimension is 1 before it squeezes it. The nodes of the branch become part of
// the graph.
func (im *importer) ifNode(n *pb.Node) (build.Operand, error) {
	cond, err := im.operand(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	t := cond.Constant
	if t == nil {
		return build.Operand{}, errors.New("its condition is computed, and a network has one way: export the model with the branch that is meant")
	}
	if t.Type != pb.Bool || t.Len() != 1 {
		return build.Operand{}, fmt.Errorf("its condition is a constant of %v %v", t.Type, t.Dims)
	}
	name := branches[1-t.I64[0]]
	g, err := n.Graph(name, im.budget)
	switch {
	case err != nil:
		return build.Operand{}, err
	case g == nil || len(g.Outputs) != len(n.Outputs):
		return build.Operand{}, fmt.Errorf("%s does not give its %d outputs", name, len(n.Outputs))
	}
	initializers := im.model.Graph.Initializers
	for name, t := range g.Initializers {
		if known := initializers[name]; known != nil && known != t {
			return build.Operand{}, fmt.Errorf("two initialisers %s", text.Quote(name))
		}
		initializers[name] = t
	}
	for _, m := range g.Nodes {
		if len(m.Outputs) == 0 || m.Outputs[0] == "" {
			return build.Operand{}, fmt.Errorf("%v has no output", m)
		}
		if err := im.node(m); err != nil {
			return build.Operand{}, err
		}
	}
	var first build.Operand
	for i, out := range g.Outputs {
		r, err := im.lookup(out.Name)
		if err != nil {
			return build.Operand{}, err
		}
		if im.env[n.Outputs[i]] = r; i == 0 {
			first = r
		}
	}
	return first, nil
}

// reads lists the tensors that a node reads: its inputs, and those of the nodes in the
// branches of an If.
func (im *importer) reads(n *pb.Node) ([]string, error) {
	if n.OpType != "If" || n.Domain != "" {
		return n.Inputs, nil
	}
	return im.within(n, nil, 0)
}

// within appends what an If reads that lies so deep in others.
func (im *importer) within(n *pb.Node, list []string, depth int) ([]string, error) {
	if depth == maxNesting {
		return nil, fmt.Errorf("%v: more than %d If in each other", n, maxNesting)
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
