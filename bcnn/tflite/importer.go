package tflite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// What is charged for an operator, for a layer besides its weights, and for a tensor in
// the places that remember it.
const (
	operatorUnits = 320
	layerUnits    = 512
	tensorUnits   = 16
)

// importer turns a graph into a network, operator by operator.
type importer struct {
	model  *schema.Model
	opts   Options
	limits bcnn.Limits
	budget *budget.Budget
	net    *bcnn.Network
	values *values.Analysis
	by     map[string]*schema.Operator // by the name of a layer: what it was made of
	report *Report

	batch   int  // the batch size in the file
	dynamic bool // it may be any, and is 1 here
	env     map[int]operand
	needed  []bool // by operator: the output depends on it
	read    []bool // by tensor: something that is needed reads it
	// reader has, by tensor, the needed operator that alone reads it, nil if there is none.
	reader    []*schema.Operator
	obstacles []bcnn.Obstacle
	float     func() bool    // isFloat of the model, which many obstacles may ask for
	names     map[string]int // of layers, and the last number appended to each
	packed    map[int]int    // channels of packed tensors, see channels

	// Of the operator that is imported: which of its inputs were read, and the options of a
	// custom one that were not.
	used   []bool
	custom options
}

// operand is a tensor: constant or computed.
type operand struct {
	constant *constant
	value    *value
}

// value is a tensor that the network computes.
type value struct {
	layer  int
	shape  bcnn.Shape
	rank   int // of the file's tensor
	typ    schema.Type
	by     *schema.Operator // that made what is pending
	stairs *rounded         // pending
	// numbers says that the values are whole numbers of type INT32 or INT64; others of INT32
	// are packed bits.
	numbers bool
	// Of 8-bit values q: the layer's numbers are q − offset, and q stands for
	// (q − zero)·scale.
	offset int
	scale  float32
	zero   int
	// probabilities says that they are probabilities instead, as numbers.
	probabilities bool

	layout *layout // of the file's tensor, nil if its dimensions are those of an image
	blocks blocks  // into which it is divided
}

func newImporter(m *schema.Model, opts Options, limits bcnn.Limits, b *budget.Budget) *importer {
	net := &bcnn.Network{}
	im := &importer{
		model: m, opts: opts, limits: limits, budget: b,
		net: net, values: values.New(net, b), by: map[string]*schema.Operator{}, report: &Report{Description: m.Description, Operators: len(m.Graph.Operators)},
		env: map[int]operand{}, names: map[string]int{}, float: sync.OnceValue(func() bool { return isFloat(m) }),
	}
	im.values.Within = func(int) weights.Tolerance { return weights.Tolerance{Rounding: weights.OfFloat32} }
	return im
}

// run imports the graph.
func (im *importer) run() error {
	g := im.model.Graph
	if len(g.Outputs) == 0 {
		return errors.New("it has no output")
	}
	if err := im.reach(g.Outputs); err != nil {
		return err
	}
	if err := im.begin(); err != nil {
		return err
	}
	for i := range g.Operators {
		if o := &g.Operators[i]; im.needed[i] {
			if err := im.operator(o); err != nil {
				return fmt.Errorf("operator %d (%s): %w", i, o.Name, err)
			}
		}
	}
	if len(im.obstacles) > 0 {
		return &bcnn.ObstaclesError{Obstacles: im.obstacles}
	}
	if err := im.budget.Charge(operatorUnits * int64(len(g.Outputs)) * int64(len(g.Outputs))); err != nil { // which are compared
		return err
	}
	for _, output := range g.Outputs {
		if err := im.finish(output); err != nil {
			return err
		}
	}
	im.prune()
	if len(im.net.Outputs) == 1 && im.net.Outputs[0] == len(im.net.Layers)-1 {
		im.net.Outputs = nil // as most networks have it
	}
	return nil
}

// prune removes layers that no output depends on: those of which only the shape is used.
func (im *importer) prune() {
	layers := im.net.Layers
	used := make([]bool, len(layers)) // layers have been charged for
	for _, k := range im.net.Outputs {
		used[k] = true
	}
	for i, l := range slices.Backward(layers) {
		for _, k := range l.Inputs {
			if used[i] && k >= 0 {
				used[k] = true
			}
		}
	}
	place, n := make([]int, len(layers)), 0
	for i, l := range layers {
		if !used[i] {
			continue
		}
		for j, k := range l.Inputs {
			if k >= 0 {
				l.Inputs[j] = place[k]
			}
		}
		layers[n], place[i] = l, n
		n++
	}
	im.net.Layers = layers[:n]
	for j, k := range im.net.Outputs {
		im.net.Outputs[j] = place[k]
	}
}

// reach marks the operators that the outputs depend on, and what they read.
func (im *importer) reach(outputs []int) error {
	g := im.model.Graph
	if err := im.budget.Charge(tensorUnits * int64(g.Tensors+len(g.Operators))); err != nil {
		return err
	}
	im.needed, im.read = make([]bool, len(g.Operators)), make([]bool, g.Tensors)
	maker := make([]*schema.Operator, g.Tensors)
	for i := range g.Operators {
		o := &g.Operators[i]
		if err := im.budget.Charge(tensorUnits * int64(len(o.Inputs)+len(o.Outputs))); err != nil {
			return err
		}
		for _, t := range o.Outputs {
			if maker[t] != nil {
				return fmt.Errorf("operator %d (%s) and operator %d both write tensor %d", i, o.Name, maker[t].Index, t)
			}
			maker[t] = o
		}
	}
	im.reader = make([]*schema.Operator, g.Tensors)
	queue := slices.Clone(outputs)
	for _, output := range outputs {
		im.read[output] = true
	}
	for len(queue) > 0 {
		o := maker[queue[len(queue)-1]]
		queue = queue[:len(queue)-1]
		if o == nil || im.needed[o.Index] {
			continue
		}
		im.needed[o.Index] = true
		for _, t := range im.data(o) {
			switch {
			case t < 0 || im.reader[t] == o:
			case im.read[t]:
				im.reader[t] = nil
			default:
				im.read[t], im.reader[t] = true, o
				queue = append(queue, t)
			}
		}
	}
	return nil
}

// data returns the inputs of an operator that its output is made of. The file says
// what a shape is made into, whatever computes it, but for dimensions that it leaves open.
func (im *importer) data(o *schema.Operator) []int {
	switch o.Name {
	case "RESHAPE":
		if len(o.Outputs) > 0 {
			if t, err := im.model.Tensor(o.Outputs[0]); err == nil && open(t) {
				return o.Inputs
			}
		}
		return o.Inputs[:min(1, len(o.Inputs))]
	case "EXPAND_DIMS":
		return o.Inputs[:min(1, len(o.Inputs))]
	}
	return o.Inputs
}

// open reports whether a file leaves other dimensions of a tensor open than the first.
func open(t *schema.Tensor) bool {
	return len(t.Dynamic) > 1 && slices.Contains(t.Dynamic[1:], true)
}

// tensor returns a tensor of the graph.
func (im *importer) tensor(index int) (operand, error) {
	if r, ok := im.env[index]; ok {
		return r, nil
	}
	read := im.model.Tensor
	if im.model.Sparse(index) {
		read = func(index int) (*schema.Tensor, error) { return im.model.Dense(index, im.limits.TensorBytes) }
	}
	t, err := read(index)
	if err != nil {
		return operand{}, err
	}
	if t.Data == nil {
		return operand{}, fmt.Errorf("tensor %d %s is neither constant nor computed by an earlier operator", index, text.Quote(t.Name))
	}
	im.env[index] = operand{constant: &constant{tensor: t, dims: t.Dims}}
	return im.env[index], nil
}

// has reports whether an operator has an input.
func has(o *schema.Operator, i int) bool { return i < len(o.Inputs) && o.Inputs[i] >= 0 }

// operand returns an input of an operator.
func (im *importer) operand(o *schema.Operator, i int) operand {
	if !has(o, i) {
		try.Failf("input %d is missing", i)
	}
	im.used[i] = true
	return try.Value(im.tensor(o.Inputs[i]))
}

// value returns an input that must be computed.
func (im *importer) value(o *schema.Operator, i int) *value {
	v := checked(im.operand(o, i), i)
	try.Check(v.checkBounded())
	return im.settled(v.undivided())
}

// checked returns the value of an input that must be computed.
func checked(r operand, i int) *value {
	switch {
	case r.value == nil:
		try.Failf("input %d must be computed, not constant", i)
	case r.value.numbers:
		try.Failf("channel indices, as of ARG_MAX, are supported only as an output of the model")
	}
	return r.value
}

// real returns an input of real numbers.
func (im *importer) real(o *schema.Operator, i int) *value {
	v := im.value(o, i)
	try.Check(v.checkReal())
	return v
}

var errQuantized = errors.New("8-bit values are not supported here: convert the model without quantising them")

var errUint8 = errors.New("values of UINT8 are supported only as inputs and outputs of a model: convert it with TensorFlow 2, which quantises what is between them to INT8")

func (v *value) checkReal() error {
	switch v.typ {
	case schema.Float32:
		return nil
	case schema.Int8:
		return errQuantized
	case schema.Bool:
		return errors.New("its input is BOOL, which this operator does not support")
	case schema.Uint8:
		return errUint8
	case schema.Int32:
		return errors.New("its input is packed bits, which this operator does not support")
	}
	return fmt.Errorf("values of %v are not supported", v.typ)
}

// constant returns an input that must be constant, or nil if it is left out.
func (im *importer) constant(o *schema.Operator, i int) *constant {
	if !has(o, i) {
		return nil
	}
	r := im.operand(o, i)
	if r.constant == nil {
		try.Failf("input %d must be constant", i)
	}
	return r.constant
}

// required is constant for an input that must be there.
func (im *importer) required(o *schema.Operator, i int) *constant {
	c := im.constant(o, i)
	if c == nil {
		try.Failf("input %d is missing", i)
	}
	return c
}

// floats returns the numbers of a constant input.
func (im *importer) floats(o *schema.Operator, i int) []float32 {
	c := im.required(o, i)
	return c.floats(im.budget)
}

// emit appends a layer and returns its output.
func (im *importer) emit(o *schema.Operator, suffix string, op bcnn.Op, shape bcnn.Shape, inputs ...*value) *value {
	try.Check(im.budget.Charge(layerUnits))
	if len(im.net.Layers) == im.limits.Layers {
		try.Failf("the network has more than %d layers; Limits.Layers allows more", im.limits.Layers)
	}
	if bytes := shape.Bytes(bcnn.Float32); bytes > im.limits.TensorBytes {
		try.Failf("a feature map of %v takes %d bytes, at most %d are allowed; Limits.TensorBytes allows more", shape, bytes, im.limits.TensorBytes)
	}
	list := make([]int, len(inputs))
	for i, in := range inputs {
		list[i] = in.layer
	}
	name := im.layerName(o, suffix)
	im.by[name] = o
	im.values.Append(shape)
	return &value{layer: im.net.Append(name, op, list...), shape: shape}
}

// maxLabel is how long the name of an operator may be in that of a layer.
const maxLabel = 160

// layerName names a layer by the output of its operator: of the names that a converter
// has joined by semicolons the first.
func (im *importer) layerName(o *schema.Operator, suffix string) string {
	name := "input"
	if o != nil {
		t := try.Value(im.model.Tensor(o.Outputs[0]))
		name, _, _ = strings.Cut(t.Name, ";")
		if name == "" || len(name) > maxLabel {
			name = fmt.Sprintf("%s_%d", strings.ToLower(o.Name[:min(len(o.Name), maxLabel)]), o.Index)
		}
	}
	name += suffix
	// A number that is taken for one name is not tried again, or many operators of one
	// name would take quadratic time.
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

// affine emits x·scale + bias.
func (im *importer) affine(o *schema.Operator, suffix string, v *value, scale, bias []float32) *value {
	if len(scale) == 0 && len(bias) == 0 {
		return v
	}
	return im.emit(o, suffix, bcnn.Affine{Scale: scale, Bias: bias}, v.shape, v)
}

// Fused activations.
const (
	actNone  = 0
	actReLU  = 1
	actReLU1 = 2 // to [−1, 1]
	actReLU6 = 3
)

// activation emits a fused activation.
func (im *importer) activation(o *schema.Operator, v *value, kind int) *value {
	const suffix = "/activation"
	switch kind {
	case actNone:
		return v
	case actReLU:
		return im.emit(o, suffix, bcnn.ReLU{}, v.shape, v)
	case actReLU1:
		return im.emit(o, suffix, bcnn.Clip{Min: -1, Max: 1}, v.shape, v)
	case actReLU6:
		return im.emit(o, suffix, bcnn.Clip{Min: 0, Max: 6}, v.shape, v)
	}
	panic(try.Errorf("the fused activation %d is not supported", kind))
}

// positive reports whether no value is less than 0.
func (im *importer) positive(v *value) bool {
	of := try.Value(im.values.Of(v.layer))
	return v.typ == schema.Float32 && of.Min >= 0
}
