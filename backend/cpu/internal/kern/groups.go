package kern

import (
	"runtime"
	"unsafe"
)

// GroupsJob is one call of an assembly kernel behind FMAGroups. The kernels rely on the offsets of the fields.
type GroupsJob struct {
	FMAJob
	index unsafe.Pointer // int32: of each input, which of the values that a vector reads every lane takes
	each  uintptr        // bytes from what a vector of outputs reads to what the next one does
	mask  uintptr        // of the values that it reads
}

// GroupKernels are the kernels behind FMAGroups, for registers of so many lanes: Of[n] computes Pixels
// pixels at a time, of groups of n inputs, for two registers of outputs at a time.
type GroupKernels struct {
	Lanes, Pixels int
	Of            map[int]func(job *uint8)
	index         map[[2]int][]int32
}

// NewGroupKernels returns kernels by the number of inputs of a group.
func NewGroupKernels(lanes, pixels int, of map[int]func(job *uint8)) *GroupKernels {
	k := &GroupKernels{Lanes: lanes, Pixels: pixels, Of: of, index: map[[2]int][]int32{}}
	for n := range of {
		for outs := n; outs <= lanes; outs *= 2 {
			var index []int32
			for i := range n {
				for lane := range lanes {
					index = append(index, int32(lane/outs*n+i))
				}
			}
			k.index[[2]int{n, outs}] = index
		}
	}
	return k
}

// Groups is that of a Set.
func (k *GroupKernels) Groups(at *FloatPatches, n, outs, outputs int) bool {
	const block = 64 // of weights: all are whole, or there is one
	whole := outputs%block == 0 || outputs == 2*k.Lanes
	return at.Slide == 3 && at.Stride == 1 && at.Pixels >= k.Pixels && k.index[[2]int{n, outs}] != nil && whole
}

// Run does all pixels. The last ones are done with some of those before, again.
func (k *GroupKernels) Run(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, n, outs int, end *End) {
	weights, width, _ := w.Block(0)
	reads := k.Lanes / outs * n
	j := &at.groups
	for first := 0; first < at.Pixels; {
		pixels := (at.Pixels - first) / k.Pixels * k.Pixels
		if pixels == 0 {
			first, pixels = at.Pixels-k.Pixels, k.Pixels
		}
		*j = GroupsJob{
			FMAJob: FMAJob{
				dst: uintptr(unsafe.Pointer(&dst[first*stride])), dstStep: uintptr(4 * stride),
				src: uintptr(unsafe.Pointer(&src[first*at.Step])), step: uintptr(4 * at.Step),
				runs: unsafe.SliceData(at.Runs), count: uintptr(len(at.Runs)),
				weights: unsafe.Pointer(&weights[0]), tap: uintptr(4 * width), bias: unsafe.Pointer(&w.Bias[0]),
				pixels: uintptr(pixels), outputs: uintptr(w.Outputs), block: uintptr(4 * w.block * w.Taps),
				target: unsafe.SliceData(dst), source: unsafe.SliceData(src),
			},
			index: unsafe.Pointer(&k.index[[2]int{n, outs}][0]), each: uintptr(4 * reads), mask: 1<<reads - 1,
		}
		j.finish(end)
		k.Of[n]((*uint8)(unsafe.Pointer(j)))
		first += pixels
	}
	runtime.KeepAlive(k)
}
