//go:build arm64 && !purego

package neon

import (
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func thresholdBytes(dst []uint64, src, t []uint8) {
	words := len(src) / 64
	if words > 0 {
		thresholdBytesNEON(&dst[0], &src[0], &t[0], words, len(t)/64)
	}
	if whole := words * 64; whole < len(src) {
		generic.ThresholdBytes(dst[words:], src[whole:], t[whole%len(t):])
	}
}

func spread(dst, src []uint64, n int, flip uint64) {
	// Groups of 8 pixels, n bytes, of which 8 are read.
	groups := max(0, min(len(dst)/8, (8*len(src)-8)/n+1))
	if groups > 0 {
		spreadNEON(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), groups, n, 1<<n-1, flip)
	}
	generic.SpreadFrom(dst, src, n, flip, 8*groups)
}

func luma(dst, rgb []uint8) {
	groups := len(dst) / 8
	if groups > 0 {
		lumaNEON(&dst[0], &rgb[0], groups)
	}
	generic.Luma(dst[8*groups:], rgb[24*groups:])
}

func lbp(dst []uint64, above, row, below []uint8) {
	groups := len(dst) / 8
	if groups > 0 {
		lbpNEON(&dst[0], &above[0], &row[0], &below[0], groups)
	}
	generic.LBP(dst[8*groups:], above[8*groups:], row[8*groups:], below[8*groups:])
}

func floats(dst []float32, src []uint8) {
	groups := len(dst) / 16
	if groups > 0 {
		floatsNEON(&dst[0], &src[0], groups)
	}
	generic.Floats(dst[16*groups:], src[16*groups:])
}

func minMax(src []uint8) (lowest, highest uint8) {
	whole := len(src) &^ 15
	if whole == 0 {
		return generic.MinMax(src)
	}
	var low, high [16]uint8
	minMaxNEON(&src[0], whole/16, &low[0], &high[0])
	lowest, highest = slices.Min(low[:]), slices.Max(high[:])
	for _, v := range src[whole:] {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest
}
