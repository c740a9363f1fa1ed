//go:build !(windows || darwin)

package host

import "math"

// systemMemory returns +Inf twice: on Linux files tell it.
func systemMemory() (total, free float64) { return math.Inf(1), math.Inf(1) }
