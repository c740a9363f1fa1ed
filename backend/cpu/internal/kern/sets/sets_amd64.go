//go:build amd64 && !purego

package sets

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

func init() {
	if cpuid.CPU.Supports(cpuid.SSSE3, cpuid.POPCNT) {
		sets = append([]*kern.Set{kern.Annotated(&ssse3)}, sets...)
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.POPCNT) {
		sets = append([]*kern.Set{kern.Annotated(&avx2)}, sets...)
	}
	// cpuid reports AVX-512 only where the operating system saves its registers.
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL,
		cpuid.AVX512VPOPCNTDQ, cpuid.AVX512VNNI, cpuid.BMI2, cpuid.FMA3) {
		sets = append([]*kern.Set{kern.Annotated(&avx512)}, sets...)
	}
}
