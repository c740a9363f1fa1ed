package kern

import "unsafe"

// fmaJob is one call of an assembly kernel behind FMAPixels: some outputs, and
// all pixels. The kernels know the places of the fields, and move dst, src and
// pixels past what they have done.
type fmaJob struct {
	dst             unsafe.Pointer
	dstStep         uintptr // bytes, like all that follow
	src             uintptr // not a pointer, because in the end it is beyond what it pointed to
	step            uintptr
	rows, run, skip uintptr // skip leads from the end of a run to the next one
	weights         unsafe.Pointer
	tap             uintptr // from the weights of a tap to those of the next one
	bias            unsafe.Pointer
	pixels          uintptr
	outputs         uintptr

	source *float32 // keeps what src points to
}

func newFMAJob(dst []float32, stride int, src []float32, at *Patches, w []float32, step int, bias []float32) fmaJob {
	return fmaJob{
		dst: unsafe.Pointer(&dst[0]), dstStep: uintptr(4 * stride),
		src: uintptr(unsafe.Pointer(&src[0])), step: uintptr(4 * at.Step),
		rows: uintptr(at.Rows), run: uintptr(4 * at.RowLen), skip: uintptr(4 * (at.RowStep - at.RowLen)),
		weights: unsafe.Pointer(&w[0]), tap: uintptr(4 * step), bias: unsafe.Pointer(&bias[0]),
		pixels: uintptr(at.Pixels), outputs: uintptr(len(bias)), source: &src[0],
	}
}

func (j *fmaJob) address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }

// fmaRest computes pixels from first on, one after the other.
func fmaRest(dst []float32, stride int, src []float32, at *Patches, w []float32, step int, bias []float32, first int,
	fma func(acc, x, w []float32, stride int)) {
	for p := first; p < at.Pixels; p++ {
		acc := dst[p*stride:][:len(bias)]
		copy(acc, bias)
		for r := range at.Rows {
			fma(acc, src[p*at.Step+r*at.RowStep:][:at.RowLen], w[r*at.RowLen*step:], step)
		}
	}
}
