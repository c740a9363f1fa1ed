package simplify

import "github.com/bitcnn/bitcnn/bcnn"

// matMul is the layer at hand where it is a product of two matrices: of codes with factors it is
// that of the codes, with the product of the factors behind it.
func (p *pass) matMul() (value, error) {
	inputs := p.from.Layers[p.at].Inputs
	a, b := p.value(inputs[0]), p.value(inputs[1])
	if a.code == nil || b.code == nil || !p.on(Factors) {
		return p.copy(), nil
	}
	x, err := p.encoded(a.code)
	if x == nil || err != nil {
		return p.copy(), err
	}
	y, err := p.encoded(b.code)
	if y == nil || err != nil || x.offset != 0 || y.offset != 0 || x.layer == a.layer && y.layer == b.layer {
		return p.copy(), err
	}
	gain := float32(float64(x.gain) * float64(y.gain))
	if p.room--; p.room < 0 || gain == 0 {
		return p.copy(), nil
	}
	p.found(Factors, "it multiplies %v by %v", x, y)
	shape := p.shapes[p.at]
	if gain == 1 {
		return p.same(p.emit("", bcnn.MatMul{}, shape, x.layer, y.layer)), nil
	}
	sum := p.emit("/sum", bcnn.MatMul{}, shape, x.layer, y.layer)
	return p.same(p.emit("", bcnn.Affine{Scale: []float32{gain}}, shape, sum)), nil
}
