package onnx

import (
	"context"
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// importer turns a graph into a network, node by node.
type importer struct {
	ctx    context.Context
	limits bcnn.Limits
	model  *pb.Model
	opts   Options
	budget *budget.Budget
	eval   *eval.Evaluator
	build  *networkBuilder

	env    map[string]result
	folded map[int]bool // nodes that are constant
	needed map[int]bool // nodes that the output depends on
	batch  int          // the batch size in the file, 0 if dynamic
}

// newImporter returns an importer of a model, whose external tensors are looked
// for in dir; an empty dir has none.
func newImporter(ctx context.Context, m *pb.Model, opts Options, b *budget.Budget, dir string) *importer {
	im := &importer{
		ctx: ctx, limits: opts.Limits, model: m, opts: opts, budget: b,
		eval:   &eval.Evaluator{Budget: b},
		env:    map[string]result{},
		folded: map[int]bool{},
	}
	im.build = newBuilder(im.eval, opts.SignOfZero)
	if dir != "" {
		im.eval.External = (&folder{dir: dir, budget: b, credited: map[string]bool{}}).read
	}
	return im
}

// run imports the graph.
func (im *importer) run(l layout) error {
	g := im.model.Graph
	if err := im.begin(l); err != nil {
		return fmt.Errorf("input %q: %w", l.info.Name, err)
	}
	if len(g.Outputs) != 1 {
		return fmt.Errorf("the graph has %d outputs, want 1", len(g.Outputs))
	}
	output := g.Outputs[0].Name
	var err error
	if im.needed, err = needed(g, output); err != nil {
		return err
	}
	for _, n := range g.Nodes {
		if !im.needed[n.Index] {
			continue
		}
		if err := im.node(n); err != nil {
			return fmt.Errorf("%v: %w", n, err)
		}
	}
	r, err := im.lookup(output)
	if err == nil {
		err = im.output(r)
	}
	if err == nil {
		err = im.budget.Charge(0)
	}
	if err != nil {
		return fmt.Errorf("output %q: %w", output, err)
	}
	return nil
}

// needed marks the nodes that the output depends on.
func needed(g *pb.Graph, output string) (map[int]bool, error) {
	maker := make(map[string]*pb.Node, len(g.Nodes))
	for _, n := range g.Nodes {
		for _, name := range n.Outputs {
			if name == "" {
				continue
			}
			if maker[name] != nil {
				return nil, fmt.Errorf("%v: %v writes %q too", n, maker[name], name)
			}
			maker[name] = n
		}
	}
	needed := map[int]bool{}
	queue := []string{output}
	for len(queue) > 0 {
		n := maker[queue[len(queue)-1]]
		queue = queue[:len(queue)-1]
		if n != nil && !needed[n.Index] {
			needed[n.Index] = true
			queue = append(queue, n.Inputs...)
		}
	}
	return needed, nil
}

// lookup returns a tensor of the graph by its name.
func (im *importer) lookup(name string) (result, error) {
	if r, ok := im.env[name]; ok {
		return r, nil
	}
	p := im.model.Graph.Initializers[name]
	if p == nil {
		return result{}, fmt.Errorf("%q is given by no initialiser and is not the first output of an earlier node", name)
	}
	t, err := im.eval.Tensor(p)
	if err != nil {
		return result{}, err
	}
	im.env[name] = result{constant: t}
	return im.env[name], nil
}

// operand returns an input of a node.
func (im *importer) operand(n *pb.Node, i int) (result, error) {
	name := n.Input(i)
	if name == "" {
		return result{}, fmt.Errorf("input %d is missing", i)
	}
	return im.lookup(name)
}

// operands returns the first k inputs.
func (im *importer) operands(n *pb.Node, k int) ([]result, error) {
	if len(n.Inputs) != k {
		return nil, fmt.Errorf("%d inputs, want %d", len(n.Inputs), k)
	}
	list := make([]result, k)
	for i := range list {
		var err error
		if list[i], err = im.operand(n, i); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// constant returns an input that must be constant, or nil if it is left out.
func (im *importer) constant(n *pb.Node, i int) (*eval.Tensor, error) {
	if n.Input(i) == "" {
		return nil, nil
	}
	r, err := im.operand(n, i)
	if err == nil && r.constant == nil {
		err = fmt.Errorf("input %d (%q) must be constant", i, n.Input(i))
	}
	return r.constant, err
}

// required is constant for an input that must be there.
func (im *importer) required(n *pb.Node, i int) (*eval.Tensor, error) {
	t, err := im.constant(n, i)
	if err == nil && t == nil {
		err = fmt.Errorf("input %d is missing", i)
	}
	return t, err
}

// value returns an input that must be computed, with nothing pending but what
// its layer can take in.
func (im *importer) value(n *pb.Node, i int) (*value, error) {
	r, err := im.operand(n, i)
	if err == nil && r.value == nil {
		err = fmt.Errorf("input %d (%q) is constant", i, n.Input(i))
	}
	return r.value, err
}

// settled is value as real numbers with nothing pending.
func (im *importer) settled(n *pb.Node, i int) (*value, error) {
	v, err := im.value(n, i)
	if err == nil {
		err = v.real()
	}
	if err != nil {
		return nil, err
	}
	return im.build.settle(v)
}

// output makes the graph's output that of the last layer.
func (im *importer) output(r result) error {
	if r.value == nil {
		return errors.New("it is constant")
	}
	v, err := im.build.settle(r.value)
	if err != nil {
		return err
	}
	if v.typ != pb.Float {
		return fmt.Errorf("it is %v, want FLOAT", v.typ)
	}
	if !view.IsBatch(v.view[0]) {
		return errors.New("its first dimension is not the batch")
	}
	// Feature maps stay NHWC; anything else becomes a vector.
	if !v.view.Equal(view.NCHW(v.shape)) {
		if v, err = im.build.vector(v, v.node); err != nil {
			return err
		}
	}
	if v.layer != len(im.build.net.Layers)-1 {
		return errors.New("no layer computes it")
	}
	return nil
}
