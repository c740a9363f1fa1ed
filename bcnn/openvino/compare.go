package openvino

import (
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// compare imports a comparison of a value with numbers, of which a Select or a Convert makes two
// values.
func compare(im *importer, n *node) operand {
	v, c, k, ok := im.constantSide(n)
	if !ok {
		try.Failf("a comparison of two values that are computed is not supported")
	}
	v, at := im.perChannel(n, v, c)
	s := &step{n: n, base: v, at: at, low: []float32{0}, high: []float32{1}}
	kind := n.typ
	if k == 0 { // c > x is x < c
		kind = map[string]string{"Greater": "Less", "GreaterEqual": "LessEqual", "Less": "Greater", "LessEqual": "GreaterEqual"}[kind]
	}
	switch kind {
	case "GreaterEqual":
		s.reached = true
	case "Less":
		s.reached, s.low, s.high = true, []float32{1}, []float32{0}
	case "LessEqual":
		s.low, s.high = []float32{1}, []float32{0}
	}
	return operand{v: &value{layer: v.layer, shape: v.shape, view: v.view, step: s, truth: true}}
}

// choose imports Select: one number where a comparison is true, another one elsewhere.
func choose(im *importer, n *node) operand {
	n.only("auto_broadcast", "numpy")
	v := im.any(n, 0)
	if !v.truth || v.step == nil {
		try.Failf("its condition must be a comparison with numbers")
	}
	number := func(k int) float32 {
		c := im.constant(n, k)
		c.checkReal()
		if c.len() != 1 || len(c.dims) > len(v.view) {
			try.Failf("its input %d has shape %v, want one number", k, c.dims)
		}
		return c.floats[0]
	}
	yes, no := number(1), number(2)
	s := *v.step
	s.n, s.signs, s.settled = n, [2]*value{}, nil
	if s.low[0] == 1 {
		s.low, s.high = []float32{yes}, []float32{no}
	} else {
		s.low, s.high = []float32{no}, []float32{yes}
	}
	out := v.with(v.view)
	out.step, out.truth = &s, false
	return operand{v: out}
}
