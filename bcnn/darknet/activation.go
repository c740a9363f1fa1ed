package darknet

import (
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// leakySlope is the slope of leaky below 0.
const leakySlope = 0.1

// activations are the functions that Darknet computes the same on all devices; linear is nil.
var activations = map[string]bcnn.Op{
	"linear":   nil,
	"leaky":    bcnn.PReLU{Slope: []float32{leakySlope}},
	"relu":     bcnn.ReLU{},
	"logistic": bcnn.Function{Name: bcnn.Sigmoid},
	"tanh":     bcnn.Function{Name: bcnn.Tanh},
	"elu":      bcnn.Function{Name: bcnn.ELU},
	"mish":     bcnn.Function{Name: bcnn.Mish},
	"swish":    bcnn.Function{Name: bcnn.SiLU},
}

// activation returns the layer for option activation, nil if there is none.
func (s *section) activation(otherwise string) bcnn.Op {
	name := s.text("activation", otherwise)
	op, ok := activations[name]
	if !ok {
		var known []string
		for k := range activations {
			known = append(known, k)
		}
		slices.Sort(known)
		try.Failf("option activation is %s, want one of %s", text.Quote(name), strings.Join(known, ", "))
	}
	return op
}

// activate appends the activation of a section, if it has one.
func (im *importer) activate(s *section, op bcnn.Op, v value) value {
	if op == nil {
		return v
	}
	return im.emit(s, "/activation", op, v.shape, v)
}
