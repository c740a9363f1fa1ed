//go:build race

package kern

import (
	"runtime"
	"unsafe"
)

// raceJob tells the race detector, which does not see what assembly does, what
// a kernel writes: size bytes for every pixel.
func raceJob(j *Job, size int) {
	at := unsafe.Slice(j.At, j.Pixels)
	for p := range at {
		runtime.RaceWriteRange(unsafe.Add(j.Dst, uintptr(p)*j.DstStep), size)
		for r := range j.rows {
			runtime.RaceReadRange(unsafe.Add(j.Src, uintptr(at[p])+r*(j.run+j.skip)), int(j.run))
		}
	}
}
