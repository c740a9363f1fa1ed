package simplify

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// scaled are values gain·q + offset of the codes q that a layer of the new network gives: ±1,
// or integers of a few levels.
type scaled struct {
	layer        int
	signs        bool
	gain, offset float32
}

// plain reports whether the values are the codes.
func (s scaled) plain() bool { return s.gain == 1 && s.offset == 0 }

// String says what the values are, in formulas.
func (s scaled) String() string {
	q := "levels"
	if s.signs {
		q = "±1"
	}
	if s.gain != 1 {
		q = fmt.Sprintf("%v·(%s)", s.gain, q)
	}
	if s.offset != 0 {
		q += fmt.Sprintf(" %+g", s.offset)
	}
	return q
}

// code are values of a few codes.
type code struct {
	scaled
	// affine says that the values are gain·q + offset, up to roundings.
	affine bool
	// values are what the codes stand for, the least one first: low, low + step and so on.
	values    []float32
	low, step int
}

// signs returns ±1 that a layer gives.
func signs(layer int) *code {
	return &code{scaled: scaled{layer: layer, signs: true, gain: 1}, affine: true, values: []float32{-1, 1}, low: -1, step: 2}
}

// levels returns integers that a layer gives.
func levels(layer, low, count int) *code {
	c := &code{scaled: scaled{layer: layer, gain: 1}, affine: true, low: low, step: 1, values: make([]float32, count)}
	for k := range c.values {
		c.values[k] = float32(low + k)
	}
	return c
}

// moved returns the codes as another layer gives them.
func (c *code) moved(layer int) *code {
	out := *c
	out.layer = layer
	return &out
}

// coder is the layer at hand where it makes codes. A function of ±1 is one of the same ±1.
func (p *pass) coder(op bcnn.Op) (value, error) {
	if in := p.input().code; in != nil && in.signs && p.on(Functions) {
		if f := pointwise(op); f != nil {
			c, err := p.applied(in, f)
			if c != nil || err != nil {
				return p.valued(c), err
			}
		}
	}
	if q, ok := op.(bcnn.Quantize); ok {
		out, ok, err := p.twoLevels(q)
		if ok || err != nil {
			return out, err
		}
	}
	out, ok := p.inside(op)
	if !ok {
		out = p.copy()
	}
	switch op := op.(type) {
	case bcnn.Sign, bcnn.Binarize:
		out.code = signs(out.layer)
	case bcnn.Quantize:
		out.code = levels(out.layer, op.Low, op.Levels)
	}
	return out, nil
}

// twoLevels is coder for three levels of which the middle one is at one number only, where the
// input never is; ok is false for others.
func (p *pass) twoLevels(q bcnn.Quantize) (out value, ok bool, err error) {
	if q.Levels != 3 || len(q.Thresholds) != 2 || q.Thresholds[1] != math.Nextafter32(q.Thresholds[0], math.MaxFloat32) || !p.on(Levels) {
		return out, false, nil
	}
	in, t := p.input().layer, q.Thresholds[0]
	meets, err := p.sets.Meets(in, []float32{t})
	if err != nil || meets != values.Never {
		return out, false, err
	}
	if p.room -= 2; p.room < 0 {
		return out, false, nil
	}
	p.found(Levels, "it is never %d", q.Low+1)
	shape := p.shapes[p.at]
	if t != 0 {
		in = p.emit("/threshold", bcnn.Affine{Bias: []float32{-t}}, shape, in)
	}
	c := signs(p.emit("/sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, shape, in))
	c.values = []float32{float32(q.Low), float32(q.Low + 2)}
	c.fit()
	return p.valued(c), true, nil
}

// function is the layer at hand where it is a function of one value.
func (p *pass) function(op bcnn.Op) (value, error) {
	in := p.input()
	if !p.on(Functions) {
		return p.copy(), nil
	}
	if unchanged, err := p.unchanged(op, in.layer); unchanged || err != nil {
		return in, err
	}
	a, affine := op.(bcnn.Affine)
	if f := pointwise(op); in.code != nil && f != nil {
		c, err := p.applied(in.code, f)
		if c == nil || err != nil {
			return p.copy(), err
		}
		if affine && in.code.affine {
			c.rescale(in.code.scaled, a)
		}
		return p.valued(c), nil
	}
	out := p.copy()
	var err error
	switch {
	case in.code != nil && affine && in.code.signs:
		out.code, err = p.directed(in.code, a)
	case affine && len(a.Scale) <= 1 && len(a.Bias) <= 1:
		if in.sum != nil {
			if terms := rescaled(in.sum.terms, a, true); terms != nil {
				out.sum = &sum{terms, in.sum.again}
			}
		}
		out.joined = rescaled(in.joined, a, false)
	}
	return out, err
}

// unchanged reports whether the layer at hand leaves all values of its input as they are, and needs
// no layer: a PReLU, such as an absolute value, of what is never negative.
func (p *pass) unchanged(op bcnn.Op, in int) (bool, error) {
	if _, ok := op.(bcnn.PReLU); !ok || in <= bcnn.NetworkInput {
		return false, nil
	}
	set, err := p.sets.Of(in)
	if err != nil || set.Min < 0 || !p.takesOver(in) {
		return false, err
	}
	p.found(Functions, "its input is never negative, and stays as it is")
	return true, nil
}

// takesOver makes the layer at hand the same as one of the new network; ok is false where both
// are outputs, which are layers of their own.
func (p *pass) takesOver(layer int) (ok bool) {
	if !p.outputs[p.at] {
		return true
	}
	if m := &p.made[layer]; !p.outputs[m.of] {
		m.of, m.same = p.at, true
		return true
	}
	return false
}

// valued returns the values of codes as the output of the layer at hand: as what an Affine
// layer makes of the codes, where that is just them.
func (p *pass) valued(c *code) value {
	exact := c.affine
	for k, x := range c.values {
		exact = exact && f32.FMA(float32(c.low+k*c.step), c.gain, c.offset) == x
	}
	switch {
	case exact && c.plain() && p.made[c.layer].of == p.at:
		p.made[c.layer].same = true
		return value{layer: c.layer, code: c}
	case exact && c.plain() && p.takesOver(c.layer):
		p.found(Functions, "it gives the codes that it is made of")
		return value{layer: c.layer, code: c}
	case !exact || c.plain():
		out := p.copy()
		out.code = c
		return out
	}
	a := bcnn.Affine{Scale: []float32{c.gain}}
	if c.offset != 0 {
		a.Bias = []float32{c.offset}
	}
	out := p.same(p.emit("", a, p.shapes[p.at], c.layer))
	out.code = c
	return out
}

// limited is what a ReLU and a Clip make of a value.
func limited(x, low, high float32) float32 {
	if x < low {
		x = low
	}
	if x > high {
		x = high
	}
	return x
}

// pointwise returns a function that is the same for all channels as layers compute it, nil for
// others.
func pointwise(op bcnn.Op) func(x float32) float32 {
	switch op := op.(type) {
	case bcnn.Affine:
		if len(op.Scale) <= 1 && len(op.Bias) <= 1 {
			scale, bias := one(op.Scale, 1), one(op.Bias, 0)
			return func(x float32) float32 { return f32.FMA(x, scale, bias) }
		}
	case bcnn.ReLU:
		return func(x float32) float32 { return limited(x, 0, float32(math.Inf(1))) }
	case bcnn.PReLU:
		if len(op.Slope) == 1 {
			return func(x float32) float32 {
				if x < 0 {
					return x * op.Slope[0]
				}
				return x
			}
		}
	case bcnn.Clip:
		return func(x float32) float32 { return limited(x, op.Min, op.Max) }
	case bcnn.Function:
		return f32.Named(string(op.Name)).Of
	case bcnn.Sign:
		return func(x float32) float32 {
			if x > 0 || x == 0 && op.Zero == bcnn.ZeroIsPlus {
				return 1
			}
			return -1
		}
	case bcnn.Quantize:
		if len(op.Thresholds) == op.Levels-1 {
			return func(x float32) float32 {
				at, equal := slices.BinarySearch(op.Thresholds, x)
				for equal && at < len(op.Thresholds) && op.Thresholds[at] == x {
					at++
				}
				return float32(op.Low + at)
			}
		}
	}
	return nil
}

// one returns the only number of a list, or another one where it is empty.
func one(list []float32, empty float32) float32 {
	if len(list) == 0 {
		return empty
	}
	return list[0]
}

// applied returns the codes with a function of their values; nil where some of these are no
// numbers.
func (p *pass) applied(c *code, f func(x float32) float32) (*code, error) {
	const work = 16
	if err := p.budget.Charge(work * int64(len(c.values))); err != nil {
		return nil, err
	}
	out := *c
	out.values = make([]float32, len(c.values))
	for k, x := range c.values {
		if out.values[k] = f(x); out.values[k]-out.values[k] != 0 {
			return nil, nil
		}
	}
	out.fit()
	return &out, nil
}

// fit finds the gain and the offset of the codes, if there are some.
func (c *code) fit() {
	last := len(c.values) - 1
	least, most := c.values[0], c.values[last]
	gain := (float64(most) - float64(least)) / float64(last*c.step)
	offset := float64(least) - gain*float64(c.low)
	if zero := -c.low; c.step == 1 && zero >= 0 && zero <= last && c.values[zero] == 0 {
		offset = 0
	}
	c.gain, c.offset = float32(gain), float32(offset)
	c.check()
}

// check finds whether the values are gain·q + offset.
func (c *code) check() {
	gain := float64(c.gain)
	c.affine = c.gain != 0
	for k, x := range c.values {
		off := gain*float64(c.low+k*c.step) + float64(c.offset) - float64(x)
		c.affine = c.affine && math.Abs(off) <= fitting*math.Abs(gain)
	}
}

// fitting is how far values may be from gain·q + offset, as a fraction of the gain: what roundings
// of float32 explain, but none that a network rounds with, such as (x + 1.5·2²³) − 1.5·2²³.
const fitting = 0x1p-10

// rescale sets gain and offset of affine codes to those of an Affine layer on others.
func (c *code) rescale(of scaled, a bcnn.Affine) {
	if s := rescaled([]scaled{of}, a, true); s != nil {
		c.scaled = s[0]
		c.check()
	}
}

// mostOffset is how large an offset may be as a multiple of the gain: it rounds hardly any of
// the gain away.
const mostOffset = 1 << 12

// rescaled returns codes behind an Affine layer that is the same for all channels: of parts
// that are added one has what it adds. It is nil where the result is no finite multiple of the codes.
func rescaled(parts []scaled, a bcnn.Affine, added bool) []scaled {
	if parts == nil {
		return nil
	}
	scale, bias := float64(one(a.Scale, 1)), float64(one(a.Bias, 0))
	out := make([]scaled, len(parts))
	for i, s := range parts {
		s.gain, s.offset = float32(float64(s.gain)*scale), float32(float64(s.offset)*scale+bias)
		if s.gain == 0 || s.gain-s.gain != 0 || !(max(s.offset, -s.offset) <= mostOffset*max(s.gain, -s.gain)) {
			return nil
		}
		out[i] = s
		if added {
			bias = 0
		}
	}
	return out
}

// directed returns what an Affine layer makes of ±1 that gives ±g + o with one g and o, but
// with the other sign in some channels: of other ±1. It is nil where the layer gives other
// numbers.
func (p *pass) directed(in *code, a bcnn.Affine) (*code, error) {
	at := func(list []float32, c int, empty float32) float32 {
		if len(list) < 2 {
			return one(list, empty)
		}
		return list[c]
	}
	ends := func(c int) (low, high float32) {
		scale, bias := at(a.Scale, c, 1), at(a.Bias, c, 0)
		return f32.FMA(in.values[0], scale, bias), f32.FMA(in.values[1], scale, bias)
	}
	low, high := ends(0)
	if low == high || low-low != 0 || high-high != 0 {
		return nil, nil
	}
	n := max(len(a.Scale), len(a.Bias))
	same := true
	for c := range n {
		if x, y := ends(c); x != low || y != high {
			if same = false; x != high || y != low {
				return nil, p.budget.Charge(int64(c))
			}
		}
	}
	if err := p.budget.Charge(8 * int64(n)); err != nil {
		return nil, err
	}
	out := *in
	if !same {
		if p.room--; p.room < 0 {
			return nil, nil
		}
		direction := make([]float32, n)
		for c := range direction {
			direction[c] = 1
			if x, _ := ends(c); x != low {
				direction[c] = -1
			}
		}
		out.layer = p.emit("/directions", bcnn.Affine{Scale: direction}, p.shape(in.layer), in.layer)
		out.layer = p.emit("/sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, p.shape(in.layer), out.layer)
	}
	out.values = []float32{low, high}
	out.fit()
	return &out, nil
}

// encoded returns affine codes of the values: other ones, made of the codes, where these are
// not, but rise in equal steps; nil for other values.
func (p *pass) encoded(c *code) (*scaled, error) {
	if c.affine {
		return &c.scaled, nil
	}
	if err := p.budget.Charge(16 * int64(len(c.values))); err != nil {
		return nil, err
	}
	steps, ok := values.EqualSteps(c.values)
	last := len(steps.Numbers) - 1
	if !ok || steps.Numbers[last] == 0 || !p.on(Functions) {
		return nil, nil
	}
	if p.room--; p.room < 0 {
		return nil, nil
	}
	q := bcnn.Quantize{Levels: steps.Numbers[last] + 1}
	for k := range last {
		for range steps.Numbers[k+1] - steps.Numbers[k] {
			q.Thresholds = append(q.Thresholds, float32(c.low+(k+1)*c.step))
		}
	}
	if low, ok := steps.Low(q.Levels); ok { // 0 stays 0
		q.Low, steps.Shift = low, 0
	}
	out := scaled{gain: steps.Scale, offset: steps.Shift}
	out.layer = p.emit("/levels", q, p.shape(c.layer), c.layer)
	return &out, nil
}
