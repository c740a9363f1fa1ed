//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/backend"
)

// Why a step has the kernels that it has.
const (
	whySmall    = "general programs: too little work to measure or to specialise"
	whyKnown    = "measured before on this driver"
	whyMeasured = "measured"
	whyEmulated = "not measured on an emulator"
)

// Explain says which kernels execute every step.
func (e *executable) Explain() []backend.Choice {
	e.mu.Lock()
	defer e.mu.Unlock()
	choices := make([]backend.Choice, len(e.steps))
	for i, s := range e.steps {
		var names, groups []string
		for _, l := range s.launches {
			names, groups = append(names, l.name), append(groups, fmt.Sprint(l.sizes.Local()))
		}
		c := &choices[i]
		c.Why = s.why
		if s.variant != "" {
			names[0] = s.variant + ": " + names[0]
			c.Tile = "work-groups of " + strings.Join(groups, ", ")
		}
		if e.host[i] != nil {
			names = append(names, "float32 on the processor")
			c.Why = strings.TrimPrefix(c.Why+"; "+e.device.floatsLack, "; ")
		}
		c.Kernel = strings.Join(names, ", ")
	}
	return choices
}
