package values

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Analysis tells what the values of the layers of a network can be, of which more may be
// appended at any time, while those that have been asked for stay as they are.
type Analysis struct {
	net    *bcnn.Network
	budget *budget.Budget
	shapes []bcnn.Shape // of the outputs of the layers
	sets   []Set        // of the first of them
}

// New returns the analysis of a network that has no layers yet. What it costs is charged to
// the budget.
func New(net *bcnn.Network, b *budget.Budget) *Analysis {
	return &Analysis{net: net, budget: b}
}

// Append takes the shape of the output of a layer that has been appended to the network.
func (a *Analysis) Append(shape bcnn.Shape) { a.shapes = append(a.shapes, shape) }

// layerUnits is what a layer costs besides its lists.
const layerUnits = 256

// Of returns what the values of a layer, or of an input (bcnn.NetworkInput and below), can be.
func (a *Analysis) Of(layer int) (Set, error) {
	if layer <= bcnn.NetworkInput {
		return a.input(layer), nil
	}
	for i := len(a.sets); i <= layer; i++ {
		l := a.net.Layers[i]
		if err := a.budget.Charge(cost(l)); err != nil {
			return unknown, err
		}
		in := make([]Set, len(l.Inputs))
		for k, from := range l.Inputs {
			if in[k] = a.input(from); from > bcnn.NetworkInput {
				in[k] = a.sets[from]
			}
		}
		a.sets = append(a.sets, of(l.Op, a.shape(l.Inputs[0]), in))
	}
	return a.sets[layer], nil
}

// Sums is Of for the sums of a layer without its bias, if it has one.
func (a *Analysis) Sums(layer int) (Set, error) {
	set, err := a.Of(layer)
	if err != nil || layer <= bcnn.NetworkInput {
		return set, err
	}
	l := a.net.Layers[layer]
	switch op := l.Op.(type) {
	case bcnn.Conv2D:
		op.Bias = nil
		l.Op = op
	case bcnn.Dense:
		op.Bias = nil
		l.Op = op
	default:
		return set, nil
	}
	if err := a.budget.Charge(cost(l)); err != nil {
		return unknown, err
	}
	in, err := a.Of(l.Inputs[0])
	return of(l.Op, a.shape(l.Inputs[0]), []Set{in}), err
}

func (a *Analysis) input(layer int) Set {
	if layer <= bcnn.NetworkInput && a.net.Inputs[bcnn.NetworkInput-layer].DType == bcnn.Uint8 {
		return bytes
	}
	return unknown
}

func (a *Analysis) shape(layer int) bcnn.Shape {
	if layer <= bcnn.NetworkInput {
		return a.net.Inputs[bcnn.NetworkInput-layer].Shape
	}
	return a.shapes[layer]
}

// cost is what is charged for a layer: it is looked at once, with all its lists but real
// weights.
func cost(l bcnn.Layer) int64 {
	units := layerUnits + 64*len(l.Inputs)
	switch op := l.Op.(type) {
	case bcnn.Conv2D:
		units += len(op.Weights.Int8) + 8*len(op.Bias)
	case bcnn.Dense:
		units += len(op.Weights.Int8) + 8*len(op.Bias)
	case bcnn.Affine:
		units += 16 * max(len(op.Scale), len(op.Bias))
	case bcnn.PReLU:
		units += 24 * len(op.Slope)
	case bcnn.Channels:
		units += len(op.Index)
	case bcnn.Pixels:
		units += len(op.Rows) + len(op.Cols)
	}
	return int64(units)
}
