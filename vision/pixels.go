package vision

import (
	"image"
	"image/color"
)

// A packed pixel holds R, G and B in lanes of 21 bits of one word, R lowest: one
// addition adds all three, and a lane has room for many sums of bytes.
const (
	laneBits = 21
	laneMask = 1<<laneBits - 1
	laneOnes = 1 | 1<<laneBits | 1<<(2*laneBits) // 1 in every lane
)

func pack(r, g, b uint8) uint64 {
	return uint64(r) | uint64(g)<<laneBits | uint64(b)<<(2*laneBits)
}

func unpack(p uint64) (r, g, b int64) {
	return int64(p & laneMask), int64(p >> laneBits & laneMask), int64(p >> (2 * laneBits))
}

// A pixelReader reads len(dst) packed pixels of a row, from (x, y) to the right,
// in the coordinates of the image.
type pixelReader func(dst []uint64, x, y int)

// ground is a colour that lies under transparent pixels: R, G and B.
type ground [3]uint8

// under returns a colour, premultiplied with its alpha of 16 bits, over the ground.
func (g ground) under(r, gr, b, a uint32) uint64 {
	over := func(v uint32, g uint8) uint8 {
		return uint8(min(v+uint32(g)*0x101*(0xffff-a)/0xffff, 0xffff) >> 8)
	}
	return pack(over(r, g[0]), over(gr, g[1]), over(b, g[2]))
}

// readerOf returns a reader of the 8 upper bits of each colour of an image, over a ground.
func readerOf(img image.Image, g ground) pixelReader {
	switch img := img.(type) {
	case *image.YCbCr:
		// Halves of negative coordinates are rounded towards 0: a chroma sample
		// then belongs to more pixels than elsewhere.
		if img.Rect.Min.X >= 0 {
			return func(dst []uint64, x, y int) { readYCbCr(dst, img, x, y) }
		}
	case *image.Gray:
		return func(dst []uint64, x, y int) {
			for i, v := range img.Pix[img.PixOffset(x, y):][:len(dst)] {
				dst[i] = uint64(v) * laneOnes
			}
		}
	case *image.RGBA:
		return func(dst []uint64, x, y int) {
			pix := img.Pix[img.PixOffset(x, y):][:4*len(dst)]
			for i := range dst {
				p := pix[4*i : 4*i+4]
				if p[3] == 0xff || g == (ground{}) {
					dst[i] = pack(p[0], p[1], p[2])
					continue
				}
				dst[i] = g.under(uint32(p[0])*0x101, uint32(p[1])*0x101, uint32(p[2])*0x101, uint32(p[3])*0x101)
			}
		}
	case *image.NRGBA:
		return func(dst []uint64, x, y int) {
			pix := img.Pix[img.PixOffset(x, y):][:4*len(dst)]
			for i := range dst {
				p := pix[4*i : 4*i+4]
				if p[3] == 0xff {
					dst[i] = pack(p[0], p[1], p[2])
					continue
				}
				a := uint32(p[3]) * 0x101
				times := func(v uint8) uint32 { return uint32(v) * a / 0xff }
				dst[i] = g.under(times(p[0]), times(p[1]), times(p[2]), a)
			}
		}
	case *image.CMYK:
		return func(dst []uint64, x, y int) {
			pix := img.Pix[img.PixOffset(x, y):][:4*len(dst)]
			for i := range dst {
				p := pix[4*i : 4*i+4]
				dst[i] = pack(color.CMYKToRGB(p[0], p[1], p[2], p[3]))
			}
		}
	case *image.Paletted:
		var colours [256]uint64
		for i, c := range img.Palette[:min(len(colours), len(img.Palette))] {
			colours[i] = g.under(c.RGBA())
		}
		return func(dst []uint64, x, y int) {
			for i, v := range img.Pix[img.PixOffset(x, y):][:len(dst)] {
				dst[i] = colours[v]
			}
		}
	}
	if img, ok := img.(image.RGBA64Image); ok {
		return func(dst []uint64, x, y int) {
			for i := range dst {
				dst[i] = g.under(img.RGBA64At(x+i, y).RGBA())
			}
		}
	}
	return func(dst []uint64, x, y int) {
		for i := range dst {
			dst[i] = g.under(img.At(x+i, y).RGBA())
		}
	}
}

// shareable reports whether several goroutines may read an image: nothing is known
// of types from elsewhere.
func shareable(img image.Image) bool {
	switch img.(type) {
	case *image.YCbCr, *image.NYCbCrA, *image.Gray, *image.Gray16, *image.RGBA, *image.RGBA64, *image.NRGBA, *image.NRGBA64,
		*image.CMYK, *image.Paletted:
		return true
	}
	return false
}

// readYCbCr is a pixelReader that computes what color.YCbCrToRGB does, for the
// three colours at once. A colour is (0x10101·luma + k) >> 16, clamped, where k
// depends on the chroma alone. As 0x10101·luma is luma·2¹⁶ + 257·luma, that is
//
//	luma + k>>16 + (257·luma + k&0xffff)>>16
//
// and all of its parts fit into lanes.
func readYCbCr(dst []uint64, img *image.YCbCr, x, y int) {
	luma := img.Y[img.YOffset(x, y):][:len(dst)]
	at := img.COffset(x, y)
	share := 1 // pixels of a row that share a chroma sample
	switch img.SubsampleRatio {
	case image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420:
		share = 2
	case image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410:
		share = 4
	}
	n := 0
	switch { // as in nearly all photos
	case share == 1:
		cb, cr := img.Cb[at:][:len(dst)], img.Cr[at:][:len(dst)]
		for i := range dst {
			high, low := chroma.of(cb[i], cr[i])
			dst[i] = withLuma(luma[i], high, low)
		}
		n = len(dst)
	case share == 2 && x%2 == 0:
		pairs := len(dst) / 2
		cb, cr := img.Cb[at:][:pairs], img.Cr[at:][:pairs]
		for i := range cb {
			high, low := chroma.of(cb[i], cr[i])
			l, d := luma[2*i:2*i+2], dst[2*i:2*i+2]
			d[0] = withLuma(l[0], high, low)
			d[1] = withLuma(l[1], high, low)
		}
		n, at = 2*pairs, at+pairs
	}
	for n < len(dst) {
		high, low := chroma.of(img.Cb[at], img.Cr[at])
		for end := min(n+share-(x+n)&(share-1), len(dst)); n < end; n++ {
			dst[n] = withLuma(luma[n], high, low)
		}
		at++
	}
}

// chroma has k>>16 and k&0xffff for the chroma samples, each in the lane of the
// colour, and for green, to which both contribute, k. The former are kept
// positive by 256.
var chroma = newChromaTable()

type chromaTable struct {
	cb, cr [256]struct {
		high, low uint64
		green     int64
	}
}

func newChromaTable() *chromaTable {
	const zero = 256 << 16
	t := &chromaTable{}
	for i := range t.cb {
		v := int64(i) - 128
		blue, red := uint64(zero+116130*v), uint64(zero+91881*v)
		t.cb[i].high, t.cb[i].low, t.cb[i].green = blue>>16<<(2*laneBits), blue&0xffff<<(2*laneBits), zero-22554*v
		t.cr[i].high, t.cr[i].low, t.cr[i].green = red>>16, red&0xffff, -46802*v
	}
	return t
}

func (t *chromaTable) of(cb, cr uint8) (high, low uint64) {
	u, v := &t.cb[cb], &t.cr[cr]
	green := uint64(u.green + v.green)
	return u.high | v.high | green>>16<<laneBits, u.low | v.low | green&0xffff<<laneBits
}

func withLuma(luma uint8, high, low uint64) uint64 {
	y := uint64(luma) * laneOnes
	v := y + high + (257*y+low)>>16&laneOnes
	// Lanes from 256 to 511 are in range, those above are clamped to 255, those
	// below to 0.
	inside, above := v>>8&laneOnes, v>>9&laneOnes
	return v&(inside<<8-inside) | (above<<8 - above)
}
