//go:build amd64 && !purego

package kern

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// ssse3 looks up the popcounts of nibbles and sums them in bytes. Sums of real
// weights, which need a fused product and sum, are left to generic.
var ssse3 = func() Set {
	s := generic
	s.ISA = "ssse3"
	s.Wide = &Wide{
		Nibbles: true,
		Expand:  expandNibbles,
		MaxTaps: math.MaxInt16,
		PackBits: func(w []uint64, outputs, rows, n int) *Weights {
			return packNibbles(w, outputs, rows, n, 16, func(vectors int) (int, func(*uint8), func(*uint8)) {
				switch vectors {
				case 1:
					return 1, convBits16SSSE3, convBitsSums16SSSE3
				case 2:
					return 2, convBits32SSSE3, convBitsSums32SSSE3
				}
				return 4, convBits64SSSE3, convBitsSums64SSSE3
			})
		},
		PackBytes: func(w []uint64, outputs, rows, n int) *Weights {
			return packSigns(w, outputs, rows, n, 2, 2, 8, func(vectors int) (int, func(*uint8), func(*uint8)) {
				switch {
				case vectors <= 2:
					return 2, convBytes16SSSE3, convBytesSums16SSSE3
				case vectors <= 4:
					return 4, convBytes32SSSE3, convBytesSums32SSSE3
				}
				return 8, convBytes64SSSE3, convBytesSums64SSSE3
			})
		},
	}
	s.Threshold = thresholdX86
	s.ThresholdFloat = thresholdFloatX86
	s.Or = orX86
	s.Peak, s.PeakProducts = peakSSSE3, 12*16*4
	s.Cost = Cost{Bits: 0.003, Bytes: 0.02, Floats: 2.5, Value: 2}
	return s
}()

func thresholdX86(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdSSSE3(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloatX86(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdFloatSSSE3(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		thresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func orX86(dst, src []uint64) {
	blocks := len(src) / 8
	if blocks > 0 {
		orSSSE3(&dst[:len(src)][0], &src[0], blocks)
	}
	or(dst[8*blocks:], src[8*blocks:])
}
