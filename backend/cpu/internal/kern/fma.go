package kern

import "unsafe"

// FMAJob is one call of an assembly kernel behind FMAPixels: some outputs, and
// all pixels. The kernels know the places of the fields, and move dst, src and
// pixels past what they have done.
type FMAJob struct {
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

// NewFMAJob returns the job of all pixels and the outputs of bias.
func NewFMAJob(dst []float32, stride int, src []float32, at *Patches, w []float32, step int, bias []float32) FMAJob {
	return FMAJob{
		dst: unsafe.Pointer(&dst[0]), dstStep: uintptr(4 * stride),
		src: uintptr(unsafe.Pointer(&src[0])), step: uintptr(4 * at.Step),
		rows: uintptr(at.Rows), run: uintptr(4 * at.RowLen), skip: uintptr(4 * (at.RowStep - at.RowLen)),
		weights: unsafe.Pointer(&w[0]), tap: uintptr(4 * step), bias: unsafe.Pointer(&bias[0]),
		pixels: uintptr(at.Pixels), outputs: uintptr(len(bias)), source: &src[0],
	}
}

// Address is what the assembly takes.
func (j *FMAJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
