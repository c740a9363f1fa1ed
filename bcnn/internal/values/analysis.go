// Package values tells what the values of the layers of a network can be, in sets of package sets, and
// how often they are at a threshold.
package values

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
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
	sets   []sets.Set            // of the first of them
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
func (a *Analysis) Of(layer int) (sets.Set, error) {
	if layer <= bcnn.NetworkInput {
		return a.input(layer), nil
	}
	for i := len(a.sets); i <= layer; i++ {
		l := a.net.Layers[i]
		if err := a.budget.Charge(cost(l)); err != nil {
			return sets.Unknown, err
		}
		in := make([]sets.Set, len(l.Inputs))
		for k, from := range l.Inputs {
			if in[k] = a.input(from); from > bcnn.NetworkInput {
				in[k] = a.sets[from]
			}
		}
		set := bcnn.Values(l.Op, a.shape(l.Inputs[0]), in)
		if op, ok := real(l.Op); ok {
			sums, alpha, err := a.real(i, op, in[0])
			if err != nil {
				return sets.Unknown, err
			}
			if !slices.ContainsFunc(alpha, func(a float32) bool { return a != alpha[0] }) {
				alpha = alpha[:min(len(alpha), 1)]
			}
			_, _, bias := op.Filters()
			set = sets.Biased(sets.Affine(sums, alpha, nil), bias)
		}
		a.sets = append(a.sets, set)
	}
	return a.sets[layer], nil
}

// Sums returns what the sums of a layer with weights can be, without its bias and before they
// are multiplied with alpha: the α of each filter where its weights are real and multiples of
// one, otherwise nil. Of other layers it is Of.
func (a *Analysis) Sums(layer int) (set sets.Set, alpha []float32, err error) {
	set, err = a.Of(layer)
	if err != nil || layer <= bcnn.NetworkInput {
		return set, nil, err
	}
	l := a.net.Layers[layer]
	op, ok := l.Op.(bcnn.Weighted)
	if !ok {
		return set, nil, nil
	}
	if err := a.budget.Charge(cost(l)); err != nil {
		return sets.Unknown, nil, err
	}
	in, err := a.Of(l.Inputs[0])
	if err != nil {
		return sets.Unknown, nil, err
	}
	out, w, _ := op.Filters()
	if w.F32 != nil {
		return a.real(layer, op, in)
	}
	return bcnn.Values(op.With(out, w, nil), a.shape(l.Inputs[0]), []sets.Set{in}), nil, nil
}

// real returns an operation with real weights; ok is false for others.
func real(op bcnn.Op) (bcnn.Weighted, bool) {
	weighted, ok := op.(bcnn.Weighted)
	if !ok {
		return nil, false
	}
	_, w, _ := weighted.Filters()
	return weighted, w.F32 != nil
}

// real returns the sums of a layer with real weights without their factors alpha: nothing is
// known of them where the weights are no multiples of one number for each filter.
func (a *Analysis) real(layer int, op bcnn.Weighted, in sets.Set) (sums sets.Set, alpha []float32, err error) {
	if !in.Only {
		return sets.Unknown, nil, nil
	}
	out, w, _ := op.Filters()
	form, known := a.forms[layer]
	if !known {
		var within weights.Tolerance
		if a.Within != nil {
			within = a.Within(layer)
		}
		rows := weights.Rows{Values: w.F32, Out: out, RowLen: len(w.F32) / out} // filters in one row each
		signs := in.Min == -in.Max && !in.Often.Even && in.Often.Most == in.Often.Unit
		if form, _, err = weights.Find(a.budget, rows, true, signs, within); err != nil {
			return sets.Unknown, nil, err
		}
		a.forms[layer] = form
	}
	if form == nil {
		return sets.Unknown, nil, nil
	}
	l := a.net.Layers[layer]
	l.Op = op.With(out, bcnn.Weights{Bits: form.Bits, Int8: form.Int8}, nil)
	if err := a.budget.Charge(cost(l)); err != nil {
		return sets.Unknown, nil, err
	}
	return bcnn.Values(l.Op, a.shape(l.Inputs[0]), []sets.Set{in}), form.Alpha, nil
}

func (a *Analysis) input(layer int) sets.Set {
	if layer <= bcnn.NetworkInput && a.net.Inputs[bcnn.NetworkInput-layer].DType == bcnn.Uint8 {
		return sets.Integers(0, math.MaxUint8)
	}
	return sets.Unknown
}

func (a *Analysis) shape(layer int) bcnn.Shape {
	if layer <= bcnn.NetworkInput {
		return a.net.Inputs[bcnn.NetworkInput-layer].Shape
	}
	return a.shapes[layer]
}

// cost is what is charged for a layer: for each byte of its lists, but for those of operations
// whose lists cost more or less to look at, once.
func cost(l bcnn.Layer) int64 {
	units, _ := bcnn.ParameterBytes(l.Op)
	switch op := l.Op.(type) {
	case bcnn.Weighted: // real weights and bits are not looked at
		_, w, bias := op.Filters()
		units = int64(len(w.Int8) + 8*len(bias))
	case bcnn.Affine:
		units = 16 * int64(max(len(op.Scale), len(op.Bias)))
	case bcnn.PReLU:
		units *= 6
	case bcnn.Channels, bcnn.Pixels:
		units /= 4
	case bcnn.BatchNorm:
		units = 64 * int64(len(op.Gamma))
	case bcnn.Binarize, bcnn.Quantize:
		units = 0
	}
	return layerUnits + 64*int64(len(l.Inputs)) + units
}
