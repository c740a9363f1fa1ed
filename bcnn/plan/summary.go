package plan

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// LayerReport tells what became of a layer that multiplies: one with weights, or a product of two
// layers, which has none.
type LayerReport struct {
	Layer  string
	Kind   string // "conv2d", "dense" or "matmul"
	Output bcnn.Shape
	Params int64 // weights and biases
	// Binary says that its sums are exact integers and its weights ±1, or integers from −8
	// to 8 of values of at most sixteen levels, or of an image.
	Binary bool
	// Int8 says that its sums are exact integers, made of products of bytes: of levels or
	// with 8-bit weights, or with weights of more bits, which Int16 says, too.
	Int8, Int16 bool
	// Planes is how many products of bits stand for each of its products: 1 where
	// inputs and weights are ±1, more for levels and integer weights.
	Planes int
	// FewZeros is how many weights are 0, if they are at most one in a hundred and all others
	// are ±w for one w, so that the layer would be of ±1 without them; else 0.
	FewZeros int
	// BytesFloat is what weights and bias take as float32, BytesStored what the
	// model file holds.
	BytesFloat, BytesStored int64
	// MACs is the number of multiply-accumulates for one image, padded taps
	// included.
	MACs int64
	// WhyFloat says why the layer is computed in float32; empty if Binary or Int8.
	WhyFloat string
}

// Summarize reports on every Conv2D and Dense layer of a network and its plan,
// in order.
func Summarize(n *bcnn.Network, p *Plan) []LayerReport {
	var reports []LayerReport
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
			in := p.Tensors[step.In[0]].Shape
			r := LayerReport{
				Layer: n.Layers[l].Name, Kind: n.Layers[l].Op.Kind(),
				Output:   conv.Window.Output(conv.Image(in), out),
				Params:   conv.Taps(in.C)/int64(max(conv.Parts, 1))*int64(out) + int64(len(bias)),
				Binary:   conv.WhyFloat == "",
				Int8:     conv.Integer() || step.In[0] >= len(p.Inputs) && p.Tensors[step.In[0]].DType == bcnn.Uint8,
				Int16:    conv.Int16 != nil,
				Planes:   conv.products(),
				MACs:     p.MACs(i) / int64(conv.Out) * int64(out),
				WhyFloat: conv.WhyFloat,
			}
			if conv.Integer() {
				r.Binary = conv.Int8 != nil && conv.fewBits() && p.fewLevels(step.In[0])
			}
			r.FewZeros = fewZeros(w.Int8)
			r.BytesFloat = 4 * r.Params
			r.BytesStored = 8*int64(len(w.Bits)) + int64(len(w.Int8)) + 4*int64(len(w.F32)) + 4*int64(len(bias))
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

// fewLevels reports whether the bytes of a tensor are an image, or have no more values
// than planes hold.
func (p *Plan) fewLevels(t int) bool {
	for t >= len(p.Inputs) {
		s := p.Steps[t-len(p.Inputs)]
		if q, ok := s.Op.(*Quantize); ok {
			return q.Levels <= 1<<MaxPlanes
		}
		t = s.In[0]
	}
	return true
}

// fewBits reports whether weights of 8 bits are numbers that as many bits as planes hold,
// of either sign.
func (c *Conv) fewBits() bool {
	const most = 1 << (MaxPlanes - 1)
	return !slices.ContainsFunc(c.Int8, func(w int8) bool { return w < -most || w > most })
}

// productReport reports on step i, the product of two layers.
func (p *Plan) productReport(n *bcnn.Network, i int) LayerReport {
	step := p.Steps[i]
	r := LayerReport{
		Layer: step.Name, Kind: step.Kind(), Output: p.Tensors[step.Out].Shape, Planes: 1, MACs: p.MACs(i),
		Binary: p.Tensors[step.In[0]].DType == bcnn.Bits,
	}
	for _, l := range step.Layers {
		if _, ok := n.Layers[l].Op.(bcnn.MatMul); ok {
			r.Layer = n.Layers[l].Name
		}
	}
	if !r.Binary {
		r.WhyFloat = "not both of its inputs are signs"
	}
	return r
}
