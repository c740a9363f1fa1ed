package kern

import (
	"math"
	"unsafe"
)

// Activation is how values end. The zero Activation leaves them as they are.
type Activation struct {
	// Slope, of PReLU, multiplies what is less than 0; nil for none.
	Slope []float32
	// Clip makes t of a value v, which is v where v > Low, else Low, and of that t
	// where t < High, else High.
	Clip      bool
	Low, High float32
}

// ReLU makes 0 of what is not greater.
func ReLU() Activation { return Activation{Clip: true, High: float32(math.Inf(1))} }

// End is what makes outputs of sums: of the value v of output o
// fma(v, Scale[o], Shift[o]), or v where Scale is nil, and then its activation.
type End struct {
	Scale, Shift []float32
	Activation
}

// From is the end of the outputs from first on.
func (e End) From(first int) End {
	if e.Scale != nil {
		e.Scale, e.Shift = e.Scale[first:], e.Shift[first:]
	}
	if e.Slope != nil {
		e.Slope = e.Slope[first:]
	}
	return e
}

// None reports whether it leaves sums as they are.
func (e *End) None() bool { return e.Scale == nil && e.Slope == nil && !e.Clip }

// EndJob is one call of an assembly kernel that ends rows of values. The kernels
// know the places of the fields.
type EndJob struct {
	dst          unsafe.Pointer
	dstStep      uintptr // bytes
	src          unsafe.Pointer
	srcStep      uintptr // bytes
	src2         unsafe.Pointer
	scale, shift unsafe.Pointer
	slope        unsafe.Pointer
	n, rows      uintptr
	clip         uintptr // 1, else 0
	low, high    float32
	// Of what then comes, with src2 in steps of dst.
	scale2, shift2 unsafe.Pointer
	clip2          uintptr // 1, else 0
	low2, high2    float32
}

// NewEndJob returns the job of n values of each row, of which there is at least
// one.
func NewEndJob[T int32 | float32 | uint8](dst []float32, stride int, src []T, step, n, rows int, end End) EndJob {
	j := EndJob{
		dst: unsafe.Pointer(&dst[0]), dstStep: uintptr(4 * stride), src: unsafe.Pointer(&src[0]), srcStep: uintptr(step) * unsafe.Sizeof(src[0]),
		n: uintptr(n), rows: uintptr(rows), low: end.Low, high: end.High,
	}
	if end.Scale != nil {
		j.scale, j.shift = unsafe.Pointer(&end.Scale[0]), unsafe.Pointer(&end.Shift[0])
	}
	if end.Slope != nil {
		j.slope = unsafe.Pointer(&end.Slope[0])
	}
	if end.Clip {
		j.clip = 1
	}
	return j
}

// Then has the job add other values, in steps of dst, to what comes of an affine step of the
// ended sums, and then clip that.
func (j *EndJob) Then(then End, added []float32) {
	j.src2, j.low2, j.high2 = unsafe.Pointer(&added[0]), then.Low, then.High
	if then.Scale != nil {
		j.scale2, j.shift2 = unsafe.Pointer(&then.Scale[0]), unsafe.Pointer(&then.Shift[0])
	}
	if then.Clip {
		j.clip2 = 1
	}
}

// NewAddJob returns the job of the sums of a and b.
func NewAddJob(dst, a, b []float32, act Activation) EndJob {
	j := NewEndJob(dst, 0, a, 0, len(dst), 1, End{Activation: act})
	j.src2 = unsafe.Pointer(&b[0])
	return j
}

// Address is what the assembly takes.
func (j *EndJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
