//go:build arm64 && !purego

package sets

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/neon"
)

// native returns the Sets in assembly that this processor can run, the best
// first. Every arm64 processor that Go runs on has what neon needs.
func native() []kern.Set {
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		return []kern.Set{neon.DotSet(), neon.Set()}
	}
	return []kern.Set{neon.Set()}
}
