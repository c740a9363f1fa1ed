//go:build race

package kern

import (
	"runtime"
	"unsafe"
)

// annotateInput marks what Transform reads and writes.
func annotateInput(j *WinogradInput) {
	size := int(64 * j.Vectors)
	for y := range uintptr(4) {
		for x := range 2*j.Squares + 2 {
			runtime.RaceReadRange(unsafe.Add(j.Src, y*j.Row+x*j.Step), size)
		}
	}
	for k := range uintptr(Squares) {
		for t := range j.Squares {
			runtime.RaceWriteRange(unsafe.Add(j.Dst, k*j.Plane+t*j.DstStep), size)
		}
	}
}

// annotateSquares marks what Sums reads and writes.
func annotateSquares(j *WinogradSums, f *WinogradFilter) {
	for k := range uintptr(Squares) {
		runtime.RaceReadRange(unsafe.Add(j.Src, k*j.srcPlane), int(j.Squares*j.channels))
		runtime.RaceWriteRange(unsafe.Add(j.Dst, k*j.dstPlane), int(4*BlockOutputs*j.Squares))
	}
	runtime.RaceReadRange(j.weights, Squares*BlockOutputs*f.channels)
	runtime.RaceReadRange(j.table, 4*Squares*BlockOutputs)
}

// annotateOutput marks what EndFloats and EndLevels read, and that they write values of size bytes.
func annotateOutput(j *WinogradJob, end *End, added unsafe.Pointer, size int) {
	for k := range uintptr(Squares) {
		runtime.RaceReadRange(unsafe.Add(j.Src, k*j.Plane), int(j.Pixels)*4*BlockOutputs)
	}
	for _, row := range [][]float32{end.Scale, end.Shift, end.Slope} {
		if row != nil {
			reads(row[:BlockOutputs])
		}
	}
	if size == 1 {
		runtime.RaceReadRange(j.levelScale, 4*BlockOutputs)
		runtime.RaceReadRange(j.levelShift, 4*BlockOutputs)
		if j.levelRest != nil {
			runtime.RaceReadRange(j.levelRest, 4*BlockOutputs)
		}
	}
	for y := range uintptr(2) {
		for x := range 2 * j.Pixels {
			at := y*j.Row + x*j.DstStep
			runtime.RaceWriteRange(unsafe.Add(j.Dst, at), size*BlockOutputs)
			if added != nil {
				runtime.RaceReadRange(unsafe.Add(added, at), size*BlockOutputs)
			}
		}
	}
}
