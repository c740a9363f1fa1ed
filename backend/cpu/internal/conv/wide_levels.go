package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
)

// Levels makes the outputs the numbers of their levels, as bytes of another tensor. It
// reports whether the kernels can.
func (c *wideConv) Levels(l *kern.Levels, t *bcnn.Tensor) bool {
	if !c.ends() || c.added != nil || !l.Usual() || !c.filter.EndsLevels() {
		return false
	}
	c.levels, c.levelsOut = l, t
	if needless(c.end.Activation, l, c.channels) {
		c.end.Activation = kern.Activation{}
	}
	return true
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
