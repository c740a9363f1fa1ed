//go:build amd64 && !purego

package sets

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

// withRows sets the kernels of a Set that gain nothing from more than AVX2.
func withRows(s *kern.Set) {
	s.FMAEach = fmaEach256
	s.Add = add256
	s.Choose = choose256
	s.OrPool = orPool256
	s.MaxPool = maxPool256
	s.Narrow = narrow256
	s.Join = join256
	s.ThresholdBytes = thresholdBytes256
	s.Spread = spread256
	s.Luma = luma256
	s.LBP = lbp256
	s.MinMax = minMax256
}

func fmaEach256(acc, x, w []float32) {
	if len(acc) > 0 {
		fmaEachAVX2(&acc[0], &x[0], &w[0], len(acc))
	}
}

func add256(dst, a, b []float32, relu bool) {
	if len(dst) > 0 {
		addAVX2(&dst[0], &a[0], &b[0], len(dst), allLanes(relu))
	}
}

func choose256(dst []float32, src []uint64, one, zero []float32) {
	if len(dst) > 0 {
		chooseAVX2(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), &one[0], &zero[0], len(dst))
	}
}

// poolRow calls a kernel; it returns false where the pool is nothing for it.
func poolRow[T uint64 | float32](dst, src []T, p *kern.Pool, float bool) bool {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		return false
	}
	switch address := (*uint8)(unsafe.Pointer(&job)); {
	case float:
		maxPoolAVX2(address)
	case len(p.Taps) == 4:
		orPool4AVX2(address, p.Flip)
	default:
		orPoolAVX2(address)
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
	return true
}

func orPool256(dst, src []uint64, p *kern.Pool) {
	if p.Flip != 0 && len(p.Taps) != 4 || !poolRow(dst, src, p, false) {
		generic.OrPool(dst, src, p)
	}
}

func maxPool256(dst, src []float32, p *kern.Pool) {
	if !poolRow(dst, src, p, true) {
		generic.MaxPool(dst, src, p)
	}
}

func narrow256(dst []uint32, src []uint64) {
	if len(dst) < 8 {
		generic.Narrow(dst, src)
		return
	}
	narrowAVX2(&dst[0], &src[:len(dst)][0], len(dst))
}

func join256(dst, src []uint32, taps, step, shift int) {
	switch {
	case len(dst) >= 32:
		join32AVX2(&dst[0], &src[0], len(dst), taps, 4*step, shift)
	case len(dst) >= 8:
		join8AVX2(&dst[0], &src[0], len(dst), taps, 4*step, shift)
	default:
		generic.Join(dst, src, taps, step, shift)
	}
}

func thresholdBytes256(dst []uint64, src, t []uint8) {
	words := len(src) / 64
	if words > 0 {
		thresholdBytesAVX2(&dst[0], &src[0], &t[0], words, len(t)/64)
	}
	if whole := words * 64; whole < len(src) {
		generic.ThresholdBytes(dst[words:], src[whole:], t[whole%len(t):])
	}
}

func spread256(dst, src []uint64, n int, flip uint64) {
	// Groups of 8 pixels, n bytes, of which 8 are read.
	groups := max(0, min(len(dst)/8, (8*len(src)-8)/n+1))
	if groups > 0 {
		spreadAVX2(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), groups, n, 1<<n-1, flip)
	}
	generic.SpreadFrom(dst, src, n, flip, 8*groups)
}

func luma256(dst, rgb []uint8) {
	groups := len(dst) / 8
	if groups > 0 {
		lumaAVX2(&dst[0], &rgb[0], groups)
	}
	generic.Luma(dst[8*groups:], rgb[24*groups:])
}

func lbp256(dst []uint64, above, row, below []uint8) {
	if len(dst) < 8 {
		generic.LBP(dst, above, row, below)
		return
	}
	lbpAVX2(&dst[0], &above[0], &row[0], &below[0], len(dst))
}

func minMax256(src []uint8) (lowest, highest uint8) {
	if len(src) < 32 {
		return generic.MinMax(src)
	}
	var low, high [32]uint8
	minMaxAVX2(&src[0], len(src), &low[0], &high[0])
	return slices.Min(low[:]), slices.Max(high[:])
}
