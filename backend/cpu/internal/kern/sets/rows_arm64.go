//go:build arm64 && !purego

package sets

import (
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func fma128(acc, x, w []float32, stride int) {
	if len(x) == 0 {
		return
	}
	o := 0
	for ; o+64 <= len(acc); o += 64 {
		fma64NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o+16 <= len(acc); o += 16 {
		fma16NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o+4 <= len(acc); o += 4 {
		fma4NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o < len(acc); o++ {
		fma1NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
}

func threshold128(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdNEON(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.Threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloat128(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdFloatNEON(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.ThresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func or128(dst, src []uint64) {
	blocks := len(src) / 8
	if blocks > 0 {
		orNEON(&dst[:len(src)][0], &src[0], blocks)
	}
	generic.Or(dst[8*blocks:], src[8*blocks:])
}

// alwaysAll returns all ones where negative results stay as they are.
func alwaysAll(relu bool) uint32 {
	if relu {
		return 0
	}
	return math.MaxUint32
}

func scale128(dst []float32, sums []int32, scale, shift []float32, relu bool) {
	whole := len(dst) &^ 3
	if scale == nil || whole == 0 {
		generic.Scale(dst, sums, scale, shift, relu)
		return
	}
	scaleNEON(&dst[0], &sums[0], &scale[0], &shift[0], whole/4, alwaysAll(relu))
	generic.Scale(dst[whole:], sums[whole:], scale[whole:], shift[whole:], relu)
}

func scaleFloat128(dst, sums []float32, scale, shift []float32, relu bool) {
	whole := len(dst) &^ 3
	if scale == nil || whole == 0 {
		generic.ScaleFloat(dst, sums, scale, shift, relu)
		return
	}
	scaleFloatNEON(&dst[0], &sums[0], &scale[0], &shift[0], whole/4, alwaysAll(relu))
	generic.ScaleFloat(dst[whole:], sums[whole:], scale[whole:], shift[whole:], relu)
}

func fmaEach128(acc, x, w []float32) {
	whole := len(acc) &^ 3
	if whole > 0 {
		fmaEachNEON(&acc[0], &x[0], &w[0], whole/4)
	}
	for i := whole; i < len(acc); i++ {
		fma1NEON(&acc[i], &x[i], 1, &w[i], 0)
	}
}

func add128(dst, a, b []float32, relu bool) {
	whole := len(dst) &^ 3
	if whole > 0 {
		addNEON(&dst[0], &a[0], &b[0], whole/4, alwaysAll(relu))
	}
	generic.Add(dst[whole:], a[whole:], b[whole:], relu)
}

func choose128(dst []float32, src []uint64, one, zero []float32) {
	whole := len(dst) / bits.WordBits * bits.WordBits
	if whole > 0 {
		chooseNEON(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), &one[0], &zero[0], whole/8)
	}
	if whole < len(dst) {
		generic.Choose(dst[whole:], src[whole/bits.WordBits:], one[whole:], zero[whole:])
	}
}

func orPool128(dst, src []uint64, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.OrPool(dst, src, p)
		return
	}
	if address := (*uint8)(unsafe.Pointer(&job)); len(p.Taps) == 4 && p.Values == 1 {
		orPool4NEON(address, p.Flip)
	} else {
		orPoolNEON(address, p.Flip)
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func maxPool128(dst, src []float32, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.MaxPool(dst, src, p)
		return
	}
	maxPoolNEON((*uint8)(unsafe.Pointer(&job)))
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func narrow128(dst []uint32, src []uint64) {
	whole := len(dst) &^ 7
	if whole > 0 {
		narrowNEON(&dst[0], &src[0], whole/8)
	}
	generic.Narrow(dst[whole:], src[whole:])
}

func join128(dst, src []uint32, taps, step, shift int) {
	whole := len(dst) &^ 7
	if whole > 0 {
		joinNEON(&dst[0], &src[0], whole/8, taps, 4*step, shift)
	}
	if whole < len(dst) {
		generic.Join(dst[whole:], src[whole:], taps, step, shift)
	}
}

func thresholdBytes128(dst []uint64, src, t []uint8) {
	words := len(src) / 64
	if words > 0 {
		thresholdBytesNEON(&dst[0], &src[0], &t[0], words, len(t)/64)
	}
	if whole := words * 64; whole < len(src) {
		generic.ThresholdBytes(dst[words:], src[whole:], t[whole%len(t):])
	}
}

func spread128(dst, src []uint64, n int, flip uint64) {
	// Groups of 8 pixels, n bytes, of which 8 are read.
	groups := max(0, min(len(dst)/8, (8*len(src)-8)/n+1))
	if groups > 0 {
		spreadNEON(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), groups, n, 1<<n-1, flip)
	}
	generic.SpreadFrom(dst, src, n, flip, 8*groups)
}

func luma128(dst, rgb []uint8) {
	groups := len(dst) / 8
	if groups > 0 {
		lumaNEON(&dst[0], &rgb[0], groups)
	}
	generic.Luma(dst[8*groups:], rgb[24*groups:])
}

func lbp128(dst []uint64, above, row, below []uint8) {
	groups := len(dst) / 8
	if groups > 0 {
		lbpNEON(&dst[0], &above[0], &row[0], &below[0], groups)
	}
	generic.LBP(dst[8*groups:], above[8*groups:], row[8*groups:], below[8*groups:])
}

func minMax128(src []uint8) (lowest, highest uint8) {
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
