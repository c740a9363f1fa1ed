package kern

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// PackLanes lays out rows of k bits in blocks of lanes outputs, word by word:
// [outputs/lanes][words][lanes].
func PackLanes(w []uint64, outputs, k, lanes int) *DotBitsWeights {
	out := &DotBitsWeights{}
	size := num.RoundUp(outputs, lanes) * bits.Words(k)
	out.Pack(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(aligned(8*size)))), size), w, outputs, k, lanes)
	return out
}

// DotBitsLen returns how many words of memory Pack takes at most.
func DotBitsLen(outputs, k, lanes int) int {
	return num.Sum(num.Product(num.RoundUp(outputs, lanes), bits.Words(k)), alignment/8)
}

// Pack is PackLanes into given memory, of DotBitsLen words.
func (d *DotBitsWeights) Pack(memory, w []uint64, outputs, k, lanes int) {
	words := bits.Words(k)
	*d = DotBitsWeights{Outputs: outputs, Words: words, K: k}
	d.Data = alignedPart(memory, num.RoundUp(outputs, lanes)*words)
	for o := range outputs {
		for i := range words {
			d.Data[(o/lanes*words+i)*lanes+o%lanes] = w[o*words+i]
		}
	}
}

// DotJob is one call of an assembly kernel behind DotBits: some blocks of outputs, and all pixels.
// The kernels rely on the offsets of the fields, and advance dst, src and pixels.
type DotJob struct {
	dst             unsafe.Pointer
	dstStep         uintptr // bytes, as all that follow
	src             uintptr // no pointer: in the end it is beyond the slice
	step            uintptr
	rows, run, skip uintptr // skip is from the end of a run to the next one
	weights         unsafe.Pointer
	block           uintptr // of weights
	k               uintptr
	pixels          uintptr

	source *uint64 // keeps the slice of src alive
}

// NewDotJob returns the job of all pixels and of the outputs from output on. The weights are those
// of PackLanes for the same lanes.
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
