//go:build amd64 && !purego

package avx2

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func narrow(dst []uint32, src []uint64) {
	if len(dst) < 8 {
		generic.Narrow(dst, src)
		return
	}
	narrowAVX2(&dst[0], &src[:len(dst)][0], len(dst))
}

func join(dst, src []uint32, taps, step, shift int) {
	switch {
	case len(dst) >= 32:
		join32AVX2(&dst[0], &src[0], len(dst), taps, 4*step, shift)
	case len(dst) >= 8:
		join8AVX2(&dst[0], &src[0], len(dst), taps, 4*step, shift)
	default:
		generic.Join(dst, src, taps, step, shift)
	}
}

func expand(dst []uint8, src []uint32) {
	if len(src) < 4 {
		generic.Expand(dst, src)
		return
	}
	expandAVX2(&dst[0], &src[0], len(src))
}

func expandPairedBytes(dst []uint8, src []uint32) {
	if len(src) < 4 {
		generic.ExpandBytes(dst, src)
		return
	}
	expandBytesAVX2(&dst[0], &src[0], len(src))
}

func lookUpBytes(dst, src []uint8, t *kern.ByteTable) {
	switch n := len(dst); {
	case n >= 128:
		lookUpBytes128AVX2(&dst[0], &src[:n][0], n, t.Changes())
	case n >= 32:
		lookUpBytes32AVX2(&dst[0], &src[:n][0], n, t.Changes())
	default:
		generic.LookUpBytes(dst, src, t)
	}
}
