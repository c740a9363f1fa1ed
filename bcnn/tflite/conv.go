package tflite

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/multiples"
)

// conv is CONV_2D: filters [out][kh][kw][channels of a group].
func (im *importer) conv(o *schema.Operator) (*value, error) {
	v, err := im.weighable(o, 0)
	if err != nil {
		return nil, err
	}
	filter, err := im.filter(o)
	if err != nil {
		return nil, err
	}
	d := filter.dims
	groups := v.shape.C / d[3]
	if groups == 0 || v.shape.C%d[3] != 0 || d[0]%groups != 0 {
		return nil, fmt.Errorf("filters %v do not fit %d channels", d, v.shape.C)
	}
	g := windowed(o)
	g.kh, g.kw = d[1], d[2]
	g.dw, g.dh = int(o.Options.Int32(4, 1)), int(o.Options.Int32(5, 1))
	act := int(o.Options.Uint8(3, 0))
	if v.typ == schema.Int8 {
		return im.conv8(o, v, filter, g, act)
	}
	rows, err := filter.weights(im.budget)
	if err != nil {
		return nil, err
	}
	y, err := im.convolution(o, v, g, rows, d[0], d[3], groups)
	if err != nil {
		return nil, err
	}
	return im.activation(o, y, act)
}

// depthwise is DEPTHWISE_CONV_2D: filters [1][kh][kw][out].
func (im *importer) depthwise(o *schema.Operator) (*value, error) {
	v, err := im.weighable(o, 0)
	if err != nil {
		return nil, err
	}
	filter, err := im.filter(o)
	if err != nil {
		return nil, err
	}
	d := filter.dims
	if d[0] != 1 || d[3]%v.shape.C != 0 {
		return nil, fmt.Errorf("filters %v do not fit %d channels", d, v.shape.C)
	}
	g := windowed(o)
	g.kh, g.kw = d[1], d[2]
	g.dw, g.dh = int(o.Options.Int32(5, 1)), int(o.Options.Int32(6, 1))
	act := int(o.Options.Uint8(4, 0))
	if v.typ == schema.Int8 {
		return im.depthwise8(o, v, filter, g, act)
	}
	taps, err := filter.weights(im.budget)
	if err != nil {
		return nil, err
	}
	rows, err := channelsFirst(im.budget, taps, d[3])
	if err != nil {
		return nil, err
	}
	y, err := im.convolution(o, v, g, rows, d[3], 1, v.shape.C)
	if err != nil {
		return nil, err
	}
	return im.activation(o, y, act)
}

// channelsFirst returns taps [taps][channels] as [channels][taps].
func channelsFirst[T any](b *budget.Budget, taps []T, channels int) ([]T, error) {
	if err := b.Charge(8 * int64(len(taps))); err != nil {
		return nil, err
	}
	rows, size := make([]T, len(taps)), len(taps)/channels
	err := b.Loop(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			rows[i] = taps[i%size*channels+i/size]
		}
	})
	return rows, err
}

// filter returns the filters of a convolution, which have four dimensions.
func (im *importer) filter(o *schema.Operator) (*constant, error) {
	c, err := im.required(o, 1)
	if err == nil && len(c.dims) != 4 {
		err = fmt.Errorf("its filters have %d dimensions, want 4", len(c.dims))
	}
	return c, err
}

// weighable returns an input of a layer with weights: numbers, of which a factor may be
// pending, or 8-bit values, around which padding may be pending.
func (im *importer) weighable(o *schema.Operator, i int) (*value, error) {
	r, err := im.operand(o, i)
	v, err := checked(r, i, err)
	if err == nil && v.stairs != nil {
		v, err = im.settle(v)
	}
	if err == nil && v.typ != schema.Int8 {
		err = v.checkReal()
	}
	return v, err
}

// bias returns the biases of a layer, which are input i, nil if it has none.
func (im *importer) bias(o *schema.Operator, i, out int) ([]float32, error) {
	if !has(o, i) {
		return nil, nil
	}
	bias, err := im.floats(o, i)
	if err == nil && len(bias) != out {
		err = fmt.Errorf("%d biases for %d channels", len(bias), out)
	}
	return bias, err
}

// convolution emits a convolution with weights [out][kh][kw][rowLen].
func (im *importer) convolution(o *schema.Operator, v *value, g geometry, rows []float32, out, rowLen, groups int) (*value, error) {
	window, shape, err := g.window(v)
	if err != nil {
		return nil, err
	}
	shape.C = out
	bias, err := im.bias(o, 2, out)
	if err != nil {
		return nil, err
	}
	return im.weighted(o, v, rows, bias, out, rowLen, shape, func(w bcnn.Weights, bias []float32) bcnn.Op {
		return bcnn.Conv2D{Window: window, Out: out, Groups: groups, Weights: w, Bias: bias}
	})
}

// dense is FULLY_CONNECTED: weights [out][in].
func (im *importer) dense(o *schema.Operator) (*value, error) {
	v, err := im.weighable(o, 0)
	if err == nil {
		err = v.checkSettled()
	}
	if err != nil {
		return nil, err
	}
	c, err := im.required(o, 1)
	if err != nil {
		return nil, err
	}
	if len(c.dims) != 2 {
		return nil, fmt.Errorf("its weights have %d dimensions, want 2", len(c.dims))
	}
	if format := o.Options.Uint8(1, 0); format != 0 {
		return nil, fmt.Errorf("the format %d of its weights is not supported", format)
	}
	out, size := c.dims[0], c.dims[1]
	shape := bcnn.Shape{H: 1, W: 1, C: out}
	layer := func(w bcnn.Weights, bias []float32) bcnn.Op { return bcnn.Dense{Out: out, Weights: w, Bias: bias} }
	keep := o.Options.Uint8(2, 0) != 0
	switch {
	case keep && v.shape.C == size: // for each pixel
		shape.H, shape.W = v.shape.H, v.shape.W
		layer = func(w bcnn.Weights, bias []float32) bcnn.Op {
			return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: out, Weights: w, Bias: bias}
		}
	case v.shape.Values() != size:
		return nil, fmt.Errorf("weights %v do not fit %d values", c.dims, v.shape.Values())
	}
	act := int(o.Options.Uint8(0, 0))
	if v.typ == schema.Int8 {
		return im.dense8(o, v, c, shape, act, layer)
	}
	rows, err := c.weights(im.budget)
	if err != nil {
		return nil, err
	}
	bias, err := im.bias(o, 2, out)
	if err != nil {
		return nil, err
	}
	y, err := im.weighted(o, v, rows, bias, out, size, shape, layer)
	if err != nil {
		return nil, err
	}
	return im.activation(o, y, act)
}

// weighted emits a layer with weights [out][…][rowLen].
func (im *importer) weighted(o *schema.Operator, v *value, rows, bias []float32, out, rowLen int, shape bcnn.Shape,
	build func(w bcnn.Weights, bias []float32) bcnn.Op) (*value, error) {
	if v.parts != nil {
		if y, err := im.apart(o, v, rows, bias, out, rowLen, shape, build); y != nil || err != nil {
			return y, err
		}
		var err error
		if v, err = im.settle(v); err != nil {
			return nil, err
		}
	}
	m, err := im.multiplesOf(v, rows, out)
	if err != nil {
		return nil, err
	}
	im.nearly(o, m.deviation)
	return im.layer(o, v, rows, m, bias, rowLen, shape, build)
}

// multiple are weights that are multiples of one α > 0 per filter.
type multiple struct {
	alpha     []float32 // nil for other weights
	one       bool      // all α are 1
	integers  []int8    // nil where all weights are ±α
	deviation float64   // of weights from them, relative to α
}

// multiplesOf returns weights that are ±α, or where the input is signs or levels multiples
// of α.
func (im *importer) multiplesOf(v *value, rows []float32, out int) (m multiple, err error) {
	if m.alpha, m.one, err = im.factors(rows, out); err != nil || m.alpha != nil || !v.signs && !v.levels {
		return m, err
	}
	m.integers, m.alpha, m.deviation, err = multiples.Find(im.budget, rows, out, v.signs, 0, multiples.OfFloat32)
	if m.integers == nil {
		return multiple{}, err
	}
	m.one = !slices.ContainsFunc(m.alpha, func(a float32) bool { return a != 1 })
	return m, err
}

// nearly reports weights that are taken for multiples that roundings have moved.
func (im *importer) nearly(o *schema.Operator, deviation float64) {
	if deviation > 0 {
		im.deviates(o, "its weights differ from multiples of α by up to %.2g of α, and are taken as such", deviation)
	}
}

// layer emits a layer with weights [out][…][rowLen]. Weights ±α become ±1 and an Affine
// layer behind where the input is ±1 or levels, and so do multiples of α; elsewhere only
// weights ±1 do, which makes them small and changes nothing.
func (im *importer) layer(o *schema.Operator, v *value, rows []float32, m multiple, bias []float32, rowLen int, shape bcnn.Shape,
	build func(w bcnn.Weights, bias []float32) bcnn.Op) (y *value, err error) {
	coded := v.signs || v.levels
	if m.alpha == nil || !coded && (!m.one || 8*bits.Words(rowLen) >= 4*rowLen) {
		if v, err = im.settle(v); err != nil {
			return nil, err
		}
		return floats(im.emit(o, "", build(bcnn.Weights{F32: rows}, bias), shape, v))
	}
	w := bcnn.Weights{Int8: m.integers}
	if m.integers == nil {
		if w.Bits, err = im.pack(rows, rowLen); err != nil {
			return nil, err
		}
	}
	if m.one && v.gain == 0 {
		return floats(im.emit(o, "", build(w, bias), shape, v))
	}
	if v.gain != 0 {
		for c := range m.alpha {
			m.alpha[c] *= v.gain
		}
	}
	if y, err = im.emit(o, "/sum", build(w, nil), shape, v); err != nil {
		return nil, err
	}
	return floats(im.affine(o, "", y, m.alpha, bias))
}

// factors returns the α of weights that are ±α for one α > 0 per filter, or nil if they
// are not; one says that all α are 1.
func (im *importer) factors(rows []float32, out int) (alpha []float32, one bool, err error) {
	if alpha, err = im.numbers(out); err != nil {
		return nil, false, err
	}
	size := len(rows) / out
	one = true
	for c := range alpha {
		row := rows[c*size:][:size]
		alpha[c] = max(row[0], -row[0])
		if !(alpha[c] > 0) {
			return nil, false, nil
		}
		one = one && alpha[c] == 1
		same := true
		err := im.budget.Loop(size, func(lo, hi int) {
			for _, w := range row[lo:hi] {
				same = same && (w == alpha[c] || w == -alpha[c])
			}
		})
		if err != nil || !same {
			return nil, false, err
		}
	}
	return alpha, one, nil
}

// pack packs the signs of rows.
func (im *importer) pack(rows []float32, rowLen int) ([]uint64, error) {
	words, n := bits.Words(rowLen), len(rows)/rowLen
	if err := im.budget.Charge(8 * int64(n) * int64(words)); err != nil {
		return nil, err
	}
	packed := make([]uint64, n*words)
	for r := range n {
		to, from := packed[r*words:][:words], rows[r*rowLen:][:rowLen]
		err := im.budget.Loop(rowLen, func(lo, hi int) { // lo is a multiple of a word
			bits.Pack(to[lo/bits.WordBits:][:bits.Words(hi-lo)], from[lo:hi], hi-lo)
		})
		if err != nil {
			return nil, err
		}
	}
	return packed, nil
}
