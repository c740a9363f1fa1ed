//go:build amd64 && !purego

package sets

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/amx"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/avx2"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/avx512"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/ssse3"
)

// native returns the Sets in assembly that this processor can run, the best
// first. Behind avx512vpopcnt are some that are to be asked for.
func native() []kern.Set {
	var all []kern.Set
	wide, tiles, others := avx512.Runs(), false, avx2.Set()
	if wide {
		others = avx512.Set()
	}
	if wide || amx.Emulated {
		tiles, _ = amx.Permitted()
	}
	if tiles {
		all = append(all, amx.Set(others))
	}
	if wide {
		all = append(all, avx512.Set(), avx512.Carries())
	}
	if tiles {
		all = append(all, amx.Always(others))
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.POPCNT) {
		all = append(all, avx2.Set())
	}
	if cpuid.CPU.Supports(cpuid.SSSE3, cpuid.POPCNT) {
		all = append(all, ssse3.Set())
	}
	return all
}

// missing returns the instruction sets that the processor has and this program may not use, with the
// reason.
func missing() map[string]string {
	if _, err := amx.Permitted(); err != nil {
		return map[string]string{"avx512amx": err.Error()}
	}
	return nil
}
