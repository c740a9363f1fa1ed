package kern

import (
	"math"
	"unsafe"
)

// BlendColumns are the weighted columns for rows of pixels with few channels, laid out for vectors
// of the output that span several pixels. The kernels rely on the layout.
type BlendColumns struct {
	Width int // values of a row of the input
	Taps  int // of a pixel of the output: two or four
	// Table has, for each vector of the output, the weights of its lanes for each tap, and then,
	// for each tap, the lanes of a vector of the input that they read: as the bits of float32
	// values or, for vectors of four lanes, the indices of their bytes.
	Table []float32
	// Places has, for each vector, the offset of the vector of the input for each tap, and that of
	// the vector in the row of the output, all in bytes.
	Places []int
}

// NewBlendColumns lays out columns for rows of width values, with taps columns for each pixel of
// the output. It returns nil if the lanes of a tap are farther apart than a vector is long, if a
// row is shorter than a vector, or if taps is neither two nor four.
func NewBlendColumns(lanes int, index []int32, weights []float32, taps, channels, width int) *BlendColumns {
	values := len(index) / taps * channels
	if taps != 2 && taps != 4 || lanes == 0 || min(values, width) < lanes {
		return nil
	}
	b := &BlendColumns{Width: width, Taps: taps}
	for first := 0; first < values; first += lanes {
		first := min(first, values-lanes) // the last vector may overlap with the one before
		var picks []float32
		for k := range taps {
			at := func(lane int) int {
				value := first + lane
				return int(index[value/channels*taps+k])*channels + value%channels
			}
			base := width - lanes
			for lane := range lanes {
				base = min(base, at(lane))
			}
			for lane := range lanes {
				if at(lane)-base >= lanes {
					return nil
				}
				b.Table = append(b.Table, weights[(first+lane)/channels*taps+k])
				pick := uint32(at(lane) - base)
				if lanes == 4 {
					pick = 0x03020100 + 0x04040404*pick
				}
				picks = append(picks, math.Float32frombits(pick))
			}
			b.Places = append(b.Places, 4*base)
		}
		b.Table = append(b.Table, picks...)
		b.Places = append(b.Places, 4*first)
	}
	return b
}

// Bytes returns the size of the tables.
func (b *BlendColumns) Bytes() int {
	return 4*len(b.Table) + int(unsafe.Sizeof(0))*len(b.Places)
}

// BlendRowJob is one call of an assembly kernel behind BlendRows: one or two rows of the output.
// The kernels rely on the offsets of the fields.
type BlendRowJob struct {
	dst, src      unsafe.Pointer
	rows          unsafe.Pointer
	table, places unsafe.Pointer
	vectors       uintptr
	dstStep       uintptr // bytes
}

// BlendRowTiles computes rows of the output. kernels[0] computes one row, kernels[1] two, and
// kernels[2] two of which the second has the weights of the first in reverse order. The last two
// may be nil.
func BlendRowTiles(kernels *[3]func(*uint8), dst, src []float32, rows []BlendTap, cols *BlendColumns) {
	left := len(rows) / cols.Taps
	for values := len(dst) / left; left > 0; {
		n, kernel := 1, kernels[0]
		if left > 1 && kernels[1] != nil {
			n, kernel = 2, kernels[1]
			if kernels[2] != nil && mirrored(rows[:2*cols.Taps]) {
				kernel = kernels[2]
			}
		}
		job := BlendRowJob{
			dst: unsafe.Pointer(&dst[0]), src: unsafe.Pointer(&src[0]), rows: unsafe.Pointer(&rows[0]),
			table: unsafe.Pointer(&cols.Table[0]), places: unsafe.Pointer(&cols.Places[0]),
			vectors: uintptr(len(cols.Places) / (cols.Taps + 1)), dstStep: uintptr(4 * values),
		}
		kernel(job.Address())
		dst, rows, left = dst[n*values:], rows[n*cols.Taps:], left-n
	}
}

// mirrored reports whether the weights are the same in reverse order.
func mirrored(rows []BlendTap) bool {
	for i, row := range rows {
		if math.Float32bits(row.Weight) != math.Float32bits(rows[len(rows)-1-i].Weight) {
			return false
		}
	}
	return true
}

// Address is what the assembly takes.
func (j *BlendRowJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
