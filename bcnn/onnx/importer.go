package onnx

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// nodeUnits is the cost of a node in all lists of nodes and tensors, nameUnits that of the name of
// one of its tensors.
const (
	nodeUnits = 256
	nameUnits = 64
)

// maxEnds is the largest number of inputs, and of outputs, of a graph.
const maxEnds = 64

// importer turns a graph into a network, node by node. One importer makes one attempt.
type importer struct {
	model  *pb.Model
	opts   Options
	budget *budget.Budget
	eval   *eval.Evaluator
	build  *build.Builder

	env    map[string]build.Operand // by tensor
	folded []bool                   // by node: it is constant
	needed []bool                   // by node: an output depends on it
	batch  int                      // the batch size in the file, 0 if dynamic

	infos     map[string]pb.ValueInfo // see declared; nil until it is needed
	cancelled []string                // see Report

	types     map[string]pb.DataType  // by tensor: the file's type where it is not FLOAT, see inFloat
	quantised map[string]bool         // by tensor: constants that the file quantises
	unrounded map[pb.DataType]int     // by such a type: tensors that are computed otherwise than in the file
	target    pb.DataType             // of the Cast or CastLike that is imported
	lines     map[string]*build.Value // by tensor: rows that are a vector without its batch of 1, see gatherLine
	distances map[string]*distances   // by tensor: see apart
	inside    map[string]bool         // by tensor: the network computes with it, see continues
	// By layer: the value that it is the square root of, and the value that it repeats along
	// dimensions of 1. Both hold while the layer is seen through the view that it had then.
	roots    map[int]*build.Value
	repeated map[int]repetition
	ends     []bcnn.Shape // of the outputs
	cut      string       // see Detection.cut
}

// repetition is the value that a layer repeats, and the view of the result.
type repetition struct {
	of   *build.Value
	seen view.View
}

func newImporter(m *pb.Model, opts Options, s *source) *importer {
	im := &importer{
		model: m, opts: opts, budget: s.budget,
		eval:      s.eval,
		env:       map[string]build.Operand{},
		folded:    make([]bool, len(m.Graph.Nodes)),
		lines:     map[string]*build.Value{},
		distances: map[string]*distances{},
		types:     map[string]pb.DataType{},
		quantised: map[string]bool{},
		unrounded: map[pb.DataType]int{},
		roots:     map[int]*build.Value{}, repeated: map[int]repetition{},
	}
	im.build = build.New(im.eval, s.limits.Layers, build.Options{
		SignOfZero: opts.SignOfZero, OverrideZeros: opts.OverrideZeros, WeightTolerance: tolerance(opts),
	})
	return im
}

// tolerance returns the distance of weights from what they are taken for, relative to α.
func tolerance(opts Options) float64 {
	if opts.WeightTolerance == 0 {
		return DefaultWeightTolerance
	}
	return max(opts.WeightTolerance, 0)
}

// run imports the graph with the given layout of each input.
func (im *importer) run(inputs []layout) error {
	g := im.model.Graph
	for i, l := range inputs {
		if err := im.begin(i, l); err != nil {
			return fmt.Errorf("input %s: %w", text.Quote(l.info.Name), err)
		}
	}
	if n := len(g.Outputs); n < 1 || n > maxEnds {
		return fmt.Errorf("the graph has %d outputs, want 1 to %d", n, maxEnds)
	}
	var err error
	if im.needed, err = im.reached(g.Outputs); err != nil {
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
	var outputs []int
	for _, out := range g.Outputs {
		layer, failed := try.Do(func() int { return im.output(out.Name, im.lookup(out.Name), outputs) })
		if failed != nil {
			err = fmt.Errorf("output %s: %w", text.Quote(out.Name), failed)
			outputs = nil
			break
		}
		outputs = append(outputs, layer)
	}
	if err == nil {
		err = im.sources()
	}
	if over := im.build.Err(); over != nil { // the cause of other errors
		return over
	}
	if over := im.budget.Charge(0); over != nil {
		return over
	}
	if found := im.build.Finish(outputs); len(found) > 0 {
		list := make([]bcnn.Obstacle, len(found))
		for i, o := range found {
			list[i] = obstacle(o)
		}
		return &bcnn.ObstaclesError{Obstacles: list}
	}
	return err
}

// reached marks the nodes that the outputs depend on. It fails if two nodes write one tensor.
func (im *importer) reached(outputs []pb.ValueInfo) ([]bool, error) {
	g := im.model.Graph
	maker := make(map[string]*pb.Node, len(g.Nodes))
	for _, n := range g.Nodes {
		if err := im.budget.Charge(nameUnits * int64(1+len(n.Inputs)+len(n.Outputs))); err != nil {
			return nil, err
		}
		for _, name := range n.Outputs {
			if name == "" {
				continue
			}
			if maker[name] != nil {
				return nil, fmt.Errorf("%v: %v has an output called %s too", n, maker[name], text.Quote(name))
			}
			maker[name] = n
		}
	}
	reached := make([]bool, len(g.Nodes))
	var queue []string
	for _, out := range outputs {
		queue = append(queue, out.Name)
	}
	for len(queue) > 0 {
		n := maker[queue[len(queue)-1]]
		queue = queue[:len(queue)-1]
		if n != nil && !reached[n.Index] {
			reached[n.Index] = true
			names, err := im.reads(n)
			if err != nil {
				return nil, err
			}
			queue = append(queue, names...)
		}
	}
	return reached, nil
}

// lookup returns a tensor of the graph, unpacking an initialiser at its first use.
func (im *importer) lookup(name string) build.Operand {
	if r, ok := im.env[name]; ok {
		return r
	}
	p := im.model.Graph.Initializers[name]
	if p == nil {
		try.Failf("%s %w", text.Quote(name), errMissing)
	}
	t := try.Value(im.eval.Tensor(p))
	im.env[name] = build.Operand{Constant: t}
	return im.env[name]
}

// alias makes r an input of a rewritten copy of a node. It returns the name under which the copy
// reads it, made of name and as, which no tensor of a file can have because of pb.Forbidden.
func (im *importer) alias(name, as string, r build.Operand) string {
	name += pb.Forbidden + as
	im.env[name] = r
	return name
}

// operand returns input i of a node. It fails if it is missing or a sequence.
func (im *importer) operand(n *pb.Node, i int) build.Operand {
	name := n.Input(i)
	if name == "" {
		try.Failf("input %d is missing", i)
	}
	r := im.lookup(name)
	if r.Parts != nil {
		try.Failf("input %d (%s) is a sequence of tensors, want a tensor", i, text.Quote(name))
	}
	return r
}

// operands returns all inputs of a node, which must be k.
func (im *importer) operands(n *pb.Node, k int) []build.Operand {
	if len(n.Inputs) != k {
		try.Failf("it has %d inputs, want %d", len(n.Inputs), k)
	}
	list := make([]build.Operand, k)
	for i := range list {
		list[i] = im.operand(n, i)
	}
	return list
}

// constant returns input i, which must be constant, or nil if it is left out.
func (im *importer) constant(n *pb.Node, i int) *eval.Tensor {
	if n.Input(i) == "" {
		return nil
	}
	r := im.operand(n, i)
	if r.Constant == nil {
		try.Failf("input %d (%s) must be constant, but is computed from the network's input", i, text.Quote(n.Input(i)))
	}
	return r.Constant
}

// required is constant for an input that must not be left out.
func (im *importer) required(n *pb.Node, i int) *eval.Tensor {
	t := im.constant(n, i)
	if t == nil {
		try.Failf("input %d is missing", i)
	}
	return t
}

// value returns input i, which must be computed. A function or windows may be pending on it.
func (im *importer) value(n *pb.Node, i int) *build.Value {
	r := im.operand(n, i)
	if r.Value == nil {
		try.Failf("input %d (%s) %w", i, text.Quote(n.Input(i)), errConstant)
	}
	return r.Value
}

// settled is value for real numbers, with nothing pending.
func (im *importer) settled(n *pb.Node, i int) *build.Value {
	v := im.value(n, i)
	try.Check(v.CheckReal())
	return im.build.Settle(v)
}

// output returns the layer that computes an output of the graph, and sets its Source. If that layer
// is among others already, it emits a copy.
func (im *importer) output(name string, r build.Operand, others []int) (layer int) {
	if r.Parts != nil {
		try.Failf("it is a sequence of tensors, want a tensor")
	}
	if im.distances[name] != nil {
		try.Failf("its first dimension must be the batch")
	}
	if r.Value == nil {
		try.Failf("it is constant: it does not depend on the network's input")
	}
	if r.Value.View == nil { // a hole
		return r.Value.Layer
	}
	v, form := im.outputType(r)
	v, seen := im.outputOrder(v)
	if slices.Contains(others, v.Layer) || v.Layer <= bcnn.NetworkInput { // a copy
		v = im.build.Emit(v.Node, "/output", bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}}, v.Shape, v)
		try.Check(im.build.Err())
	}
	im.ends = append(im.ends, v.Shape)
	s := try.Value(im.source(name, v.Shape, seen))
	if s != nil && !v.Hole {
		s.Dims = s.Dims[:0]
		for i := range r.Value.View[1:] {
			s.Dims = append(s.Dims, r.Value.Size(i+1))
		}
		s.Type = form
		im.build.Net.Layers[v.Layer].Source = s
	}
	return v.Layer
}

// outputType returns an output as the numbers that a network gives, and their type in the file.
func (im *importer) outputType(r build.Operand) (*build.Value, bcnn.SourceType) {
	form := bcnn.SourceValues
	if im.build.Within(r.Value, mostNumber) { // truth values and integers
		form = map[pb.DataType]bcnn.SourceType{
			pb.Bool: bcnn.SourceUint8, pb.Uint8: bcnn.SourceUint8, pb.Int8: bcnn.SourceInt8, pb.Int32: bcnn.SourceInt32, pb.Int64: bcnn.SourceInt64,
		}[r.Value.Type]
	}
	if form != bcnn.SourceValues {
		r = im.cast(r.Value.Node, r, pb.Float)
	}
	if v := r.Value; (v.Type == pb.Uint8 || v.Type == pb.Int8) && !v.Hole && !im.build.Bytes(v.Layer) { // quantised
		form = map[pb.DataType]bcnn.SourceType{pb.Uint8: bcnn.SourceUint8, pb.Int8: bcnn.SourceInt8}[v.Type]
		r.Value = im.build.Integers(v.Node, v)
	}
	v := im.build.Settle(r.Value)
	types := map[pb.DataType]bcnn.SourceType{pb.Float: form, pb.Int32: bcnn.SourceInt32, pb.Int64: bcnn.SourceInt64}
	form, ok := types[v.Type]
	if !ok || form != bcnn.SourceValues && im.build.Bytes(v.Layer) {
		try.Failf("it is %v, want FLOAT, integers up to 2²⁴ or BOOL", v.Type)
	}
	return v, form
}

// outputOrder returns an output in the order of its dimensions in memory, and these.
func (im *importer) outputOrder(v *build.Value) (*build.Value, view.View) {
	if !view.IsBatch(v.View[0]) {
		try.Failf("its first dimension must be the batch")
	}
	// Images stay NHWC however their dimensions are grouped. Anything else becomes a vector.
	if v.CheckImage() == nil {
		v = im.build.InChannelOrder(v.Node, v)
	}
	seen := v.View
	values := v.Shape.Values()
	inOrder := func() bool {
		return seen.InOrder(values, view.FlatStride(v.Shape)) || seen.InOrder(values, view.PlanarStride(v.Shape))
	}
	if len(seen) == 4 && !inOrder() {
		v = im.build.Arrange(v.Node, v, 1, 2, 3)
		seen = v.View
	}
	if len(seen) < 3 || !inOrder() {
		v = im.build.Vector(v, v.Node)
		seen = view.View{view.Batch, view.All(view.C, v.Shape.C)}
	}
	return v, seen
}
