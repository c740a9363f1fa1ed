//go:build arm64 && !purego

package sets

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

func init() {
	// Every arm64 processor that Go runs on has what neon needs.
	sets = append([]*kern.Set{kern.Annotated(&neon)}, sets...)
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		sets = append([]*kern.Set{kern.Annotated(&neonDot)}, sets...)
	}
}
