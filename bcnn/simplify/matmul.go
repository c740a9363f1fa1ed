package simplify

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
)

// matMul is the layer at hand where it is a product of two matrices: of codes with factors it is
// that of the codes, with the product of the factors behind it. Values 0 and g of ±1, as of
// attention that is binarised, are g/2·(q ± 1), and
//
//	Σ (q + r)·(t + s) = Σ q·t + r·Σ t + s·Σ q + K·r·s
//
// with K values of a row, in exact integers.
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
	if y == nil || err != nil || x.layer == a.layer && y.layer == b.layer {
		return p.copy(), err
	}
	return p.matMulOfCodes(*x, *y)
}

// matMulOfCodes is the layer at hand where it is a product of codes with factors.
func (p *pass) matMulOfCodes(x, y scaled) (value, error) {
	r, xOK := x.unitShift()
	s, yOK := y.unitShift()
	gain := float64(float32(float64(x.gain) * float64(y.gain)))
	constant := gain * float64(p.shape(x.layer).C) * r * s
	if !xOK || !yOK || (r != 0 || s != 0) && !(x.signs && y.signs) || gain == 0 || constant-constant != 0 {
		return p.copy(), nil
	}
	if p.room -= 1 + int(5*math.Abs(r)+4*math.Abs(s)); p.room < 0 { // layers
		return p.copy(), nil
	}
	p.found(Factors, "it multiplies %v by %v", x, y)
	if gain == 1 && r == 0 && s == 0 {
		return p.same(p.emit("", bcnn.MatMul{}, p.shapes[p.at], x.layer, y.layer)), nil
	}
	return p.productOfCodes(x.layer, y.layer, r, s, float32(gain), float32(constant))
}

// productOfCodes returns gain·(Σ q·t + r·Σ t + s·Σ q) + constant of the ±1 q and t that two layers
// give; r and s are −1, 0 or 1.
func (p *pass) productOfCodes(q, t int, r, s float64, gain, constant float32) (value, error) {
	shape := p.shapes[p.at]
	sum := p.emit("/sum", bcnn.MatMul{}, shape, q, t)
	if r != 0 {
		totals, err := p.rowTotals("/columns", t)
		if err != nil {
			return value{}, err
		}
		totals = p.emit("/columns/turned", bcnn.Transpose{}, bcnn.Shape{H: shape.H, W: 1, C: shape.C}, totals)
		rows := make([]int32, shape.H)
		for i := range rows {
			rows[i] = int32(i)
		}
		totals = p.emit("/columns/repeated", bcnn.Pixels{Rows: rows, Cols: make([]int32, shape.W)}, shape, totals)
		sum = p.plus("/columns", sum, totals, r)
	}
	if s != 0 {
		totals, err := p.rowTotals("/rows", q)
		if err != nil {
			return value{}, err
		}
		totals = p.emit("/rows/repeated", bcnn.Channels{Index: make([]int32, shape.C)}, shape, totals)
		sum = p.plus("/rows", sum, totals, s)
	}
	scale := bcnn.Affine{Scale: []float32{gain}}
	if constant != 0 {
		scale.Bias = []float32{constant}
	}
	return p.same(p.emit("", scale, shape, sum)), nil
}

// unitShift returns offset/gain if it is −1, 0 or 1.
func (s scaled) unitShift() (shift float64, ok bool) {
	switch s.offset {
	case 0:
		return 0, true
	case s.gain:
		return 1, true
	case -s.gain:
		return -1, true
	}
	return 0, false
}

// rowTotals sums the channels of each pixel of ±1.
func (p *pass) rowTotals(suffix string, layer int) (int, error) {
	in := p.shape(layer)
	shape := p.shapes[p.at]
	if err := p.budget.Charge(4 * int64(shape.H+shape.W+shape.C)); err != nil { // of what repeats them
		return 0, err
	}
	ones, err := p.floats(in.C)
	if err != nil {
		return 0, err
	}
	for i := range ones {
		ones[i] = 1
	}
	packed, err := weights.Pack(p.budget, weights.Rows{Values: ones, Out: 1, RowLen: in.C})
	if err != nil {
		return 0, err
	}
	sum := bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{Bits: packed}}
	in.C = 1
	return p.emit(suffix+"/totals", sum, in, layer), nil
}

// plus adds sign times another layer to a layer.
func (p *pass) plus(suffix string, layer, other int, sign float64) int {
	shape := p.shape(layer)
	if sign < 0 {
		other = p.emit(suffix+"/negative", bcnn.Affine{Scale: []float32{-1}}, shape, other)
	}
	return p.emit(suffix+"/added", bcnn.Add{}, shape, layer, other)
}
