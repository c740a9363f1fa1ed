package kern

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/bitcnn/bitcnn/internal/num"
)

// Winograd are the kernels of F(2×2, 3×3) on integers (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", CVPR 2016, section 4.1): a convolution of 3×3 makes outputs in squares of four, of 16 sums over
// the channels instead of 36. The transform of the weights is twice theirs in both directions, so that it has no
// fractions, and outputs are quarters of theirs: exact.
type Winograd struct {
	// Input and Products take the address of a WinogradInput and a WinogradSums.
	Input, Products func(job *uint8)
	// Floats and Levels take that of a WinogradJob, and write float32 values, or numbers of levels.
	Floats, Levels func(job *uint8)
}

const (
	// Squares is the number of sums that make a square of outputs.
	Squares = 16
	// LeastSquares is the number of squares that Products takes at least.
	LeastSquares = 4
	// squareOfSums is that of the sums whose pixels are added alone, not subtracted from others.
	squareOfSums = 5
)

// WinogradInput transforms squares of 4×4 pixels d of a row, each two pixels behind the one before. Of square
// t, with Bᵀ the matrix of the algorithm, byte c of sum 4·i + j is
//
//	Dst[(4·i + j)·Plane + t·DstStep + c] = (Bᵀ d B)[i][j] + Offset, which sum 5, of sums alone, lacks
//
// without a sign. Distances are in bytes; the kernels rely on the offsets of the fields.
type WinogradInput struct {
	Dst, Src       unsafe.Pointer
	Step, Row      uintptr // from a pixel to the next, and from a row
	DstStep, Plane uintptr // from a square to the next, and from a sum
	Squares        uintptr
	Vectors        uintptr // of 64 channels
	Offset         uintptr
}

// Transform does the job.
func (w *Winograd) Transform(j *WinogradInput) {
	annotateInput(j)
	w.Input((*uint8)(unsafe.Pointer(j)))
}

// WinogradFilter is the transformed weights of a convolution of 3×3, [block][sum][4 channels][output][channel], and
// what is added to the sums so that outputs have neither the offset of the bytes nor a zero point, [block][sum][output].
type WinogradFilter struct {
	Offset   uint8 // of WinogradInput
	channels int
	weights  []uint8
	table    []int32
}

// PackWinograd transforms weights of 3×3 taps, [output][row][column][channel], for bytes of at most most, whose
// zero point is taken from all. Channels and outputs are multiples of 64. It returns nil where transformed weights
// or bytes do not fit into 8 bits, or four times an output may not fit into 32.
func PackWinograd(w []int8, outputs, channels int, most, zeroPoint uint8) *WinogradFilter {
	if 4*int(most) > 255 || num.Product(36, channels, int(most), 128) > math.MaxInt32 {
		return nil
	}
	f := &WinogradFilter{Offset: 2 * most, channels: channels}
	f.weights, f.table = aligned(num.Product(Squares, outputs, channels)), make([]int32, Squares*outputs)
	g := [4][3]int{{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}}
	for o := range outputs {
		taps := w[o*9*channels:][:9*channels]
		block, lane := o/BlockOutputs*Squares, o%BlockOutputs
		for c := range channels {
			var rows [4][3]int // G g
			for i, a := range g {
				for x := range rows[i] {
					for y, v := range a {
						rows[i][x] += v * int(taps[(y*3+x)*channels+c])
					}
				}
			}
			for k := range Squares {
				b, row := g[k%4], rows[k/4]
				v := b[0]*row[0] + b[1]*row[1] + b[2]*row[2]
				if v != int(int8(v)) {
					return nil
				}
				f.weights[(((block+k)*channels+c&^3)*BlockOutputs+4*lane)+c%4] = uint8(v)
				if k != squareOfSums {
					f.table[(block+k)*BlockOutputs+lane] -= int32(f.Offset) * int32(v)
				}
			}
		}
		// All four outputs have this sum once.
		for _, v := range taps {
			f.table[(block+squareOfSums)*BlockOutputs+lane] -= 4 * int32(zeroPoint) * int32(v)
		}
	}
	return f
}

// WinogradSums is the products of squares, of which there are LeastSquares at least, and a block of outputs: sum k
// of square t and output o is
//
//	Dst[(k·Squares + t)·BlockOutputs + o] = table[k][o] + Σ over c of Src[(k·Squares + t)·channels + c] · weights[k][c][o]
//
// The kernels rely on the offsets of the fields.
type WinogradSums struct {
	Dst            unsafe.Pointer // int32
	Src            unsafe.Pointer // bytes
	weights, table unsafe.Pointer
	Squares        uintptr
	channels       uintptr
	srcPlane       uintptr // bytes from a sum to the next
	dstPlane       uintptr
}

// Sums does the job for a block.
func (w *Winograd) Sums(j *WinogradSums, f *WinogradFilter, block int) {
	n := Squares * BlockOutputs
	j.weights, j.table = unsafe.Pointer(&f.weights[block*n*f.channels]), unsafe.Pointer(&f.table[block*n])
	j.channels = uintptr(f.channels)
	j.srcPlane, j.dstPlane = j.Squares*j.channels, 4*BlockOutputs*j.Squares
	annotateSquares(j, f)
	w.Products((*uint8)(unsafe.Pointer(j)))
}

// WinogradJob is one call of a kernel that makes outputs of sums: for Pixels squares, BlockOutputs outputs of each
// of four pixels, with m the sums and Aᵀ the matrix of the algorithm, of
//
//	y[r][c] = (Aᵀ m A)[r][c] / 4
//
// Src are the sums of the first square, which those of the next ones follow, and Plane is the distance of sums. Dst is the
// first pixel of the first square, DstStep is that from a pixel to the next, and Row that from a row to the
// next. Distances are in bytes.
type WinogradJob struct {
	ConvJob
	Row, Plane uintptr
}

// EndFloats computes float32 outputs: the end of y, plus what is added, as ConvFloats does.
func (w *Winograd) EndFloats(j *WinogradJob, end *End, added unsafe.Pointer) {
	j.end(end)
	if j.added = 0; added != nil {
		j.added = uintptr(added) - uintptr(j.Dst) + 1
	}
	annotateOutput(j, end, added, 4)
	w.Floats((*uint8)(unsafe.Pointer(j)))
	runtime.KeepAlive(added)
}

// EndLevels computes, as bytes, the levels l of what EndFloats computes. l must be Usual, with a scale and a shift
// for each output of the block.
func (w *Winograd) EndLevels(j *WinogradJob, end *End, l *Levels) {
	j.end(end)
	j.added = 0
	j.levels(l)
	annotateOutput(j, end, nil, 1)
	w.Levels((*uint8)(unsafe.Pointer(j)))
}
