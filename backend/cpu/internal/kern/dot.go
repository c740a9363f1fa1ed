package kern

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// PackLanes stores blocks of lanes outputs, word by word:
// [outputs/lanes][words][lanes].
func PackLanes(w []uint64, outputs, k, lanes int) *DotBitsWeights {
	words := bits.Words(k)
	size := num.RoundUp(outputs, lanes) * words
	data := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(aligned(8*size)))), size)
	for o := range outputs {
		for i := range words {
			data[(o/lanes*words+i)*lanes+o%lanes] = w[o*words+i]
		}
	}
	return &DotBitsWeights{Outputs: outputs, Words: words, K: k, Data: data}
}

// DotJob is one call of an assembly kernel behind DotBits: some blocks of
// outputs, and all pixels. The kernels know the places of the fields, and move
// dst, src and pixels past what they have done.
type DotJob struct {
	dst             unsafe.Pointer
	dstStep         uintptr // bytes, like all that follow
	src             uintptr // not a pointer, because in the end it is beyond what it pointed to
	step            uintptr
	rows, run, skip uintptr // skip leads from the end of a run to the next one
	weights         unsafe.Pointer
	block           uintptr // of weights
	k               uintptr
	pixels          uintptr

	source *uint64 // keeps what src points to
}

// NewDotJob returns the job of all pixels from output on, with the weights of
// PackLanes for so many lanes.
func NewDotJob(dst []int32, stride int, src []uint64, at *Patches, w *DotBitsWeights, output, lanes int) DotJob {
	block := w.Words * lanes
	return DotJob{
		dst: unsafe.Pointer(unsafe.SliceData(dst)), dstStep: uintptr(4 * stride),
		src: uintptr(unsafe.Pointer(unsafe.SliceData(src))), step: uintptr(8 * at.Step),
		rows: uintptr(at.Rows), run: uintptr(8 * at.RowLen), skip: uintptr(8 * (at.RowStep - at.RowLen)),
		weights: unsafe.Pointer(&w.Data[output/lanes*block]), block: uintptr(8 * block),
		k: uintptr(w.K), pixels: uintptr(at.Pixels), source: unsafe.SliceData(src),
	}
}

// Address is what the assembly takes.
func (j *DotJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
