package conv

import (
	"encoding/binary"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// rowSource brings the rows of the input that a tile needs into the layout of
// the kernels.
type rowSource interface {
	// need is the memory for the rows of the given number of outputs.
	need(rows int) tiles.Size
	// offset returns the distance in bytes of the patch of pixel x of row y of a
	// tile from that of its first pixel.
	offset(y, x int) int
	// run returns the distance in bytes of two runs of a patch.
	run() int
	// load returns the first patch of rows output rows, from row first on, of
	// the input channels of a group.
	load(s *tiles.Scratch, image, first, rows, group int) unsafe.Pointer
}

// pieceBits is the unit that rows of bits come in.
const pieceBits = 32

// pieceBytes returns the bytes of a piece as kernels read it.
func pieceBytes(w *kern.Wide) int {
	if w.Nibbles {
		return 8
	}
	return 4
}

// wideBits lays out the input and the weights of a convolution on bits.
//
// With carries, kernels may be picked that read patches, not rows.
func wideBits(c *schedule.Context, op *plan.Conv, w window, carries bool) (rowSource, *kern.WideFilter) {
	layout, why := pickLayout(c, w)
	c.Choice.Why += "; " + why
	switch layout {
	case joinedLayout:
		c.Choice.Kernel += ", joined rows"
		return newJoinedRows(c, op, w)
	case cutLayout:
		c.Choice.Kernel += ", dense runs"
		return newCutRows(c, op, w)
	}
	b := &bitRows{window: w, set: c.Set, in: c.In, pitch: num.CeilDiv(w.group, pieceBits)}
	filter := shareFilter(c, w, func() *kern.WideFilter {
		weights, n := padTaps(c, op.Bits, op.Out*w.KH, w.KW, w.group, b.pitch*pieceBits), w.KW*b.pitch*pieceBits
		if carries && c.Set.Wide.PackCarries != nil {
			if filter := c.Set.Wide.PackCarries(weights, op.Out, w.KH, n, patchTimes(op)); filter != nil {
				return filter
			}
		}
		return c.Set.Wide.PackBits(weights, op.Out, w.KH, n)
	})
	b.expand = c.Set.Wide.Expander(filter)
	b.parities = filter.Patches
	b.inPlace = layout == rowsInPlace && !b.parities
	_, cols := w.span(1)
	b.phase = num.CeilDiv(cols, w.DilationW)
	b.row = w.DilationW * b.phase * b.pitch
	if b.inPlace {
		b.row = w.image.W * b.pitch
		c.Choice.Kernel += ", in place"
	}
	b.narrowed = w.readsFullRows() && w.each == 1 && b.narrow() && !c.Set.Wide.Nibbles
	return b, filter
}

// upperFilter is the filter of the upper plane alone, where there is that of both, too.
type upperFilter struct{ *kern.WideFilter }

// shareFilter shares the filter of a convolution on bits.
func shareFilter(c *schedule.Context, w window, pack func() *kern.WideFilter) *kern.WideFilter {
	if w.each > 1 {
		return schedule.Share(c, func() upperFilter { return upperFilter{pack()} }).WideFilter
	}
	return schedule.Share(c, pack)
}

// bitRows are rows of pixels of whole pieces of 32 bits, so that neighbours are
// the taps of a run. With dilation the columns of a run, which are so far apart,
// are put side by side.
type bitRows struct {
	window
	set      *kern.Set
	expand   func(dst []uint8, src []uint32) // see kern.Wide.Expander
	in       *bcnn.Tensor
	inPlace  bool // read from the tensor
	narrowed bool // rows follow each other as in the tensor, pixels of one piece for each word
	parities bool // of all pieces up to each, behind a word of zeros
	pitch    int  // pieces of a pixel
	phase    int  // pixels side by side
	row      int  // pieces of a row
}

func (b *bitRows) need(rows int) tiles.Size {
	if b.inPlace {
		return tiles.Size{}
	}
	height, _ := b.span(rows)
	if b.set.Wide.Nibbles {
		return tiles.Size{Words: num.CeilDiv(b.row, 2), Bytes: num.Product(height, b.row, 8)}
	}
	words := num.CeilDiv(num.Product(height, b.row), 2)
	if b.parities {
		words++
	}
	return tiles.Size{Words: words}
}

// position returns the place of a pixel of a row.
func (b *bitRows) position(x int) int { return (x%b.DilationW*b.phase + x/b.DilationW) * b.pitch }

func (b *bitRows) offset(y, x int) int {
	return (b.window.row(y)*b.row + b.position(x*b.StrideW)) * pieceBytes(b.set.Wide)
}

func (b *bitRows) run() int { return b.DilationH * b.row * pieceBytes(b.set.Wide) }

func (b *bitRows) load(s *tiles.Scratch, image, first, rows, group int) unsafe.Pointer {
	y := b.window.row(first) - b.Pad.Top
	if b.inPlace {
		return unsafe.Pointer(&b.in.Words[b.tensorRow(image, y)*b.row/2])
	}
	height, _ := b.span(rows)
	words := s.Words
	if b.parities {
		words[0] = 0
		words = words[1:]
	}
	made := unsafe.Slice((*uint32)(unsafe.Pointer(&words[0])), 2*len(words))
	row := b.image.W * bits.Words(b.image.C)
	if b.narrowed {
		b.set.Narrow(made[:height*b.row], b.in.Words[b.tensorRow(image, y)*row:][:height*row])
	}
	for r := range height {
		if b.narrowed || b.interrupted(s) {
			break
		}
		dst := made[:b.row]
		if !b.set.Wide.Nibbles {
			dst = made[r*b.row:][:b.row]
		}
		if y+r < 0 || y+r >= b.image.H {
			clear(dst)
		} else {
			b.pad(dst, b.in.Words[b.tensorRow(image, y+r)*row:][:row], group)
		}
		if b.set.Wide.Nibbles {
			b.expand(s.Bytes[8*r*b.row:][:8*b.row], dst)
		}
	}
	if b.set.Wide.Nibbles {
		return unsafe.Pointer(&s.Bytes[0])
	}
	if b.parities {
		b.set.Wide.Parities(made[:height*b.row])
	}
	return unsafe.Pointer(&made[0])
}

// narrow reports whether a pixel is one piece here and one word in the tensor.
func (b *bitRows) narrow() bool {
	return b.pitch == 1 && bits.Words(b.image.C) == 1 && b.groups == 1
}

// pad makes a row.
func (b *bitRows) pad(dst []uint32, src []uint64, group int) {
	_, cols := b.span(1)
	left := min(b.Pad.Left, cols)
	inside := min(b.image.W, cols-left)
	words := bits.Words(b.image.C)
	// Words are little-endian wherever there are wide kernels.
	halves := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(src))), 2*len(src))
	if b.DilationW > 1 {
		clear(dst)
	} else {
		clear(dst[:left*b.pitch])
		clear(dst[(left+inside)*b.pitch:])
		switch {
		case b.pitch == 2*words:
			copy(dst[left*b.pitch:], halves[:inside*b.pitch])
			return
		case b.narrow():
			b.set.Narrow(dst[left:][:inside], src)
			return
		}
	}
	at := group * b.group / pieceBits
	for x := range inside {
		copy(dst[b.position(left+x):][:b.pitch], halves[x*2*words+at:])
	}
}

// cutRows are rows in which every output position has a run of its own, packed
// densely, where whole pieces for every pixel would waste much.
type cutRows struct {
	window
	set    *kern.Set
	expand func(dst []uint8, src []uint32) // see kern.Wide.Expander
	in     *bcnn.Tensor
	pitch  int // pieces of a run
	row    int // pieces of a row
	dense  int // words of a row that is packed densely, from which runs are cut
}

func newCutRows(c *schedule.Context, op *plan.Conv, w window) (rowSource, *kern.WideFilter) {
	b := &cutRows{window: w, set: c.Set, in: c.In, pitch: num.CeilDiv(w.KW*w.group, pieceBits)}
	_, cols := w.span(1)
	b.row = w.cols * b.pitch
	b.dense = bits.Words(cols*w.group) + 1 // reads go beyond the last bit
	filter := shareFilter(c, w, func() *kern.WideFilter {
		weights := packTaps(c, op.Bits, op.Out*w.KH, w.KW, w.group)
		return c.Set.Wide.PackBits(weights, op.Out, w.KH, w.KW*w.group)
	})
	b.expand = c.Set.Wide.Expander(filter)
	return b, filter
}

func (b *cutRows) need(rows int) tiles.Size {
	height, _ := b.span(rows)
	if b.set.Wide.Nibbles {
		return tiles.Size{Words: b.dense + num.CeilDiv(b.row, 2), Bytes: num.Product(height, b.row, 8)}
	}
	return tiles.Size{Words: b.dense + num.CeilDiv(num.Product(height, b.row), 2)}
}

func (b *cutRows) offset(y, x int) int {
	return (b.window.row(y)*b.row + x*b.pitch) * pieceBytes(b.set.Wide)
}

func (b *cutRows) run() int { return b.DilationH * b.row * pieceBytes(b.set.Wide) }

func (b *cutRows) load(s *tiles.Scratch, image, first, rows, _ int) unsafe.Pointer {
	height, _ := b.span(rows)
	made := unsafe.Slice((*uint32)(unsafe.Pointer(&s.Words[b.dense])), 2*(len(s.Words)-b.dense))
	row := b.image.W * bits.Words(b.group)
	for r := range height {
		if b.interrupted(s) {
			break
		}
		dst := made[:b.row]
		if !b.set.Wide.Nibbles {
			dst = made[r*b.row:][:b.row]
		}
		if y := b.window.row(first) - b.Pad.Top + r; y < 0 || y >= b.image.H {
			clear(dst)
		} else {
			b.cut(dst, s.Words[:b.dense], b.in.Words[b.tensorRow(image, y)*row:][:row])
		}
		if b.set.Wide.Nibbles {
			b.expand(s.Bytes[8*r*b.row:][:8*b.row], dst)
		}
	}
	if b.set.Wide.Nibbles {
		return unsafe.Pointer(&s.Bytes[0])
	}
	return unsafe.Pointer(&made[0])
}

// cut makes a row of runs.
func (b *cutRows) cut(dst []uint32, dense, src []uint64) {
	_, cols := b.span(1)
	clear(dense)
	left := min(b.Pad.Left, cols)
	bits.Join(dense, left*b.group, src, min(b.image.W, cols-left), b.group)
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

// byteRows are rows of bytes with a border of the zero point. With dilation,
// every output position gets its own run of a row.
type byteRows struct {
	window
	in        *bcnn.Tensor
	zeroPoint uint8
	runs      bool
	row       int
	length    int  // of a run, as kernels read it
	inPlace   bool // rows of the tensor are read
}

func wideBytes(c *schedule.Context, op *plan.Conv, w window) (rowSource, *kern.WideFilter) {
	weights := schedule.Share(c, func() *kern.WideFilter {
		if op.Int16 != nil {
			return c.Set.Wide.PackInt16(joinGroups(op, w, op.Int16), op.Out, w.KH, w.KW*w.group)
		}
		if op.Int8 != nil {
			// The border has the zero point, which a plan may have above all levels.
			return c.Set.Wide.PackInt8(joinGroups(op, w, op.Int8), op.Out, w.KH, w.KW*w.group, max(c.Most, op.ZeroPoint))
		}
		return c.Set.Wide.PackBytes(packTaps(c, op.Bits, op.Out*w.KH, w.KW, w.group), op.Out, w.KH, w.KW*w.group)
	})
	b := &byteRows{window: w, in: c.In, zeroPoint: op.ZeroPoint, runs: w.DilationW > 1, length: weights.RunBytes}
	_, cols := w.span(1)
	b.row = cols * w.group
	// Kernels must not read beyond the tensor.
	b.inPlace = b.fullRows() && b.length == w.KW*w.group
	if b.runs {
		b.row = (cols + w.cols*w.KW) * w.group // the plain row comes first
	}
	return b, weights
}

// joinGroups returns the weights of a convolution in the groups of a window, which may be several
// of its own: a weight for the inputs of another group is 0.
func joinGroups[W int8 | int16](op *plan.Conv, w window, weights []W) []W {
	if op.Groups == w.groups {
		return weights
	}
	joined, outs := op.Groups/w.groups, op.Out/op.Groups
	n := w.group / joined
	all := make([]W, len(weights)*joined)
	for i := range len(weights) / n { // [output][tap]
		group := i / (w.KH * w.KW) / outs % joined
		copy(all[i*w.group+group*n:], weights[i*n:][:n])
	}
	return all
}

// fullRows reports whether rows are those of the tensor.
func (b *byteRows) fullRows() bool { return b.groups == 1 && b.readsFullRows() }

func (b *byteRows) need(rows int) tiles.Size {
	if b.inPlace {
		return tiles.Size{}
	}
	height, _ := b.span(rows)
	// The last run may end beyond the last row.
	return tiles.Size{Bytes: num.Product(height, b.row) + b.length}
}

func (b *byteRows) offset(y, x int) int {
	pixel := b.StrideW * b.group
	if b.runs {
		pixel = b.KW * b.group
	}
	return y*b.StrideH*b.row + x*pixel
}

func (b *byteRows) run() int { return b.DilationH * b.row }

func (b *byteRows) load(s *tiles.Scratch, image, first, rows, group int) unsafe.Pointer {
	height, cols := b.span(rows)
	left := min(b.Pad.Left, cols)
	inside := min(b.image.W, cols-left)
	if b.fullRows() {
		from := (image*b.image.H + first*b.StrideH) * b.row
		if b.inPlace {
			return unsafe.Pointer(&b.in.U8[from])
		}
		copy(s.Bytes, b.in.U8[from:][:height*b.row])
		return unsafe.Pointer(&s.Bytes[0])
	}
	for r := range height {
		if b.interrupted(s) {
			break
		}
		y := first*b.StrideH - b.Pad.Top + r
		row := s.Bytes[r*b.row:][:b.row]
		dst := row[:cols*b.group]
		if y < 0 || y >= b.image.H {
			fill(dst, b.zeroPoint)
		} else {
			fill(dst[:left*b.group], b.zeroPoint)
			b.copyPixels(dst[left*b.group:][:inside*b.group], b.in.U8[(image*b.image.H+y)*b.image.W*b.image.C+group*b.group:])
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
		return unsafe.Pointer(&s.Bytes[cols*b.group])
	}
	return unsafe.Pointer(&s.Bytes[0])
}

// copyPixels copies the channels of a group, the first of which is that of src.
func (b *byteRows) copyPixels(dst, src []uint8) {
	if b.groups == 1 {
		copy(dst, src)
		return
	}
	for at := 0; at < len(dst); at += b.group {
		copy(dst[at:][:b.group], src)
		src = src[min(b.image.C, len(src)):]
	}
}
