package kern

import "unsafe"

// BlendTap is a row, or a column, of the input with its weight. The kernels rely on the offsets of
// the fields.
type BlendTap struct {
	At     int // offset of its first value, in bytes
	Weight float32
}

// BlendTapBytes is the size of a tap.
const BlendTapBytes = int(unsafe.Sizeof(BlendTap{}))

// NewBlendTaps returns the taps of rows or columns that are step values apart.
func NewBlendTaps(index []int32, weights []float32, step int) []BlendTap {
	taps := make([]BlendTap, len(index))
	for i, at := range index {
		taps[i] = BlendTap{At: 4 * int(at) * step, Weight: weights[i]}
	}
	return taps
}

// Value returns the index of the first value of the pixel at a row and a column, and its weight.
func (row BlendTap) Value(col BlendTap) (at int, weight float32) {
	return (row.At + col.At) / 4, row.Weight * col.Weight
}

// BlendJob is one call of an assembly kernel behind Blend, with at least one pixel. The kernels
// rely on the offsets of the fields, and change the number of pixels.
type BlendJob struct {
	dst, src unsafe.Pointer
	rows     unsafe.Pointer
	rowCount uintptr
	cols     unsafe.Pointer
	colBytes uintptr // of the columns of a pixel
	pixels   uintptr
	bytes    uintptr // of a pixel
}

// NewBlendJob returns the job of pixels of n values.
func NewBlendJob(dst, src []float32, rows, cols []BlendTap, n, pixels int) BlendJob {
	return BlendJob{
		dst: unsafe.Pointer(&dst[0]), src: unsafe.Pointer(&src[0]),
		rows: unsafe.Pointer(&rows[0]), rowCount: uintptr(len(rows)),
		cols: unsafe.Pointer(&cols[0]), colBytes: uintptr(len(cols)/pixels) * unsafe.Sizeof(cols[0]),
		pixels: uintptr(pixels), bytes: uintptr(4 * n),
	}
}

// Address is what the assembly takes.
func (j *BlendJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
