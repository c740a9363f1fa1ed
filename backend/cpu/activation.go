package cpu

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
)

// activation ends a step. The kernels that make its values do relu themselves;
// rest does the others, while the values are in the cache.
type activation struct {
	relu      bool
	slope     []float32 // of channels; nil for none
	clip      bool
	low, high float32
}

func newActivation(a bcnn.Activation) activation {
	switch a.Kind {
	case bcnn.ActivationReLU:
		return activation{relu: true}
	case bcnn.ActivationPReLU:
		return activation{slope: a.Slope}
	case bcnn.ActivationClip:
		return activation{clip: true, low: a.Min, high: a.Max}
	}
	return activation{}
}

// repeated makes it that of values of so many pixels.
func (a activation) repeated(pixels int) activation {
	a.slope = repeated(a.slope, pixels)
	return a
}

// rest completes values whose first one is of the given channel.
func (a *activation) rest(set *kern.Set, values []float32, channel int) {
	if a.slope != nil {
		set.PReLU(values, a.slope[channel:channel+len(values)])
	} else if a.clip {
		set.Clip(values, a.low, a.high)
	}
}
