package kern

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/internal/num"
)

// FloatPatches says where the patches of a row of pixels lie in a slice of
// float32 values: a patch is runs of RunLen consecutive values each. Value i of
// run r of pixel p is at index p·Step + Runs[r].Src + i, and belongs to tap
// Runs[r].Tap + i. Taps in the padding have no run.
type FloatPatches struct {
	Pixels int
	Step   int
	RunLen int
	Runs   []FloatRun // in the order of the sums
	// Slide is the number of consecutive runs that are Step/Stride apart, with taps one after
	// the other: rows of a window that moves by Stride taps, 1 or 2, from a pixel to the next.
	// 0 where there is nothing of the kind.
	Slide, Stride int

	job FMAJob // here, because what function values get is on the heap
}

// FloatRun is a run of the patch of a pixel.
type FloatRun struct {
	Src int // from the start of the patch
	Tap int
}

// FloatWeights are real weights and biases, laid out for the FMAPixels and the
// FMAEach of a Set: in blocks of outputs, [block][tap][output]. The last block
// has as many outputs as are left, rounded up to whole registers.
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

// FloatWeightsLen is the number of weights, with those that fill the last block.
func FloatWeightsLen(set *Set, outputs, taps int) int {
	return num.Product(num.RoundUp(outputs, set.FloatLanes), taps)
}

// Put sets the weights of the taps of an output.
func (w *FloatWeights) Put(output int, taps []float32) {
	weights, width, at := w.Block(output)
	for i, v := range taps {
		weights[i*width+at] = v
	}
}

// Block returns the weights of the block of an output, tap by tap, their number
// for each tap, and where among them that of the output is.
func (w *FloatWeights) Block(output int) (weights []float32, width, at int) {
	at = output % w.block
	first := output - at
	width = min(w.block, len(w.Bias)-first)
	return w.Data[first*w.Taps:][:width*max(w.Taps, 1)], width, at
}

func alignedFloats(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(aligned(4*n)))), n)
}

// FMAJob is one call of an assembly kernel behind FMAPixels or FMAEach: some
// outputs, and all pixels. The kernels know the places of the fields, and move
// dst, src and pixels past what they have done.
type FMAJob struct {
	dst     uintptr // like src not a pointer, because in the end it is beyond what it pointed to
	dstStep uintptr // bytes
	src     uintptr
	step    uintptr // bytes
	runs    *FloatRun
	count   uintptr // of runs
	length  uintptr // of a run, in values
	weights unsafe.Pointer
	tap     uintptr // bytes from the weights of a tap to those of the next one
	bias    unsafe.Pointer
	pixels  uintptr
	outputs uintptr
	block   uintptr // bytes from the weights of a block to those of the next one

	scale, shift, slope unsafe.Pointer // of the first output; nil for none
	clip                uintptr        // 1, else 0
	low, high           float32        // of a mean the number of taps, and its reciprocal

	target, source *float32 // keep what dst and src point to
}

// FMATiles calls kernels for n outputs from first on, which are in one block of
// weights or in several whole ones, and all pixels: kernels[i] does i + 1 pixels
// at a time. end is that of the outputs.
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

// MeanTiles calls kernels for the means of n channels, like FMATiles.
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

// run calls kernels for pixels.
func (j *FMAJob) run(kernels []func(job *uint8), pixels int) {
	tile, large, small := tiles(pixels, len(kernels))
	j.pixels = uintptr(large * tile)
	kernels[tile-1]((*uint8)(unsafe.Pointer(j)))
	if small > 0 { // from where it stopped
		j.pixels = uintptr(small * (tile - 1))
		kernels[tile-2]((*uint8)(unsafe.Pointer(j)))
	}
}

// Slides returns the kernels that take whole vectors of rows of at.Slide runs, of
// kernels for 3 and for 5 runs, and of windows that move by 2; nil for none.
func (at *FloatPatches) Slides(of3, of5, of3by2, of5by2 []func(job *uint8)) []func(job *uint8) {
	switch {
	case at.Pixels < 3 || len(at.Runs) == 0: // too few for the latency
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

// tiles divides pixels into tiles of at most most pixels: so many of n, then
// others of n − 1, so that none is much smaller than the rest.
func tiles(pixels, most int) (n, large, small int) {
	count := num.CeilDiv(pixels, most)
	n = num.CeilDiv(pixels, count)
	small = n*count - pixels
	return n, count - small, small
}
