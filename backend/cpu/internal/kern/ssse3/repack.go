//go:build amd64 && !purego

package ssse3

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func narrow(dst []uint32, src []uint64) {
	whole := len(dst) &^ 3
	if whole > 0 {
		narrowSSSE3(&dst[0], &src[0], whole/4)
	}
	generic.Narrow(dst[whole:], src[whole:])
}

func join(dst, src []uint32, taps, step, shift int) {
	whole := len(dst) &^ 7
	if whole > 0 {
		joinSSSE3(&dst[0], &src[0], whole/8, taps, 4*step, shift)
	}
	if whole < len(dst) {
		generic.Join(dst[whole:], src[whole:], taps, step, shift)
	}
}

func expand(dst []uint8, src []uint32) {
	groups := len(src) / 4
	if groups > 0 {
		expandSSSE3(&dst[0], &src[0], groups)
	}
	generic.Expand(dst[32*groups:], src[4*groups:])
}

func lookUpBytes(dst, src []uint8, t *kern.ByteTable) {
	blocks := len(dst) / 32
	if blocks > 0 {
		lookUpBytesSSSE3(&dst[0], &src[:len(dst)][0], blocks, t.Changes())
	}
	generic.LookUpBytes(dst[32*blocks:], src[32*blocks:], t)
}
