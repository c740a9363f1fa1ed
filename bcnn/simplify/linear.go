package simplify

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
)

// layer is a convolution or a dense layer, and what it reads.
type layer struct {
	op   bcnn.Weighted
	rows weights.Rows
	bias []float32
	in   bcnn.Shape
	out  bcnn.Shape
	// padded says that it reads values around its input, which are fill.
	padded bool
	fill   float32
}

// with returns the operation with other weights, of so many filters more.
func (l *layer) with(w bcnn.Weights, bias []float32, padValue, more int) bcnn.Op {
	out, _, _ := l.op.Filters()
	op := l.op.With(out+more, w, bias)
	if conv, ok := op.(bcnn.Conv2D); ok {
		conv.PadValue = padValue
		return conv
	}
	return op
}

// groups is how many groups of channels the layer has.
func (l *layer) groups() int {
	if conv, ok := l.op.(bcnn.Conv2D); ok {
		return max(conv.Groups, 1)
	}
	return 1
}

// linear is the layer at hand where it is a convolution or a dense layer. The first of these
// that can takes it: a layer for each part of the input, integers with factors behind them, or
// the layer as it is.
func (p *pass) linear(op bcnn.Weighted) (value, error) {
	in := p.input()
	if in.pixels != nil {
		y, err := p.onPixels(op, in.pixels)
		if err != nil {
			return value{}, err
		}
		if y != nil {
			return *y, nil
		}
	}
	l, w := p.weighted(op, in)
	if b, ok := p.bordered(in); ok {
		y, err := p.padded(op, w, b)
		if err != nil {
			return value{}, err
		}
		if y != nil {
			return *y, nil
		}
	}
	y, err := p.exactly(l, w, in)
	if err != nil {
		return value{}, err
	}
	if y == nil {
		return p.copy(), nil
	}
	return *y, nil
}

// weighted returns a layer with weights on a value, whose weights it does not unpack.
func (p *pass) weighted(op bcnn.Weighted, in value) (*layer, bcnn.Weights) {
	out, w, bias := op.Filters()
	l := &layer{op: op, bias: bias, in: p.shape(in.layer), out: p.shapes[p.at]}
	l.rows = weights.Rows{Values: w.F32, Out: out, RowLen: l.in.Values()}
	if conv, ok := op.(bcnn.Conv2D); ok {
		l.rows.RowLen = l.in.C / l.groups()
		l.padded, l.fill = conv.Pad != bcnn.Padding{}, float32(conv.PadValue)
	}
	return l, w
}

// exactly returns the layer at hand with exact sums of integers; nil where it has none, or is
// as it shall be.
func (p *pass) exactly(l *layer, w bcnn.Weights, in value) (*value, error) {
	real := w.F32 != nil
	switch {
	case real && !p.on(Weights):
		return nil, nil
	case in.code != nil:
		c, err := p.encoded(in.code)
		if c == nil || err != nil {
			return nil, err
		}
		if !p.on(Factors) && !c.plain() || !real && c.plain() && c.layer == in.layer && l.fillsAsGiven() {
			return nil, nil
		}
		if err := p.unpack(l, w); err != nil {
			return nil, err
		}
		y, err := p.finished(p.coded(l, *c))
		if y == nil && err == nil && in.sum != nil {
			return p.onParts(l, w, in)
		}
		return y, err
	case in.sum != nil || in.joined != nil:
		y, err := p.onParts(l, w, in)
		if y != nil || err != nil {
			return y, err
		}
	}
	return p.onNumbers(l, in, real)
}

// onParts returns the layer at hand on codes of several scales; nil where it has no exact sums.
func (p *pass) onParts(l *layer, w bcnn.Weights, in value) (*value, error) {
	if !p.on(Parts) || !p.on(Factors) {
		return nil, nil
	}
	if err := p.unpack(l, w); err != nil {
		return nil, err
	}
	return p.finished(p.parted(l, in))
}

// onNumbers returns the layer at hand with weights of ±α on values of which no codes are known,
// or of multiples of α where it reads an image or the file quantises them; nil for other weights.
func (p *pass) onNumbers(l *layer, in value, real bool) (*value, error) {
	if !real || l.padded && l.fill != 0 {
		return nil, nil
	}
	// Of numbers, as which bits are computed with, they are only smaller.
	integers := p.image(in.layer) || p.opts.Quantised != nil && p.opts.Quantised(p.at)
	if of, err := p.sets.Of(in.layer); err != nil || !integers && !of.Only && 8*bits.Words(l.rows.RowLen) >= 4*l.rows.RowLen {
		return nil, err
	}
	return p.finished(p.uncoded(l, in.layer, integers))
}

// image reports whether a layer of the new network gives the bytes of an input, perhaps scaled.
func (p *pass) image(layer int) bool {
	if layer <= bcnn.NetworkInput {
		return p.to.Inputs[bcnn.NetworkInput-layer].DType == bcnn.Uint8
	}
	return p.made[layer].image
}

// scales reports whether an operation scales each channel of an image.
func scales(op bcnn.Op) bool {
	switch op.(type) {
	case bcnn.Affine, bcnn.BatchNorm:
		return true
	}
	return false
}

// fillsAsGiven reports whether the padding of the layer is that of the operation.
func (l *layer) fillsAsGiven() bool {
	conv, ok := l.op.(bcnn.Conv2D)
	return !ok || !l.padded || l.fill == float32(conv.PadValue)
}

// finished makes a value of the last layer of several; there is none where ok is false.
func (p *pass) finished(y int, ok bool, err error) (*value, error) {
	if !ok || err != nil {
		return nil, err
	}
	v := p.same(y)
	return &v, nil
}

// unpack makes real numbers of weights.
func (p *pass) unpack(l *layer, w bcnn.Weights) error {
	if w.F32 != nil {
		return nil
	}
	n := len(w.Int8)
	if w.Bits != nil {
		n = len(w.Bits) / bits.Words(l.rows.RowLen) * l.rows.RowLen
	}
	values, err := p.floats(n)
	if err != nil {
		return err
	}
	l.rows.Values = values
	if w.Bits != nil {
		bits.Unpack(values, w.Bits, l.rows.RowLen)
	}
	for k, x := range w.Int8 {
		values[k] = float32(x)
	}
	return nil
}

// within is the tolerance for the weights of the layer at hand.
func (p *pass) within() weights.Tolerance {
	t := weights.Tolerance{Relative: p.opts.WeightTolerance}
	if p.opts.Rounding != nil {
		t.Rounding = p.opts.Rounding(p.at)
	}
	return t
}

// deviates notes weights that are not just what they are taken for, or nearly that.
func (p *pass) deviates(deviation float64, taken bool, format string, args ...any) {
	f := p.found(Weights, format, args...)
	f.Deviation, f.Nearly = deviation, !taken
}

// uncoded emits a layer with weights of ±α, or of multiples of α where integers are of use, on
// values of which no codes are known; ok is false for other weights.
func (p *pass) uncoded(l *layer, in int, integers bool) (y int, ok bool, err error) {
	form, deviation, err := weights.Find(p.budget, l.rows, integers, false, p.within())
	if err != nil {
		return 0, false, err
	}
	if form == nil {
		if deviation > 0 {
			p.deviates(deviation, false, "its weights are nearly ±α, or multiples of it")
		}
		return 0, false, nil
	}
	if p.room--; p.room < 0 {
		return 0, false, nil
	}
	p.deviates(deviation, true, "its weights are %v", form)
	return p.factored(l, scaled{layer: in, gain: 1}, form, 0), true, nil
}

// coded emits a layer on codes; ok is false where its weights or its padding are nothing that
// integers can be.
func (p *pass) coded(l *layer, c scaled) (y int, ok bool, err error) {
	if p.room -= mostLayers; p.room < 0 {
		return 0, false, nil
	}
	form, deviation, err := weights.Find(p.budget, l.rows, true, c.signs, p.within())
	if err != nil {
		return 0, false, err
	}
	around, inside := l.around(c)
	zeros := !l.padded || l.fill == 0
	var two *weights.Two
	if zeros && (form == nil || form.Bits == nil) {
		if two, err = weights.TwoValues(p.budget, l.rows, p.within()); err != nil {
			return 0, false, err
		}
	}
	switch {
	case two != nil && (form == nil || (form.Products()-1)*l.rows.Size() >= manyTaps):
		if y, ok, err = p.shifted(l, c, nil, two); ok || err != nil {
			p.deviates(two.Deviation, true, "its weights have two values in each filter, its input is %v", c)
			return y, ok, err
		}
	case form != nil && inside:
		p.deviates(deviation, true, "its weights are %v, its input is %v", form, c)
		return p.factored(l, c, form, around), true, nil
	case form != nil && zeros:
		y, ok, err = p.shifted(l, c, form, nil)
		if ok {
			p.deviates(deviation, true, "its weights are %v, its input is %v with zeros around", form, c)
		}
		return y, ok, err
	}
	if form != nil {
		return 0, false, nil
	}
	if y, ok, err = p.based(l, c); ok || err != nil {
		return y, ok, err
	}
	if deviation > 0 {
		p.deviates(deviation, false, "its weights are nearly multiples of one α for each filter")
	}
	return 0, false, nil
}

// manyTaps is how many products of bits a filter must save for the layers to pay that add what two
// values of weights have in common: one product takes a 512th of a vector's work, and they
// walk over the sums five times.
const manyTaps = 512

// mostLayers is how many layers one of them becomes at the most, but for parts and bases.
const mostLayers = 12

// around returns which code stands for the padding of a layer; ok is false where none does: of
// ±1 it may be 0, too, of levels it must be.
func (l *layer) around(c scaled) (code float32, ok bool) {
	if !l.padded {
		return 0, true
	}
	code = (l.fill - c.offset) / c.gain
	return code, code == 0 || c.signs && (code == 1 || code == -1)
}

// factored emits a layer with weights of ±1 or integers on codes, around which is one of them,
// and what makes of its sums those of the values and the weights.
func (p *pass) factored(l *layer, c scaled, form *weights.Form, around float32) int {
	w := bcnn.Weights{Bits: form.Bits, Int8: form.Int8}
	if form.One() && c.plain() {
		return p.emit("/sum", l.with(w, l.bias, int(around), 0), l.out, c.layer)
	}
	y := p.emit("/sum", l.with(w, nil, int(around), 0), l.out, c.layer)
	alpha, gain := common(form.Alpha), c.gain
	if c.offset != 0 {
		// Integers are added before the gain where they are some: a sum of zeros stays 0.
		if sums, integers := l.sums(form, float64(c.offset)/float64(c.gain)); integers {
			y = p.emit("/values", bcnn.Affine{Bias: sums}, l.out, y)
		} else {
			sums, _ = l.sums(form, float64(c.offset))
			y = p.emit("/values", bcnn.Affine{Scale: []float32{gain}, Bias: sums}, l.out, y)
			gain = 1
		}
	}
	switch {
	case form.One() && gain == 1 && len(l.bias) == 0:
		return y
	case form.One():
		alpha = []float32{gain}
	case gain != 1:
		y = p.emit("/gain", bcnn.Affine{Scale: []float32{gain}}, l.out, y)
	}
	return p.emit("/scale", bcnn.Affine{Scale: alpha, Bias: l.bias}, l.out, y)
}

// common returns a list of equal numbers as one.
func common(list []float32) []float32 {
	for _, x := range list {
		if x != list[0] {
			return list
		}
	}
	return list[:1]
}
