//go:build amd64 && !purego

package ssse3

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func thresholdBytes(dst []uint64, src, t []uint8) {
	words := len(src) / 64
	if words > 0 {
		thresholdBytesSSSE3(&dst[0], &src[0], &t[0], words, len(t)/64)
	}
	if whole := words * 64; whole < len(src) {
		generic.ThresholdBytes(dst[words:], src[whole:], t[whole%len(t):])
	}
}

func minMax(src []uint8) (lowest, highest uint8) {
	whole := len(src) &^ 15
	if whole == 0 {
		return generic.MinMax(src)
	}
	var low, high [16]uint8
	minMaxSSSE3(&src[0], whole/16, &low[0], &high[0])
	lowest, highest = slices.Min(low[:]), slices.Max(high[:])
	for _, v := range src[whole:] {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest
}
