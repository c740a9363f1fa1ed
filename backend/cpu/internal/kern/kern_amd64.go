//go:build amd64 && !purego

package kern

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// The assembly counts on this.
var _ = [1]struct{}{}[unsafe.Offsetof(dotJob{}.pixels)-80]

func init() {
	if cpuid.CPU.Supports(cpuid.SSSE3, cpuid.POPCNT) {
		sets = append([]*Set{annotated(&ssse3)}, sets...)
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.POPCNT) {
		sets = append([]*Set{annotated(&avx2)}, sets...)
	}
	// cpuid reports AVX-512 only where the operating system saves its registers.
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL,
		cpuid.AVX512VPOPCNTDQ, cpuid.AVX512VNNI, cpuid.BMI2, cpuid.FMA3) {
		sets = append([]*Set{annotated(&avx512)}, sets...)
	}
}
