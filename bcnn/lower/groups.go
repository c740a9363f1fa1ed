package lower

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Some tools write a convolution in groups as slices of the channels, a convolution of each, and
// their concatenation. Such layers become one step, which stores neither slices nor parts of its
// output.

// groupedConv is a convolution in groups that a concatenation stands for.
type groupedConv struct {
	op     bcnn.Conv2D
	source int   // the layer whose channels it reads, or an input
	layers []int // that it replaces: slices, convolutions, and last the concatenation
}

// findGroups fills groups and inGroups.
func (lo *lowering) findGroups() error {
	lo.groups, lo.inGroups = map[int]*groupedConv{}, make([]bool, len(lo.net.Layers))
	for i, l := range lo.net.Layers {
		if _, ok := l.Op.(bcnn.Concat); !ok {
			continue
		}
		g, err := lo.groupsAt(i)
		if err != nil {
			return err
		}
		if g == nil {
			continue
		}
		lo.groups[i] = g
		for _, part := range g.layers[:len(g.layers)-1] {
			lo.inGroups[part] = true
		}
		if g.source > bcnn.NetworkInput {
			lo.uses[g.source] -= len(l.Inputs) - 1
		}
	}
	return nil
}

// groupsAt returns the convolution in groups that concatenation i stands for, or nil. Its parts
// must be equal slices of all channels of one layer, in order, and nothing else may read them. The
// weights must be real: then joining them does not change how sums are computed.
func (lo *lowering) groupsAt(i int) (*groupedConv, error) {
	convs := lo.net.Layers[i].Inputs
	g := &groupedConv{}
	var first bcnn.Conv2D
	weights, biases := 0, 0
	for j, at := range convs {
		if at <= bcnn.NetworkInput || lo.uses[at] != 1 {
			return nil, nil
		}
		conv, ok := lo.net.Layers[at].Op.(bcnn.Conv2D)
		from := -1
		if ok {
			from = lo.net.Layers[at].Inputs[0]
		}
		if from <= bcnn.NetworkInput || lo.uses[from] != 1 {
			return nil, nil
		}
		part, ok := lo.net.Layers[from].Op.(bcnn.Channels)
		source := lo.net.Layers[from].Inputs[0]
		if j == 0 {
			first, g.source = conv, source
		}
		if !ok || source != g.source || !conv.Weights.Real() || conv.Window.Normal() != first.Window.Normal() ||
			conv.Out != first.Out || max(conv.Groups, 1) != max(first.Groups, 1) ||
			len(conv.Bias) != len(first.Bias) || len(part.Index)*len(convs) != lo.input(from).C {
			return nil, nil
		}
		for c, index := range part.Index {
			if int(index) != j*len(part.Index)+c {
				return nil, nil
			}
		}
		weights, biases = weights+len(conv.Weights.F32), biases+len(conv.Bias)
		g.layers = append(g.layers, from, at)
	}
	if err := lo.hold(4 * int64(weights+biases)); err != nil {
		return nil, err
	}
	g.op = first
	g.op.Out, g.op.Groups = len(convs)*first.Out, len(convs)*max(first.Groups, 1)
	g.op.Weights.F32, g.op.Bias = make([]float32, 0, weights), make([]float32, 0, biases)
	for _, at := range convs {
		conv := lo.net.Layers[at].Op.(bcnn.Conv2D)
		g.op.Weights.F32 = append(g.op.Weights.F32, conv.Weights.F32...)
		g.op.Bias = append(g.op.Bias, conv.Bias...)
	}
	slices.Sort(g.layers)
	g.layers = append(g.layers, i)
	return g, nil
}

// inputs returns the operation of layer i and the values that it reads. A value that no other layer
// reads is taken out of values.
func (lo *lowering) inputs(i int, values []value) (bcnn.Op, []value) {
	op, sources := lo.net.Layers[i].Op, lo.net.Layers[i].Inputs
	if g := lo.groups[i]; g != nil {
		op, sources = g.op, []int{g.source}
	}
	in := make([]value, len(sources))
	for j, source := range sources {
		if source <= bcnn.NetworkInput {
			in[j].tensor = bcnn.NetworkInput - source
			continue
		}
		in[j] = values[source]
		if lo.uses[source] == 1 {
			values[source] = value{}
		}
	}
	return op, in
}
