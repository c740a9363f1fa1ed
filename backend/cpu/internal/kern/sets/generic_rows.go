package sets

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func fmaEach(acc, x, w []float32) {
	for i, c := range acc {
		acc[i] = f32.FMA(x[i], w[i], c)
	}
}

func add(dst, a, b []float32, relu bool) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = rectify(a[i]+b[i], relu)
	}
}

func choose(dst []float32, src []uint64, one, zero []float32) {
	for i := range dst {
		v := zero[i]
		if src[i/bits.WordBits]>>(i%bits.WordBits)&1 != 0 {
			v = one[i]
		}
		dst[i] = v
	}
}

func orPool(dst, src []uint64, p *kern.Pool) {
	for x := range p.Pixels {
		d := dst[x*p.DstStep:][:p.Values]
		for t, at := range p.Taps {
			s := src[x*p.Step+at:][:p.Values]
			if t == 0 {
				copy(d, s)
				continue
			}
			for i, v := range s {
				d[i] |= v
			}
		}
		if p.Flip != 0 {
			for i := range d {
				d[i] ^= p.Flip
			}
		}
	}
}

func maxPool(dst, src []float32, p *kern.Pool) {
	for x := range p.Pixels {
		d := dst[x*p.DstStep:][:p.Values]
		for t, at := range p.Taps {
			s := src[x*p.Step+at:][:p.Values]
			if t == 0 {
				copy(d, s)
				continue
			}
			for i, v := range s {
				if v > d[i] {
					d[i] = v
				}
			}
		}
	}
}

func narrow(dst []uint32, src []uint64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = uint32(v)
	}
}

func join(dst, src []uint32, taps, step, shift int) {
	copy(dst, src)
	for t := 1; t < taps; t++ {
		s, by := src[t*step:][:len(dst)], t*shift
		for i, v := range s {
			dst[i] |= v << (by & 31)
		}
	}
}

func thresholdBytes(dst []uint64, src, t []uint8) {
	for i := 0; i < len(src); i += bits.WordBits {
		row := src[i:min(i+bits.WordBits, len(src))]
		bounds := t[i%len(t):][:len(row)]
		var word uint64
		for c, v := range row {
			// The difference is negative where the bit is 0.
			word |= (^(uint64(v) - uint64(bounds[c])) >> 63) << (c & 63)
		}
		dst[i/bits.WordBits] = word
	}
}

func spread(dst, src []uint64, n int, flip uint64) { spreadFrom(dst, src, n, flip, 0) }

// spreadFrom is spread from pixel p on.
func spreadFrom(dst, src []uint64, n int, flip uint64, p int) {
	mask := uint64(1)<<n - 1
	for ; p < len(dst); p++ {
		word, shift := p*n/bits.WordBits, p*n%bits.WordBits
		v := src[word] >> shift
		if shift+n > bits.WordBits {
			v |= src[word+1] << (bits.WordBits - shift)
		}
		dst[p] = v&mask ^ flip
	}
}

func luma(dst, rgb []uint8) {
	for p := range dst {
		c := (*[3]uint8)(rgb[3*p:])
		dst[p] = bcnn.Luma(c[0], c[1], c[2])
	}
}

func lbp(dst []uint64, above, row, below []uint8) {
	above, row, below = above[:len(dst)], row[:len(dst)+2], below[:len(dst)]
	for x := range dst {
		// A difference is negative where the neighbour is greater.
		c := uint64(row[x+1])
		dst[x] = (c-uint64(above[x]))>>63 | (c-uint64(row[x+2]))>>63<<1 | (c-uint64(below[x]))>>63<<2
	}
}

func minMax(src []uint8) (lowest, highest uint8) {
	lowest, highest = src[0], src[0]
	for _, v := range src {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest
}

// expandNibbles stores the nibbles of src, the lowest first, in the high halves
// of bytes: dst[8·i+n] = 16·(src[i]>>(4·n) & 15).
func expandNibbles(dst []uint8, src []uint32) {
	dst = dst[:8*len(src)]
	for i, v := range src {
		x := uint64(v)
		x = (x | x<<16) & 0x0000ffff0000ffff
		x = (x | x<<8) & 0x00ff00ff00ff00ff
		x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
		x <<= 4
		d := (*[8]uint8)(dst[8*i:])
		d[0], d[1], d[2], d[3] = uint8(x), uint8(x>>8), uint8(x>>16), uint8(x>>24)
		d[4], d[5], d[6], d[7] = uint8(x>>32), uint8(x>>40), uint8(x>>48), uint8(x>>56)
	}
}
