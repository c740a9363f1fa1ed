package values

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Analysis tells what the values of the layers of a network can be, of which more may be
// appended at any time, while those that have been asked for stay as they are.
type Analysis struct {
	net    *bcnn.Network
	shapes func(layer int) bcnn.Shape
	budget *budget.Budget
	sets   []Set // of the first layers
}

// New returns the analysis of a network. shapes returns the shape of the output of a layer;
// what the analysis costs is charged to the budget.
func New(net *bcnn.Network, shapes func(layer int) bcnn.Shape, b *budget.Budget) *Analysis {
	return &Analysis{net: net, shapes: shapes, budget: b}
}

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
		a.sets = append(a.sets, of(l.Op, a.shapes(l.Inputs[0]), in))
	}
	return a.sets[layer], nil
}

func (a *Analysis) input(layer int) Set {
	if layer <= bcnn.NetworkInput && a.net.Inputs[bcnn.NetworkInput-layer].DType == bcnn.Uint8 {
		return bytes
	}
	return unknown
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
