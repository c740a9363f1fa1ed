//go:build race

package kern

import (
	"runtime"
	"unsafe"
)

// annotateDepthwise marks what Levels of Depthwise reads and writes.
func annotateDepthwise(j *DepthwiseJob, end *End, channels, stride int) {
	columns := (j.Pixels-1)*uintptr(stride) + depthwiseTaps
	for y := range uintptr(depthwiseTaps) {
		for x := range columns {
			runtime.RaceReadRange(unsafe.Add(j.Src, y*j.Row+x*j.Column), channels)
		}
	}
	runtime.RaceReadRange(j.weights, 4*depthwiseTaps*BlockOutputs)
	runtime.RaceReadRange(j.Table, 4*BlockOutputs)
	for _, row := range [][]float32{end.Scale, end.Shift, end.Slope} {
		if row != nil {
			reads(row[:BlockOutputs])
		}
	}
	for _, row := range []unsafe.Pointer{j.levelScale, j.levelShift, j.levelRest} {
		if row != nil {
			runtime.RaceReadRange(row, 4*BlockOutputs)
		}
	}
	for x := range j.Pixels {
		runtime.RaceWriteRange(unsafe.Add(j.Dst, x*j.DstStep), channels)
	}
}
