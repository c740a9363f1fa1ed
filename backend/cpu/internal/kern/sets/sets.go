// Package sets knows the kernels of all instruction sets, and which of them this
// processor can run.
package sets

import (
	"fmt"
	"strings"
	"sync"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

// runnable lists the Sets that this processor can run, the best first. Every processor can run the last
// one. What is asked of the system for them is asked when a device is first asked for.
var runnable = sync.OnceValue(func() []*kern.Set {
	var all []*kern.Set
	for _, s := range append(native(), generic.Set()) {
		all = append(all, kern.Annotated(&s))
	}
	return all
})

// Names returns the instruction sets that this processor can run, the best
// first.
func Names() []string {
	sets := runnable()
	names := make([]string, len(sets))
	for i, s := range sets {
		names[i] = s.ISA
	}
	return names
}

// Missing returns the instruction sets that the processor has and this program may not use, with the
// reason.
func Missing() map[string]string { return missing() }

// Lookup returns the Set of an instruction set; "" means the best.
func Lookup(isa string) (*kern.Set, error) {
	for _, s := range runnable() {
		if isa == s.ISA || isa == "" {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no kernels for instruction set %q on this processor; there are %s", isa, strings.Join(Names(), ", "))
}
