//go:build amd64 && !purego && !amxemulated

package amx

import (
	"fmt"
	"sync"
	"syscall"

	"github.com/klauspost/cpuid/v2"
)

// Emulated says that package amxemulator executes the kernels.
const Emulated = false

// A request of arch_prctl, and the component of the state of a thread that tiles are (Linux,
// Documentation/arch/x86/xstate.rst).
const (
	requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
	tileData          = 18     // XFEATURE_XTILEDATA
)

// Permitted reports whether tiles can be used, and if the processor has them and they cannot, why: the
// system must save them, and it must permit them to the process, which is asked for once. It does not
// where a thread has a stack for signals that is too small for the state of tiles.
func Permitted() (bool, error) {
	if !cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXINT8, cpuid.GFNI) {
		return false, nil
	}
	err := request()
	return err == nil, err
}

var request = sync.OnceValue(func() error {
	if _, _, code := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0); code != 0 {
		return fmt.Errorf("the system does not permit it: arch_prctl: %w (one cause is a thread whose stack for signals is small)", code)
	}
	return nil
})
