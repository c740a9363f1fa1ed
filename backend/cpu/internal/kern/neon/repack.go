//go:build arm64 && !purego

package neon

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func narrow(dst []uint32, src []uint64) {
	whole := len(dst) &^ 7
	if whole > 0 {
		narrowNEON(&dst[0], &src[0], whole/8)
	}
	generic.Narrow(dst[whole:], src[whole:])
}

func join(dst, src []uint32, taps, step, shift int) {
	whole := len(dst) &^ 7
	if whole > 0 {
		joinNEON(&dst[0], &src[0], whole/8, taps, 4*step, shift)
	}
	if whole < len(dst) {
		generic.Join(dst[whole:], src[whole:], taps, step, shift)
	}
}

func lookUpBytes(dst, src []uint8, t *kern.ByteTable) {
	blocks := len(dst) / 32
	if blocks > 0 {
		lookUpBytesNEON(&dst[0], &src[:len(dst)][0], blocks, &t.Values[0])
	}
	generic.LookUpBytes(dst[32*blocks:], src[32*blocks:], t)
}
