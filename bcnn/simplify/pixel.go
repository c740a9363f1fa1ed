package simplify

import "github.com/bitcnn/bitcnn/bcnn"

// pixelwise is a value times a number of each pixel, such as the mean magnitude that XNOR-Net
// multiplies signs by.
type pixelwise struct {
	of value // has codes
	by int   // a layer of the new network, of one channel
}

// ofPixels is the product at hand where the first factor has codes and the second is one number of
// each pixel, or of the image; nil where it is not.
func (p *pass) ofPixels() *pixelwise {
	inputs := p.from.Layers[p.at].Inputs
	of, by := p.value(inputs[0]), p.value(inputs[1]).layer
	if of.code == nil || p.shape(by).C != 1 || !p.on(Factors) {
		return nil
	}
	return &pixelwise{of: of, by: by}
}

// onPixels is the layer at hand where it reads codes times a number of each pixel, and nothing but
// one pixel for each of its own:
//
//	Σ w·(m·q) = m·Σ w·q
//
// It is nil where it is not, or where the codes give it no exact sums.
func (p *pass) onPixels(op bcnn.Weighted, in *pixelwise) (*value, error) {
	switch o := op.(type) {
	case bcnn.Conv2D:
		w := o.Window.Normal()
		if w.KH*w.KW != 1 || w.StrideH*w.StrideW != 1 || w.Pad != (bcnn.Padding{}) {
			return nil, nil
		}
	case bcnn.Dense:
		if p.shape(in.of.layer).Pixels() != 1 {
			return nil, nil
		}
	}
	if p.room -= 2; p.room < 0 {
		return nil, nil
	}
	l, w := p.weighted(op, in.of)
	bias := l.bias
	l.bias = nil
	before := len(p.findings)
	y, err := p.exactly(l, w, in.of)
	if err != nil {
		return nil, err
	}
	layer := 0
	switch {
	case y != nil:
		layer = y.layer
		p.made[layer].same = false
	case w.F32 == nil && in.of.code.plain():
		layer = p.emit("/sum", l.with(w, nil, 0, 0), l.out, in.of.code.layer)
	default:
		p.findings = p.findings[:before] // which are those of the layer as it is, too
		return nil, nil
	}
	p.found(Factors, "its input is %v times a number of each pixel", in.of.code.scaled)
	layer = p.emit("/pixels", bcnn.Mul{}, l.out, layer, in.by)
	if len(bias) > 0 {
		layer = p.emit("/bias", bcnn.Affine{Bias: bias}, l.out, layer)
	}
	return p.finished(layer, true, nil)
}
