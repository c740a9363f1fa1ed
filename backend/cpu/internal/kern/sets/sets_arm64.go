//go:build arm64 && !purego

package sets

import (
	"os"

	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/neon"
)

// native returns the Sets in assembly that this processor can run, the best
// first. Every arm64 processor that Go runs on has what neon needs.
func native() []kern.Set {
	cores := coresOf(os.DirFS("/"))
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		return append([]kern.Set{neon.DotSet(cores), neon.Set(cores)}, neon.Forms()...)
	}
	return append([]kern.Set{neon.Set(cores)}, neon.Forms()...)
}
