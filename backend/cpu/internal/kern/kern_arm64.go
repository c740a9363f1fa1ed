//go:build arm64 && !purego

package kern

import "github.com/klauspost/cpuid/v2"

func init() {
	// Every arm64 processor that Go runs on has what neon needs.
	sets = append([]*Set{annotated(&neon)}, sets...)
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		sets = append([]*Set{annotated(&neonDot)}, sets...)
	}
}
