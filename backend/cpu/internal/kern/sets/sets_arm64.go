//go:build arm64 && !purego

package sets

import (
	"os"

	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/neon"
)

// native returns the Sets in assembly that this processor can run, the best
// first. Every arm64 processor that Go runs on has what neon needs. Behind neon are
// those that are to be asked for.
func native() []kern.Set {
	root := os.DirFS("/")
	cores := coresOf(root)
	var all []kern.Set
	if cpuid.CPU.Supports(cpuid.ASIMDDP, cpuid.I8MM) {
		all = append(all, neon.MatrixSet(cores))
	}
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		all = append(all, neon.DotSet(cores))
	}
	all = append(all, neon.Set(cores))
	all = append(all, neon.Forms()...)
	// SME2, which is HWCAP2_SME2 of AT_HWCAP2, is not picked by itself, since no processor
	// has run it.
	if cpuid.CPU.Supports(cpuid.ASIMDDP) && capability(root, 26, 37) && neon.Outer() {
		all = append(all, neon.OuterSet(cores))
	}
	return all
}

func missing() map[string]string { return nil }
