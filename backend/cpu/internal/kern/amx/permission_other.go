//go:build amd64 && !purego && !linux && !amxemulated

package amx

import (
	"errors"

	"github.com/klauspost/cpuid/v2"
)

// Emulated says that package amxemulator executes the kernels.
const Emulated = false

// Permitted reports whether tiles can be used, and if the processor has them and they cannot, why.
func Permitted() (bool, error) {
	if !cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXINT8) {
		return false, nil
	}
	return false, errors.New("it is used on Linux only")
}
