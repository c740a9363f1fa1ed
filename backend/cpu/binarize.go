package cpu

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// binarize compiles the binarisation of the input image.
func (c *compiler) binarize(op *bcnn.BinarizeStep, in, out bcnn.Shape) step {
	b := &binarize{in: c.in, out: c.out, shape: in, words: bits.Words(out.C)}
	if op.Threshold != nil {
		b.thresholds, b.flip = op.Threshold.I32, op.Threshold.Flip
	}
	height, do := in.H, b.threshold
	switch op.Scheme {
	case bcnn.SchemeGrey:
		do = b.grey
	case bcnn.SchemeLBP:
		do = b.lbp
	case bcnn.SchemeMinMax:
		height, do = 1, b.minMax // the range is that of the whole image
	}
	return c.rows(height, 3*float64(in.Values()), do)
}

type binarize struct {
	in, out    *bcnn.Tensor
	shape      bcnn.Shape // of the input
	words      int        // of an output pixel
	thresholds []int32
	flip       []uint64
}

func (b *binarize) threshold(_ *scratch, image, y0, y1 int) {
	for p := (image*b.shape.H + y0) * b.shape.W; p < (image*b.shape.H+y1)*b.shape.W; p++ {
		dst := b.out.Words[p*b.words:][:b.words]
		clear(dst)
		for c, v := range b.in.U8[p*b.shape.C:][:b.shape.C] {
			if int32(v) >= b.thresholds[c] {
				dst[c/bits.WordBits] |= 1 << (c % bits.WordBits)
			}
		}
		for i, v := range b.flip {
			dst[i] ^= v
		}
	}
}

func (b *binarize) luma(pixel int) uint8 {
	if b.shape.C == 1 {
		return b.in.U8[pixel]
	}
	rgb := b.in.U8[pixel*3:][:3]
	return bcnn.Luma(rgb[0], rgb[1], rgb[2])
}

func (b *binarize) grey(_ *scratch, image, y0, y1 int) {
	var flip uint64
	if b.flip != nil {
		flip = b.flip[0]
	}
	for p := (image*b.shape.H + y0) * b.shape.W; p < (image*b.shape.H+y1)*b.shape.W; p++ {
		b.out.Words[p] = flip
		if int32(b.luma(p)) >= b.thresholds[0] {
			b.out.Words[p] ^= 1
		}
	}
}

func (b *binarize) lbp(_ *scratch, image, y0, y1 int) {
	first, w := image*b.shape.H, b.shape.W
	for y := y0; y < y1; y++ {
		row := (first + y) * w
		above := (first + max(y-1, 0)) * w
		below := (first + min(y+1, b.shape.H-1)) * w
		for x := range w {
			centre := b.luma(row + x)
			var v uint64
			if b.luma(above+max(x-1, 0)) > centre {
				v |= 1
			}
			if b.luma(row+min(x+1, w-1)) > centre {
				v |= 2
			}
			if b.luma(below+max(x-1, 0)) > centre {
				v |= 4
			}
			b.out.Words[row+x] = v
		}
	}
}

func (b *binarize) minMax(_ *scratch, image, _, _ int) {
	src := b.in.U8[image*b.shape.Values():][:b.shape.Values()]
	lo, hi := src[0], src[0]
	for _, v := range src {
		lo, hi = min(lo, v), max(hi, v)
	}
	for p := range b.shape.Pixels() {
		dst := b.out.Words[(image*b.shape.Pixels()+p)*b.words:][:b.words]
		clear(dst)
		for c, v := range src[p*b.shape.C:][:b.shape.C] {
			if 2*(int(v)-int(lo)) > int(hi)-int(lo) {
				dst[c/bits.WordBits] |= 1 << (c % bits.WordBits)
			}
		}
	}
}
