package kern

import "unsafe"

// Picks says which channels of the input the channels of the output are, laid out for
// the Pick of a Set.
type Picks struct {
	Channels int     // of the input
	Index    []int32 // for each channel of the output; −1 for zeros
	// Vectors are the first vectors of the output.
	Vectors []PickVectors
}

// PickVectors are neighbouring vectors of the output that have as many pieces each.
type PickVectors struct {
	First, Count int
	Each         int // pieces, 1 to maxPieces
	pieces       []PickPiece
}

// PickPiece is what a vector of the output gets of a vector of the input. The kernels
// know the places of the fields.
type PickPiece struct {
	offset int       // of the vector of the input, in bytes
	mask   uint64    // bit i: lane i of the output gets something
	index  [16]int32 // and of which lane of the input
	lanes  [8]int32  // the mask in lanes
	bytes  [16]uint8 // the index of bytes, 255 for none
}

// maxPieces is the number of pieces that kernels take.
const maxPieces = 4

// NewPicks returns the Picks for vectors of so many lanes, 0 for none.
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

// pickPieces covers the sources of a vector from the first one on.
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
		first = max(0, min(first, channels-lanes)) // zeros alone are a piece without lanes
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

// PickJob is one call of an assembly kernel behind Pick: some vectors of the output of
// all pixels. The kernels know the places of the fields.
type PickJob struct {
	dst, src         unsafe.Pointer
	dstStep, srcStep uintptr // bytes
	pieces           unsafe.Pointer
	pixels, vectors  uintptr
}

// Job returns the job of vectors of so many lanes, for pixels, of which there is one.
func (p *Picks) Job(v *PickVectors, lanes int, dst, src []float32, pixels int) PickJob {
	return PickJob{
		dst: unsafe.Pointer(&dst[v.First*lanes]), src: unsafe.Pointer(&src[0]), dstStep: uintptr(4 * len(p.Index)),
		srcStep: uintptr(4 * p.Channels), pieces: unsafe.Pointer(&v.pieces[0]), pixels: uintptr(pixels), vectors: uintptr(v.Count),
	}
}

// Bytes is the size of the table.
func (p *Picks) Bytes() int {
	n := 0
	for _, v := range p.Vectors {
		n += len(v.pieces) * int(unsafe.Sizeof(v.pieces[0]))
	}
	return n
}

// Done is the number of channels of the output that are in vectors of so many lanes.
func (p *Picks) Done(lanes int) int {
	if len(p.Vectors) == 0 {
		return 0
	}
	last := p.Vectors[len(p.Vectors)-1]
	return lanes * (last.First + last.Count)
}

// Halves is the number of values that a word is moved as.
const Halves = 2

// AsFloats returns words as values that can be picked, which no arithmetic must be done with.
func AsFloats(words []uint64) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), Halves*len(words))
}

// Address is what the assembly takes.
func (j *PickJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
