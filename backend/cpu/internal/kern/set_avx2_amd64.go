//go:build amd64 && !purego

package kern

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// avx2 looks up the popcounts of nibbles and sums them in bytes.
var avx2 = func() Set {
	s := generic
	s.ISA = "avx2"
	s.Wide = &Wide{
		Nibbles: true,
		Expand:  expandNibbles,
		MaxTaps: math.MaxInt16,
		PackBits: func(w []uint64, outputs, rows, n int) *Weights {
			return packNibbles(w, outputs, rows, n, 32, func(vectors int) (int, func(*uint8), func(*uint8)) {
				if vectors == 1 {
					return 1, convBits32AVX2, convBitsSums32AVX2
				}
				return 2, convBits64AVX2, convBitsSums64AVX2
			})
		},
		PackBytes: func(w []uint64, outputs, rows, n int) *Weights {
			return packSigns(w, outputs, rows, n, 2, 2, 16, func(vectors int) (int, func(*uint8), func(*uint8)) {
				switch vectors {
				case 1:
					return 1, convBytes16AVX2, convBytesSums16AVX2
				case 2:
					return 2, convBytes32AVX2, convBytesSums32AVX2
				}
				return 4, convBytes64AVX2, convBytesSums64AVX2
			})
		},
	}
	s.FMA = fma256
	s.Threshold = threshold256
	s.ThresholdFloat = thresholdFloat256
	s.Peak, s.PeakProducts = peakAVX2, 12*32*4
	return s
}()

func fma256(acc, x, w []float32, stride int) {
	if len(x) == 0 {
		return
	}
	o := 0
	for ; o+64 <= len(acc); o += 64 {
		fma64AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o+8 <= len(acc); o += 8 {
		fma8AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o < len(acc); o++ {
		fma1AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
}

func threshold256(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdAVX2(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloat256(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdFloatAVX2(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		thresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}
