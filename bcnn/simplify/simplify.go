// Package simplify finds what is binary, or of a few bits, in a network that is written with
// real numbers. A Sign with a factor behind it and a Conv2D with weights of ±0.5 is a
// convolution of bits with a scale, whoever wrote it: an importer, a program, an older model
// file. Each rule replaces layers by others that compute the same, up to the roundings of
// sums that the others take exactly.
//
// A layer with weights reads g·q + o, where the codes q are ±1 or integers of a few levels
// (rule Functions), perhaps moved (rule Move), or sums or concatenations of such (rule Parts).
// Its weights are α·t for one α per filter with t of ±1 or small integers, or α·t + m, or sums
// of these (rule Weights). Then
//
//	Σ (α·t + m)·(g·q + o) = α·g·Σ t·q + m·g·Σ q + o·Σ (α·t + m)
//
// of which the first two sums are of integers (rule Factors). A factor of each pixel, m·q, stays behind a
// layer that reads one pixel for each of its own, too.
package simplify

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// Rule is one of the rules.
type Rule string

const (
	// Weights: real weights that are ±α for one α per filter, multiples of α on codes or on the
	// bytes of an image, two values, or sums of up to three times ±α, become bits or integers
	// with a scale behind them.
	Weights Rule = "weights"
	// Factors: of an input that is gain·code + offset, a layer reads the codes, and what gain
	// and offset make is behind its sums.
	Factors Rule = "factors"
	// Functions: a function of a tensor of a few codes is another table of the values that
	// they stand for; where it is gain·code + offset it needs no layer. So are the sum, product,
	// minimum and maximum of codes that are steps of one value.
	Functions Rule = "functions"
	// Move: layers that only move values move codes.
	Move Rule = "move"
	// Parts: a layer on a concatenation or a sum of codes of several scales is the sum of a
	// layer for each of them.
	Parts Rule = "parts"
	// Levels: three levels of which the middle one never occurs, as a sign of odd sums never
	// is 0, are ±1.
	Levels Rule = "levels"
	// Gates: the product of a value and a function of it is one function: SiLU, GELU or Mish.
	Gates Rule = "gates"
	// Border: pixels of one value around an image are the padding of the convolution behind.
	Border Rule = "border"
	// Sums: the sum of a concatenation and channels of which some are zeros is a concatenation of
	// the parts, of which those are added to that meet other channels.
	Sums Rule = "sums"
)

// Rules returns all rules.
func Rules() []Rule {
	return []Rule{Weights, Factors, Functions, Move, Parts, Levels, Gates, Border, Sums}
}

// Options are the options of Network. With the zero value, weights are taken for what they
// are equal to.
type Options struct {
	// WeightTolerance is how far weights may be from ±α, or multiples of α, as a fraction of α,
	// to be taken as such.
	WeightTolerance float64
	// Rounding tells of a layer how far its weights may be off, as a fraction, because
	// they were rounded, and what they were computed from: 2^−11 for FLOAT16. nil means 0.
	Rounding func(layer int) float64
	// Quantised tells of a layer that its weights were made of integers and a scale, so that they
	// are no real numbers whatever the layer reads. nil means that none is known to be so.
	Quantised func(layer int) bool
	// Without switches rules off.
	Without []Rule
	// Limits bound the layers; no rule makes more.
	Limits bcnn.Limits
}

// Finding is what a rule has found.
type Finding struct {
	Layer string // of the network that was given
	Rule  Rule
	Text  string
	// Deviation is the largest distance of weights from what they are taken for, relative to
	// α, or to the largest weight of their filter where they are sums of several.
	Deviation float64
	// Nearly says that they are not taken so: their deviation is beyond the tolerance.
	Nearly bool
}

// Network returns a network that computes what n does, with the rules applied, and what they
// have found, in the order of the layers. Without a finding that is n itself; n is not
// changed. Outputs keep their names and sources, and so does every layer whose output is still
// computed; the names of tensors that are not go to Absorbed. It takes time and memory linear in the size of the
// network. The errors are those of n.Check, and that of ctx when it ends.
func Network(ctx context.Context, n *bcnn.Network, opts Options) (*bcnn.Network, []Finding, error) {
	defer fpmode.Enter().Leave()
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, nil, err
	}
	var all []Finding
	for range mostPasses {
		out, found, err := once(ctx, n, opts, limits.Layers)
		if err != nil {
			return nil, nil, err
		}
		if len(all) > 0 { // which has told of the others
			found = slices.DeleteFunc(found, func(f Finding) bool { return f.Nearly })
		}
		all = append(all, found...)
		if out == n {
			break
		}
		n, opts.Rounding, opts.Quantised = out, nil, nil // which the weights that are left have been told by
	}
	return n, all, nil
}

// mostPasses is how often the rules are applied: hardly ever does one find something in what
// another one has made.
const mostPasses = 4

// once applies the rules to each layer.
func once(ctx context.Context, n *bcnn.Network, opts Options, most int) (*bcnn.Network, []Finding, error) {
	p, err := begin(ctx, n, opts, most)
	if err != nil {
		return nil, nil, err
	}
	return p.run()
}

func begin(ctx context.Context, n *bcnn.Network, opts Options, most int) (*pass, error) {
	shapes, err := n.Shapes()
	if err != nil {
		return nil, err
	}
	p := &pass{
		opts: opts, budget: budget.New(ctx, workPerByte*size(n, shapes)), from: n, shapes: shapes, outputs: make([]bool, len(n.Layers)),
		room: most - len(n.Layers), to: &bcnn.Network{Inputs: n.Inputs},
	}
	p.sets = values.New(p.to, p.budget)
	for _, l := range n.OutputLayers() {
		p.outputs[l] = true
	}
	return p, nil
}

func (p *pass) run() (*bcnn.Network, []Finding, error) {
	n := p.from
	for i := range n.Layers {
		p.at = i
		v, err := p.layer(n.Layers[i].Op)
		if err != nil {
			return nil, nil, fmt.Errorf("layer %q: %w", n.Layers[i].Name, err)
		}
		p.values = append(p.values, v)
	}
	if len(p.findings) == 0 {
		return n, nil, nil
	}
	out, err := p.finish()
	if err != nil {
		return nil, nil, err
	}
	if alike(n, out) {
		return n, slices.DeleteFunc(p.findings, func(f Finding) bool { return !f.Nearly }), nil
	}
	return out, p.findings, nil
}

// alike reports whether two networks have the same layers, but for their names.
func alike(n, m *bcnn.Network) bool {
	return slices.EqualFunc(n.Layers, m.Layers, func(a, b bcnn.Layer) bool {
		return slices.Equal(a.Inputs, b.Inputs) && reflect.DeepEqual(a.Op, b.Op)
	})
}

// workPerByte is what may be spent for each byte of a network, in bytes that are allocated and
// iterations alike. Most is for a search for the α of a filter.
const workPerByte = 1024

// size is what a network holds, in bytes, shapes included: of the outputs of layers their channels.
func size(n *bcnn.Network, shapes []bcnn.Shape) int64 {
	units := int64(0)
	for _, in := range n.Inputs {
		units += int64(in.Shape.H + in.Shape.W + in.Shape.C)
	}
	for i, l := range n.Layers {
		bytes, _ := bcnn.ParameterBytes(l.Op)
		units += layerUnits + bytes + 4*int64(shapes[i].C)
	}
	return units
}

// layerUnits is what a layer costs besides its numbers.
const layerUnits = 1024

// pass applies the rules to a network, layer by layer.
type pass struct {
	opts     Options
	budget   *budget.Budget
	from     *bcnn.Network
	shapes   []bcnn.Shape // of its layers
	outputs  []bool       // which of them are outputs
	at       int          // the layer at hand
	values   []value      // of the layers in front of it
	room     int          // how many layers may be added
	to       *bcnn.Network
	made     []made // by layer of to
	sets     *values.Analysis
	findings []Finding
}

// made says what a layer of the new network was made of.
type made struct {
	of     int // the layer of the given network
	suffix string
	shape  bcnn.Shape
	same   bool // its output is that of the layer
	image  bool // it gives the bytes of an input, scaled
}

// value is the output of a layer of the given network.
type value struct {
	layer int // of the new network; inputs are as they are
	// What is known of it: it has codes, or is a sum of codes, or codes joined along their
	// channels; nil where it is not.
	code   *code
	sum    *sum
	joined []scaled
	pixels *pixelwise // codes times a number of each pixel
	of     *value     // the image that it is, of numbers, with pixels around
}

// value returns that of a layer or an input.
func (p *pass) value(layer int) value {
	if layer <= bcnn.NetworkInput {
		return value{layer: layer}
	}
	return p.values[layer]
}

// input returns the value that the layer at hand reads first.
func (p *pass) input() value { return p.value(p.from.Layers[p.at].Inputs[0]) }

// shape returns that of a layer of the new network.
func (p *pass) shape(layer int) bcnn.Shape {
	if layer <= bcnn.NetworkInput {
		return p.from.Inputs[bcnn.NetworkInput-layer].Shape
	}
	return p.made[layer].shape
}

// on reports whether a rule is not switched off.
func (p *pass) on(r Rule) bool { return !slices.Contains(p.opts.Without, r) }

// found notes what a rule has found in the layer at hand.
func (p *pass) found(r Rule, format string, args ...any) *Finding {
	p.findings = append(p.findings, Finding{Layer: p.from.Layers[p.at].Name, Rule: r, Text: fmt.Sprintf(format, args...)})
	return &p.findings[len(p.findings)-1]
}

// emit appends a layer that the layer at hand becomes, or a part of it.
func (p *pass) emit(suffix string, op bcnn.Op, shape bcnn.Shape, inputs ...int) int {
	p.made = append(p.made, made{of: p.at, suffix: suffix, shape: shape, image: scales(op) && p.image(inputs[0])})
	p.sets.Append(shape)
	return p.to.Append("", op, inputs...)
}

// copy appends the layer at hand as it is.
func (p *pass) copy() value {
	l := p.from.Layers[p.at]
	inputs := make([]int, len(l.Inputs))
	for k, in := range l.Inputs {
		inputs[k] = p.value(in).layer
	}
	return p.same(p.emit("", l.Op, p.shapes[p.at], inputs...))
}

// same says that a layer gives the values of the layer at hand.
func (p *pass) same(layer int) value {
	p.made[layer].same = true
	return value{layer: layer}
}

// floats allocates numbers for a layer.
func (p *pass) floats(n int) ([]float32, error) {
	if err := p.budget.Charge(4 * int64(n)); err != nil {
		return nil, err
	}
	return make([]float32, n), nil
}

// layer applies the rules to the layer at hand.
func (p *pass) layer(op bcnn.Op) (value, error) {
	switch op := op.(type) {
	case bcnn.Weighted:
		return p.linear(op)
	case bcnn.Sign, bcnn.Binarize, bcnn.Quantize:
		return p.coder(op)
	case bcnn.Affine, bcnn.ReLU, bcnn.PReLU, bcnn.Clip, bcnn.Function:
		return p.function(op)
	case bcnn.Concat, bcnn.Channels, bcnn.Pixels, bcnn.Flatten, bcnn.Transpose:
		return p.move(op)
	case bcnn.MaxPool, bcnn.AvgPool:
		return p.pool(op)
	case bcnn.Add, bcnn.Mul, bcnn.Min, bcnn.Max, bcnn.Mask:
		return p.pair(op)
	case bcnn.MatMul:
		return p.matMul()
	}
	return p.copy(), nil
}
