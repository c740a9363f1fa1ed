package bmxnet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// importer makes the layers of a graph.
type importer struct {
	opts   Options
	limits bcnn.Limits
	budget *budget.Budget
	nodes  []node
	head   int
	params map[string]array
	folded map[int]array // of nodes that read weights alone

	net       *bcnn.Network
	names     map[string]bool // of layers
	values    []value         // of nodes
	signs     map[int]value   // of layers, where some layer reads its input as ±1
	quantised map[quantised]value
	input     int // the node of the input, −1 until one is read
	obstacles []bcnn.Obstacle
	softmax   bool // the last layer is one
}

// value is what a node computes: the output of a layer.
type value struct {
	layer int
	shape bcnn.Shape // of the layer's output
	// vector says that the graph sees a vector: the values of the image in shape,
	// channel after channel.
	vector bool
	// hole says that there is no layer, since something stands in the way.
	hole bool
}

// errHole is the error of a node that reads a hole: what stands in the way is known.
var errHole = errors.New("its input cannot be made")

// layerUnits is what a layer costs besides its parameters.
const layerUnits = 512

// network makes the network.
func (im *importer) network() (net *bcnn.Network, err error) {
	defer try.Recover(&err)
	im.input = -1
	im.values = make([]value, len(im.nodes))
	needed, err := im.reached()
	if err != nil {
		return nil, err
	}
	broken := map[int]bool{} // constants that cannot be computed, and what reads them
	for i := range im.nodes {
		n := &im.nodes[i]
		if !needed[i] || n.op == "null" {
			continue
		}
		if slices.ContainsFunc(n.inputs, func(in [3]int) bool { return broken[in[0]] }) {
			im.values[i] = value{hole: true}
			broken[i] = true
			continue
		}
		var ok bool
		a, err := try.DoSafely(func() (a array) { a, ok = im.constant(n); return a })
		switch {
		case err != nil:
			im.obstacle(n, err)
			im.values[i] = value{hole: true}
			broken[i] = true
		case ok:
			im.folded[i] = a
		default:
			im.values[i] = im.computed(n)
		}
		if over := im.budget.Charge(0); over != nil { // and what came of it
			return nil, over
		}
	}
	if err := try.Run(im.finish); err != nil && !errors.Is(err, errHole) && len(im.obstacles) == 0 {
		return nil, err
	}
	if len(im.obstacles) > 0 {
		return nil, &bcnn.ObstaclesError{Obstacles: im.obstacles}
	}
	im.net.Name, im.net.Labels, im.net.Inputs[0].Resize = im.opts.Name, im.opts.Labels, im.opts.Resize
	var names []string
	for i, n := range im.nodes {
		if _, ok := im.folded[i]; needed[i] && n.op != "null" && !ok {
			names = append(names, text.Escape(n.name+"_output"))
		}
	}
	im.net.Absorb(names)
	return im.net, im.net.Check()
}

// reached marks the nodes that the head depends on.
func (im *importer) reached() ([]bool, error) {
	needed := make([]bool, len(im.nodes))
	needed[im.head] = true
	for i := im.head; i >= 0; i-- {
		if !needed[i] {
			continue
		}
		if err := im.budget.Charge(int64(len(im.nodes[i].inputs))); err != nil {
			return nil, err
		}
		for _, in := range im.nodes[i].inputs {
			needed[in[0]] = true
		}
	}
	return needed, nil
}

// computed makes the layers of a node, or notes what stands in the way.
func (im *importer) computed(n *node) value {
	before := len(im.net.Layers)
	v, err := try.DoSafely(func() value { return im.node(n) })
	if err != nil {
		if !errors.Is(err, errHole) {
			im.obstacle(n, err)
		}
		return value{hole: true}
	}
	if v.layer >= before { // that the node has made
		im.net.Layers[v.layer].Source = source(n.name+"_output", v)
	}
	return v
}

// source describes a tensor of the graph by the name that MXNet has for it; nil if that
// is too long.
func source(name string, v value) *bcnn.Source {
	const most = 256
	if name = text.Escape(name); len(name) > most {
		return nil
	}
	s := &bcnn.Source{Name: name, Dims: []int{v.shape.C, v.shape.H, v.shape.W}, ChannelsFirst: true}
	if v.vector {
		s.Dims = []int{v.shape.Values()}
	}
	return s
}

// finish makes the value of the head the last layer.
func (im *importer) finish() {
	if im.nodes[im.head].op == "null" {
		try.Failf("the graph has no operators")
	}
	if _, ok := im.folded[im.head]; ok {
		try.Failf("the output of the graph is constant")
	}
	v := im.values[im.head]
	if v.hole {
		try.Fail(errHole)
	}
	if !im.softmax {
		plain := im.plain(&im.nodes[im.head], v)
		v = plain
	}
	if v.layer == bcnn.NetworkInput {
		try.Failf("no layer computes the output of the graph, which is its input")
	}
}

// node makes the layers of a node.
func (im *importer) node(n *node) value {
	if im.softmax {
		try.Failf("it follows a softmax, which must be the last layer")
	}
	operator, ok := operators[n.op]
	if !ok {
		try.Fail(errUnsupported)
	}
	return operator(im, n)
}

var errUnsupported = errors.New("this operator is not supported")

func (im *importer) obstacle(n *node, err error) {
	o := bcnn.Obstacle{Node: n.name, Op: text.Escape(n.op), Index: n.index, Err: err}
	if errors.Is(err, errUnsupported) {
		o.Advice = "a network has no layer for it: save the network without it"
	}
	im.obstacles = append(im.obstacles, o)
}

// emit appends a layer. suffix tells the layers of a node apart.
func (im *importer) emit(n *node, suffix string, op bcnn.Op, out value, inputs ...value) value {
	try.Check(im.budget.Charge(layerUnits))
	if len(im.net.Layers) == im.limits.Layers {
		try.Failf("the network has more than %d layers; Limits.Layers allows more", im.limits.Layers)
	}
	switch bytes := out.shape.Bytes(bcnn.Float32); {
	case out.shape.H < 1 || out.shape.W < 1 || out.shape.C < 1:
		try.Failf("the window is larger than its padded input")
	case bytes > im.limits.TensorBytes:
		try.Failf("a feature map of %v takes %d bytes, at most %d are allowed; Limits.TensorBytes allows more", out.shape, bytes, im.limits.TensorBytes)
	}
	name := n.name + suffix
	if n.name == "" || im.names[name] { // a number tells them apart
		name = fmt.Sprintf("%s_%d%s", n.name, n.index, suffix)
	}
	im.names[name] = true
	list := make([]int, len(inputs))
	for i, in := range inputs {
		list[i] = in.layer
	}
	out.layer = im.net.Append(name, op, list...)
	return out
}

// operand returns a value that a node reads.
func (im *importer) operand(n *node, k int) value {
	if k >= len(n.inputs) {
		try.Failf("it has %d inputs, want more than %d", len(n.inputs), k)
	}
	from := &im.nodes[n.inputs[k][0]]
	if n.inputs[k][1] != 0 {
		try.Failf("it reads output %d of %s, but only the first output is supported", n.inputs[k][1], text.Quote(from.name))
	}
	if _, ok := im.folded[from.index]; ok {
		try.Failf("its input %s must be computed, not constant", text.Quote(from.name))
	}
	v := im.values[from.index]
	if from.op == "null" && v.shape == (bcnn.Shape{}) && !v.hole {
		v = im.begin(from)
		im.values[from.index] = v
	}
	if v.hole {
		try.Fail(errHole)
	}
	return v
}

// parameter returns the weights that a node reads.
func (im *importer) parameter(n *node, k int) array {
	if k >= len(n.inputs) {
		try.Failf("it has %d inputs, want more than %d", len(n.inputs), k)
	}
	from := &im.nodes[n.inputs[k][0]]
	a, ok := im.known(from)
	switch {
	case ok:
		return a
	case from.op == "null":
		try.Failf("%s is %w", text.Quote(from.name), errNoParams)
	case im.values[from.index].hole:
		try.Fail(errHole)
	}
	panic(try.Errorf("input %d, %s, must be constant weights, but is computed", k, text.Quote(from.name)))
}

// floats returns n weights of one dimension that a node reads.
func (im *importer) floats(n *node, k, want int) []float32 {
	a := im.parameter(n, k)
	if a.len() != want {
		try.Failf("%s has %d values, want %d", text.Quote(im.nodes[n.inputs[k][0]].name), a.len(), want)
	}
	return try.Value(a.floats(im.budget))
}

// begin makes the input of the network.
func (im *importer) begin(n *node) value {
	if _, ok := im.params[n.name]; ok {
		try.Failf("its input %s must be computed, not constant", text.Quote(n.name))
	}
	if im.input >= 0 {
		try.Failf("its input %s is a second input besides %s, or weights that are %w", text.Quote(n.name), text.Quote(im.nodes[im.input].name), errNoParams)
	}
	im.input = n.index
	hole := func(err error, option, advice string) value {
		im.obstacles = append(im.obstacles, bcnn.Obstacle{Node: n.name, Index: -1, Err: err, Option: option, Advice: advice})
		im.values[n.index] = value{hole: true}
		panic(try.Errorf("%w", errHole))
	}
	shape := im.opts.InputShape
	if dims := n.attributes().list("__shape__", 0, maxValues); shape == (bcnn.Shape{}) && len(dims) > 1 {
		shape = bcnn.Shape{H: 1, W: 1, C: dims[1]}
		if len(dims) == 4 {
			shape.H, shape.W = dims[2], dims[3]
		}
	}
	if shape.H < 1 || shape.W < 1 || shape.C < 1 {
		return hole(errors.New("the file does not say how large it is"), "InputShape", "give its size with Options.InputShape")
	}
	if shape.H > maxSide || shape.W > maxSide || shape.C > maxOut || shape.Bytes(bcnn.Float32) > im.limits.TensorBytes {
		return hole(fmt.Errorf("its shape %v is too large", shape), "", "")
	}
	im.net.Inputs = []bcnn.Input{{Shape: shape, DType: bcnn.Float32}}
	if im.opts.InputType != 0 {
		im.net.Inputs[0].DType = im.opts.InputType
	}
	v := value{layer: bcnn.NetworkInput, shape: shape}
	seen := v
	seen.vector = shape.Pixels() == 1
	im.net.Inputs[0].Source = source(n.name, seen)
	for name, list := range map[string][]float32{"Mean": im.opts.Mean, "Scale": im.opts.Scale} {
		if len(list) > 1 && len(list) != shape.C {
			return hole(fmt.Errorf("%s has %d values, the input has %s", name, len(list), text.Count(shape.C, "channel")), "", "")
		}
	}
	if mean := im.opts.Mean; len(mean) > 0 {
		bias := make([]float32, len(mean))
		for i, m := range mean {
			bias[i] = -m
		}
		v = im.emit(n, "/mean", bcnn.Affine{Bias: bias}, v, v)
	}
	if len(im.opts.Scale) > 0 {
		v = im.emit(n, "/scale", bcnn.Affine{Scale: im.opts.Scale}, v, v)
	}
	return v
}

// plain returns a value whose layer gives what the graph sees: a vector in its order.
func (im *importer) plain(n *node, v value) value {
	pixels, channels := v.shape.Pixels(), v.shape.C
	if !v.vector || pixels == 1 {
		return v
	}
	size := v.shape.Values()
	flat := value{shape: bcnn.Shape{H: 1, W: 1, C: size}, vector: true}
	flat = im.emit(n, "/flatten", bcnn.Flatten{}, flat, v)
	if channels == 1 {
		return flat
	}
	try.Check(im.budget.Charge(4 * int64(size)))
	index := make([]int32, size)
	try.Check(im.budget.Loop(size, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			index[i] = int32(i%pixels*channels + i/pixels)
		}
	}))
	return im.emit(n, "/order", bcnn.Channels{Index: index}, flat, flat)
}

// sign returns a value as ±1, +1 where it is 0 or more. Layers that read the same value
// share it.
func (im *importer) sign(n *node, v value) value {
	if s, ok := im.signs[v.layer]; ok {
		s.vector = v.vector
		return s
	}
	s := v
	s = im.emit(n, "/sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, s, v)
	im.signs[v.layer] = s
	return s
}

// pointwise appends a function of single values.
func (im *importer) pointwise(n *node, suffix string, op bcnn.Op, in ...value) value {
	return im.emit(n, suffix, op, in[0], in...)
}

// same returns two values in one form, as far as that is possible.
func (im *importer) same(n *node, a, b value) (value, value) {
	if a.shape == b.shape && a.vector == b.vector {
		return a, b
	}
	a = im.plain(n, a)
	b = im.plain(n, b)
	return a, b
}

// all returns all values that a node reads.
func (im *importer) all(n *node) []value {
	try.Check(im.budget.Charge(int64(len(n.inputs)) * 64))
	list := make([]value, len(n.inputs))
	for k := range n.inputs {
		list[k] = im.operand(n, k)
	}
	return list
}

// lower is what operators that only differ in the case of their names share.
func lowerCase(op string) string { return strings.ToLower(strings.TrimPrefix(op, "_")) }
