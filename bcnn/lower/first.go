package lower

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// RoundedLayer is a layer whose weights RoundFirst has rounded.
type RoundedLayer struct {
	Layer string
	// Bits are those of the weights with their sign. Fewer say that sums of more would not
	// fit into 32 bits for some filter.
	Bits int
	// Weight is the largest difference of a weight from what it was, as a fraction of the
	// largest weight of its filter.
	Weight float64
	// Output bounds the difference of an output before its bias, as a fraction of the
	// largest that the filter can give: the largest Σ|Δw| / Σ|w| of a filter.
	Output float64
}

// minFirstBits and maxFirstBits bound the bits that RoundFirst takes.
const (
	minFirstBits = 2
	maxFirstBits = 16
)

// RoundFirst returns a network in which convolutions and dense layers with real weights
// that read the bytes of an input, perhaps scaled, have integers of so many bits, 2 to 16,
// times a scale for each filter, so that their sums are exact integers. That is another
// network; the RoundedLayers tell how much it differs. Each becomes two layers: the
// integers, and an Affine layer that has its name. n, which is not changed, is simplified first.
// Where there is no such layer, or none of them has sums of bytes, the error says why. When ctx
// ends, its error is returned.
func RoundFirst(ctx context.Context, n *bcnn.Network, bits int, opts Options) (*bcnn.Network, []RoundedLayer, error) {
	defer fpmode.Enter().Leave()
	if bits < minFirstBits || bits > maxFirstBits {
		return nil, nil, fmt.Errorf("first weights of %d bits, want %d to %d", bits, minFirstBits, maxFirstBits)
	}
	given, err := Compile(ctx, n, opts)
	if err != nil {
		return nil, nil, err
	}
	n = given.Network
	first := realOnBytes(n, given.Plan)
	if len(first) == 0 {
		return nil, nil, errors.New("no layer with real weights reads the bytes of an input")
	}
	rounded, _ := roundLayers(n, first, bits)
	p, err := Network(ctx, rounded, opts) // with its layers as they are: they are looked up below
	if err != nil {
		return nil, nil, err
	}
	var lasting []int
	var why []error
	for at, s := range p.Steps {
		if _, ok := s.Op.(*plan.Conv); !ok {
			continue
		}
		float := p.Note(at).WhyFloat
		for k, i := range first {
			switch {
			case !slices.Contains(s.Layers, i+k): // k layers were added in front of it
			case float == "":
				lasting = append(lasting, i)
			default:
				why = append(why, fmt.Errorf("%s: %s", n.Layers[i].Name, float))
			}
		}
	}
	if len(lasting) == 0 {
		return nil, nil, fmt.Errorf("no layer can have first weights of %d bits: %w", bits, errors.Join(why...))
	}
	rounded, layers := roundLayers(n, lasting, bits)
	return rounded, layers, nil
}

// realOnBytes returns the layers that are computed in float32 because their weights are
// real, and read bytes of an input, perhaps scaled.
func realOnBytes(n *bcnn.Network, p *plan.Plan) []int {
	var found []int
	for _, s := range p.Steps {
		conv, ok := s.Op.(*plan.Conv)
		if !ok || conv.F32 == nil || conv.Groups > 1 {
			continue
		}
		for _, i := range s.Layers {
			if w := weightsOf(n.Layers[i].Op); w == nil || !w.Real() {
				continue
			}
			in := n.Layers[i].Inputs[0]
			for in >= 0 {
				_, scaled := n.Layers[in].Op.(bcnn.Affine)
				if _, norm := n.Layers[in].Op.(bcnn.BatchNorm); !norm && !scaled {
					break
				}
				in = n.Layers[in].Inputs[0]
			}
			if in < 0 && n.Inputs[bcnn.NetworkInput-in].DType == bcnn.Uint8 {
				found = append(found, i)
			}
		}
	}
	slices.Sort(found)
	return found
}

// weightsOf returns the weights of an operation; nil for one that has none.
func weightsOf(op bcnn.Op) *bcnn.Weights {
	switch op := op.(type) {
	case bcnn.Conv2D:
		return &op.Weights
	case bcnn.Dense:
		return &op.Weights
	}
	return nil
}

// roundLayers returns the network with the weights of some layers rounded, which are in order.
func roundLayers(n *bcnn.Network, layers []int, bits int) (*bcnn.Network, []RoundedLayer) {
	made := *n
	made.Layers = make([]bcnn.Layer, 0, len(n.Layers)+len(layers))
	at := make([]int, len(n.Layers)) // the outputs of the layers in the new network
	place := func(i int) int {
		if i < 0 {
			return i
		}
		return at[i]
	}
	names := make(map[string]bool, len(n.Layers))
	for _, l := range n.Layers {
		names[l.Name] = true
	}
	var reports []RoundedLayer
	for i, l := range n.Layers {
		inputs := make([]int, len(l.Inputs))
		for k, in := range l.Inputs {
			inputs[k] = place(in)
		}
		l.Inputs = inputs
		if slices.Contains(layers, i) {
			integers, scale, report := roundLayer(l, bits)
			for integers.Name += ".integers"; names[integers.Name]; integers.Name += "'" {
			}
			names[integers.Name] = true
			made.Layers = append(made.Layers, integers)
			l.Op, l.Inputs = scale, []int{len(made.Layers) - 1}
			reports = append(reports, report)
		}
		made.Layers = append(made.Layers, l)
		at[i] = len(made.Layers) - 1
	}
	made.Outputs = make([]int, len(n.Outputs))
	for k, i := range n.Outputs {
		made.Outputs[k] = at[i]
	}
	return &made, reports
}

// roundLayer makes a layer of integers of one with real weights, and what scales it.
func roundLayer(l bcnn.Layer, bits int) (bcnn.Layer, bcnn.Affine, RoundedLayer) {
	weights := slices.Clone(weightsOf(l.Op).F32)
	var scale bcnn.Affine
	var out int
	switch op := l.Op.(type) {
	case bcnn.Conv2D:
		out, scale.Bias = op.Out, op.Bias
	case bcnn.Dense:
		out, scale.Bias = op.Out, op.Bias
	}
	l.Source = nil
	report := RoundedLayer{Layer: l.Name, Bits: bits}
	for filter := range slices.Chunk(weights, len(weights)/out) {
		s, largest, weight, output := roundFilter(filter, bits)
		scale.Scale = append(scale.Scale, s)
		report.Weight, report.Output = max(report.Weight, weight), max(report.Output, output)
		if largest > 0 {
			for report.Bits > minFirstBits && largest < 1<<(report.Bits-2) {
				report.Bits--
			}
		}
	}
	integers := bcnn.Weights{F32: weights}
	if bits <= 8 { // a fourth of the bytes in a model file
		integers = bcnn.Weights{Int8: make([]int8, len(weights))}
		for i, w := range weights {
			integers.Int8[i] = int8(w)
		}
	}
	switch op := l.Op.(type) {
	case bcnn.Conv2D:
		op.Bias, op.Weights = nil, integers
		l.Op = op
	case bcnn.Dense:
		op.Bias, op.Weights = nil, integers
		l.Op = op
	}
	return l, scale, report
}

// mostParts is the largest weight of 16 bits that two parts of 8 bits make, 256·h + l.
const mostParts = 256*127 + 127

// roundFilter makes integers of the weights of a filter, the largest of which it returns,
// and tells their scale and what RoundedLayer does.
func roundFilter(w []float32, bits int) (scale float32, largest int, weight, output float64) {
	var most, sum float64
	for _, v := range w {
		most, sum = max(most, math.Abs(float64(v))), sum+math.Abs(float64(v))
	}
	if most == 0 {
		return 1, 0, 0, 0
	}
	real := slices.Clone(w)
	for largest = min(1<<(bits-1)-1, mostParts); ; largest-- {
		scale = max(float32(most/float64(largest)), math.SmallestNonzeroFloat32)
		var all int64
		for i, v := range real {
			q := math.RoundToEven(float64(v) / float64(scale))
			w[i] = float32(min(max(q, float64(-largest)), float64(largest)))
			all += int64(math.Abs(float64(w[i])))
		}
		if all <= math.MaxInt32/255 || largest == 1 { // more than so many taps have no sums of bytes
			break
		}
		largest = max(min(largest, int(float64(largest)*math.MaxInt32/255/float64(all))+1), 2)
	}
	var off float64
	for i, v := range real {
		d := math.Abs(float64(v) - float64(scale)*float64(w[i]))
		off, weight = off+d, max(weight, d/most)
	}
	return scale, largest, weight, off / sum
}
