//go:build amd64 && !purego

package ssse3

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdSSSE3(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.Threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdFloatSSSE3(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.ThresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func or(dst, src []uint64) {
	blocks := len(src) / 8
	if blocks > 0 {
		orSSSE3(&dst[:len(src)][0], &src[0], blocks)
	}
	generic.Or(dst[8*blocks:], src[8*blocks:])
}
