package host

import (
	"math"
	"unsafe"

	"golang.org/x/sys/windows"
)

var globalMemoryStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memoryStatus is MEMORYSTATUSEX of the Windows API. The sizes are in bytes.
type memoryStatus struct {
	length, load                                    uint32
	total, free, totalPage, freePage                uint64
	totalAddresses, freeAddresses, freeMoreExtended uint64
}

// systemMemory returns the bytes of memory of the machine, and how many of them it can give;
// +Inf where it does not say.
func systemMemory() (total, free float64) {
	var s memoryStatus
	s.length = uint32(unsafe.Sizeof(s))
	if ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s))); ok == 0 || s.total == 0 {
		return math.Inf(1), math.Inf(1)
	}
	return float64(s.total), float64(s.free)
}
