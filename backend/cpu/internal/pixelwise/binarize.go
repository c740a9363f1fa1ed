package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// binarize compiles the binarisation of the input image.
func newBinarize(c *schedule.Context, op *plan.Binarize, in, out bcnn.Shape) (tiles.Step, tiles.Size) {
	b := &binarize{set: c.Set, in: c.In, out: c.Out, shape: in, words: bits.Words(out.C)}
	b.chunk = min(binarizeChunk, num.RoundUp(in.Pixels(), bits.WordBits))
	if op.Threshold != nil {
		b.setThresholds(op.Threshold)
	}
	// One word more, because Spread reads words at any byte.
	need := tiles.Size{Words: bits.Words(b.chunk*in.C) + 1, Bytes: len(b.bounds)}
	kernel, work := "binarize, "+string(op.Scheme), c.Set.Cost.Value*float64(in.Values())
	switch op.Scheme {
	case bcnn.SchemeGrey:
		need.Bytes = b.chunk
		return c.Pixels(kernel, in.Pixels(), work, b.grey), need
	case bcnn.SchemeLBP:
		need.Bytes = num.Product(3, in.W+2)
		return c.Rows(kernel, in.H, work, b.lbp), need
	case bcnn.SchemeMinMax:
		need.Bytes = bits.WordBits
		step := c.Items(kernel, "image", 1, work, b.minMax)
		c.Choice.Why = "the range is that of the whole image"
		return step, need
	}
	return c.Pixels(kernel, in.Pixels(), work, b.threshold), need
}

// binarizeChunk is the number of pixels that are binarised at a time, a
// multiple of 64, so that every chunk starts at a word of dense bits.
const binarizeChunk = 1024

type binarize struct {
	set        *kern.Set
	in, out    *bcnn.Tensor
	shape      bcnn.Shape // of the input
	words      int        // of an output pixel
	chunk      int        // pixels at a time
	thresholds []int32
	// The thresholds of the bytes of 64 pixels. Thresholds that every byte
	// reaches are 0, those that none reaches too, with a bit in flip.
	bounds []uint8
	flip   []uint64
}

func (b *binarize) setThresholds(t *plan.Threshold) {
	channels := len(t.I32)
	b.thresholds, b.flip = t.I32, make([]uint64, b.words)
	copy(b.flip, t.Flip)
	for c, v := range t.I32 {
		if v > 255 {
			b.flip[c/bits.WordBits] ^= 1 << (c % bits.WordBits)
		}
	}
	if channels <= bits.WordBits {
		b.bounds = make([]uint8, bits.WordBits*channels)
		for i := range b.bounds {
			if v := t.I32[i%channels]; v > 0 && v <= 255 {
				b.bounds[i] = uint8(v)
			}
		}
	}
}

func (b *binarize) threshold(s *tiles.Scratch, image, from, to int) {
	first, end := image*b.shape.Pixels()+from, image*b.shape.Pixels()+to
	if b.bounds == nil {
		b.wide(first, end)
		return
	}
	for p := first; p < end; p += b.chunk {
		b.compare(s, p, min(p+b.chunk, end), b.in.U8[p*b.shape.C:], b.shape.C, b.bounds, b.flip)
	}
}

// compare binarises the bytes of pixels, of which each has n.
func (b *binarize) compare(s *tiles.Scratch, from, to int, src []uint8, n int, bounds []uint8, flip []uint64) {
	pixels := to - from
	dense := s.Words[:bits.Words(pixels*n)+1]
	b.set.ThresholdBytes(dense, src[:pixels*n], bounds)
	dst := b.out.Words[from*b.words:][:pixels*b.words]
	if n <= 8 {
		b.set.Spread(dst, dense, n, flip[0])
		return
	}
	for p := range dst {
		dst[p] = 0
		bits.Copy(dst[p:p+1], 0, dense, p*n, n)
		dst[p] ^= flip[0]
	}
}

// wide binarises pixels of more than 64 channels.
func (b *binarize) wide(first, end int) {
	for p := first; p < end; p++ {
		dst := b.out.Words[p*b.words:][:b.words]
		copy(dst, b.flip)
		for c, v := range b.in.U8[p*b.shape.C:][:b.shape.C] {
			// Where the threshold is out of reach, flip has the bit set already.
			if t := b.thresholds[c]; int32(v) >= t || t > 255 {
				dst[c/bits.WordBits] ^= 1 << (c % bits.WordBits)
			}
		}
	}
}

// luma returns the grey values of n pixels from pixel p on, in dst where the
// image is not grey itself.
func (b *binarize) luma(dst []uint8, p, n int) []uint8 {
	if b.shape.C == 1 {
		return b.in.U8[p:][:n]
	}
	b.set.Luma(dst[:n], b.in.U8[p*b.shape.C:][:n*b.shape.C])
	return dst[:n]
}

func (b *binarize) grey(s *tiles.Scratch, image, from, to int) {
	first, end := image*b.shape.Pixels()+from, image*b.shape.Pixels()+to
	for p := first; p < end; p += b.chunk {
		to := min(p+b.chunk, end)
		b.compare(s, p, to, b.luma(s.Bytes, p, to-p), 1, b.bounds, b.flip)
	}
}

func (b *binarize) lbp(s *tiles.Scratch, image, y0, y1 int) {
	// Three rows of grey values, with the outermost ones repeated.
	w, pitch := b.shape.W, b.shape.W+2
	row := func(y int) []uint8 { return s.Bytes[(y+1)%3*pitch:][:pitch] }
	load := func(y int) {
		dst := row(y)
		from := min(max(y, 0), b.shape.H-1)
		copy(dst[1:], b.luma(dst[1:], (image*b.shape.H+from)*w, w))
		dst[0], dst[w+1] = dst[1], dst[w]
	}
	load(y0 - 1)
	load(y0)
	for y := y0; y < y1; y++ {
		load(y + 1)
		b.set.LBP(b.out.Words[(image*b.shape.H+y)*w:][:w], row(y-1), row(y), row(y+1))
	}
}

func (b *binarize) minMax(s *tiles.Scratch, image, _, _ int) {
	c, values := b.shape.C, b.shape.Values()
	lo, hi := b.set.MinMax(b.in.U8[image*values:][:values])
	// 2·(x − lo) > hi − lo; for hi = lo no byte is.
	bound := int(lo) + (int(hi)-int(lo))/2 + 1
	first, end := image*b.shape.Pixels(), (image+1)*b.shape.Pixels()
	if c > 8 {
		for p := first; p < end; p++ {
			if p%b.chunk == 0 && s.Ended() {
				return
			}
			dst := b.out.Words[p*b.words:][:b.words]
			clear(dst)
			for i, v := range b.in.U8[p*c:][:c] {
				if int(v) >= bound {
					dst[i/bits.WordBits] |= 1 << (i % bits.WordBits)
				}
			}
		}
		return
	}
	if hi == lo {
		clear(b.out.Words[first:end])
		return
	}
	bounds := s.Bytes[:bits.WordBits]
	for i := range bounds {
		bounds[i] = uint8(bound)
	}
	var flip [1]uint64
	for p := first; p < end && !s.Ended(); p += b.chunk {
		b.compare(s, p, min(p+b.chunk, end), b.in.U8[p*c:], c, bounds, flip[:])
	}
}
