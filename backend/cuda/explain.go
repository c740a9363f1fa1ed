//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/backend"
)

// Why a step has the kernels that it has.
const (
	whyOnly     = "the only kernels of this step here"
	whySmall    = "too little work to measure"
	whyKnown    = "measured before on this device and driver"
	whyMeasured = "measured"
	whyEmulated = "not measured on an emulated device"
	whyNetwork  = "part of one launch for the whole network"
)

// Explain says which kernels execute every step.
func (e *executable) Explain() []backend.Choice {
	e.mu.Lock()
	defer e.mu.Unlock()
	choices := make([]backend.Choice, len(e.steps))
	for i, s := range e.steps {
		choices[i] = s.explain()
		if e.network != nil {
			choices[i] = e.network.explain()
			choices[i].Why = whyNetwork
		}
	}
	return choices
}

func (b *built) explain() backend.Choice {
	var names, blocks []string
	for _, l := range b.launches {
		names, blocks = append(names, l.spec.kernel), append(blocks, fmt.Sprint(l.spec.block))
	}
	return backend.Choice{
		Kernel: b.variant + ": " + strings.Join(names, ", "),
		Tile:   "blocks of " + strings.Join(blocks, ", ") + " threads",
		Why:    b.why,
	}
}
