package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// bitSource computes sums of ±1 inputs and weights. Where the channels fill
// their words, patches are read in place, from the image or from bordered
// copies of its rows. Elsewhere the bits of every patch are packed densely
// first: a 5×5×3 patch is 2 words long, not 25.
type bitSource struct {
	window
	set     *kern.Set
	in      *bcnn.Tensor
	weights []*kern.DotBitsWeights // of the groups
	outs    int                    // output channels of a group
	stride  int                    // of the sums of a pixel
	at      kern.Patches

	direct   bool // patches are read in place
	bordered bool // rows are copied to scratch
	rowWords int  // of one group of a bordered row
	patch    int  // where the patches start in the scratch
}

func newBitSource(c *schedule.Context, op *plan.Conv, w window, stride int) *bitSource {
	b := &bitSource{window: w, set: c.Set, in: c.In, stride: stride, outs: op.Out / op.Groups}
	single := w.KH*w.KW == 1
	b.direct = w.groups == 1 && (single || w.DilationW == 1 && w.group%bits.WordBits == 0)
	b.bordered = !b.direct || w.pads
	pixel := bits.Words(w.image.C)
	_, cols := w.span(1)
	switch {
	case !b.direct:
		b.rowWords = bits.Words(cols * w.group)
	case b.bordered:
		b.rowWords = cols * pixel
	default:
		b.rowWords = w.image.W * pixel
	}
	if b.direct {
		b.at = kern.Patches{Step: w.StrideW * pixel, Rows: w.KH, RowStep: w.DilationH * b.rowWords, RowLen: w.KW * pixel}
	} else {
		words := bits.Words(w.taps())
		b.at = kern.Patches{Step: words, Rows: 1, RowLen: words}
	}
	b.weights = schedule.Share(c, func() []*kern.DotBitsWeights {
		return packGroups(c, op, w, func(dense []uint64) *kern.DotBitsWeights {
			return c.Set.PackBits(dense, b.outs, w.taps())
		})
	})
	return b
}

// packGroups packs the weights of every group.
func packGroups[T any](c *schedule.Context, op *plan.Conv, w window, pack func(dense []uint64) T) []T {
	dense := packTaps(c, op.Bits, op.Out, w.KH*w.KW, w.group)
	group := op.Out / op.Groups * bits.Words(w.taps())
	var all []T
	for g := range w.groups {
		if c.Ended() {
			break
		}
		all = append(all, pack(dense[g*group:][:group]))
	}
	return all
}

// packTaps packs rows of taps of n bits, each of which starts a word, densely.
func packTaps(c *schedule.Context, src []uint64, rows, taps, n int) []uint64 {
	words, out := taps*bits.Words(n), bits.Words(taps*n)
	if taps == 1 || n%bits.WordBits == 0 { // there are no gaps
		return src
	}
	dst := make([]uint64, rows*out)
	for r := range rows {
		if c.Ended() {
			break
		}
		bits.Join(dst[r*out:][:out], 0, src[r*words:], taps, n)
	}
	return dst
}

// padTaps packs rows of taps of n bits, each of which starts a word, to taps of
// pitch bits.
func padTaps(c *schedule.Context, src []uint64, rows, taps, n, pitch int) []uint64 {
	words, out := bits.Words(n), bits.Words(taps*pitch)
	dst := make([]uint64, rows*out)
	for r := range rows {
		if c.Ended() {
			break
		}
		for k := range taps {
			bits.Copy(dst[r*out:][:out], k*pitch, src[(r*taps+k)*words:][:words], 0, n)
		}
	}
	return dst
}

func (b *bitSource) size(rows, pixels int) tiles.Size {
	need := tiles.Size{Sums: num.Product(pixels, b.stride)}
	if b.bordered {
		height, _ := b.span(rows)
		need.Words = num.Product(height, b.groups, b.rowWords)
	}
	b.patch = need.Words
	if !b.direct {
		need.Words += num.Product(pixels, b.at.Step)
	}
	return need
}

func (b *bitSource) prepare(s *tiles.Scratch, image, first, rows int) {
	if !b.bordered {
		s.Base = image*b.image.H + b.row(first)
		return
	}
	pixel := bits.Words(b.image.C)
	height, cols := b.span(rows)
	left := min(b.Pad.Left, cols)
	inside := min(b.window.image.W, cols-left)
	for r := range height {
		if b.interrupted(s) {
			break
		}
		y := b.row(first) - b.Pad.Top + r
		dst := s.Words[r*b.groups*b.rowWords:][:b.groups*b.rowWords]
		if y < 0 || y >= b.image.H {
			clear(dst)
			continue
		}
		src := b.in.Words[(image*b.image.H+y)*b.window.image.W*pixel:][:b.window.image.W*pixel]
		if b.direct {
			clear(dst[:left*pixel])
			copy(dst[left*pixel:], src[:inside*pixel])
			clear(dst[(left+inside)*pixel:])
			continue
		}
		clear(dst)
		for g := range b.groups {
			row := dst[g*b.rowWords:][:b.rowWords]
			for x := range inside {
				bits.Copy(row, (left+x)*b.group, src[x*pixel:][:pixel], g*b.group, b.group)
			}
		}
	}
}

func (b *bitSource) sums(s *tiles.Scratch, y, x, pixels, channel, n int) {
	at := &s.At
	*at = b.at
	at.Pixels = pixels
	if b.direct {
		src := s.Words
		row := b.row(y)
		if !b.bordered {
			src, row = b.in.Words, s.Base+row
		}
		b.set.DotBits(s.Sums, b.stride, src[row*b.rowWords+x*at.Step:], at, b.weights[0], channel, n)
		return
	}
	patches := s.Words[b.patch:][:pixels*at.Step]
	for g, w := range b.weights {
		b.gather(patches, s.Words, y, x, pixels, g)
		first, outs := channel, n
		if b.groups > 1 {
			first, outs = 0, b.outs
		}
		// What a group writes beyond its channels, the next one overwrites.
		b.set.DotBits(s.Sums[g*b.outs:], b.stride, patches, at, w, first, outs)
	}
}

// gather packs the patches of pixels of a group.
func (b *bitSource) gather(patches, rows []uint64, y, x, pixels, g int) {
	for p := range pixels {
		dst := patches[p*b.at.Step:][:b.at.Step]
		dst[len(dst)-1] = 0 // its padding
		left := (x + p) * b.StrideW * b.group
		at := 0
		for ky := range b.KH {
			row := rows[((b.row(y)+ky*b.DilationH)*b.groups+g)*b.rowWords:][:b.rowWords]
			if b.DilationW == 1 {
				bits.Copy(dst, at, row, left, b.KW*b.group)
				at += b.KW * b.group
				continue
			}
			for kx := range b.KW {
				bits.Copy(dst, at, row, left+kx*b.DilationW*b.group, b.group)
				at += b.group
			}
		}
	}
}
