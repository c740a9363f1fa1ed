package simplify

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// move is the layer at hand where it only moves values: what moves values moves codes.
func (p *pass) move(op bcnn.Op) (value, error) {
	if !p.on(Move) {
		return p.copy(), nil
	}
	inputs := p.from.Layers[p.at].Inputs
	in := make([]value, len(inputs))
	for k, layer := range inputs {
		in[k] = p.value(layer)
	}
	if err := p.budget.Charge(64 * int64(len(in))); err != nil {
		return value{}, err
	}
	c, err := p.alike(in)
	if err != nil {
		return value{}, err
	}
	if c != nil {
		if c = p.movedCode(op, c, in); c != nil {
			return p.valued(c), nil
		}
	}
	out := p.copy()
	switch op := op.(type) {
	case bcnn.Concat:
		out.joined = joined(in)
	case bcnn.Pixels:
		out.of = &in[0]
	case bcnn.MaxPool:
		out.joined = p.pooledParts(op, in[0].joined)
	case bcnn.Flatten:
		if p.shape(in[0].layer).Pixels() == 1 { // which it leaves as they are
			out.sum, out.joined = in[0].sum, in[0].joined
		}
	}
	return out, nil
}

// alike returns codes that all inputs have, whose values are the same; nil where they do not.
func (p *pass) alike(in []value) (*code, error) {
	var out *code
	for _, v := range in {
		switch {
		case v.code == nil:
			return nil, nil
		case out == nil:
			out = v.code
		case v.code.step != out.step:
			return nil, nil
		case v.code.low == out.low && slices.Equal(v.code.values, out.values):
		case !v.code.affine || !out.affine || v.code.gain != out.gain || v.code.offset != out.offset || out.signs:
			return nil, nil
		default:
			if err := p.budget.Charge(4 * int64(len(out.values)+len(v.code.values))); err != nil {
				return nil, err
			}
			out = out.with(v.code)
		}
	}
	return out, nil
}

// with returns codes that are those of both, which have the same gain and offset; nil where
// they are too many.
func (c *code) with(d *code) *code {
	out := *c
	out.low = min(c.low, d.low)
	n := max(c.low+len(c.values), d.low+len(d.values)) - out.low
	if n > bcnn.MaxLevels {
		return nil
	}
	out.values = make([]float32, n)
	for k := range out.values {
		out.values[k] = f32.FMA(float32(out.low+k), c.gain, c.offset)
	}
	copy(out.values[c.low-out.low:], c.values)
	copy(out.values[d.low-out.low:], d.values)
	return &out
}

// movedCode returns the codes that an operation moves; nil where what it fills in is none of
// them, or its order is another.
func (p *pass) movedCode(op bcnn.Op, c *code, in []value) *code {
	switch o := op.(type) {
	case bcnn.MaxPool:
		if !slices.IsSorted(c.values) {
			return nil
		}
	case bcnn.Channels:
		if slices.Contains(o.Index, -1) && !c.zero() {
			return nil
		}
	case bcnn.Pixels:
		if slices.Contains(o.Rows, -1) || slices.Contains(o.Cols, -1) {
			k := slices.Index(c.values, o.Fill)
			if k < 0 {
				return nil
			}
			o.Fill = float32(c.low + k*c.step)
			op = o
		}
	}
	if p.room--; p.room < 0 {
		return nil
	}
	layers := make([]int, len(in))
	for k, v := range in {
		layers[k] = v.code.layer
	}
	return c.moved(p.emit("/codes", op, p.shapes[p.at], layers...))
}

// zero reports whether 0 is a code, and stands for 0.
func (c *code) zero() bool {
	return c.step == 1 && c.low <= 0 && c.low+len(c.values) > 0 && c.values[-c.low] == 0
}

// mostParts is how many parts a layer is taken apart into.
const mostParts = 16

// joined returns the codes of values that are joined; nil where one of them has none, or they
// are too many.
func joined(in []value) []scaled {
	var out []scaled
	for _, v := range in {
		switch {
		case v.code != nil && v.code.affine:
			out = append(out, v.code.scaled)
		case v.joined != nil:
			out = append(out, v.joined...)
		default:
			return nil
		}
	}
	if len(out) > mostParts {
		return nil
	}
	return out
}

// pooledParts returns parts behind a max-pool.
func (p *pass) pooledParts(op bcnn.MaxPool, parts []scaled) []scaled {
	out := slices.Clone(parts)
	if p.room -= len(parts); p.room < 0 {
		return nil
	}
	for i, s := range parts {
		if s.gain < 0 {
			return nil
		}
		shape := p.shapes[p.at]
		shape.C = p.shape(s.layer).C
		out[i].layer = p.emit("/part", op, shape, s.layer)
	}
	return out
}

// sum is a sum of codes.
type sum struct {
	terms []scaled
	// again says that codes were added more than once, whose gains were collected: as
	// functions of one number that are written as sums of steps have it.
	again bool
}

// add is the layer at hand where it is an Add: the sum of what its inputs are sums of.
func (p *pass) add() (value, error) {
	inputs := p.from.Layers[p.at].Inputs
	a, b := p.value(inputs[0]), p.value(inputs[1])
	terms := collected(a.terms(), b.terms())
	if terms == nil {
		for _, v := range [][2]value{{a, b}, {b, a}} {
			if out, ok, err := p.addedToParts(v[0].layer, v[1].layer); ok || err != nil {
				return out, err
			}
		}
	}
	out := p.copy()
	out.sum = terms
	return out, p.budget.Charge(64 * mostParts)
}

// terms returns what a value is a sum of, nil where it is not known.
func (v value) terms() *sum {
	if v.code != nil && v.code.affine {
		return &sum{terms: []scaled{v.code.scaled}}
	}
	return v.sum
}

// collected returns the sum of two, in which each code is one term. It is nil where one of them
// is, and where nothing is left, or too much.
func collected(left, right *sum) *sum {
	if left == nil || right == nil {
		return nil
	}
	out := &sum{again: left.again || right.again}
	offset := 0.0
	for _, t := range slices.Concat(left.terms, right.terms) {
		offset += float64(t.offset)
		t.offset = 0
		if k := slices.IndexFunc(out.terms, func(s scaled) bool { return s.layer == t.layer }); k >= 0 {
			out.terms[k].gain = float32(float64(out.terms[k].gain) + float64(t.gain))
			out.again = true
		} else {
			out.terms = append(out.terms, t)
		}
	}
	out.terms = slices.DeleteFunc(out.terms, func(s scaled) bool { return s.gain == 0 })
	if len(out.terms) == 0 || len(out.terms) > mostParts {
		return nil
	}
	out.terms[0].offset = float32(offset)
	return out
}

// exact reports whether float32 sums of the terms lose none of the values that the sum has:
// where codes were added more than once, they are steps of one number in their order, and
// each value is what one more of them has made of the one before.
func (s *sum) exact() bool {
	if !s.again {
		return true
	}
	x := 0.0
	for _, t := range s.terms {
		x += float64(t.offset) - float64(t.gain)
	}
	values := []float32{float32(x)}
	for _, t := range s.terms {
		x += 2 * float64(t.gain)
		values = append(values, float32(x))
	}
	return !weights.Tiny(values, 0)
}
