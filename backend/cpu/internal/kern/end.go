package kern

import (
	"math"
	"unsafe"
)

// Activation is a function at the end of an output. The zero Activation is the identity.
type Activation struct {
	// Slope, of PReLU, multiplies values below 0, by output. nil means none.
	Slope []float32
	// Clip limits a value v: t = Low where v < Low, else v, and the result is High where t > High,
	// else t.
	Clip      bool
	Low, High float32
}

// ReLU returns the activation that replaces values below 0 by 0.
func ReLU() Activation { return Activation{Clip: true, High: float32(math.Inf(1))} }

// End makes an output of a sum v of output o: fma(v, Scale[o], Shift[o]), or v if Scale is nil, and
// then the activation of that.
type End struct {
	Scale, Shift []float32
	Activation
}

// From returns the end of the outputs from first on.
func (e End) From(first int) End {
	if e.Scale != nil {
		e.Scale, e.Shift = e.Scale[first:], e.Shift[first:]
	}
	if e.Slope != nil {
		e.Slope = e.Slope[first:]
	}
	return e
}

// None reports whether the end is the identity.
func (e *End) None() bool { return e.Scale == nil && e.Slope == nil && !e.Clip }

// affine reports whether the end is a scale and a shift alone.
func (e *End) affine() bool { return e.Scale != nil && e.Slope == nil && !e.Clip }

// EndJob is one call of an assembly kernel that applies an End to rows of values. The kernels rely
// on the offsets of the fields.
type EndJob struct {
	dst          unsafe.Pointer
	dstStep      uintptr // bytes
	src          unsafe.Pointer
	srcStep      uintptr // bytes
	src2         unsafe.Pointer
	scale, shift unsafe.Pointer
	slope        unsafe.Pointer
	n, rows      uintptr
	clip         uintptr // 0 or 1
	low, high    float32
	// Of the second end, see Then. src2 has the steps of dst.
	scale2, shift2 unsafe.Pointer
	clip2          uintptr // 0 or 1
	low2, high2    float32
}

// NewEndJob returns the job of rows of n values, at least one of each.
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

// Then makes the job apply an affine function to its results, add other values, with the steps of
// dst, and then clip the sums.
func (j *EndJob) Then(then End, added []float32) {
	j.src2, j.low2, j.high2 = unsafe.Pointer(&added[0]), then.Low, then.High
	if then.Scale != nil {
		j.scale2, j.shift2 = unsafe.Pointer(&then.Scale[0]), unsafe.Pointer(&then.Shift[0])
	}
	if then.Clip {
		j.clip2 = 1
	}
}

// NewAddJob returns the job of a + b with an activation.
func NewAddJob(dst, a, b []float32, act Activation) EndJob {
	j := NewEndJob(dst, 0, a, 0, len(dst), 1, End{Activation: act})
	j.src2 = unsafe.Pointer(&b[0])
	return j
}

// Address is what the assembly takes.
func (j *EndJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
