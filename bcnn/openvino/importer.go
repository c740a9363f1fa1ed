package openvino

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// importer makes the layers of a graph.
type importer struct {
	opts   Options
	limits bcnn.Limits
	budget *budget.Budget
	graph  *graph
	bin    []byte
	report *Report

	net       *bcnn.Network
	names     map[string]int     // of layers, and the last number appended to each
	values    []operand          // of the first outputs of the graph's layers
	more      map[source]operand // of their other outputs
	batch     int                // in the file: −1 where it is open, 0 before the first input
	obstacles []bcnn.Obstacle

	decoders []decoder
	ends     []*value // outputs of the network
	besides  bool     // the layer that is made is of what decoders read alone
	aside    error    // what stands in the way of such a layer
}

// operand is a tensor: constant, computed, or neither since something stands in the way.
type operand struct {
	c *constant
	v *value
}

func (o operand) hole() bool { return o.c == nil && o.v == nil }

// value is a tensor that the network computes: the output of a layer, seen through a view, or a
// step of it that no layer has been made of yet.
type value struct {
	layer int
	shape bcnn.Shape // of the layer's output
	view  view.View
	bytes bool  // its elements are u8, which a Convert makes f32
	truth bool  // its elements are boolean, which a Convert or a Select makes f32
	step  *step // pending
	last  bool  // it is a softmax, behind which nothing is computed
}

// size returns the size of a dimension behind the batch.
func (v *value) size(dim int) int { return view.Product(v.view[dim]) }

// dims returns the dimensions behind the batch.
func (v *value) dims() []int {
	list := make([]int, len(v.view)-1)
	for i := range list {
		list[i] = v.size(i + 1)
	}
	return list
}

// with returns the value seen through another view.
func (v *value) with(seen view.View) *value {
	out := *v
	out.view = seen
	return &out
}

// node is a layer of the graph that is imported, with its attributes.
type node struct {
	*layer
	*attributes
	used []bool // by input
}

// errHole is the error of a layer that reads a hole: what stands in the way is known.
var errHole = errors.New("its input cannot be made")

// layerUnits is what a layer of the network costs besides its parameters.
const layerUnits = 512

// network makes the network.
func (im *importer) network() error {
	order, err := im.graph.connect(im.budget)
	if err != nil {
		return err
	}
	outputs, constants, err := im.outputs()
	if err != nil {
		return err
	}
	needed, err := im.reached(outputs)
	if err != nil {
		return err
	}
	ofDecoders, err := im.reached(constants)
	if err != nil {
		return err
	}
	im.report.Version = im.graph.version
	im.values = make([]operand, len(im.graph.layers))
	var names []string
	for _, i := range order {
		l := &im.graph.layers[i]
		if !needed[i] && !ofDecoders[i] {
			continue
		}
		im.besides = !needed[i]
		im.values[i] = im.layer(l)
		if over := im.budget.Charge(0); over != nil { // and what came of it
			return over
		}
		if v := im.values[i].v; v != nil && len(l.inputs) > 0 && needed[i] {
			names = append(names, l.tensor(0))
		}
	}
	if len(im.obstacles) > 0 {
		return &bcnn.ObstaclesError{Obstacles: im.obstacles}
	}
	if err := try.Run(func() { im.finish(outputs) }); err != nil {
		return err
	}
	im.detect()
	im.net.Labels = im.labels()
	if im.net.Name = im.opts.Name; im.net.Name == "" {
		im.net.Name = text.Escape(short(im.graph.name))
	}
	im.net.Absorb(names)
	return im.net.Check()
}

// outputs returns what the outputs of the network are. Those of a decoder, which is no layer of a
// network, are what it reads; constants is what it reads besides.
func (im *importer) outputs() (list, constants []source, err error) {
	all, err := im.graph.outputs()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		l := &im.graph.layers[s.layer]
		if !isDecoder(l.typ) {
			list = append(list, s)
			continue
		}
		outputs, more, err := l.decoderInputs()
		if err != nil {
			return nil, nil, err
		}
		im.takeOut(s.layer, len(list))
		list, constants = append(list, outputs...), append(constants, more...)
	}
	return list, constants, nil
}

// reached marks the layers that outputs depend on.
func (im *importer) reached(outputs []source) ([]bool, error) {
	needed := make([]bool, len(im.graph.layers))
	queue := slices.Clone(outputs)
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if s == absent || needed[s.layer] {
			continue
		}
		needed[s.layer] = true
		from := im.graph.layers[s.layer].from
		if err := im.budget.Charge(32 * int64(len(from)+1)); err != nil {
			return nil, err
		}
		queue = append(queue, from...)
	}
	return needed, nil
}

// layer makes layers of a layer of the graph, or notes what stands in the way.
func (im *importer) layer(l *layer) operand {
	before := len(im.net.Layers)
	out, err := try.DoSafely(func() operand {
		try.Check(im.budget.Charge(64 * int64(len(l.attrs)+len(l.from)+1)))
		n := &node{l, newAttributes(l.attrs), make([]bool, len(l.inputs))}
		out := im.operator(n)
		n.checkRead()
		for k, used := range n.used {
			if !used {
				try.Failf("its input %d is not supported", k)
			}
		}
		im.checkDims(l, 0, out)
		return out
	})
	if err != nil {
		if !errors.Is(err, errHole) {
			im.obstacle(l, err)
		}
		return operand{}
	}
	if v := out.v; v != nil && v.step == nil && v.layer >= before {
		im.net.Layers[v.layer].Source = im.source(l.tensor(0), v)
	}
	return out
}

// tensor names an output of a layer.
func (l *layer) tensor(port int) string {
	if port < len(l.outputs) {
		if name, _, _ := strings.Cut(l.outputs[port].names, ","); name != "" {
			return text.Escape(name)
		}
	}
	return text.Escape(l.name)
}

// source describes a tensor of the graph; nil if that cannot be said.
func (im *importer) source(name string, v *value) *bcnn.Source {
	const most = 256
	s := &bcnn.Source{Name: name, Dims: v.dims()}
	values := v.shape.Values()
	switch {
	case len(name) > most:
		return nil
	case v.view.InOrder(values, view.FlatStride(v.shape)):
	case v.view.InOrder(values, view.PlanarStride(v.shape)):
		s.ChannelsFirst = true
	default:
		return nil
	}
	return s
}

// checkDims demands that a layer's output is what the file says: otherwise one of both is wrong.
func (im *importer) checkDims(l *layer, port int, out operand) {
	if len(l.outputs) == 0 || out.hole() {
		return
	}
	said := l.outputs[port].dims
	var have []int
	if out.c != nil {
		if have = out.c.dims; im.graph.old() && len(have) == 0 {
			return
		}
	} else {
		have = append([]int{im.batch}, out.v.dims()...)
	}
	fits := len(said) == len(have)
	for i := range min(len(said), len(have)) {
		fits = fits && (said[i] == have[i] || said[i] == -1 || have[i] == -1)
	}
	if !fits {
		try.Failf("its output has shape %v in the file, but is computed as %v", said, have)
	}
}

// operator makes the layers of a node.
func (im *importer) operator(n *node) operand {
	o, ok := operators[n.typ]
	if im.graph.old() {
		o, ok = legacy[n.typ]
	}
	if !ok {
		try.Fail(errUnsupported)
	}
	if !im.graph.old() && !slices.Contains(o.versions, n.version) {
		try.Failf("version %s of it is not supported, want %s", text.Quote(short(n.version)), strings.Join(o.versions, " or "))
	}
	if o.fold != nil && len(n.from) > 0 {
		constant := true
		for _, s := range n.from {
			constant = constant && s != absent && im.output(s).c != nil
		}
		if constant {
			return operand{c: o.fold(im, n)}
		}
	}
	return o.make(im, n)
}

var errUnsupported = errors.New("this operator is not supported")

func (im *importer) obstacle(l *layer, err error) {
	const most = 1000
	if im.besides {
		if im.aside == nil {
			im.aside = im.at(l, err)
		}
		return
	}
	if len(im.obstacles) == most {
		return
	}
	o := bcnn.Obstacle{Node: short(l.name), Op: text.Escape(strings.TrimSpace(short(l.typ) + " " + short(l.version))), Index: l.index, Err: err}
	var open *openError
	switch {
	case errors.As(err, &open):
		o.Index, o.Op, o.Option, o.Advice = -1, "", "InputShape", "give its size with Options.InputShape"
	case errors.Is(err, errUnsupported):
		o.Advice = "a network has no layer for it: end the network in front of it"
	}
	im.obstacles = append(im.obstacles, o)
}

// emit appends a layer that is seen through a view. suffix tells the layers of a node apart.
func (im *importer) emit(n *node, suffix string, op bcnn.Op, shape bcnn.Shape, seen view.View, inputs ...*value) *value {
	try.Check(im.budget.Charge(layerUnits + 16*int64(len(inputs))))
	if len(im.net.Layers) == im.limits.Layers {
		try.Failf("the network has more than %d layers; Limits.Layers allows more", im.limits.Layers)
	}
	im.checkShape(shape)
	list := make([]int, len(inputs))
	for i, in := range inputs {
		list[i] = in.layer
	}
	return &value{layer: im.net.Append(im.layerName(n, suffix), op, list...), shape: shape, view: seen}
}

// checkShape refuses a feature map that no layer may have.
func (im *importer) checkShape(s bcnn.Shape) {
	switch bytes := int64(s.H) * int64(s.W) * int64(s.C) * 4; {
	case s.H < 1 || s.W < 1 || s.C < 1:
		try.Failf("the window is larger than its padded input")
	case s.H > maxSide || s.W > maxSide || s.C > maxOut || bytes > 4*maxValues || bytes > im.limits.TensorBytes:
		try.Failf("a feature map of %v has more than %d rows, columns or %d channels, or takes more than %d bytes; Limits.TensorBytes allows more",
			s, maxSide, maxOut, im.limits.TensorBytes)
	}
}

// maxOut is the largest number of channels, as bcnn has it.
const maxOut = 1 << 22

// maxLabel is how long the name of a layer of the graph may be in that of a layer.
const maxLabel = 160

// layerName names a layer.
func (im *importer) layerName(n *node, suffix string) string {
	name := text.Escape(n.name)
	if name == "" || len(name) > maxLabel {
		name = fmt.Sprintf("%s_%d", strings.ToLower(text.Escape(short(n.typ))), n.index)
	}
	name += suffix
	// A number that is taken for one name is not tried again, or many layers of one name would
	// take quadratic time.
	last, taken := im.names[name]
	if !taken {
		im.names[name] = 1
		return name
	}
	for {
		last++
		unique := fmt.Sprintf("%s_%d", name, last)
		try.Check(im.budget.Charge(int64(len(unique))))
		if _, taken := im.names[unique]; !taken {
			im.names[name], im.names[unique] = last, 1
			return unique
		}
	}
}

// operand returns what an input of a node is.
func (im *importer) operand(n *node, k int) operand {
	if k >= len(n.from) || n.from[k] == absent {
		try.Failf("input %d is missing", k)
	}
	n.used[k] = true
	s := n.from[k]
	o := im.output(s)
	if from := &im.graph.layers[s.layer]; o.hole() && s.port != 0 && !im.values[s.layer].hole() {
		try.Failf("it reads output %d of %s, which is not supported", s.port, text.Quote(short(from.name)))
	}
	if o.hole() {
		try.Fail(errHole)
	}
	return o
}

// output returns what an output of a layer is.
func (im *importer) output(s source) operand {
	if s.port != 0 {
		return im.more[s]
	}
	return im.values[s.layer]
}

// any returns an input that must be computed, whatever its type and what is pending.
func (im *importer) any(n *node, k int) *value {
	o := im.operand(n, k)
	if o.v == nil {
		try.Failf("input %d must be computed, not constant", k)
	}
	return o.v
}

// checkLast refuses a softmax, behind which nothing is computed.
func (v *value) checkLast() {
	if v.last {
		try.Failf("it reads a softmax, behind which nothing can be computed")
	}
}

// value returns an input of real numbers that a layer has.
func (im *importer) value(n *node, k int) *value { return im.settle(n, im.real(n, k)) }

// real returns an input of real numbers.
func (im *importer) real(n *node, k int) *value {
	v := im.any(n, k)
	v.checkLast()
	if v.bytes {
		try.Failf("its input is u8: want a Convert to f32 in front of it")
	}
	if v.truth {
		try.Failf("its input is boolean: want a Select, or a Convert to f32, in front of it")
	}
	return v
}

// constant returns an input that must be constant.
func (im *importer) constant(n *node, k int) *constant {
	o := im.operand(n, k)
	if o.c == nil {
		try.Failf("input %d must be constant, but is computed", k)
	}
	return o.c
}

// finish makes what outputs read the outputs of the network.
func (im *importer) finish(outputs []source) {
	try.Check(im.budget.Charge(64 * int64(len(outputs))))
	seen := map[int]bool{}
	decoding := map[int]string{} // outputs that a decoder reads
	for _, d := range im.decoders {
		typ := im.graph.layers[d.layer].typ
		if decoding[d.output] = typ; typ == "DetectionOutput" {
			decoding[d.output+1] = typ
		}
	}
	for i, s := range outputs {
		l := &im.graph.layers[s.layer]
		n := &node{layer: l, attributes: newAttributes(nil)}
		o := im.output(s)
		switch {
		case o.hole():
			try.Failf("output %d of layer %s is an output of the graph, which is not supported", s.port, text.Quote(short(l.name)))
		case o.v == nil:
			try.Failf("layer %s, an output of the graph, is constant", text.Quote(short(l.name)))
		case o.v.bytes || o.v.truth:
			try.Failf("layer %s, an output of the graph, has elements of u8 or boolean, want f32", text.Quote(short(l.name)))
		}
		v := im.arranged(n, im.settle(n, o.v), decoding[i])
		if im.source("", v) == nil && v.last {
			try.Failf("layer %s, an output of the graph, moves the values of a softmax, which must be the last layer", text.Quote(short(l.name)))
		}
		if im.source("", v) == nil {
			v = im.plain(n, v)
		}
		if v.layer < 0 || seen[v.layer] {
			// The outputs of a network are layers, each once.
			if v.last {
				try.Failf("a softmax is an output of the graph twice")
			}
			v = im.emit(n, "/output", bcnn.Affine{}, v.shape, v.view, v)
		}
		seen[v.layer] = true
		im.net.Layers[v.layer].Source = im.source(l.tensor(s.port), v)
		im.net.Outputs, im.ends = append(im.net.Outputs, v.layer), append(im.ends, v)
	}
	im.drop()
}
