package plan

import "github.com/bitcnn/bitcnn/bcnn"

// LayerReport tells what became of a layer that multiplies: one with weights, or a product of two
// layers, which has none.
type LayerReport struct {
	Layer  string
	Kind   string // "conv2d", "dense" or "matmul"
	Output bcnn.Shape
	Params int64 // weights and biases
	// Step is the step of the plan that computes it, perhaps with other layers.
	Step int
	// Precision is that of its multiplications.
	Precision Precision
	// Bytes says that its sums are exact integers, made of products of bytes.
	Bytes bool
	// Planes is how many products of bits stand for each of its products: 1 where
	// inputs and weights are ±1, more for levels and integer weights.
	Planes int
	// FewZeros is how many weights are 0, if they are at most one in a hundred and all others
	// are ±w for one w, so that the layer would be of ±1 without them; else 0.
	FewZeros int
	// BytesFloat is what weights and bias take as float32, BytesPacked what they take in memory:
	// bits in words of 64 for each tap, bytes, or float32.
	BytesFloat, BytesPacked int64
	// MACs is the number of multiply-accumulates for one image, padded taps
	// included.
	MACs int64
	// WhyFloat says why the layer is computed in float32; empty if it is not.
	WhyFloat string
}

// Summarize reports on every Conv2D and Dense layer of a network and its plan,
// in order.
func Summarize(n *bcnn.Network, p *Plan) []LayerReport {
	var reports []LayerReport
	values := p.valueBits()
	for i, step := range p.Steps {
		if _, product := step.Op.(*MatMul); product {
			reports = append(reports, p.productReport(n, i))
			continue
		}
		conv, ok := step.Op.(*Conv)
		if !ok {
			continue
		}
		for _, l := range step.Layers {
			var w bcnn.Weights
			var bias []float32
			out := conv.Out // of several layers, where they are groups of a convolution
			switch op := n.Layers[l].Op.(type) {
			case bcnn.Conv2D:
				w, bias, out = op.Weights, op.Bias, op.Out
			case bcnn.Dense:
				w, bias = op.Weights, op.Bias
			default:
				continue
			}
			in, note := p.Tensors[step.In[0]], p.Note(i)
			r := LayerReport{
				Layer: n.Layers[l].Name, Kind: n.Layers[l].Op.Kind(), Step: i,
				Output:    conv.Window.Output(conv.Image(in.Shape), out),
				Params:    conv.Taps(in.Shape.C)/int64(note.channels())*int64(out) + int64(len(bias)),
				Precision: conv.precision(note, in, values[step.In[0]], w),
				Bytes:     in.DType == bcnn.Uint8,
				Planes:    note.products(conv),
				MACs:      p.MACs(i) / int64(conv.Out) * int64(out),
				WhyFloat:  note.WhyFloat,
			}
			r.FewZeros = fewZeros(w.Int8)
			r.BytesFloat = 4 * r.Params
			r.BytesPacked = 8*int64(len(w.Bits)) + int64(len(w.Int8)) + 4*int64(len(w.F32)) + 4*int64(len(bias))
			reports = append(reports, r)
		}
	}
	return reports
}

// fewZeros returns LayerReport.FewZeros of integer weights.
func fewZeros(weights []int8) int {
	zeros, one := 0, int8(0)
	for _, w := range weights {
		switch {
		case w == 0:
			zeros++
		case one == 0:
			one = w
		case w != one && w != -one:
			return 0
		}
	}
	if 100*zeros > len(weights) {
		return 0
	}
	return zeros
}

// productReport reports on step i, the product of two layers.
func (p *Plan) productReport(n *bcnn.Network, i int) LayerReport {
	step := p.Steps[i]
	r := LayerReport{
		Layer: step.Name, Kind: step.Kind(), Step: i, Output: p.Tensors[step.Out].Shape, Precision: Binary, Planes: 1, MACs: p.MACs(i),
	}
	if p.Tensors[step.In[0]].DType != bcnn.Bits {
		r.Precision, r.WhyFloat = Float, "not both of its inputs are signs"
	}
	for _, l := range step.Layers {
		if _, ok := n.Layers[l].Op.(bcnn.MatMul); ok {
			r.Layer = n.Layers[l].Name
		}
	}
	return r
}
