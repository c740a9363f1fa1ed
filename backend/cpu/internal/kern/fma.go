package kern

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/internal/num"
)

// FloatPatches says where the patches of a row of pixels lie in a slice of float32 values. A patch
// is runs of RunLen consecutive values: value i of run r of pixel p is at index p·Step +
// Runs[r].Src + i, and belongs to tap Runs[r].Tap + i. Taps in the padding have no run.
type FloatPatches struct {
	Pixels int
	Step   int
	RunLen int
	Runs   []FloatRun // in the order of summation
	// Slide is the number of consecutive runs that are Step/Stride apart and have consecutive taps:
	// rows of a window that moves by Stride taps, 1 or 2, from a pixel to the next. 0 means that
	// there are none.
	Slide, Stride int

	job    FMAJob // here, since arguments of function values are on the heap
	groups GroupsJob
}

// FloatRun is a run of the patch of a pixel.
type FloatRun struct {
	Src int // from the start of the patch
	Tap int
}

// FloatWeights are real weights and biases, laid out for FMAPixels and FMAEach of a Set in blocks
// of outputs: [block][tap][output]. The last block has the outputs that are left, rounded up to
// whole registers.
type FloatWeights struct {
	Outputs, Taps int
	Bias          []float32
	Data          []float32
	block, lanes  int
}

// NewFloatWeights returns weights of 0 for a Set.
func NewFloatWeights(set *Set, outputs, taps int, bias []float32) *FloatWeights {
	w := &FloatWeights{Outputs: outputs, Taps: taps, block: set.FloatBlock, lanes: set.FloatLanes}
	padded := num.RoundUp(outputs, w.lanes)
	w.Data = alignedFloats(padded * max(taps, 1))
	w.Bias = alignedFloats(padded)
	copy(w.Bias, bias)
	return w
}

// FloatWeightsLen returns the number of weights, with those that pad the last block.
func FloatWeightsLen(set *Set, outputs, taps int) int {
	return num.Product(num.RoundUp(outputs, set.FloatLanes), taps)
}

// FloatPackLen returns how many values of memory Pack takes at most.
func FloatPackLen(set *Set, outputs, taps int) int {
	return num.Sum(FloatWeightsLen(set, outputs, taps), num.RoundUp(outputs, set.FloatLanes), alignment/4)
}

// Pack lays out the rows of a matrix, outputs × taps, as w, with biases of +0, in memory of
// FloatPackLen values.
func (w *FloatWeights) Pack(set *Set, memory, rows []float32, outputs, taps int) {
	padded := num.RoundUp(outputs, set.FloatLanes)
	memory = alignedPart(memory, padded*(taps+1))
	*w = FloatWeights{Outputs: outputs, Taps: taps, block: set.FloatBlock, lanes: set.FloatLanes}
	w.Bias, w.Data = memory[:padded:padded], memory[padded:]
	clear(w.Bias)
	for o := range outputs {
		w.Put(o, rows[o*taps:][:taps])
	}
}

// Put sets the weights of an output, one for each tap.
func (w *FloatWeights) Put(output int, taps []float32) {
	weights, width, at := w.Block(output)
	for i, v := range taps {
		weights[i*width+at] = v
	}
}

// Block returns the weights of the block that an output is in, tap by tap, how many each tap has,
// and which of them is that of the output.
func (w *FloatWeights) Block(output int) (weights []float32, width, at int) {
	at = output % w.block
	first := output - at
	width = min(w.block, len(w.Bias)-first)
	return w.Data[first*w.Taps:][:width*max(w.Taps, 1)], width, at
}

func alignedFloats(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(aligned(4*n)))), n)
}

// FMAJob is one call of an assembly kernel behind FMAPixels or FMAEach: some outputs, and all
// pixels. The kernels rely on the offsets of the fields, and advance dst, src and pixels.
type FMAJob struct {
	dst     uintptr // like src no pointer: in the end it is beyond the slice
	dstStep uintptr // bytes
	src     uintptr
	step    uintptr // bytes
	runs    *FloatRun
	count   uintptr // of runs
	length  uintptr // of a run, in values
	weights unsafe.Pointer
	tap     uintptr // bytes from the weights of a tap to the next
	bias    unsafe.Pointer
	pixels  uintptr
	outputs uintptr
	block   uintptr // bytes from the weights of a block to the next

	scale, shift, slope unsafe.Pointer // of the first output; nil for none
	clip                uintptr        // 0 or 1
	low, high           float32        // for means: the number of taps, and its reciprocal

	target, source *float32 // keep the slices of dst and src alive
}

// FMATiles calls kernels for n outputs from first on, in one block of weights or in several whole
// ones, and for all pixels. kernels[i] computes i + 1 pixels at a time. end is that of these
// outputs.
func FMATiles(kernels []func(job *uint8), dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, first, n int, end *End) {
	weights, width, lane := w.Block(first)
	j := &at.job
	*j = FMAJob{
		dst: uintptr(unsafe.Pointer(unsafe.SliceData(dst))), dstStep: uintptr(4 * stride),
		src: uintptr(unsafe.Pointer(unsafe.SliceData(src))), step: uintptr(4 * at.Step),
		runs: unsafe.SliceData(at.Runs), count: uintptr(len(at.Runs)), length: uintptr(at.RunLen),
		weights: unsafe.Pointer(&weights[lane]), tap: uintptr(4 * width), bias: unsafe.Pointer(&w.Bias[first]),
		outputs: uintptr(n), block: uintptr(4 * w.block * w.Taps), target: unsafe.SliceData(dst), source: unsafe.SliceData(src),
	}
	j.finish(end)
	j.run(kernels, at.Pixels)
}

// finish sets the end of the outputs.
func (j *FMAJob) finish(end *End) {
	if end.Scale != nil {
		j.scale, j.shift = unsafe.Pointer(&end.Scale[0]), unsafe.Pointer(&end.Shift[0])
	}
	if end.Slope != nil {
		j.slope = unsafe.Pointer(&end.Slope[0])
	}
	if end.Clip {
		j.clip, j.low, j.high = 1, end.Low, end.High
	}
}

// MeanTiles is FMATiles for the means of n channels.
func MeanTiles(kernels []func(job *uint8), dst []float32, stride int, src []float32, at *FloatPatches, n int, taps, y float32) {
	j := &at.job
	*j = FMAJob{
		dst: uintptr(unsafe.Pointer(unsafe.SliceData(dst))), dstStep: uintptr(4 * stride),
		src: uintptr(unsafe.Pointer(unsafe.SliceData(src))), step: uintptr(4 * at.Step),
		runs: unsafe.SliceData(at.Runs), count: uintptr(len(at.Runs)),
		outputs: uintptr(n), low: taps, high: y, target: unsafe.SliceData(dst), source: unsafe.SliceData(src),
	}
	j.run(kernels, at.Pixels)
}

// run calls kernels for all pixels.
func (j *FMAJob) run(kernels []func(job *uint8), pixels int) {
	tile, large, small := tiles(pixels, len(kernels))
	j.pixels = uintptr(large * tile)
	kernels[tile-1]((*uint8)(unsafe.Pointer(j)))
	if small > 0 { // the first kernel has advanced the job
		j.pixels = uintptr(small * (tile - 1))
		kernels[tile-2]((*uint8)(unsafe.Pointer(j)))
	}
}

// Slides returns the kernels for windows whose rows slide over the input: one of the arguments, by
// at.Slide (3 or 5) and at.Stride (1 or 2), or nil if none fits.
func (at *FloatPatches) Slides(of3, of5, of3by2, of5by2 []func(job *uint8)) []func(job *uint8) {
	switch {
	case at.Pixels < 3 || len(at.Runs) == 0: // too few to hide latency
	case at.Stride == 2 && at.Slide == 3:
		return of3by2
	case at.Stride == 2 && at.Slide == 5:
		return of5by2
	case at.Stride != 1:
	case at.Slide == 3:
		return of3
	case at.Slide == 5:
		return of5
	}
	return nil
}

// tiles divides pixels into tiles of at most most pixels: large tiles of n, then small ones of n −
// 1, so that none is much smaller than the others.
func tiles(pixels, most int) (n, large, small int) {
	count := num.CeilDiv(pixels, most)
	n = num.CeilDiv(pixels, count)
	small = n*count - pixels
	return n, count - small, small
}
