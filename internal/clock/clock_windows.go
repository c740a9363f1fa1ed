package clock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel    = windows.NewLazySystemDLL("kernel32.dll")
	counter   = kernel.NewProc("QueryPerformanceCounter").Addr()
	frequency = call(kernel.NewProc("QueryPerformanceFrequency").Addr())
	first     = call(counter)
)

// call returns what the functions of the performance counter write, which never fail. They
// are called without the lists of arguments of package windows, which would be allocated.
func call(function uintptr) (value int64) {
	_, _, _ = syscall.SyscallN(function, uintptr(unsafe.Pointer(&value)))
	return value
}

func read() int64 { return nanoseconds(call(counter)-first, frequency) }
