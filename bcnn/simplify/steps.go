package simplify

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// longestStep is how many functions in front of codes are looked through.
const longestStep = 4

// thresholdUnits is what moving a threshold in front of functions costs.
const thresholdUnits = 2048

// steps are codes as a function of a layer of the new network, the same for all channels: from
// each threshold on it is another of the values, of which there is one more.
type steps struct {
	thresholds []float32
	values     []float32
}

// stepsOf returns codes as steps of what they are made of; nil for others.
func (p *pass) stepsOf(c *code) *steps {
	if c == nil || c.layer <= bcnn.NetworkInput {
		return nil
	}
	s := &steps{values: c.values}
	switch op := p.to.Layers[c.layer].Op.(type) {
	case bcnn.Sign:
		s.thresholds = []float32{f32.Least(func(x float32) bool { return x > 0 || x == 0 && op.Zero == bcnn.ZeroIsPlus })}
	case bcnn.Quantize:
		s.thresholds = op.Thresholds
	}
	if len(s.thresholds) != len(c.values)-1 {
		return nil
	}
	return s
}

// rising returns the layers that codes are steps of: what they are made of, and in front of that
// what it is a function of that never falls. functions has one of them less.
func (p *pass) rising(c *code) (layers []int, functions []func(x float32) float32) {
	layers = []int{p.to.Layers[c.layer].Inputs[0]}
	for range longestStep {
		last := layers[len(layers)-1]
		if last <= bcnn.NetworkInput {
			break
		}
		l := p.to.Layers[last]
		f := pointwise(l.Op)
		if f == nil || !rises(l.Op) || p.bytes(l.Inputs[0]) {
			break
		}
		layers, functions = append(layers, l.Inputs[0]), append(functions, f)
	}
	return layers, functions
}

// before returns the steps as those of what stands in front of functions, of which the first one is
// the last to be applied; nil where a threshold is never reached.
func (p *pass) before(s *steps, functions []func(x float32) float32) (*steps, error) {
	if len(functions) == 0 {
		return s, nil
	}
	if err := p.budget.Charge(thresholdUnits * int64(len(s.thresholds))); err != nil {
		return nil, err
	}
	of := func(x float32) float32 {
		for _, f := range slices.Backward(functions) {
			x = f(x)
		}
		return x
	}
	out := &steps{thresholds: make([]float32, len(s.thresholds)), values: s.values}
	for k, t := range s.thresholds {
		if out.thresholds[k] = f32.Least(func(x float32) bool { return of(x) >= t }); of(out.thresholds[k]) < t {
			return nil, nil
		}
	}
	return out, nil
}

// common returns two codes as steps of the nearest layer that both are steps of; nil for others.
func (p *pass) common(a, b *code) (s, t *steps, base int, err error) {
	s, t = p.stepsOf(a), p.stepsOf(b)
	if s == nil || t == nil {
		return nil, nil, 0, nil
	}
	left, f := p.rising(a)
	right, g := p.rising(b)
	for i, base := range left {
		k := slices.Index(right, base)
		if k < 0 {
			continue
		}
		if s, err = p.before(s, f[:i]); s == nil || err != nil {
			return nil, nil, 0, err
		}
		t, err = p.before(t, g[:k])
		return s, t, base, err
	}
	return nil, nil, 0, nil
}

// bytes reports whether a layer is an input of bytes, which few layers read.
func (p *pass) bytes(layer int) bool {
	return layer <= bcnn.NetworkInput && p.from.Inputs[bcnn.NetworkInput-layer].DType == bcnn.Uint8
}

// rises reports whether a function of single values never falls.
func rises(op bcnn.Op) bool {
	switch op := op.(type) {
	case bcnn.Affine:
		return one(op.Scale, 1) > 0
	case bcnn.ReLU, bcnn.Clip:
		return true
	}
	return false
}

// reached returns how many thresholds a number has reached, which are k at least.
func (s *steps) reached(k int, t float32) int {
	for k < len(s.thresholds) && s.thresholds[k] <= t {
		k++
	}
	return k
}

// pairOf returns what a layer makes of a pair of values; nil for other layers.
func pairOf(op bcnn.Op) func(x, y float32) float32 {
	switch op.(type) {
	case bcnn.Add:
		return func(x, y float32) float32 { return x + y }
	case bcnn.Mul:
		return func(x, y float32) float32 { return x * y }
	case bcnn.Min:
		return func(x, y float32) float32 { return min(x, y) }
	case bcnn.Max:
		return func(x, y float32) float32 { return max(x, y) }
	case bcnn.Mask:
		return func(x, y float32) float32 {
			if y != 0 {
				return x
			}
			return 0
		}
	}
	return nil
}

// pair is the layer at hand where it is made of two.
func (p *pass) pair(op bcnn.Op) (value, error) {
	if out, ok, err := p.paired(op); ok || err != nil {
		return out, err
	}
	switch op.(type) {
	case bcnn.Add:
		return p.add()
	case bcnn.Mul:
		out := p.product()
		out.pixels = p.ofPixels()
		return out, nil
	}
	return p.copy(), nil
}

// paired is the layer at hand where it is the sum, the product, the minimum, the maximum or the mask of
// codes that are steps of one value: its values are steps of that, too. ok is false for others.
func (p *pass) paired(op bcnn.Op) (out value, ok bool, err error) {
	inputs := p.from.Layers[p.at].Inputs
	a, b := p.value(inputs[0]).code, p.value(inputs[1]).code
	if a == nil || b == nil || a.layer == b.layer || !p.on(Functions) {
		return out, false, nil
	}
	shape := p.shapes[p.at]
	if p.shape(a.layer) != shape || p.shape(b.layer) != shape {
		return out, false, nil
	}
	s, t, base, err := p.common(a, b)
	if s == nil || t == nil || err != nil {
		return out, false, err
	}
	thresholds := slices.Concat(s.thresholds, t.thresholds)
	slices.Sort(thresholds)
	f := pairOf(op)
	q := bcnn.Quantize{}
	c := &code{step: 1, values: []float32{f(s.values[0], t.values[0])}}
	if err := p.budget.Charge(64 * int64(len(thresholds))); err != nil {
		return out, false, err
	}
	i, k := 0, 0
	for _, at := range thresholds {
		i, k = s.reached(i, at), t.reached(k, at)
		if x := f(s.values[i], t.values[k]); x != c.values[len(c.values)-1] {
			q.Thresholds, c.values = append(q.Thresholds, at), append(c.values, x)
		}
	}
	if q.Levels = len(c.values); q.Levels < 2 || q.Levels > bcnn.MaxLevels {
		return out, false, nil
	}
	if zero := slices.Index(c.values, 0); zero >= 0 { // 0 stays 0
		c.low, q.Low = -zero, -zero
	}
	c.fit()
	if p.room -= 2; !c.affine || p.room < 0 {
		return out, false, nil
	}
	p.found(Functions, "it is of %d values, and what it is made of are steps of one tensor", q.Levels)
	c.layer = p.emit("/levels", q, shape, base)
	out = p.valued(c)
	if _, add := op.(bcnn.Add); add { // for weights that are few on parts alone
		out.sum = collected(p.value(inputs[0]).terms(), p.value(inputs[1]).terms())
	}
	return out, true, nil
}
