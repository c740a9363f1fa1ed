//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"strings"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// whySmall says more than gpu.WhySmall.
const whySmall = "general programs: too little work to measure or to specialise"

// Explain says which kernels execute every step.
func (e *executable) Explain() []driver.Choice {
	choices := make([]driver.Choice, len(e.steps))
	for i, s := range e.steps {
		c := &choices[i]
		if s.variant != "" {
			var names []string
			var groups []int
			for _, l := range s.launches {
				names, groups = append(names, l.name), append(groups, l.sizes.Local())
			}
			*c = gpu.Explain(s.variant, names, "work-groups of %s", groups, s.why)
		}
		if e.host[i] != nil {
			does := ", float32 on the processor"
			if e.host[i].why != e.device.floatsLack {
				does = ", all on the processor"
			}
			c.Kernel = strings.TrimPrefix(c.Kernel+does, ", ")
			c.Why = strings.TrimPrefix(c.Why+"; "+e.host[i].why, "; ")
		}
	}
	return choices
}
