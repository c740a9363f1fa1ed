// Package activation says how the activation that ends a step is computed.
package activation

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Of returns the activation of a step as kernels take it. They do not know functions: see
// Rest.
func Of(a plan.Activation) kern.Activation {
	switch a.Kind {
	case plan.ActivationReLU:
		return kern.ReLU()
	case plan.ActivationPReLU:
		return kern.Activation{Slope: a.Slope}
	case plan.ActivationClip:
		return kern.Activation{Clip: true, Low: a.Min, High: a.Max}
	}
	return kern.Activation{}
}

// End returns how the sums of a convolution become outputs.
func End(op *plan.Conv) kern.End {
	return kern.End{Scale: op.Scale, Shift: op.Shift, Activation: Of(op.Activation)}
}

// Rest is what the kernels that end values leave of an activation.
type Rest struct {
	set      *kern.Set
	function *kern.Function
}

// RestOf returns what they leave: a function, or nothing.
func RestOf(set *kern.Set, a plan.Activation) Rest {
	if a.Kind != plan.ActivationFunction {
		return Rest{}
	}
	return Rest{set, kern.FunctionNamed(string(a.Function))}
}

// None reports whether nothing is left.
func (r Rest) None() bool { return r.function == nil }

// Do completes n values of each of some rows, stride apart, while they are in the cache.
func (r Rest) Do(values []float32, stride, n, rows int) {
	if r.function == nil {
		return
	}
	for i := range rows {
		row := values[i*stride:][:n]
		r.set.Function(row, row, r.function)
	}
}

// From is Do for all of dst, of the values in src.
func (r Rest) From(dst, src []float32) { r.set.Function(dst, src, r.function) }
