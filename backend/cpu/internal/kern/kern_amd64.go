//go:build amd64 && !purego

package kern

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// The assembly counts on these.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(Job{}.weights)-48]
	_ = [1]struct{}{}[unsafe.Offsetof(Job{}.Flip)-88]
	_ = [1]struct{}{}[unsafe.Offsetof(Job{}.scratch)-96]
	_ = [1]struct{}{}[unsafe.Offsetof(Job{}.class)-120]
	_ = [1]struct{}{}[unsafe.Offsetof(dotJob{}.pixels)-80]
	_ = [1]struct{}{}[unsafe.Offsetof(poolJob{}.pixels)-56]
)

func init() {
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.POPCNT) {
		sets = append([]*Set{&avx2}, sets...)
	}
	// cpuid reports AVX-512 only where the operating system saves its registers.
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL,
		cpuid.AVX512VPOPCNTDQ, cpuid.AVX512VNNI, cpuid.BMI2, cpuid.FMA3) {
		sets = append([]*Set{&avx512}, sets...)
	}
}
