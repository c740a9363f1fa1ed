package host

import (
	"math"

	"golang.org/x/sys/unix"
)

// systemMemory returns the bytes of memory of the machine. How many of them it can give is
// not known but for that: most of what it has is in use, and can be taken back.
func systemMemory() (total, free float64) {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil || n == 0 {
		return math.Inf(1), math.Inf(1)
	}
	return float64(n), float64(n)
}
