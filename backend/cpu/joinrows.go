package cpu

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// joinedRows are rows of few channels: the taps of a row of a window fit into a
// piece of 32 bits. Every input row becomes a row of such pieces, one for every
// position of the window. Where several of them fit into one piece, rows are
// joined again: the 25 taps of a 5×5 window on one channel are one piece.
type joinedRows struct {
	window
	set *kern.Set
	in  *bcnn.Tensor

	width  int // positions in a row, those between strides included
	bits   int // of a row of a window
	join   int // rows of a window in a piece
	pieces int // of a window
	tile   int // output rows of a tile
	joined int // where the joined rows start in the scratch
}

func (c *compiler) joinedRows(op *bcnn.ConvStep, w window) (rowSource, *kern.Weights) {
	b := &joinedRows{window: w, set: c.set, in: c.in, bits: w.KW * w.group}
	_, cols := w.span(1)
	b.width = cols - (w.KW-1)*w.DilationW
	b.join = min(pieceBits/b.bits, w.KH)
	if c.set.Wide.Nibbles {
		// Rows that end within a nibble are cheaper together, others are not
		// worth the joining.
		nibbles := func(join int) int { return ceilDiv(w.KH, join) * ceilDiv(join*b.bits, 4) }
		for n := b.join; n >= 1; n-- {
			if nibbles(n) <= nibbles(b.join) {
				b.join = n
			}
		}
	}
	b.pieces = ceilDiv(w.KH, b.join)
	weights := packTaps(op.Bits, op.Out, w.KH*w.KW, w.group)
	weights = splitRuns(weights, op.Out, w.taps(), b.join*b.bits)
	return b, c.set.Wide.PackBits(weights, op.Out, b.pieces, b.join*b.bits)
}

// splitRuns cuts rows of total bits, each of which starts a word, into runs of
// n bits, the last one filled up with zeros.
func splitRuns(src []uint64, rows, total, n int) []uint64 {
	words, runs, run := bits.Words(total), ceilDiv(total, n), bits.Words(n)
	dst := make([]uint64, rows*runs*run)
	for r := range rows {
		for k := range runs {
			copyBits(dst[(r*runs+k)*run:][:run], 0, src[r*words:][:words], k*n, min(n, total-k*n))
		}
	}
	return dst
}

func (b *joinedRows) need(rows int) scratchSize {
	b.tile = rows
	height, cols := b.span(rows)
	made := product(height, b.width)
	// A row of pixels comes first, then the rows of the windows.
	b.joined = roundUp(cols, 2) + roundUp(made, 2)
	size := b.joined
	if b.join > 1 {
		made = product(rows, b.pieces, b.width)
		size += made
	}
	need := scratchSize{words: ceilDiv(size, 2)}
	if b.set.Wide.Nibbles {
		need.bytes = product(made, 8)
	}
	return need
}

func (b *joinedRows) steps() (row, pixel, run int) {
	unit := pieceBytes(b.set.Wide)
	if b.join == 1 {
		return b.StrideH * b.width * unit, b.StrideW * unit, b.DilationH * b.width * unit
	}
	return b.width * unit, b.StrideW * unit, b.tile * b.width * unit
}

func (b *joinedRows) load(s *scratch, image, first, rows int) unsafe.Pointer {
	all := unsafe.Slice((*uint32)(unsafe.Pointer(&s.words[0])), 2*len(s.words))
	height, cols := b.span(rows)
	pixels := all[:cols]
	left := min(b.Pad.Left, cols)
	inside := min(b.image.W, cols-left)
	clear(pixels[:left])
	clear(pixels[left+inside:])
	made := all[roundUp(cols, 2):][:height*b.width]
	for r := range height {
		dst := made[r*b.width:][:b.width]
		y := first*b.StrideH - b.Pad.Top + r
		if y < 0 || y >= b.image.H {
			clear(dst)
			continue
		}
		b.set.Narrow(pixels[left:][:inside], b.in.Words[(image*b.image.H+y)*b.image.W:][:inside])
		b.set.Join(dst, pixels, b.KW, b.DilationW, b.group)
	}
	if b.join > 1 {
		made = b.joinRows(all[b.joined:], made, rows)
	}
	if b.set.Wide.Nibbles {
		b.set.Wide.Expand(s.bytes[:8*len(made)], made)
		return unsafe.Pointer(&s.bytes[0])
	}
	return unsafe.Pointer(&made[0])
}

// joinRows makes [piece][output row][position] of [input row][position].
func (b *joinedRows) joinRows(dst, src []uint32, rows int) []uint32 {
	for k := range b.pieces {
		taps := min(b.join, b.KH-k*b.join)
		from := src[k*b.join*b.DilationH*b.width:]
		to := dst[k*b.tile*b.width:][:rows*b.width]
		if b.StrideH == 1 { // the rows follow each other
			b.set.Join(to, from, taps, b.DilationH*b.width, b.bits)
			continue
		}
		for y := range rows {
			b.set.Join(to[y*b.width:][:b.width], from[y*b.StrideH*b.width:], taps, b.DilationH*b.width, b.bits)
		}
	}
	return dst[:((b.pieces-1)*b.tile+rows)*b.width]
}
