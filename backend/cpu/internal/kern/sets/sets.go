// Package sets knows the kernels of all instruction sets, and which of them this
// processor can run.
package sets

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

// sets lists the Sets that this processor can run, the best first. Every
// processor can run the last one.
var sets = runnable()

func runnable() []*kern.Set {
	var all []*kern.Set
	for _, s := range append(native(), generic.Set()) {
		all = append(all, kern.Annotated(&s))
	}
	return all
}

// Names returns the instruction sets that this processor can run, the best
// first.
func Names() []string {
	names := make([]string, len(sets))
	for i, s := range sets {
		names[i] = s.ISA
	}
	return names
}

// Lookup returns the Set of an instruction set; "" means the best.
func Lookup(isa string) (*kern.Set, error) {
	for _, s := range sets {
		if isa == s.ISA || isa == "" {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no kernels for instruction set %q on this processor; there are %s", isa, strings.Join(Names(), ", "))
}
