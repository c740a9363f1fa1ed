// Package activation ends a step.
package activation

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
)

// Of returns the activation of a step as kernels take it.
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
