//go:build amd64 && !purego

package avx2

import (
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func thresholdBytes(dst []uint64, src, t []uint8) {
	words := len(src) / 64
	if words > 0 {
		thresholdBytesAVX2(&dst[0], &src[0], &t[0], words, len(t)/64)
	}
	if whole := words * 64; whole < len(src) {
		generic.ThresholdBytes(dst[words:], src[whole:], t[whole%len(t):])
	}
}

func spread(dst, src []uint64, n int, flip uint64) {
	// Groups of 8 pixels, n bytes, of which 8 are read.
	groups := max(0, min(len(dst)/8, (8*len(src)-8)/n+1))
	if groups > 0 {
		spreadAVX2(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), groups, n, 1<<n-1, flip)
	}
	generic.SpreadFrom(dst, src, n, flip, 8*groups)
}

func luma(dst, rgb []uint8) {
	groups := len(dst) / 8
	if groups > 0 {
		lumaAVX2(&dst[0], &rgb[0], groups)
	}
	generic.Luma(dst[8*groups:], rgb[24*groups:])
}

func lbp(dst []uint64, above, row, below []uint8) {
	if len(dst) < 8 {
		generic.LBP(dst, above, row, below)
		return
	}
	lbpAVX2(&dst[0], &above[0], &row[0], &below[0], len(dst))
}

func minMax(src []uint8) (lowest, highest uint8) {
	if len(src) < 32 {
		return generic.MinMax(src)
	}
	var low, high [32]uint8
	minMaxAVX2(&src[0], len(src), &low[0], &high[0])
	return slices.Min(low[:]), slices.Max(high[:])
}

func floats(dst []float32, src []uint8) {
	whole := len(dst) &^ 7
	if whole > 0 {
		floatsAVX2(&dst[0], &src[:whole][0], whole/8)
	}
	generic.Floats(dst[whole:], src[whole:])
}
