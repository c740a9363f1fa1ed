package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
)

// ender is a convolution whose kernels can do more with outputs before they write them.
type ender interface {
	// take makes them do what e says, at most once. It reports whether they can, and whether the float32
	// values that they add may lie where the outputs do.
	take(e schedule.End) (can, overlaid bool)
}

// takeEnd makes kernels do the first of the ends that they can.
func takeEnd(c *schedule.Context, step tiles.Step) {
	conv, ok := step.(ender)
	if !ok {
		return
	}
	for i := range c.Ends {
		if can, overlaid := conv.take(c.Ends[i]); can {
			c.Took, c.Overlaid = i, overlaid
			return
		}
	}
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
