// Package activation says how the activation that ends a step is computed.
package activation

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Of returns the activation of a step as kernels take it. They do not know functions: see
// Rest.
func Of(a bcnn.Activation) kern.Activation {
	switch a.Kind {
	case bcnn.ActivationReLU:
		return kern.ReLU()
	case bcnn.ActivationPReLU:
		return kern.Activation{Slope: a.Slope}
	case bcnn.ActivationClip:
		return kern.Activation{Clip: true, Low: a.Min, High: a.Max}
	}
	return kern.Activation{}
}

// End returns how the sums of a convolution become outputs.
func End(op *bcnn.ConvStep) kern.End {
	return kern.End{Scale: op.Scale, Shift: op.Shift, Activation: Of(op.Activation)}
}

// Rest is what kernels leave of an activation.
type Rest struct{ function *f32.Function }

// RestOf returns what kernels leave of an activation: a function, or nothing.
func RestOf(a bcnn.Activation) Rest {
	if a.Kind != bcnn.ActivationFunction {
		return Rest{}
	}
	return Rest{f32.Named(string(a.Function))}
}

// Do completes n values of each of some rows, stride apart, while they are in the cache.
func (r Rest) Do(values []float32, stride, n, rows int) {
	if r.function == nil {
		return
	}
	for i := range rows {
		r.function.Replace(values[i*stride:][:n])
	}
}
