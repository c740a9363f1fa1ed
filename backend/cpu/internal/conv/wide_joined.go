package conv

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// joinedRows are rows of few channels, of which a piece of 32 bits takes
// several taps of a row of a window. Every input row becomes one or more rows of
// such pieces, one for every position of the window. Where several rows of a
// window fit into one piece, they are joined again: the 25 taps of a 5×5 window
// on one channel are one piece, the 75 on three channels are three.
type joinedRows struct {
	window
	set    *kern.Set
	expand func(dst []uint8, src []uint32) // see kern.Wide.Expander
	in     *bcnn.Tensor

	width  int // positions in a row, those between strides included
	taps   int // of a row of a window in a piece
	parts  int // pieces of a row of a window
	join   int // rows of a window in a piece, more than 1 only if parts is 1
	pieces int // of a window, if join is more than 1
	tile   int // output rows of a tile
	joined int // where the joined rows start in the scratch
}

func newJoinedRows(c *schedule.Context, op *plan.Conv, w window) (rowSource, *kern.WideFilter) {
	b := &joinedRows{window: w, set: c.Set, in: c.In}
	_, cols := w.span(1)
	b.width = cols - (w.KW-1)*w.DilationW
	b.taps = min(pieceBits/w.group, w.KW)
	b.parts = num.CeilDiv(w.KW, b.taps)
	b.join = 1
	if b.parts == 1 {
		b.join = min(pieceBits/(w.KW*w.group), w.KH)
	}
	if c.Set.Wide.Nibbles {
		// Rows that end within a nibble are cheaper together, others are not
		// worth the joining.
		nibbles := func(join int) int { return num.CeilDiv(w.KH, join) * num.CeilDiv(join*w.KW*w.group, 4) }
		best := 1
		for n := 2; n <= b.join; n++ {
			if nibbles(n) < nibbles(best) {
				best = n
			}
		}
		b.join = best
	}
	b.pieces = num.CeilDiv(w.KH, b.join)
	filter := shareFilter(c, w, func() *kern.WideFilter {
		if b.join > 1 {
			n := b.join * w.KW * w.group
			weights := splitRuns(c, packTaps(c, op.Bits, op.Out, w.KH*w.KW, w.group), op.Out, w.taps(), n)
			return c.Set.Wide.PackBits(weights, op.Out, b.pieces, n)
		}
		n := b.taps * w.group
		weights := splitRuns(c, packTaps(c, op.Bits, op.Out*w.KH, w.KW, w.group), op.Out*w.KH, w.KW*w.group, n)
		return c.Set.Wide.PackBits(weights, op.Out, w.KH*b.parts, n)
	})
	b.expand = c.Set.Wide.Expander(filter)
	return b, filter
}

// splitRuns cuts rows of total bits, each of which starts a word, into runs of
// n bits, the last one filled up with zeros.
func splitRuns(c *schedule.Context, src []uint64, rows, total, n int) []uint64 {
	words, runs, run := bits.Words(total), num.CeilDiv(total, n), bits.Words(n)
	dst := make([]uint64, rows*runs*run)
	for r := range rows {
		if c.Ended() {
			break
		}
		bits.Split(dst[r*runs*run:][:runs*run], src[r*words:][:words], total, n)
	}
	return dst
}

func (b *joinedRows) need(rows int) tiles.Size {
	b.tile = rows
	height, cols := b.span(rows)
	made := num.Product(height, b.parts, b.width)
	// A row of pixels comes first, then the rows of the windows.
	b.joined = num.RoundUp(cols, 2) + num.RoundUp(made, 2)
	size := b.joined
	if b.join > 1 {
		made = num.Product(rows, b.pieces, b.width)
		size += made
	}
	need := tiles.Size{Words: num.CeilDiv(size, 2)}
	if b.set.Wide.Nibbles {
		need.Bytes = num.Product(made, 8)
	}
	return need
}

func (b *joinedRows) offset(y, x int) int {
	at := b.row(y) * b.parts * b.width
	if b.join > 1 {
		at = y * b.width
	}
	return (at + x*b.StrideW) * pieceBytes(b.set.Wide)
}

func (b *joinedRows) run() int {
	unit := b.width * pieceBytes(b.set.Wide)
	if b.join > 1 {
		return b.tile * unit
	}
	return b.DilationH * unit // 1 where a row has parts
}

func (b *joinedRows) load(s *tiles.Scratch, image, first, rows, _ int) unsafe.Pointer {
	all := unsafe.Slice((*uint32)(unsafe.Pointer(&s.Words[0])), 2*len(s.Words))
	height, cols := b.span(rows)
	pixels := all[:cols]
	left := min(b.Pad.Left, cols)
	inside := min(b.image.W, cols-left)
	clear(pixels[:left])
	clear(pixels[left+inside:])
	row := b.parts * b.width
	made := all[num.RoundUp(cols, 2):][:height*row]
	for r := range height {
		if b.interrupted(s) {
			break
		}
		dst := made[r*row:][:row]
		y := b.window.row(first) - b.Pad.Top + r
		if y < 0 || y >= b.image.H {
			clear(dst)
			continue
		}
		b.set.Narrow(pixels[left:][:inside], b.in.Words[b.tensorRow(image, y)*b.image.W:][:inside])
		for k := range b.parts {
			taps := min(b.taps, b.KW-k*b.taps)
			b.set.Join(dst[k*b.width:][:b.width], pixels[k*b.taps*b.DilationW:], taps, b.DilationW, b.group)
		}
	}
	if b.join > 1 {
		made = b.joinRows(all[b.joined:], made, rows)
	}
	if b.set.Wide.Nibbles {
		b.expand(s.Bytes[:8*len(made)], made)
		return unsafe.Pointer(&s.Bytes[0])
	}
	return unsafe.Pointer(&made[0])
}

// joinRows makes [piece][output row][position] of [input row][position].
func (b *joinedRows) joinRows(dst, src []uint32, rows int) []uint32 {
	shift := b.KW * b.group
	for k := range b.pieces {
		taps := min(b.join, b.KH-k*b.join)
		from := src[k*b.join*b.DilationH*b.width:]
		to := dst[k*b.tile*b.width:][:rows*b.width]
		if b.StrideH == 1 { // the rows follow each other
			b.set.Join(to, from, taps, b.DilationH*b.width, shift)
			continue
		}
		for y := range rows {
			b.set.Join(to[y*b.width:][:b.width], from[b.window.row(y)*b.width:], taps, b.DilationH*b.width, shift)
		}
	}
	return dst[:((b.pieces-1)*b.tile+rows)*b.width]
}
