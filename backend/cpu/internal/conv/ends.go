package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
)

// ender is a convolution whose kernels can do more with outputs before they write them.
type ender interface {
	// take makes them do what e says, at most once. It returns why they cannot, empty if they can, and
	// whether the float32 values that they add may lie where the outputs do.
	take(e schedule.End) (why string, overlaid bool)
}

// Why kernels do not end in a way that others do.
const (
	throughMemory  = "its sums go through memory"
	noSlopes       = "its kernels have no slopes for sums"
	noBytes        = "its kernels add no bytes"
	noScaledSums   = "its kernels neither scale before they add nor clip the sum"
	noFloats       = "its kernels write levels alone"
	noLevels       = "its kernels make no levels"
	comparedLevels = "its levels are compared or cut, not rounded"
)

// takeEnd makes kernels do the first of the ends that they can.
func takeEnd(c *schedule.Context, step tiles.Step) {
	conv, ok := step.(ender)
	for i := range c.Ends {
		why, overlaid := throughMemory, false
		if ok {
			why, overlaid = conv.take(c.Ends[i])
		}
		if why == "" {
			c.Took, c.Overlaid = i, overlaid
			return
		}
		c.Refused = append(c.Refused, why)
	}
}

// compared reports whether levels need more than a product, a sum and rounding.
func compared(e schedule.End) bool {
	return e.Levels != nil && !e.Levels.Usual() || e.Fake != nil && !e.Fake.Levels.Usual()
}

// dropClip leaves out the activation of outputs that become levels, nil for none, if these are the same
// without it.
func (e *epilogue) dropClip(l *kern.Levels) {
	if l != nil && needless(e.end.Activation, l, e.channels) {
		e.end.Activation = kern.Activation{}
	}
}

// needless reports whether an activation clips values only where they have the least level
// or the greatest anyway.
func needless(act kern.Activation, l *kern.Levels, channels int) bool {
	if !act.Clip {
		return false
	}
	for i := range channels {
		if float32(l.Guess(act.Low, i)) != l.Least+float32(l.Offset) || float32(l.Guess(act.High, i)) != l.Most+float32(l.Offset) {
			return false
		}
	}
	return true
}
