package kern

import "unsafe"

// Picks says which channel of the input each channel of the output is, laid out for the Pick of a
// Set.
type Picks struct {
	Channels int     // of the input
	Index    []int32 // for each channel of the output; −1 for zeros
	// Vectors are the full vectors at the start of the output, in order.
	Vectors []PickVectors
}

// PickVectors are neighbouring vectors of the output with the same number of pieces.
type PickVectors struct {
	First, Count int
	Each         int // pieces of a vector, 1 to maxPieces
	pieces       []PickPiece
}

// PickPiece is what a vector of the output takes of one vector of the input. The kernels rely on
// the offsets of the fields.
type PickPiece struct {
	offset int       // of the vector of the input, in bytes
	mask   uint64    // bit i: lane i of the output takes a value
	index  [16]int32 // by lane of the output: the lane of the input
	lanes  [8]int32  // the mask in lanes
	bytes  [16]uint8 // the index in bytes, 255 for none
}

// maxPieces is the largest number of pieces of a vector that kernels take.
const maxPieces = 4

// NewPicks returns Picks for vectors of the given lanes. With 0 lanes, or if a vector has too many
// pieces, they have no Vectors.
func NewPicks(lanes, channels int, index []int32) *Picks {
	p := &Picks{Channels: channels, Index: index}
	if lanes == 0 || channels < lanes {
		return p
	}
	for first := 0; first+lanes <= len(index); first += lanes {
		pieces := pickPieces(index[first:first+lanes], channels)
		if len(pieces) > maxPieces {
			p.Vectors = nil
			return p
		}
		last := len(p.Vectors) - 1
		if last < 0 || p.Vectors[last].Each != len(pieces) {
			p.Vectors = append(p.Vectors, PickVectors{First: first / lanes, Each: len(pieces)})
			last++
		}
		v := &p.Vectors[last]
		v.Count++
		v.pieces = append(v.pieces, pieces...)
	}
	return p
}

// pickPieces returns pieces that cover the sources of a vector, in order of channels.
func pickPieces(index []int32, channels int) []PickPiece {
	lanes := len(index)
	done := make([]bool, lanes)
	var pieces []PickPiece
	for {
		first := -1
		for i, from := range index {
			if !done[i] && from >= 0 && (first < 0 || int(from) < first) {
				first = int(from)
			}
		}
		if first < 0 && len(pieces) > 0 {
			return pieces
		}
		first = max(0, min(first, channels-lanes)) // a vector of zeros has one piece without lanes
		piece := PickPiece{offset: 4 * first}
		for i := range piece.bytes {
			piece.bytes[i] = 255
		}
		for i, from := range index {
			lane := int(from) - first
			if done[i] || from < 0 || lane >= lanes {
				continue
			}
			done[i] = true
			piece.mask |= 1 << i
			piece.index[i] = int32(lane)
			if i < len(piece.lanes) {
				piece.lanes[i] = -1
			}
			for b := 0; b < 4 && 4*i+b < len(piece.bytes); b++ {
				piece.bytes[4*i+b] = uint8(4*lane + b)
			}
		}
		pieces = append(pieces, piece)
	}
}

// PickJob is one call of an assembly kernel behind Pick: some vectors of the output, and all
// pixels. The kernels rely on the offsets of the fields.
type PickJob struct {
	dst, src         unsafe.Pointer
	dstStep, srcStep uintptr // bytes
	pieces           unsafe.Pointer
	pixels, vectors  uintptr
}

// Job returns the job of vectors of the given lanes for at least one pixel.
func (p *Picks) Job(v *PickVectors, lanes int, dst, src []float32, pixels int) PickJob {
	return PickJob{
		dst: unsafe.Pointer(&dst[v.First*lanes]), src: unsafe.Pointer(&src[0]), dstStep: uintptr(4 * len(p.Index)),
		srcStep: uintptr(4 * p.Channels), pieces: unsafe.Pointer(&v.pieces[0]), pixels: uintptr(pixels), vectors: uintptr(v.Count),
	}
}

// Bytes returns the size of the pieces.
func (p *Picks) Bytes() int {
	n := 0
	for _, v := range p.Vectors {
		n += len(v.pieces) * int(unsafe.Sizeof(v.pieces[0]))
	}
	return n
}

// Done returns how many channels of the output are in Vectors, each of the given lanes.
func (p *Picks) Done(lanes int) int {
	if len(p.Vectors) == 0 {
		return 0
	}
	last := p.Vectors[len(p.Vectors)-1]
	return lanes * (last.First + last.Count)
}

// Halves is the number of float32 values that a word is moved as.
const Halves = 2

// AsFloats returns words as float32 values that can be moved, but not computed with.
func AsFloats(words []uint64) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), Halves*len(words))
}

// Address is what the assembly takes.
func (j *PickJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
