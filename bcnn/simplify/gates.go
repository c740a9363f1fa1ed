package simplify

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

// longestGate is how many layers of one number each are looked through on a side.
const longestGate = 4

// nearRoot is how far the factor in front of an error function may be from √½.
const nearRoot = 1e-6

// gate is what a product is: after·f(before·x).
type gate struct {
	f             bcnn.FunctionName
	x             int // a layer of the new network
	before, after float64
}

// product is the layer at hand where it is the product of a value and a function of it:
// x·sigmoid(k·x), which is SiLU; x·(1 + erf(x/√2)), GELU; and x·tanh(softplus(x)), Mish.
// Factors may stand anywhere.
func (p *pass) product() value {
	l := p.from.Layers[p.at]
	a, b := p.value(l.Inputs[0]).layer, p.value(l.Inputs[1]).layer
	shape := p.shapes[p.at]
	if !p.on(Gates) || p.shape(a) != shape || p.shape(b) != shape {
		return p.copy()
	}
	g := p.gated(a, b)
	if g == nil {
		g = p.gated(b, a)
	}
	if g == nil {
		return p.copy()
	}
	if p.room -= 2; p.room < 0 {
		return p.copy()
	}
	p.found(Gates, "it is %s of what it is the product of", g.f)
	x := g.x
	if g.before != 1 {
		x = p.emit("/before", bcnn.Affine{Scale: []float32{float32(g.before)}}, shape, x)
	}
	if g.after == 1 {
		return p.same(p.emit("", bcnn.Function{Name: g.f}, shape, x))
	}
	x = p.emit("/"+string(g.f), bcnn.Function{Name: g.f}, shape, x)
	return p.same(p.emit("", bcnn.Affine{Scale: []float32{float32(g.after)}}, shape, x))
}

// gated returns what the product of the layers x and y is; nil if it is no gate.
func (p *pass) gated(x, y int) *gate {
	factor, shift, y := p.line(y)
	if y < 0 {
		return nil
	}
	f, ok := p.to.Layers[y].Op.(bcnn.Function)
	if !ok {
		return nil
	}
	of := p.to.Layers[y].Inputs[0]
	g := &gate{before: 1}
	wantShift := 0.0
	switch f.Name {
	case bcnn.Sigmoid:
		g.f = bcnn.SiLU
	case bcnn.Erf:
		g.f, wantShift = bcnn.GELU, factor
	case bcnn.Tanh:
		if of < 0 || p.to.Layers[of].Op != (bcnn.Function{Name: bcnn.Softplus}) {
			return nil
		}
		g.f, of = bcnn.Mish, p.to.Layers[of].Inputs[0]
	default:
		return nil
	}
	if shift != wantShift {
		return nil
	}
	// What the function is of, and x, are multiples of one layer.
	for range longestGate {
		if outer, ok := p.multiple(x, of); ok {
			g.x, g.after = of, outer*factor
			switch {
			case g.f == bcnn.SiLU && g.before != 0:
				g.after /= g.before
				return g
			case g.f == bcnn.Mish && g.before == 1:
				return g
			case g.f == bcnn.GELU && math.Abs(g.before-math.Sqrt2/2) < nearRoot:
				g.before, g.after = 1, 2*g.after
				return g
			}
		}
		by, ok := p.scale(of)
		if !ok {
			return nil
		}
		g.before, of = g.before*by, p.to.Layers[of].Inputs[0]
	}
	return nil
}

// line returns of which layer another one is factor·x + shift.
func (p *pass) line(layer int) (factor, shift float64, x int) {
	factor = 1
	for range longestGate {
		if layer < 0 {
			break
		}
		a, ok := p.to.Layers[layer].Op.(bcnn.Affine)
		if !ok || len(a.Scale) > 1 || len(a.Bias) > 1 {
			break
		}
		shift += factor * float64(one(a.Bias, 0))
		factor *= float64(one(a.Scale, 1))
		layer = p.to.Layers[layer].Inputs[0]
	}
	return factor, shift, layer
}

// multiple returns the number that a layer is another one times; ok is false where it is not.
func (p *pass) multiple(layer, of int) (factor float64, ok bool) {
	factor = 1
	for range longestGate {
		if layer == of {
			return factor, true
		}
		by, ok := p.scale(layer)
		if !ok {
			return 0, false
		}
		factor, layer = factor*by, p.to.Layers[layer].Inputs[0]
	}
	return 0, false
}

// scale returns the factor of a layer that does nothing but multiply by one number.
func (p *pass) scale(layer int) (factor float64, ok bool) {
	if layer < 0 {
		return 0, false
	}
	a, ok := p.to.Layers[layer].Op.(bcnn.Affine)
	if !ok || len(a.Scale) != 1 || len(a.Bias) > 0 {
		return 0, false
	}
	return float64(a.Scale[0]), true
}
