package cpu

import (
	"encoding/binary"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// pieceBits is the unit that rows of bits come in.
const pieceBits = 32

// bitRows are rows of bits in pieces of 32. Where that wastes little, every
// pixel is padded to whole pieces, and the runs of neighbours overlap. Else
// every output position gets its own run of a row, packed densely.
type bitRows struct {
	window
	wide *kern.Wide
	in   *bcnn.Tensor

	inPlace bool // read from the tensor
	runs    bool
	pitch   int // pieces from a pixel or run to the next
	row     int // pieces of a row
	dense   int // words of a row that is packed densely, from which runs are cut
	loaded  int // words of the scratch in which rows are made, after the dense row
}

func (c *compiler) wideBits(op *bcnn.ConvStep, w window) (rowSource, *kern.Weights) {
	if w.KH*w.KW > 1 && w.KW*w.group <= pieceBits && w.groups == 1 {
		return c.joinedRows(op, w)
	}
	b := &bitRows{window: w, wide: c.set.Wide, in: c.in}
	padded := ceilDiv(w.group, pieceBits)
	packed := ceilDiv(w.KW*w.group, pieceBits)
	b.runs = w.DilationW > 1 || 3*w.KW*padded > 4*packed
	_, cols := w.span(1)
	if b.runs {
		b.pitch = packed
		b.row = w.cols * packed
		b.dense = bits.Words(cols*w.group) + 1 // reads go beyond the last bit
		weights := packTaps(op.Bits, op.Out*w.KH, w.KW, w.group)
		return b, c.set.Wide.PackBits(weights, op.Out, w.KH, w.KW*w.group)
	}
	b.pitch = padded
	b.inPlace = !w.padded() && 2*bits.Words(w.group) == padded && !b.wide.Nibbles
	b.row = cols * padded
	if b.inPlace {
		b.row = w.image.W * padded
	}
	weights := padTaps(op.Bits, op.Out*w.KH, w.KW, w.group, padded*pieceBits)
	return b, c.set.Wide.PackBits(weights, op.Out, w.KH, w.KW*padded*pieceBits)
}

// padTaps packs rows of taps of n bits, each of which starts a word, to taps of
// pitch bits.
func padTaps(src []uint64, rows, taps, n, pitch int) []uint64 {
	words, out := bits.Words(n), bits.Words(taps*pitch)
	dst := make([]uint64, rows*out)
	for r := range rows {
		for k := range taps {
			copyBits(dst[r*out:][:out], k*pitch, src[(r*taps+k)*words:][:words], 0, n)
		}
	}
	return dst
}

func (b *bitRows) need(rows int) scratchSize {
	if b.inPlace {
		return scratchSize{}
	}
	height, _ := b.span(rows)
	made := ceilDiv(product(height, b.row), 2)
	if b.wide.Nibbles {
		return scratchSize{words: b.dense + ceilDiv(b.row, 2), bytes: product(height, b.row, 8)}
	}
	return scratchSize{words: b.dense + made}
}

// pieceBytes returns the bytes of a piece as kernels read it.
func pieceBytes(w *kern.Wide) int {
	if w.Nibbles {
		return 8
	}
	return 4
}

func (b *bitRows) steps() (row, pixel, run int) {
	pixel = b.pitch
	if !b.runs {
		pixel *= b.StrideW
	}
	unit := pieceBytes(b.wide)
	return b.StrideH * b.row * unit, pixel * unit, b.DilationH * b.row * unit
}

func (b *bitRows) load(s *scratch, image, first, rows int) unsafe.Pointer {
	y := first*b.StrideH - b.Pad.Top
	if b.inPlace {
		return unsafe.Pointer(&b.in.Words[(image*b.image.H+y)*b.row/2])
	}
	height, _ := b.span(rows)
	made := unsafe.Slice((*uint32)(unsafe.Pointer(&s.words[b.dense])), 2*(len(s.words)-b.dense))
	words := bits.Words(b.group)
	for r := range height {
		dst := made[:b.row]
		if !b.wide.Nibbles {
			dst = made[r*b.row:][:b.row]
		}
		switch {
		case y+r < 0 || y+r >= b.image.H:
			clear(dst)
		case b.runs:
			b.cut(dst, s.words[:b.dense], b.in.Words[(image*b.image.H+y+r)*b.image.W*words:][:b.image.W*words])
		default:
			b.pad(dst, b.in.Words[(image*b.image.H+y+r)*b.image.W*words:][:b.image.W*words])
		}
		if b.wide.Nibbles {
			b.wide.Expand(s.bytes[8*r*b.row:][:8*b.row], dst)
		}
	}
	if b.wide.Nibbles {
		return unsafe.Pointer(&s.bytes[0])
	}
	return unsafe.Pointer(&made[0])
}

// pad makes a row of whole pieces for every pixel.
func (b *bitRows) pad(dst []uint32, src []uint64) {
	_, cols := b.span(1)
	left := min(b.Pad.Left, cols)
	inside := min(b.image.W, cols-left)
	clear(dst[:left*b.pitch])
	clear(dst[(left+inside)*b.pitch:])
	dst = dst[left*b.pitch:][:inside*b.pitch]
	words := bits.Words(b.group)
	switch {
	case b.pitch == 2*words:
		for i, v := range src[:inside*words] {
			dst[2*i], dst[2*i+1] = uint32(v), uint32(v>>pieceBits)
		}
	case b.pitch == 1:
		for i, v := range src[:inside] {
			dst[i] = uint32(v)
		}
	default:
		for x := range inside {
			pixel := src[x*words:][:words]
			d := dst[x*b.pitch:][:b.pitch]
			for i := range d {
				d[i] = uint32(pixel[i/2] >> (i % 2 * pieceBits))
			}
		}
	}
}

// cut makes a row of runs.
func (b *bitRows) cut(dst []uint32, dense, src []uint64) {
	_, cols := b.span(1)
	clear(dense)
	left := min(b.Pad.Left, cols)
	joinPixels(dense, left*b.group, src, min(b.image.W, cols-left), b.group)
	if b.DilationW > 1 {
		clear(dst)
		var run [2]uint64
		for x := range b.cols {
			for k := range b.KW {
				// One piece at most at a time, at any position of the run.
				for i := 0; i < b.group; i += pieceBits {
					n := min(pieceBits, b.group-i)
					run[0], run[1] = 0, 0
					at := k*b.group + i
					copyBits(run[:], at%pieceBits, dense, (x*b.StrideW+k*b.DilationW)*b.group+i, n)
					d := dst[x*b.pitch+at/pieceBits:]
					d[0] |= uint32(run[0])
					if high := uint32(run[0] >> pieceBits); high != 0 {
						d[1] |= high
					}
				}
			}
		}
		return
	}
	bytes := unsafe.Slice((*uint8)(unsafe.Pointer(&dense[0])), 8*len(dense))
	n := b.KW * b.group
	last := uint32(1)<<((n-1)%pieceBits)<<1 - 1
	for x := range b.cols {
		at := x * b.StrideW * b.group
		d := dst[x*b.pitch:][:b.pitch]
		for i := range d {
			d[i] = uint32(binary.NativeEndian.Uint64(bytes[at>>3:]) >> (at & 7))
			at += pieceBits
		}
		d[len(d)-1] &= last
	}
}

// joinPixels packs pixels of n bits, each of which starts a word, from bit at
// of dst on. The bits there must be 0.
func joinPixels(dst []uint64, at int, src []uint64, pixels, n int) {
	words := bits.Words(n)
	if words > 1 {
		for p := range pixels {
			copyBits(dst, at+p*n, src[p*words:][:words], 0, n)
		}
		return
	}
	word, used := at/bits.WordBits, at%bits.WordBits
	acc := dst[word]
	for _, v := range src[:pixels] {
		acc |= v << (used & 63)
		if used += n; used >= bits.WordBits {
			dst[word] = acc
			word++
			used -= bits.WordBits
			acc = v >> ((n - used) & 63)
			if used == 0 {
				acc = 0
			}
		}
	}
	if used > 0 {
		dst[word] = acc
	}
}

// byteRows are rows of bytes with a border of the zero point. With dilation,
// every output position gets its own run of a row.
type byteRows struct {
	window
	in        *bcnn.Tensor
	zeroPoint uint8
	runs      bool
	row       int
	run       int // bytes of a run, which kernels read
}

func (c *compiler) wideBytes(op *bcnn.ConvStep, w window) (rowSource, *kern.Weights) {
	weights := c.set.Wide.PackBytes(packTaps(op.Bits, op.Out*w.KH, w.KW, w.group), op.Out, w.KH, w.KW*w.group)
	b := &byteRows{window: w, in: c.in, zeroPoint: op.ZeroPoint, runs: w.DilationW > 1, run: weights.RunBytes}
	_, cols := w.span(1)
	b.row = cols * w.group
	if b.runs {
		b.row = (cols + w.cols*w.KW) * w.group // the plain row comes first
	}
	return b, weights
}

func (b *byteRows) need(rows int) scratchSize {
	height, _ := b.span(rows)
	// The last run may end beyond the last row.
	return scratchSize{bytes: product(height, b.row) + b.run}
}

func (b *byteRows) steps() (row, pixel, run int) {
	pixel = b.StrideW * b.group
	if b.runs {
		pixel = b.KW * b.group
	}
	return b.StrideH * b.row, pixel, b.DilationH * b.row
}

func (b *byteRows) load(s *scratch, image, first, rows int) unsafe.Pointer {
	height, cols := b.span(rows)
	left := min(b.Pad.Left, cols)
	inside := min(b.image.W, cols-left)
	for r := range height {
		y := first*b.StrideH - b.Pad.Top + r
		row := s.bytes[r*b.row:][:b.row]
		dst := row[:cols*b.group]
		if y < 0 || y >= b.image.H {
			fill(dst, b.zeroPoint)
		} else {
			fill(dst[:left*b.group], b.zeroPoint)
			copy(dst[left*b.group:], b.in.U8[(image*b.image.H+y)*b.image.W*b.group:][:inside*b.group])
			fill(dst[(left+inside)*b.group:], b.zeroPoint)
		}
		if b.runs {
			at := len(dst)
			for x := range b.cols {
				for k := range b.KW {
					at += copy(row[at:], dst[(x*b.StrideW+k*b.DilationW)*b.group:][:b.group])
				}
			}
		}
	}
	if b.runs {
		return unsafe.Pointer(&s.bytes[cols*b.group])
	}
	return unsafe.Pointer(&s.bytes[0])
}
