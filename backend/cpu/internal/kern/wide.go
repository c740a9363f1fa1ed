package kern

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// Wide are the kernels of instruction sets that keep many output channels side
// by side in a register: no horizontal sums, and thresholds are compared with
// all of them at once, so that sums need not go through memory.
//
// Outputs come in blocks of BlockOutputs, one packed word each. A patch is a
// number of runs of pieces: 32 bits, one nibble, or four bytes.
type Wide struct {
	// Nibbles says that patches of bits hold one nibble in the high half of
	// every byte (see ExpandNibbles), not 32 bits in every piece.
	Nibbles bool
	// MaxTaps is the largest number of taps that the kernels of bits sum.
	MaxTaps int

	// PackBits and PackBytes lay out weights of patches of bits and of bytes:
	// outputs × rows runs of n taps, each starting at a word boundary.
	PackBits, PackBytes func(w []uint64, outputs, rows, n int) *WideFilter

	// Expand is ExpandNibbles, nil where Nibbles is not set.
	Expand func(dst []uint8, src []uint32)
}

// BlockOutputs is the number of outputs of a block.
const BlockOutputs = bits.WordBits

// WideFilter is the ±1 weights of a convolution and the kernels that they are
// laid out for. The layout is [block][row][piece][vector of outputs].
type WideFilter struct {
	RunBytes int // of a patch
	blocks   []filterBlock
	data     []uint8
	rows     int
	tail     uint64 // mask of the last piece of a run, where kernels need it
}

// filterBlock is the weights of a block, and their kernels.
type filterBlock struct {
	offset     int // in data, which it takes size bytes of
	size       int
	outputs    int // that the kernels compute, those beyond the last being padding
	bits, sums func(job *uint8)
	pooled     pooledKernels
}

// pooledKernels are nil if there are none. Those of alike are for pixels with
// the same thresholds.
type pooledKernels struct{ any, alike func(job *uint8) }

// ConvJob is one call of a kernel: it convolves a number of pixels with one block.
// The kernels know the places of the fields, and change them.
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

	// How far the kernel is. Not pointers, because in the end they are beyond
	// what they pointed to.
	dst, at, class uintptr
}

// Conv computes packed words: with c the number of bits in which the patch and
// the weights of output o differ, or the sum of bytes times weights,
//
//	bit o of Dst = Table[o] ≥ c for bits, c ≥ Table[o] for bytes, XOR Flip
//
// rowStep is the distance of two runs in bytes.
func (w *WideFilter) Conv(j *ConvJob, block, rowStep int) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, 8, 1)
	b.bits((*uint8)(unsafe.Pointer(j)))
}

// Pools reports whether there are kernels for ConvPooled.
func (w *WideFilter) Pools() bool {
	for i := range w.blocks {
		if w.blocks[i].pooled.any == nil {
			return false
		}
	}
	return true
}

// ConvPooled computes packed words of four pixels, which follow each other in the
// lists of the job: bit o of Dst is set where Conv would set it for any of them,
// XOR Flip. The number of pixels is a multiple of four, DstStep the distance of
// two words. alike says that all pixels have the thresholds of the first one, as
// those of bytes must.
func (w *WideFilter) ConvPooled(j *ConvJob, block, rowStep int, alike bool) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, 8, 4)
	if alike {
		b.pooled.alike((*uint8)(unsafe.Pointer(j)))
	} else {
		b.pooled.any((*uint8)(unsafe.Pointer(j)))
	}
}

// withPooled adds kernels for blocks of the given numbers of outputs.
func (w *WideFilter) withPooled(kernels func(outputs int) (any, alike func(*uint8))) *WideFilter {
	for i := range w.blocks {
		p := &w.blocks[i].pooled
		p.any, p.alike = kernels(w.blocks[i].outputs)
	}
	return w
}

// ConvSums computes int32 sums of all outputs of the block:
//
//	Dst[o] = Table[o] − 2·c for bits, Table[o] + c for bytes
func (w *WideFilter) ConvSums(j *ConvJob, block, rowStep int) {
	b := w.prepare(j, block, rowStep)
	annotateConv(j, w, b, 4*b.outputs, 1)
	b.sums((*uint8)(unsafe.Pointer(j)))
}

func (w *WideFilter) prepare(j *ConvJob, block, rowStep int) *filterBlock {
	b := &w.blocks[block]
	j.weights = unsafe.Pointer(&w.data[b.offset])
	j.rows, j.tail = uintptr(w.rows), w.tail
	j.run = uintptr(w.RunBytes)
	j.skip = uintptr(rowStep - w.RunBytes)
	j.dst, j.at, j.class = uintptr(j.Dst), uintptr(unsafe.Pointer(j.At)), uintptr(unsafe.Pointer(j.Class))
	return b
}

// newWeights lays out blocks of 64 outputs, or as many vectors of lanes outputs
// as the last outputs need. A vector is bytes long and belongs to one piece.
func newWeights(outputs, rows, pieces, pieceBytes, lanes, bytes int, kernels func(vectors int) (vectorsUsed int, bits, sums func(*uint8))) *WideFilter {
	w := &WideFilter{RunBytes: pieces * pieceBytes, rows: rows}
	size := 0
	for o := 0; o < outputs; o += BlockOutputs {
		vectors, bits, sums := kernels((min(outputs-o, BlockOutputs) + lanes - 1) / lanes)
		block := rows * pieces * vectors * bytes
		w.blocks = append(w.blocks, filterBlock{offset: size, size: block, outputs: vectors * lanes, bits: bits, sums: sums})
		size += block
	}
	w.data = aligned(size)
	return w
}

// piece returns the vectors of a piece, which hold the weights of output o.
func (w *WideFilter) piece(o, row, piece, pieces, bytesPerOutput int) []uint8 {
	b := &w.blocks[o/BlockOutputs]
	at := b.offset + ((row*pieces+piece)*b.outputs+o%BlockOutputs)*bytesPerOutput
	return w.data[at:][:bytesPerOutput]
}

// aligned returns n bytes from a multiple of 64 on.
func aligned(n int) []uint8 {
	const align = 64
	b := make([]uint8, n+align)
	return b[-uintptr(unsafe.Pointer(&b[0]))%align:][:n:n]
}

// packBits32 lays out pieces of 32 bits.
func packBits32(w []uint64, outputs, rows, n, lanes int, kernels func(int) (int, func(*uint8), func(*uint8))) *WideFilter {
	words, pieces := bits.Words(n), (n+31)/32
	out := newWeights(outputs, rows, pieces, 4, lanes, 4*lanes, kernels)
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				v := uint32(w[(o*rows+r)*words+i/2] >> (i % 2 * 32))
				d := out.piece(o, r, i, pieces, 4)
				d[0], d[1], d[2], d[3] = uint8(v), uint8(v>>8), uint8(v>>16), uint8(v>>24)
			}
		}
	}
	return out
}

// packSigns lays out pieces of perPiece taps as int8 of −1 and +1, and 0 where
// a piece is longer than the run.
func packSigns(w []uint64, outputs, rows, n, perPiece, pieceBytes, lanes int, kernels func(int) (int, func(*uint8), func(*uint8))) *WideFilter {
	words := bits.Words(n)
	pieces := (n + pieceBytes - 1) / pieceBytes * (pieceBytes / perPiece)
	out := newWeights(outputs, rows, pieces, perPiece, lanes, perPiece*lanes, kernels)
	for o := range outputs {
		for r := range rows {
			run := w[(o*rows+r)*words:][:words]
			for i := range n {
				out.piece(o, r, i/perPiece, pieces, perPiece)[i%perPiece] = uint8(bits.At(run, i))
			}
		}
	}
	return out
}

// packNibbles lays out nibbles, one in every byte.
func packNibbles(w []uint64, outputs, rows, n, lanes int, kernels func(int) (int, func(*uint8), func(*uint8))) *WideFilter {
	words, pieces := bits.Words(n), (n+3)/4
	out := newWeights(outputs, rows, pieces, 1, lanes, lanes, kernels)
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				out.piece(o, r, i, pieces, 1)[0] = uint8(w[(o*rows+r)*words+i/16]>>(i%16*4)) & 15
			}
		}
	}
	return out
}

// expandNibbles stores the nibbles of src, the lowest first, in the high halves
// of bytes: dst[8·i+n] = 16·(src[i]>>(4·n) & 15).
func expandNibbles(dst []uint8, src []uint32) {
	dst = dst[:8*len(src)]
	for i, v := range src {
		x := uint64(v)
		x = (x | x<<16) & 0x0000ffff0000ffff
		x = (x | x<<8) & 0x00ff00ff00ff00ff
		x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
		x <<= 4
		d := (*[8]uint8)(dst[8*i:])
		d[0], d[1], d[2], d[3] = uint8(x), uint8(x>>8), uint8(x>>16), uint8(x>>24)
		d[4], d[5], d[6], d[7] = uint8(x>>32), uint8(x>>40), uint8(x>>48), uint8(x>>56)
	}
}
