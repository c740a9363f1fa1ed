//go:build race

package kern

import (
	"runtime"
	"unsafe"
)

// raceJob tells the race detector, which does not see what assembly does, what
// a kernel reads and writes: size bytes for every pixel, and of the input all
// from the first patch to the end of the last one, which is what callers own.
func raceJob(j *Job, size int) {
	at := unsafe.Slice(j.At, j.Pixels)
	if len(at) == 0 {
		return
	}
	first, last := at[0], at[0]
	for p, a := range at {
		first, last = min(first, a), max(last, a)
		runtime.RaceWriteRange(unsafe.Add(j.Dst, uintptr(p)*j.DstStep), size)
	}
	patch := j.rows*j.run + (j.rows-1)*j.skip
	runtime.RaceReadRange(unsafe.Add(j.Src, first), int(uintptr(last-first)+patch))
}
