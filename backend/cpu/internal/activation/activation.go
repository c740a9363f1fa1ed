// Package activation ends a step.
package activation

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Activation ends a step. The kernels that make its values do ReLU themselves;
// Rest does the others, while the values are in the cache.
type Activation struct {
	ReLU      bool
	Slope     []float32 // of channels; nil for none
	clip      bool
	low, high float32
	tanh      bool
}

// Of returns the activation of a step.
func Of(a bcnn.Activation) Activation {
	switch a.Kind {
	case bcnn.ActivationReLU:
		return Activation{ReLU: true}
	case bcnn.ActivationPReLU:
		return Activation{Slope: a.Slope}
	case bcnn.ActivationClip:
		return Activation{clip: true, low: a.Min, high: a.Max}
	case bcnn.ActivationTanh:
		return Activation{tanh: true}
	}
	return Activation{}
}

// Repeated makes it that of values of so many pixels.
func (a Activation) Repeated(pixels int) Activation {
	if a.Slope != nil {
		a.Slope = slices.Repeat(a.Slope, pixels)
	}
	return a
}

// Rest completes values whose first one is of the given channel.
func (a *Activation) Rest(set *kern.Set, values []float32, channel int) {
	if a.Slope != nil {
		set.PReLU(values, a.Slope[channel:channel+len(values)])
	} else if a.clip {
		set.Clip(values, a.low, a.high)
	} else if a.tanh {
		f32.Tanhs(values)
	}
}
