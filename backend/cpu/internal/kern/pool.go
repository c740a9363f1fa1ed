package kern

import "unsafe"

// PoolJob is a Pool for the assembly, in bytes. The kernels rely on the offsets of the fields, and
// advance dst, src and pixels.
type PoolJob struct {
	dst, src uintptr // no pointers: in the end they are beyond the slices
	taps     *int
	count    uintptr
	bytes    uintptr
	step     uintptr
	dstStep  uintptr
	pixels   uintptr

	divisor, reciprocal float32 // of means of ±1
}

// MaxPoolTaps is the largest number of taps of a PoolJob: they fit into the frame of a call.
const MaxPoolTaps = 64

// NewPoolJob returns a job, and false if the assembly cannot do it. The caller keeps dst and src
// alive.
func NewPoolJob[T uint64 | float32 | uint8](dst, src []T, p *Pool, taps *[MaxPoolTaps]int) (PoolJob, bool) {
	if len(p.Taps) == 0 || len(p.Taps) > MaxPoolTaps || p.Pixels == 0 || p.Values == 0 {
		return PoolJob{}, false
	}
	read, written := p.span()
	dst, src = dst[:written], src[:read]
	size := int(unsafe.Sizeof(dst[0]))
	for i, t := range p.Taps {
		taps[i] = size * t
	}
	return PoolJob{
		dst: uintptr(unsafe.Pointer(&dst[0])), src: uintptr(unsafe.Pointer(&src[0])), taps: &taps[0], count: uintptr(len(p.Taps)),
		bytes: uintptr(size * p.Values), step: uintptr(size * p.Step), dstStep: uintptr(size * p.DstStep), pixels: uintptr(p.Pixels),
	}, true
}

// NewSignsJob is NewPoolJob for the first words of MeanSigns. If taps is nil, the job uses the taps
// of p, any number of them, in words.
func NewSignsJob(dst []float32, src []uint64, n, words int, p *Pool, divisor, y float32, taps *[MaxPoolTaps]int) (PoolJob, bool) {
	if len(p.Taps) == 0 || p.Pixels == 0 || words == 0 || taps != nil && len(p.Taps) > MaxPoolTaps {
		return PoolJob{}, false
	}
	first := &p.Taps[0]
	if taps != nil {
		first = &taps[0]
		for i, t := range p.Taps {
			taps[i] = 8 * t
		}
	}
	return PoolJob{
		dst: uintptr(unsafe.Pointer(&dst[0])), src: uintptr(unsafe.Pointer(&src[0])), taps: first, count: uintptr(len(p.Taps)),
		bytes: uintptr(8 * words), step: uintptr(8 * p.Step), dstStep: uintptr(4 * n), pixels: uintptr(p.Pixels),
		divisor: divisor, reciprocal: y,
	}, true
}

// Address is what the assembly takes.
func (j *PoolJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
