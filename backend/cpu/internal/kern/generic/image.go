package generic

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// ThresholdBytes is that of kern.Set.
func ThresholdBytes(dst []uint64, src, t []uint8) {
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

func spread(dst, src []uint64, n int, flip uint64) { SpreadFrom(dst, src, n, flip, 0) }

// SpreadFrom is Spread of kern.Set from pixel p on.
func SpreadFrom(dst, src []uint64, n int, flip uint64, p int) {
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

// Luma is that of kern.Set.
func Luma(dst, rgb []uint8) {
	for p := range dst {
		c := (*[3]uint8)(rgb[3*p:])
		dst[p] = bcnn.Luma(c[0], c[1], c[2])
	}
}

// LBP is that of kern.Set.
func LBP(dst []uint64, above, row, below []uint8) {
	above, row, below = above[:len(dst)], row[:len(dst)+2], below[:len(dst)]
	for x := range dst {
		// A difference is negative where the neighbour is greater.
		c := uint64(row[x+1])
		dst[x] = (c-uint64(above[x]))>>63 | (c-uint64(row[x+2]))>>63<<1 | (c-uint64(below[x]))>>63<<2
	}
}

// MinMax is that of kern.Set.
func MinMax(src []uint8) (lowest, highest uint8) {
	lowest, highest = src[0], src[0]
	for _, v := range src {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest
}

// Floats is that of kern.Set.
func Floats(dst []float32, src []uint8) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = float32(v)
	}
}
