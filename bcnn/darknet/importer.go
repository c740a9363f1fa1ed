package darknet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// importer makes the layers of a description.
type importer struct {
	opts    Options
	limits  bcnn.Limits
	budget  *budget.Budget
	cfg     []byte
	weights []byte
	at      int // what of weights has been read

	layers    []*section
	values    []value // of the layers
	net       *bcnn.Network
	signs     map[int]value // of layers, where some layer reads its input as ±1
	heads     []Head
	letterbox bool
}

// value is what a layer of Darknet computes: the output of a layer of the network.
type value struct {
	layer   int
	shape   bcnn.Shape
	softmax bool
}

// layerUnits is what a layer costs besides its parameters.
const layerUnits = 1024

// network makes the network.
func (im *importer) network() (net *bcnn.Network, err error) {
	defer try.Recover(&err)
	first, layers, err := decodeConfig(im.cfg, im.limits.Layers, im.budget)
	if err != nil {
		return nil, err
	}
	im.layers = layers
	n, err := try.DoSafely(func() settings { return readNet(first) })
	if err != nil {
		return nil, fmt.Errorf("section [%s]: %w", first.kind, err)
	}
	im.letterbox = n.letterbox
	if err := im.read(); err != nil {
		return nil, err
	}
	im.header()
	outputs := im.outputs()
	im.mark(outputs)
	input := im.begin(n.shape)
	if err := im.build(input); err != nil {
		return nil, err
	}
	im.finish(outputs)
	if left := len(im.weights) - im.at; left > 0 {
		try.Failf("the file of the weights has %d bytes more than the layers need", left)
	}
	return im.net, im.net.Check()
}

// read reads the options of all layers, and collects what stands in the way.
func (im *importer) read() error {
	var obstacles []bcnn.Obstacle
	for _, s := range im.layers {
		if _, err := try.DoSafely(func() bool { readLayer(s); return true }); err != nil {
			obstacles = append(obstacles, im.obstacle(s, err))
		}
		try.Check(im.budget.Charge(int64(len(s.inputs)) * 16)) // and what came of it
	}
	if len(obstacles) > 0 {
		return &bcnn.ObstaclesError{Obstacles: obstacles}
	}
	for _, s := range im.layers {
		switch s.layer.(type) {
		case route:
			for _, in := range s.inputs {
				im.keepActivation(in)
			}
		case shortcut: // of several layers that it adds, the first
			im.keepActivation(s.inputs[0])
			im.keepActivation(s.inputs[1])
		case nothing:
			if s.kind == "cost" && s.number < len(im.layers)-1 {
				return &bcnn.ObstaclesError{Obstacles: []bcnn.Obstacle{im.obstacle(s, errCost)}}
			}
		}
	}
	return nil
}

var errCost = errors.New("layers follow it, but it must be the last one")

func (im *importer) obstacle(s *section, err error) bcnn.Obstacle {
	o := bcnn.Obstacle{Node: s.name(), Op: short(s.kind), Index: s.number, Err: err}
	if errors.Is(err, errKind) {
		o.Advice = fmt.Sprintf("it begins in line %d", s.line)
	}
	return o
}

// keepActivation cancels bin_output of a layer.
func (im *importer) keepActivation(number int) {
	if c, ok := im.layers[number].layer.(*convolution); ok {
		c.binOutput = false
	}
}

// outputs returns the layers that are outputs: the heads, and the last one.
func (im *importer) outputs() []int {
	var list []int
	for i, s := range im.layers {
		_, ok := s.layer.(*head)
		if ok || i == len(im.layers)-1 {
			list = append(list, i)
		}
	}
	return list
}

// mark marks the layers that outputs need. The others only take their part of the weights.
func (im *importer) mark(outputs []int) {
	for _, i := range outputs {
		im.layers[i].needed = true
	}
	for _, s := range slices.Backward(im.layers) {
		if !s.needed {
			continue
		}
		for _, in := range s.inputs {
			if in >= 0 {
				im.layers[in].needed = true
			}
		}
	}
}

// begin makes the input of the network.
func (im *importer) begin(shape bcnn.Shape) value {
	in := bcnn.Input{Shape: shape, DType: bcnn.Float32, Resize: im.opts.Resize, Source: source("input", shape)}
	if bytes := shape.Bytes(bcnn.Float32); bytes > im.limits.TensorBytes {
		try.Failf("the input of %v takes %d bytes, at most %d are allowed; Limits.TensorBytes allows more", shape, bytes, im.limits.TensorBytes)
	}
	mean, scale := im.opts.Mean, im.opts.Scale
	if im.opts.InputType == bcnn.Uint8 {
		in.DType = bcnn.Uint8
		if len(mean) == 0 && len(scale) == 0 {
			scale = []float32{1. / 255}
		}
	}
	im.net.Inputs = []bcnn.Input{in}
	for _, o := range []struct {
		name string
		list []float32
	}{{"Mean", mean}, {"Scale", scale}} {
		if len(o.list) > 1 && len(o.list) != shape.C {
			try.Failf("%s has %d values, the input has %s", o.name, len(o.list), text.Count(shape.C, "channel"))
		}
	}
	v := value{layer: bcnn.NetworkInput, shape: shape}
	first := &section{number: netNumber, kind: "net"}
	if len(mean) > 0 {
		bias := make([]float32, len(mean))
		for i, m := range mean {
			bias[i] = -m
		}
		v = im.emit(first, "input/mean", bcnn.Affine{Bias: bias}, shape, v)
	}
	if len(scale) > 0 {
		v = im.emit(first, "input/scale", bcnn.Affine{Scale: slices.Clone(scale)}, shape, v)
	}
	return v
}

// build makes all layers.
func (im *importer) build(input value) error {
	im.values = make([]value, len(im.layers))
	for i, s := range im.layers {
		v, err := try.DoSafely(func() value { return im.one(s, input) })
		if err != nil {
			if over := im.budget.Charge(0); over != nil {
				return over
			}
			return &bcnn.ObstaclesError{Obstacles: []bcnn.Obstacle{im.obstacle(s, err)}}
		}
		im.values[i] = v
	}
	return nil
}

// one makes the layers of a section.
func (im *importer) one(s *section, input value) value {
	try.Check(im.budget.Charge(64 * int64(len(s.inputs))))
	in, shapes := make([]value, len(s.inputs)), make([]bcnn.Shape, len(s.inputs))
	for k, from := range s.inputs {
		in[k] = input
		if from >= 0 {
			in[k] = im.values[from]
		}
		if _, ok := s.layer.(nothing); in[k].softmax && !ok {
			try.Failf("it reads a softmax, which must be the last layer")
		}
		shapes[k] = in[k].shape
	}
	out := s.layer.shape(shapes)
	try.Check(out.Check())
	if c, ok := s.layer.(*convolution); ok {
		c.data = im.take(c.floats())
	}
	if !s.needed {
		return value{shape: out}
	}
	before := len(im.net.Layers)
	v := s.layer.build(im, s, in)
	if v.layer >= before { // that the section has made
		l := &im.net.Layers[v.layer]
		l.Name, l.Source = s.name(), source(s.name(), v.shape)
	}
	return v
}

// source describes a tensor of Darknet.
func source(name string, s bcnn.Shape) *bcnn.Source {
	return &bcnn.Source{Name: name, Dims: []int{s.C, s.H, s.W}, ChannelsFirst: true}
}

// finish names outputs and network.
func (im *importer) finish(outputs []int) {
	var shapes []bcnn.Shape
	for _, i := range outputs {
		v := im.values[i]
		if v.layer == bcnn.NetworkInput {
			try.Failf("no layer computes the output of the network, which is its input")
		}
		if slices.Contains(im.net.Outputs, v.layer) {
			if _, ok := im.layers[i].layer.(*head); ok {
				try.Failf("%s is the same output as another one", im.layers[i].name())
			}
			continue
		}
		if h, ok := im.layers[i].layer.(*head); ok {
			h.Output = len(im.net.Outputs)
			im.heads = append(im.heads, h.Head)
		}
		im.net.Outputs, shapes = append(im.net.Outputs, v.layer), append(shapes, v.shape)
	}
	im.net.Name, im.net.Labels = im.opts.Name, im.opts.Labels
	im.detect(shapes)
	var names []string
	for _, s := range im.layers {
		if s.needed {
			names = append(names, s.name())
		}
	}
	im.net.Absorb(names)
}

// emit appends a layer.
func (im *importer) emit(s *section, suffix string, op bcnn.Op, out bcnn.Shape, inputs ...value) value {
	try.Check(im.budget.Charge(layerUnits + 16*int64(len(inputs))))
	if len(im.net.Layers) == im.limits.Layers {
		try.Failf("the network has more than %d layers; Limits.Layers allows more", im.limits.Layers)
	}
	if bytes := out.Bytes(bcnn.Float32); bytes > im.limits.TensorBytes {
		try.Failf("a feature map of %v takes %d bytes, at most %d are allowed; Limits.TensorBytes allows more", out, bytes, im.limits.TensorBytes)
	}
	name := suffix
	if s.number >= 0 {
		name = s.name() + suffix
	}
	list := make([]int, len(inputs))
	for i, in := range inputs {
		list[i] = in.layer
	}
	return value{layer: im.net.Append(name, op, list...), shape: out}
}

// sign returns a value as ±1, −1 where it is 0. Layers that read the same value share it.
func (im *importer) sign(s *section, v value) value {
	if known, ok := im.signs[v.layer]; ok {
		return known
	}
	known := im.emit(s, "/sign", bcnn.Sign{Zero: bcnn.ZeroIsMinus}, v.shape, v)
	im.signs[v.layer] = known
	return known
}
