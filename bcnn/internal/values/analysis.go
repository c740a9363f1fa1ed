package values

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Analysis tells what the values of the layers of a network can be, of which more may be
// appended at any time, while those that have been asked for stay as they are.
type Analysis struct {
	// Within is how far real weights of a layer may be from what they are taken for; nil asks
	// for equal ones.
	Within func(layer int) weights.Tolerance

	net    *bcnn.Network
	budget *budget.Budget
	shapes []bcnn.Shape          // of the outputs of the layers
	sets   []Set                 // of the first of them
	forms  map[int]*weights.Form // of real weights, by layer; nil for none
}

// New returns the analysis of a network that has no layers yet. What it costs is charged to
// the budget.
func New(net *bcnn.Network, b *budget.Budget) *Analysis {
	return &Analysis{net: net, budget: b, forms: map[int]*weights.Form{}}
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
		set := of(l.Op, a.shape(l.Inputs[0]), in)
		if w, bias, ok := weighted(l.Op); ok && w.F32 != nil {
			sums, alpha, err := a.real(i, in[0])
			if err != nil {
				return unknown, err
			}
			if !slices.ContainsFunc(alpha, func(a float32) bool { return a != alpha[0] }) {
				alpha = alpha[:min(len(alpha), 1)]
			}
			set = biased(affine(bcnn.Affine{Scale: alpha}, sums), bias)
		}
		a.sets = append(a.sets, set)
	}
	return a.sets[layer], nil
}

// Sums returns what the sums of a layer with weights can be, without its bias and before they
// are multiplied with alpha: the α of each filter where its weights are real and multiples of
// one, otherwise nil. Of other layers it is Of.
func (a *Analysis) Sums(layer int) (set Set, alpha []float32, err error) {
	set, err = a.Of(layer)
	if err != nil || layer <= bcnn.NetworkInput {
		return set, nil, err
	}
	l := a.net.Layers[layer]
	w, _, ok := weighted(l.Op)
	if !ok {
		return set, nil, nil
	}
	if err := a.budget.Charge(cost(l)); err != nil {
		return unknown, nil, err
	}
	in, err := a.Of(l.Inputs[0])
	if err != nil {
		return unknown, nil, err
	}
	if w.F32 != nil {
		return a.real(layer, in)
	}
	switch op := l.Op.(type) {
	case bcnn.Conv2D:
		op.Bias = nil
		l.Op = op
	case bcnn.Dense:
		op.Bias = nil
		l.Op = op
	}
	return of(l.Op, a.shape(l.Inputs[0]), []Set{in}), nil, nil
}

// real returns the sums of a layer with real weights without their factors alpha: nothing is
// known of them where the weights are no multiples of one number for each filter.
func (a *Analysis) real(layer int, in Set) (sums Set, alpha []float32, err error) {
	l := a.net.Layers[layer]
	if !in.Only {
		return unknown, nil, nil
	}
	form, known := a.forms[layer]
	if !known {
		var within weights.Tolerance
		if a.Within != nil {
			within = a.Within(layer)
		}
		w, _, _ := weighted(l.Op)
		signs := in.Min == -in.Max && !in.Often.Even && in.Often.Most == in.Often.Unit
		if form, _, err = weights.Find(a.budget, rowsOf(l.Op, w), true, signs, within); err != nil {
			return unknown, nil, err
		}
		a.forms[layer] = form
	}
	if form == nil {
		return unknown, nil, nil
	}
	w := bcnn.Weights{Bits: form.Bits, Int8: form.Int8}
	switch op := l.Op.(type) {
	case bcnn.Conv2D:
		op.Bias, op.Weights = nil, w
		l.Op = op
	case bcnn.Dense:
		op.Bias, op.Weights = nil, w
		l.Op = op
	}
	if err := a.budget.Charge(cost(l)); err != nil {
		return unknown, nil, err
	}
	return of(l.Op, a.shape(l.Inputs[0]), []Set{in}), form.Alpha, nil
}

// weighted returns the weights and the bias of a layer that has some.
func weighted(op bcnn.Op) (w bcnn.Weights, bias []float32, ok bool) {
	switch op := op.(type) {
	case bcnn.Conv2D:
		return op.Weights, op.Bias, true
	case bcnn.Dense:
		return op.Weights, op.Bias, true
	}
	return w, nil, false
}

// rowsOf returns real weights as filters in one row each, which is enough to find what they are.
func rowsOf(op bcnn.Op, w bcnn.Weights) weights.Rows {
	out := 1
	switch op := op.(type) {
	case bcnn.Conv2D:
		out = op.Out
	case bcnn.Dense:
		out = op.Out
	}
	return weights.Rows{Values: w.F32, Out: out, RowLen: len(w.F32) / out}
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
