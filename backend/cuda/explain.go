//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// Explain says which kernels execute every step.
func (e *executable) Explain() []driver.Choice {
	choices := make([]driver.Choice, len(e.steps))
	for i, s := range e.steps {
		choices[i] = s.explain()
		if e.network != nil {
			choices[i] = e.network.explain()
			choices[i].Why = gpu.WhyFused
		}
		choices[i].Why = gpu.Why(choices[i].Why, e.wrong)
	}
	return choices
}

func (b *built) explain() driver.Choice {
	var names []string
	var threads []int
	for _, l := range b.launches {
		names, threads = append(names, l.spec.Label()), append(threads, l.spec.Block)
	}
	return gpu.Explain(b.variant, names, "blocks of %s threads", threads, b.why)
}
