package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// byteSource computes sums of bytes and weights of ±1, 8 or 16 bits. A border of the zero point
// adds nothing to them.
type byteSource struct {
	window
	set       *kern.Set
	in        *bcnn.Tensor
	zeroPoint uint8
	weights   []*kern.DotBytesWeights // of the groups
	words     []*kern.DotWordsWeights // instead of them
	outs      int                     // output channels of a group
	stride    int                     // of the sums of a pixel
	at        kern.Patches

	direct   bool // patches are read in place, not gathered
	bordered bool // rows are copied to scratch
	rowBytes int
	patch    int // where gathered patches start in the scratch
}

func newByteSource(c *schedule.Context, op *plan.Conv, w window, stride int) *byteSource {
	b := &byteSource{window: w, set: c.Set, in: c.In, zeroPoint: op.ZeroPoint, stride: stride, outs: op.Out / op.Groups}
	b.direct = w.groups == 1 && w.DilationW == 1
	b.bordered = w.pads
	b.rowBytes = w.image.W * w.image.C
	if b.bordered {
		_, cols := w.span(1)
		b.rowBytes = cols * w.image.C
	}
	if b.direct {
		b.at = kern.Patches{Step: w.StrideW * w.image.C, Rows: w.KH, RowStep: w.DilationH * b.rowBytes, RowLen: w.KW * w.image.C}
	} else {
		b.at = kern.Patches{Step: w.taps(), Rows: 1, RowLen: w.taps()}
	}
	if op.Integer() {
		b.words = schedule.Share(c, func() []*kern.DotWordsWeights {
			var all []*kern.DotWordsWeights
			for g := 0; g < w.groups && !c.Ended(); g++ {
				size := b.outs * w.taps()
				if op.Int16 != nil {
					all = append(all, c.Set.PackInt16(op.Int16[g*size:][:size], b.outs, w.taps(), op.ZeroPoint))
				} else {
					all = append(all, c.Set.PackInt8(op.Int8[g*size:][:size], b.outs, w.taps(), op.ZeroPoint))
				}
			}
			return all
		})
		return b
	}
	b.weights = schedule.Share(c, func() []*kern.DotBytesWeights {
		return packGroups(c, op, w, func(dense []uint64) *kern.DotBytesWeights {
			return c.Set.PackBytes(dense, b.outs, w.taps(), op.ZeroPoint)
		})
	})
	return b
}

func (b *byteSource) size(rows, pixels int) tiles.Size {
	need := tiles.Size{Sums: num.Product(pixels, b.stride)}
	if b.bordered {
		height, _ := b.span(rows)
		need.Bytes = num.Product(height, b.rowBytes)
	}
	b.patch = need.Bytes
	if !b.direct {
		need.Bytes += num.Product(pixels, b.at.Step)
	}
	return need
}

func (b *byteSource) prepare(s *tiles.Scratch, image, first, rows int) {
	if !b.bordered {
		s.Base = image*b.image.H + first*b.StrideH
		return
	}
	s.Base = 0
	height, _ := b.span(rows)
	for r := range height {
		if b.interrupted(s) {
			break
		}
		borderRow(s.Bytes[r*b.rowBytes:][:b.rowBytes], b.in.U8, b.image, image, first*b.StrideH-b.Pad.Top+r, b.Pad.Left, b.zeroPoint)
	}
}

// borderRow writes row y of an image of bytes, behind so many pixels of v on its left, as far as dst reaches; the
// rest of it, and rows outside of the image, are v.
func borderRow(dst, src []uint8, shape bcnn.Shape, image, y, left int, v uint8) {
	begin, row := min(left*shape.C, len(dst)), shape.W*shape.C
	end := begin
	if y >= 0 && y < shape.H {
		end += copy(dst[begin:], src[(image*shape.H+y)*row:][:row])
	}
	fill(dst[:begin], v)
	fill(dst[end:], v)
}

func fill(b []uint8, v uint8) {
	if v == 0 || len(b) == 0 {
		clear(b)
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func (b *byteSource) sums(s *tiles.Scratch, y, x, pixels, channel, n int) {
	rows := s.Bytes
	if !b.bordered {
		rows = b.in.U8
	}
	rows = rows[(s.Base+y*b.StrideH)*b.rowBytes:]
	at := &s.At
	*at = b.at
	at.Pixels = pixels
	if b.direct {
		b.dot(s.Sums, rows[x*at.Step:], at, 0, channel, n)
		return
	}
	patches := s.Bytes[b.patch:][:pixels*at.Step]
	for g := range b.groups {
		b.gather(patches, rows, x, pixels, g)
		first, outs := channel, n
		if b.groups > 1 {
			first, outs = 0, b.outs
		}
		// What a group writes beyond its channels, the next one overwrites.
		b.dot(s.Sums[g*b.outs:], patches, at, g, first, outs)
	}
}

func (b *byteSource) dot(dst []int32, src []uint8, at *kern.Patches, group, first, n int) {
	if b.words != nil {
		b.set.DotWords(dst, b.stride, src, at, b.words[group], first, n)
	} else {
		b.set.DotBytes(dst, b.stride, src, at, b.weights[group], first, n)
	}
}

// gather copies the patches of pixels of a group.
func (b *byteSource) gather(patches, rows []uint8, x, pixels, g int) {
	for p := range pixels {
		dst := patches[p*b.at.Step:]
		left := (x+p)*b.StrideW*b.image.C + g*b.group
		for ky := range b.KH {
			row := rows[ky*b.DilationH*b.rowBytes:]
			for kx := range b.KW {
				copy(dst[:b.group], row[left+kx*b.DilationW*b.image.C:])
				dst = dst[b.group:]
			}
		}
	}
}
