package kern

import (
	"runtime"
	"unsafe"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Matrix are the kernels of instruction sets that multiply matrices of bytes: tiles of up to
// TileRows pixels and LineBytes taps by as many taps and PanelOutputs outputs.
//
// An image is lines of LineBytes bytes, each of the channels of a pixel or of other taps. A tile of
// pixels is lines that are equally far apart, and may overlap. Weights are panels of PanelOutputs outputs, and these are
// steps of LineBytes taps.
type Matrix struct {
	// LinesOfBits and LinesOfBytes write rows of lines, one after the other, src being the first pixel
	// of the first row: of row r, Before lines of the border, then for each p < Inside
	//
	//	line[i] = Σ over j < Planes of 2^j · bit i of the word at r·Row + p·Step + j·Plane
	//	line[i] = the byte at r·Row + p·Step + i where bit i of Mask is set, else 0
	//
	// and After lines of the border, which are Border where bit i of Mask is set, else 0. There is at
	// least one row.
	LinesOfBits  func(dst []uint8, src []uint64, at *LineRows)
	LinesOfBytes func(dst, src []uint8, at *LineRows)
	// LinesOfRuns writes a line for each pixel p of each row r, of which there is at least one,
	//
	//	line[i] = src[r·Row + p·Step + Offset + i] of the last run whose Mask has bit i, else 0
	LinesOfRuns func(dst, src []uint8, at *RunRows)
	// Signs, Nibbles and Bytes are the kernels for weights of PackMatrixSigns, PackMatrixNibbles and
	// PackMatrixBytes. They take the address of a MatrixJob.
	Signs, Nibbles, Bytes func(job *uint8)
	// Always has them taken wherever they can be, not only where they take less time.
	Always bool
}

// LineRows says which rows become lines. Distances are in bytes.
type LineRows struct {
	Rows, Before, Inside, After int
	Step, Row                   int // from a pixel to the next, and from a row
	Planes, Plane               int // of bits; from a plane to the next
	Mask                        uint64
	Border                      uint8
}

// RunRows says which patches become lines: rows of pixels, and the runs of each patch that are in a line.
// Distances are in bytes.
type RunRows struct {
	Rows, Pixels int
	Step, Row    int // from a pixel to the next, and from a row
	Runs         []LineRun
}

// LineRun is a run of a patch: Offset is from the first byte of the patch to that which the first byte of
// the line would be.
type LineRun struct {
	Offset int
	Mask   uint64
}

// MatrixResult is what the kernel of a MatrixJob writes.
type MatrixResult uintptr

const (
	MatrixBits MatrixResult = iota
	MatrixSums
	MatrixAffine // MatrixFloats of an end that is a scale and a shift alone, with nothing to add
	MatrixAdd    // the same with values to add
	MatrixFloats
	MatrixAffineLevels // MatrixLevels of MatrixAffine, whose scales have no rest
	MatrixAddLevels    // MatrixAffineLevels of sums with bytes that have a scale and a shift
	MatrixLevels       // the numbers of levels of float32 values
)

// size returns the bytes of the outputs of a panel.
func (r MatrixResult) size() int { return [...]int{2, 64, 64, 64, 64, 16, 16, 16}[r] }

const (
	TileRows     = 16
	LineBytes    = 64
	PanelOutputs = 16
	// BlockTiles is the number of tiles of pixels that are multiplied by one of weights.
	BlockTiles = 4

	tileBytes   = TileRows * LineBytes
	matrixSums  = 2 * BlockTiles * tileBytes // of a block, and of the one before
	matrixRing  = 4 * tileBytes              // tiles of weights that lie ready
	matrixAlign = matrixSums
)

// MatrixMemory is the number of bytes that a MatrixJob needs for itself.
const MatrixMemory = matrixSums + matrixRing + matrixAlign

// MatrixFilter is the weights of a convolution. The layout is [panel][step][tile], a tile being
// bytes [row][output][4 taps]. Weights of ±1 take a bit each: of byte i of half a tile, bit j is set
// where byte i of row j is 1. Weights of at most 16 values take 4 bits each, which are their number among
// these: byte i of half a tile has those of byte i of row j, low, and of row j + 8.
type MatrixFilter struct {
	Steps, Panels int
	kernel        func(job *uint8)
	data          []uint8
	size          int     // bytes of a step
	values        []uint8 // 16, four times; nil for none
}

// PackMatrixSigns lays out weights of ±1, outputs × steps lines of one word.
func PackMatrixSigns(m *Matrix, w []uint64, outputs, steps int) *MatrixFilter {
	f := newMatrixFilter(m.Signs, outputs, steps, tileBytes/8)
	for o := range outputs { // what is behind them is −1, which nobody reads
		for s := range steps {
			word, tile := w[o*steps+s], f.tile(o, s)
			for i := range LineBytes {
				row, at := i/4, o%PanelOutputs*4+i%4
				tile[row/8*LineBytes+at] |= uint8(word>>i&1) << (row % 8)
			}
		}
	}
	return f
}

// PackMatrixBytes lays out weights of 8 bits, outputs × steps lines.
func PackMatrixBytes(m *Matrix, w []int8, outputs, steps int) *MatrixFilter {
	f := newMatrixFilter(m.Bytes, outputs, steps, tileBytes)
	for o := range outputs {
		for s := range steps {
			tile := f.tile(o, s)
			for i, v := range w[(o*steps+s)*LineBytes:][:LineBytes] {
				tile[i/4*LineBytes+o%PanelOutputs*4+i%4] = uint8(v)
			}
		}
	}
	return f
}

// fewValues returns the values of weights and the number of each, by byte; nil if they are more than 16.
func fewValues(w []int8) (values []uint8, numbers *[256]uint8) {
	const most = 16
	var seen [256]bool
	numbers = new([256]uint8)
	for _, v := range w {
		if u := uint8(v); !seen[u] {
			if len(values) == most {
				return nil, nil
			}
			seen[u], numbers[u] = true, uint8(len(values))
			values = append(values, u)
		}
	}
	return values, numbers
}

// PackMatrixNibbles lays out weights of at most 16 values, outputs × steps lines; nil if they have more.
func PackMatrixNibbles(m *Matrix, w []int8, outputs, steps int) *MatrixFilter {
	values, numbers := fewValues(w)
	if values == nil {
		return nil
	}
	f := newMatrixFilter(m.Nibbles, outputs, steps, tileBytes/2)
	f.values = aligned(LineBytes)
	for i := range f.values {
		if i%16 < len(values) {
			f.values[i] = values[i%16]
		}
	}
	for o := range outputs {
		for s := range steps {
			tile := f.tile(o, s)
			for i, v := range w[(o*steps+s)*LineBytes:][:LineBytes] {
				row := i / 4
				tile[row%8*LineBytes+o%PanelOutputs*4+i%4] |= numbers[uint8(v)] << (row / 8 * 4)
			}
		}
	}
	return f
}

// newMatrixFilter makes panels for whole words of outputs.
func newMatrixFilter(kernel func(*uint8), outputs, steps, size int) *MatrixFilter {
	panels := num.RoundUp(outputs, bits.WordBits) / PanelOutputs
	f := &MatrixFilter{Steps: steps, Panels: panels, kernel: kernel, size: size}
	f.data = aligned(num.Product(f.Panels, steps, size))
	return f
}

// tile returns the tile of weights of an output for a step.
func (f *MatrixFilter) tile(o, step int) []uint8 {
	return f.data[(o/PanelOutputs*f.Steps+step)*f.size:][:f.size]
}

// MatrixBlock is up to BlockTiles tiles of pixels.
type MatrixBlock struct {
	Lines  [BlockTiles]uint32 // offset in bytes of the first line of each tile
	Tiles  uint32
	First  uint32 // number of the first pixel
	Pixels uint32 // that have outputs; tiles may have others between them
	_      uint32
}

// MatrixPixel is where a kernel finds what belongs to a pixel, in bytes: the first of its sums among
// those of its block, and of its row in the table.
type MatrixPixel struct{ Sums, Table uint32 }

// MatrixJob is one call of a kernel: some blocks of pixels and some panels of outputs. The kernels
// rely on the offsets of the fields, and change them.
type MatrixJob struct {
	Src        unsafe.Pointer
	taps       unsafe.Pointer // uint32
	tapsEnd    uintptr
	weights    unsafe.Pointer
	weightsEnd uintptr
	blocks     uintptr // that are left; in the end it is behind the last
	count      uintptr
	Pixels     *MatrixPixel
	Table      unsafe.Pointer // int32, from the first output of the panels on
	Dst        unsafe.Pointer // of pixel 0, but for Before, and the first output
	DstStep    uintptr        // bytes from a pixel to the next
	Before     uintptr        // bytes of the pixels that Dst lacks, in front of the first one
	Flip       unsafe.Pointer // 16 bits for each panel
	Shift      uint32         // of sums to the left, before the table is added to them

	// Of float32 outputs.
	scale, shift, slope unsafe.Pointer
	clip                uintptr // 0 or 1
	low, high           float32
	added               uintptr // one more than the offset from Dst of the values to add; 0 for none
	// What happens to them before others are added, or to bytes that are added, and to the sums.
	scale2, shift2 unsafe.Pointer
	clip2          uintptr
	low2, high2    float32
	// Of their levels.
	level, move unsafe.Pointer
	least, most float32
	offset      int32

	ring, ringEnd, panelEnd uintptr
	// How far the kernel is. Not pointers: in the end they are beyond the slices.
	tiles                                     [BlockTiles]uintptr
	blockFrom, blockEnd, blockDst, panel, now uintptr
	pendingEnd, pendingFlip                   uintptr

	config [64]uint8
	values unsafe.Pointer // of weights of 4 bits
	rest   unsafe.Pointer // of the scales of levels
	line   uintptr        // bytes from a line of pixels to the next

	// Of the FakeQuantize of float32 outputs; fakeLevel is nil for none.
	pendingPanel                  uintptr // in bytes of a row of the table
	fakeLevel, fakeRest, fakeMove unsafe.Pointer
	fakeScale, fakeShift          unsafe.Pointer
	fakeLeast, fakeMost, fakeLow  float32

	result               MatrixResult
	pend, ended, drained uintptr // the kernel's functions for it
}

// prepare sets what all kernels need.
func (f *MatrixFilter) prepare(j *MatrixJob, p *MatrixPart) {
	j.taps = unsafe.Pointer(&p.Taps[0])
	j.tapsEnd = uintptr(j.taps) + uintptr(4*len(p.Taps))
	size := f.Steps * f.size
	j.weights = unsafe.Pointer(&f.data[p.Panel*size])
	j.weightsEnd = uintptr(j.weights) + uintptr(p.Panels*size)
	j.blocks, j.count = uintptr(unsafe.Pointer(&p.Blocks[0])), uintptr(len(p.Blocks))
	start := uintptr(unsafe.Pointer(&p.Memory[0]))
	j.now = (start + matrixAlign - 1) &^ (matrixAlign - 1)
	j.ring = j.now + matrixSums
	j.ringEnd = j.ring + matrixRing
	j.panelEnd = uintptr(p.Panels * PanelOutputs * 4)
	j.config = TileConfig(p.Rows, p.Last)
	j.values = unsafe.Pointer(unsafe.SliceData(f.values))
	j.line = uintptr(p.Line)
}

// TileConfig returns what LDTILECFG takes: sums 0 to 2 and pixels 4 and 5 have whole tiles, sums 3 and
// pixels 6 the last one, and tile 7 has weights.
func TileConfig(rows, last int) [64]uint8 {
	config := [64]uint8{0: 1} // the palette
	for t, n := range [...]int{rows, rows, rows, last, rows, rows, last, TileRows} {
		config[16+2*t], config[48+t] = LineBytes, uint8(n)
	}
	return config
}

// call calls the kernel for panels of outputs from one on.
func (f *MatrixFilter) call(result MatrixResult, j *MatrixJob, p *MatrixPart, added unsafe.Pointer) {
	f.prepare(j, p)
	j.result = result
	annotateMatrix(j, f, p, result.size(), added)
	f.kernel((*uint8)(unsafe.Pointer(j)))
	runtime.KeepAlive(p)
}

// MatrixPart is the part of a convolution that a MatrixJob does.
type MatrixPart struct {
	Taps          []uint32 // offset in bytes of the lines of each step
	Blocks        []MatrixBlock
	Panel, Panels int
	Rows, Last    int     // lines of a tile, and of the last one of each block
	Line          int     // bytes from a line to the next
	Memory        []uint8 // MatrixMemory bytes
}

// Bits computes packed outputs. With c the sum of the products of a pixel and output o,
//
//	bit o of Dst = c ≥ Table[o], XOR Flip
func (f *MatrixFilter) Bits(j *MatrixJob, p *MatrixPart) { f.call(MatrixBits, j, p, nil) }

// Sums32 computes int32 outputs,
//
//	Dst[o] = (c << Shift) + Table[o]
func (f *MatrixFilter) Sums32(j *MatrixJob, p *MatrixPart) { f.call(MatrixSums, j, p, nil) }

// Floats computes float32 outputs: the end of what Sums32 computes. Unless added is nil, which has the
// steps of Dst, it scales and shifts them by then, adds those values, and clips the sums by then, as
// Set's ScaleAdd does.
func (f *MatrixFilter) Floats(j *MatrixJob, p *MatrixPart, end, then *End, added unsafe.Pointer) {
	j.end(end)
	j.then(then, added)
	result := MatrixFloats
	switch {
	case !end.affine():
	case added == nil:
		result = MatrixAffine
	case then.Scale == nil && !then.Clip:
		result = MatrixAdd
	}
	f.call(result, j, p, added)
	runtime.KeepAlive(added)
}

// Levels computes, as bytes, the levels l of what Floats computes. l must be Usual, with a scale and a
// shift for each output. added are bytes then, which have the steps of Dst: those that then scales and
// shifts are added, to what fake makes of the outputs unless that is nil.
func (f *MatrixFilter) Levels(j *MatrixJob, p *MatrixPart, end *End, fake *FakeQuantize, l *Levels, then *End, added unsafe.Pointer) {
	j.end(end)
	j.then(then, added)
	j.fakeLevel = nil
	if fake != nil {
		j.fakeQuantize(fake)
	}
	j.level, j.move = unsafe.Pointer(&l.Scale[0]), unsafe.Pointer(&l.Shift[0])
	j.rest = unsafe.Pointer(unsafe.SliceData(l.Rest))
	j.least, j.most, j.offset = l.Least, l.Most, l.Offset
	result := MatrixLevels
	if fake == nil && l.Rest == nil && end.affine() {
		if added == nil {
			result = MatrixAffineLevels
		} else if then.Scale != nil && !then.Clip {
			result = MatrixAddLevels
		}
	}
	f.call(result, j, p, added)
	runtime.KeepAlive(added)
}

// then sets what is added, and what happens then; nil adds nothing.
func (j *MatrixJob) then(then *End, added unsafe.Pointer) {
	j.scale2, j.shift2, j.clip2, j.low2, j.high2 = nil, nil, 0, then.Low, then.High
	if then.Scale != nil {
		j.scale2, j.shift2 = unsafe.Pointer(&then.Scale[0]), unsafe.Pointer(&then.Shift[0])
	}
	if then.Clip {
		j.clip2 = 1
	}
	if added != nil {
		j.added = uintptr(added) - uintptr(j.Dst) + 1
	}
}

// fakeQuantize sets what makes levels of the outputs, and values of these, before something is added.
func (j *MatrixJob) fakeQuantize(q *FakeQuantize) {
	j.fakeLevel, j.fakeMove = unsafe.Pointer(&q.Levels.Scale[0]), unsafe.Pointer(&q.Levels.Shift[0])
	j.fakeRest = unsafe.Pointer(unsafe.SliceData(q.Levels.Rest))
	j.fakeScale, j.fakeShift = unsafe.Pointer(&q.Scale[0]), unsafe.Pointer(&q.Shift[0])
	j.fakeLeast, j.fakeMost, j.fakeLow = q.Levels.Least, q.Levels.Most, q.Low+float32(q.Levels.Offset)
}

// end sets the end of the outputs, to which nothing is added.
func (j *MatrixJob) end(end *End) {
	j.scale, j.shift, j.slope, j.clip, j.added = nil, nil, nil, 0, 0
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
