package kern

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Wide are the kernels of instruction sets that keep many output channels side by side in a
// register. They need no horizontal sums, and compare all outputs with thresholds at once, so that
// sums need not go through memory.
//
// Outputs come in blocks of BlockOutputs, one packed word each. A patch is a number of runs of
// pieces: 32 bits, one nibble, or four bytes.
type Wide struct {
	// Nibbles says that patches of bits take 8 bytes for 32 bits, as Expand or ExpandBytes writes them
	// (see Expander), instead of 32 bits in every piece.
	Nibbles bool
	// MaxPlanes is the largest number of bit planes of the input and of the output for ConvPlanes,
	// 1 if there are no such kernels.
	MaxPlanes int
	// MaxTaps is the largest number of taps that the kernels of bits sum.
	MaxTaps int

	// PackBits and PackBytes lay out weights of patches of bits and of bytes:
	// outputs × rows runs of n taps, each starting at a word boundary.
	PackBits, PackBytes func(w []uint64, outputs, rows, n int) *WideFilter
	// PackInt8 lays out 8-bit weights, outputs × rows runs of n taps, for patches of bytes of at
	// most most. Its kernels have neither Conv nor Pooled. nil if there are none.
	PackInt8 func(w []int8, outputs, rows, n int, most uint8) *WideFilter
	// Winograd are the kernels of F(2×2, 3×3) for 8-bit weights; nil if there are none.
	Winograd *Winograd
	// PackInt16 is PackInt8 for 16-bit weights.
	PackInt16 func(w []int16, outputs, rows, n int) *WideFilter
	// PackCarries is PackBits for kernels that read patches as Patches writes them, one run of
	// RunBytes each. A patch is used times times, for all outputs. It returns nil if the kernels of
	// PackBits are faster. nil if there are none.
	PackCarries func(w []uint64, outputs, rows, n, times int) *WideFilter

	// Parities makes each piece the XOR of all up to it: dst[i] ^= dst[i−1] for i from 1 on, in
	// order.
	//
	// Patches writes the parities of patches one after the other, an even number of pieces each:
	// the XOR of all pieces of a patch up to each, with a 0 behind an odd number. The patch of p is
	// at src + at[p]: rows runs of run bytes, a multiple of 4, step bytes apart. src must hold
	// parities, also the piece before each run. Patches may write 60 bytes of dst behind the last
	// patch. There is at least one patch.
	//
	// nil if PackCarries is.
	Parities func(dst []uint32)
	Patches  func(dst []uint8, src unsafe.Pointer, at []uint32, rows, run, step int)

	// Expand stores the nibbles of src, the lowest first, in the high halves of bytes,
	//
	//	dst[8·i + n] = 16·(src[i]>>(4·n) & 15)
	//
	// nil if Nibbles is not set.
	Expand func(dst []uint8, src []uint32)
	// ExpandBytes stores the bytes of src, the lowest first, as little-endian 16-bit numbers,
	//
	//	dst[8·i + 2·n : 8·i + 2·n + 2] = 32·(src[i]>>(8·n) & 255)
	//
	// for filters of PairedBytes; nil if there are none.
	ExpandBytes func(dst []uint8, src []uint32)
}

// Expander returns Expand or ExpandBytes, as the filter wants patches of bits; nil where they hold
// 32 bits in every piece.
func (w *Wide) Expander(f *WideFilter) func(dst []uint8, src []uint32) {
	if f.PairedBytes {
		return w.ExpandBytes
	}
	return w.Expand
}

// BlockOutputs is the number of outputs of a block.
const BlockOutputs = bits.WordBits

// WideFilter is the weights of a convolution, and the kernels that they are laid out for. The
// layout is [block][group of outputs][row][piece][output].
type WideFilter struct {
	RunBytes int     // of a patch
	Rows     int     // runs of a patch
	Tail     uint64  // mask of the last piece of a run, or what else kernels need
	Fix      []int32 // by output: to be added to the sums of kernels of bytes; nil for nothing
	Budget   int     // bytes of a patch that kernels may sum in 16 bits
	Patches  bool    // the kernels read what Wide.Patches writes
	// PairedBytes says that kernels read what Wide.ExpandBytes writes.
	PairedBytes bool
	Form        string // which form the kernels have, if there are several
	Why         string // why that form was picked
	blocks      []filterBlock
	data        []uint8
	rows        int // as the weights lie
	pieces      int // of a row
	pieceBytes  int
	group       int // outputs of a group; 0 means all of a block
	outputs     int
	rest        *WideFilter // the next filter of PackParts; nil for others
}

// filterBlock is the weights of a block and their kernels.
type filterBlock struct {
	WideKernels
	offset, size int // of the weights in data
}

// WideKernels are kernels for a block of outputs. All take the address of a ConvJob.
type WideKernels struct {
	Outputs    int // that they compute; those beyond the last are padding
	Each       int // outputs per call of Sums, Floats and Levels; 0 means all
	Conv, Sums func(job *uint8)
	Floats     func(job *uint8) // nil if there is none
	Levels     func(job *uint8) // nil if there is none
	// Pooled is nil if there is none. PooledAlike is for pixels with the same thresholds; nil
	// stands for Pooled.
	Pooled, PooledAlike func(job *uint8)
	// Planes are the kernels by number of planes of the input and of the output, 0 for sums.
	Planes map[[2]int]func(job *uint8)
}

// ConvJob is one call of a kernel, which convolves a number of pixels with one block. The kernels
// rely on the offsets of the fields, and change them.
type ConvJob struct {
	Dst     unsafe.Pointer // uint64 for bits, int32 for sums
	DstStep uintptr        // bytes from a pixel to the next
	Src     unsafe.Pointer
	At      *uint32        // offset in bytes of the patch of each pixel in Src
	Class   *uint32        // offset in bytes of the thresholds of each pixel in Table
	Table   unsafe.Pointer // int32, of the outputs of the block
	weights unsafe.Pointer
	rows    uintptr
	run     uintptr // bytes of a run
	skip    uintptr // bytes from the end of a run to the next one
	Pixels  uintptr
	Flip    uint64
	tail    uint64

	// How far the kernel is. Not pointers: in the end they are beyond the slices.
	dst, at, class uintptr

	// Of ConvFloats.
	scale, shift, slope unsafe.Pointer
	clip                uintptr // 0 or 1
	low, high           float32
	added               uintptr // one more than the offset from Dst of the values to add; 0 for none

	// Of bit planes: bytes from a threshold of the outputs to the next, and from the word of a
	// plane to that of the next.
	Next, DstPlane uintptr

	budget  uintptr // bytes of a patch after which narrow sums could overflow
	in, out uintptr // planes

	// Of ConvLevels.
	levelScale, levelShift, levelRest unsafe.Pointer
	least, most                       float32
	offset                            int32
}

// Conv computes packed words. With c the number of bits in which the patch and the weights of
// output o differ, or the sum of bytes times weights,
//
//	bit o of Dst = Table[o] ≥ c for bits, c − Fix[o] ≥ Table[o] for bytes, XOR Flip
//
// rowStep is the distance of two runs in bytes.
func (w *WideFilter) Conv(j *ConvJob, block, rowStep int) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, 8, 1)
	b.Conv((*uint8)(unsafe.Pointer(j)))
}

// Pools reports whether there are kernels for ConvPooled.
func (w *WideFilter) Pools() bool {
	for i := range w.blocks {
		if w.blocks[i].Pooled == nil {
			return false
		}
	}
	return true
}

// ConvPooled computes the packed words of pools of four pixels, which follow each other in the
// lists of the job: bit o of Dst is set if Conv would set it for any of them, XOR Flip. The number
// of pixels is a multiple of four; DstStep is the distance of two words. alike says that all pixels
// have the thresholds of the first one, as pixels of bytes must.
func (w *WideFilter) ConvPooled(j *ConvJob, block, rowStep int, alike bool) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, 8, 4)
	if alike {
		b.PooledAlike((*uint8)(unsafe.Pointer(j)))
	} else {
		b.Pooled((*uint8)(unsafe.Pointer(j)))
	}
}

// ConvSums computes int32 sums of all outputs of the block:
//
//	Dst[o] = Table[o] − 2·c for bits, Table[o] + c − Fix[o] for bytes
func (w *WideFilter) ConvSums(j *ConvJob, block, rowStep int) {
	if w.rest != nil {
		w.convParts(j, block, rowStep)
	} else {
		w.convSums(j, block, rowStep)
	}
}

func (w *WideFilter) convSums(j *ConvJob, block, rowStep int) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, 4*b.Outputs, 1)
	b.call(j, b.Sums, 4)
}

// call calls Sums, Floats or Levels for all outputs of the block, which take size bytes each.
func (b *filterBlock) call(j *ConvJob, kernel func(*uint8), size int) {
	if b.Each == 0 || b.Each == b.Outputs {
		kernel((*uint8)(unsafe.Pointer(j)))
		return
	}
	all, values, weights := *j, 4*b.Each, b.size/b.Outputs*b.Each
	for i := range b.Outputs / b.Each {
		*j = all
		j.weights = unsafe.Add(j.weights, i*weights)
		j.Table, j.dst = unsafe.Add(j.Table, i*values), j.dst+uintptr(i*b.Each*size)
		for _, row := range []*unsafe.Pointer{&j.scale, &j.shift, &j.slope, &j.levelScale, &j.levelShift, &j.levelRest} {
			if *row != nil {
				*row = unsafe.Add(*row, i*values)
			}
		}
		kernel((*uint8)(unsafe.Pointer(j)))
	}
	*j = all
}

// EndsFloats reports whether there are kernels for ConvFloats of all blocks.
func (w *WideFilter) EndsFloats() bool { return w.FloatBlocks() == len(w.blocks) }

// FloatBlocks returns how many blocks, from the first one on, there are kernels for ConvFloats of. They
// have no padding, so the outputs must fill a block.
func (w *WideFilter) FloatBlocks() (n int) {
	if w.rest != nil {
		return 0
	}
	filled := 0
	for i := range w.blocks {
		if filled += w.blocks[i].Outputs; w.blocks[i].Floats == nil || filled > w.outputs {
			break
		}
		n++
	}
	return n
}

// ConvFloats computes float32 values of all outputs of the block,
//
//	Dst[o] = end of float32(Table[o] − 2·c for bits, Table[o] + c − Fix[o] for bytes) + added[o]
//
// end is that of the block. added has the steps of Dst; nil adds nothing.
func (w *WideFilter) ConvFloats(j *ConvJob, block, rowStep int, end *End, added unsafe.Pointer) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, 4*b.Outputs, 1)
	annotateEnd(j, b, end, added)
	j.end(end)
	if j.added = 0; added != nil {
		j.added = uintptr(added) - uintptr(j.Dst) + 1
	}
	b.call(j, b.Floats, 4)
	runtime.KeepAlive(added)
}

// EndsLevels reports whether there are kernels for ConvLevels.
func (w *WideFilter) EndsLevels() bool {
	for i := range w.blocks {
		if w.blocks[i].Levels == nil {
			return false
		}
	}
	return w.EndsFloats()
}

// ConvLevels computes, as bytes, the levels l of what ConvFloats computes. l must be Usual, with a
// scale and a shift for each output of the block.
func (w *WideFilter) ConvLevels(j *ConvJob, block, rowStep int, end *End, l *Levels) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, b.Outputs, 1)
	annotateEnd(j, b, end, nil)
	annotateLevels(b, l)
	j.end(end)
	j.levels(l)
	b.call(j, b.Levels, 1)
}

// levels sets the levels of the outputs.
func (j *ConvJob) levels(l *Levels) {
	j.levelScale, j.levelShift, j.levelRest = unsafe.Pointer(&l.Scale[0]), unsafe.Pointer(&l.Shift[0]), unsafe.Pointer(unsafe.SliceData(l.Rest))
	j.least, j.most, j.offset = l.Least, l.Most, l.Offset
}

// end sets the end of the outputs.
func (j *ConvJob) end(end *End) {
	j.scale, j.shift, j.slope, j.clip = nil, nil, nil, 0
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

// ConvPlanes computes the packed words of bit planes. The patches of the planes of a pixel follow
// each other in the lists of the job, which count as Pixels; c is the sum of their counts times
// 2^j. The word of plane j is j·DstPlane behind Dst. Its bit o is bit j of the number of k < 2^out
// − 1 for which
//
//	Table[k·Next + o] ≥ c
//
// XOR Flip. If out is 0, it computes int32 sums Table[o] − 2·c like ConvSums.
func (w *WideFilter) ConvPlanes(j *ConvJob, in, out, block, rowStep int) {
	b := w.prepare(j, block, rowStep)
	annotatePlanes(j, w, b, in, out)
	j.in, j.out = uintptr(in), uintptr(out)
	b.Planes[[2]int{in, out}]((*uint8)(unsafe.Pointer(j)))
}

func (w *WideFilter) prepare(j *ConvJob, block, rowStep int) *filterBlock {
	b := &w.blocks[block]
	j.weights = unsafe.Pointer(&w.data[b.offset])
	j.rows, j.tail, j.budget = uintptr(w.Rows), w.Tail, uintptr(w.Budget)
	j.run = uintptr(w.RunBytes)
	j.skip = uintptr(rowStep - w.RunBytes)
	j.dst, j.at, j.class = uintptr(j.Dst), uintptr(unsafe.Pointer(j.At)), uintptr(unsafe.Pointer(j.Class))
	return b
}

// NewWideFilter returns a filter of rows runs of pieces pieces, with weights of 0. Its blocks have
// BlockOutputs outputs; the last one has as few as there are kernels for. kernels are sorted by
// their outputs, and the last ones are for a whole block. A piece of a patch and its weights for
// one output have the same length.
func NewWideFilter(outputs, rows, pieces, pieceBytes int, kernels []WideKernels) *WideFilter {
	w := &WideFilter{RunBytes: pieces * pieceBytes, Rows: rows, rows: rows, pieces: pieces, pieceBytes: pieceBytes}
	w.data = aligned(w.divide(outputs, kernels))
	return w
}

// NewGroupedFilter is NewWideFilter for kernels that compute the outputs of a block in groups, one
// after the other. A run of a patch has run bytes; its last pieces may be longer. Kernels read the
// pieces of a group ahead, even behind the last ones.
func NewGroupedFilter(outputs, group, rows, run, pieces, pieceBytes int, kernels []WideKernels) *WideFilter {
	w := &WideFilter{RunBytes: run, Rows: rows, rows: rows, pieces: pieces, pieceBytes: pieceBytes, group: group}
	size := w.divide(outputs, kernels)
	w.data = aligned(size + group*pieceBytes)[:size]
	return w
}

// divide makes the blocks, and returns the size of their weights in bytes.
func (w *WideFilter) divide(outputs int, kernels []WideKernels) (size int) {
	w.outputs = outputs
	for o := 0; o < outputs; o += BlockOutputs {
		b := filterBlock{WideKernels: kernels[0], offset: size}
		for i := 1; b.Outputs < min(outputs-o, BlockOutputs); i++ {
			b.WideKernels = kernels[i]
		}
		if b.PooledAlike == nil {
			b.PooledAlike = b.Pooled
		}
		b.size = w.rows * w.pieces * w.pieceBytes * b.Outputs
		w.blocks = append(w.blocks, b)
		size += b.size
	}
	return size
}

// Pieces returns the number of pieces of a run.
func (w *WideFilter) Pieces() int { return w.pieces }

// Piece returns the weights of output o for a piece of a run.
func (w *WideFilter) Piece(o, row, piece int) []uint8 {
	b := &w.blocks[o/BlockOutputs]
	group, o := w.group, o%BlockOutputs
	if group == 0 {
		group = b.Outputs
	}
	at := ((o/group*w.rows+row)*w.pieces+piece)*group + o%group
	return w.data[b.offset+at*w.pieceBytes:][:w.pieceBytes]
}

// aligned returns n bytes that start at a multiple of alignment.
func aligned(n int) []uint8 {
	return alignedPart(make([]uint8, n+alignment), n)
}

// AlignedBytes returns n bytes that start where a line of the cache does.
func AlignedBytes(n int) []uint8 { return aligned(n) }

// alignment is that of the weights that kernels read, in bytes.
const alignment = 64

// alignedPart returns n elements of memory that start at a multiple of alignment. memory must have
// n elements, and alignment bytes more.
func alignedPart[T uint8 | uint64 | float32](memory []T, n int) []T {
	var element T
	size := unsafe.Sizeof(element)
	return memory[-uintptr(unsafe.Pointer(&memory[0]))%alignment/size:][:n:n]
}

// PackSigns lays out pieces of perPiece taps as int8 of −1 and +1, and 0 behind the end of a run.
func PackSigns(w []uint64, outputs, rows, n, perPiece int, kernels []WideKernels) *WideFilter {
	words := bits.Words(n)
	out := NewWideFilter(outputs, rows, (n+perPiece-1)/perPiece, perPiece, kernels)
	out.Budget = PairBudget(1, 1, 255)
	for o := range outputs {
		for r := range rows {
			run := w[(o*rows+r)*words:][:words]
			for i := range n {
				out.Piece(o, r, i/perPiece)[i%perPiece] = uint8(bits.At(run, i))
			}
		}
	}
	return out
}

// PairBudget returns how many bytes of a patch, of at most most, can be summed in 16 bits if pairs
// of them are multiplied by weights a and b. It is 0 if not even one pair can.
func PairBudget(a, b int8, most uint8) int {
	pair := (max(int(a), -int(a)) + max(int(b), -int(b))) * int(most)
	return 2 * (math.MaxInt16 / max(pair, 1))
}

// PackPairs is PackPieces for pieces of two taps, whose products with bytes of at most most are
// summed in 16 bits. It returns nil if sums of few of them would overflow.
func PackPairs(w []int8, outputs, rows, n int, most uint8, kernels []WideKernels) *WideFilter {
	const few = 4 // pieces
	budget := math.MaxInt32
	for run := w[:outputs*rows*n]; len(run) > 0; run = run[n:] {
		for i := 0; i < n; i += 2 {
			second := int8(0)
			if i+1 < n {
				second = run[i+1]
			}
			budget = min(budget, PairBudget(run[i], second, most))
		}
	}
	if budget < 2*few {
		return nil
	}
	out := PackPieces(w, outputs, rows, n, 2, kernels)
	out.Budget = budget
	return out
}

// PackWords lays out pieces of 4 taps as two pairs of int16: the first and the third, then the
// second and the fourth. Kernels compute each outputs at a time, or all of a block if each is 0.
func PackWords[W int8 | int16](w []W, outputs, rows, n, each int, kernels []WideKernels) *WideFilter {
	pieces := (n + 3) / 4
	out := NewGroupedFilter(outputs, each, rows, 4*pieces, 2*pieces, 4, kernels)
	for o := range outputs {
		for r := range rows {
			for i, v := range w[(o*rows+r)*n:][:n] {
				at := out.Piece(o, r, i/4*2+i%2)[i%4/2*2:]
				at[0], at[1] = uint8(v), uint8(int16(v)>>8)
			}
		}
	}
	return out
}

// PackPieces lays out pieces of perPiece taps, and 0 behind the end of a run.
func PackPieces(w []int8, outputs, rows, n, perPiece int, kernels []WideKernels) *WideFilter {
	out := NewWideFilter(outputs, rows, (n+perPiece-1)/perPiece, perPiece, kernels)
	for o := range outputs {
		for r := range rows {
			for i, v := range w[(o*rows+r)*n:][:n] {
				out.Piece(o, r, i/perPiece)[i%perPiece] = uint8(v)
			}
		}
	}
	return out
}

// PackNibbles lays out one nibble of weights in every byte.
func PackNibbles(w []uint64, outputs, rows, n int, kernels []WideKernels) *WideFilter {
	words, pieces := bits.Words(n), (n+3)/4
	out := NewWideFilter(outputs, rows, pieces, 1, kernels)
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				out.Piece(o, r, i)[0] = uint8(w[(o*rows+r)*words+i/16]>>(i%16*4)) & 15
			}
		}
	}
	return out
}

// PackPairedBytes is PackNibbles for kernels that read what Wide.ExpandBytes writes, and whose vectors
// have both nibbles of a byte, for 16 outputs: [byte][nibble][output].
func PackPairedBytes(w []uint64, outputs, rows, n int, kernels []WideKernels) *WideFilter {
	out := PackNibbles(w, outputs, rows, num.RoundUp(n, 8), kernels)
	out.PairedBytes = true
	return out
}
