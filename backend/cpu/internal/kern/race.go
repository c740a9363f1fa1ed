//go:build race

package kern

import (
	"runtime"
	"unsafe"
)

// raceJob tells the race detector, which does not see what assembly does, what
// a kernel reads and writes: size bytes for every group of pixels, and of the input all
// from the first patch to the end of the last one, which is what callers own.
func raceJob(j *Job, size, group int) {
	at := unsafe.Slice(j.At, j.Pixels)
	if len(at) == 0 {
		return
	}
	first, last := at[0], at[0]
	for p, a := range at {
		first, last = min(first, a), max(last, a)
		if p%group == 0 {
			runtime.RaceWriteRange(unsafe.Add(j.Dst, uintptr(p/group)*j.DstStep), size)
		}
	}
	patch := j.rows*j.run + (j.rows-1)*j.skip
	runtime.RaceReadRange(unsafe.Add(j.Src, first), int(uintptr(last-first)+patch))
}

// raceDot is raceJob for a block of outputs of DotBits.
func raceDot(dst []int32, stride int, src []uint64, at *Patches, lanes int) {
	if at.Pixels == 0 {
		return
	}
	for p := range at.Pixels {
		row := dst[p*stride:][:lanes]
		runtime.RaceWriteRange(unsafe.Pointer(&row[0]), 4*lanes)
	}
	read := src[:(at.Pixels-1)*at.Step+(at.Rows-1)*at.RowStep+at.RowLen]
	runtime.RaceReadRange(unsafe.Pointer(&read[0]), 8*len(read))
}

// raceRows tells of a row that is read and one that is written.
func raceRows[T any](dst, src []T) {
	var v T
	size := int(unsafe.Sizeof(v))
	if len(dst) > 0 && len(src) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&dst[0]), size*len(dst))
		runtime.RaceReadRange(unsafe.Pointer(&src[0]), size*len(src))
	}
}
