//go:build arm64 && !purego

package neon

import (
	"math"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
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

func thresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
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

func or(dst, src []uint64) {
	blocks := len(src) / 8
	if blocks > 0 {
		orNEON(&dst[:len(src)][0], &src[0], blocks)
	}
	generic.Or(dst[8*blocks:], src[8*blocks:])
}

// allLanes returns all ones where negative results stay as they are.
func allLanes(relu bool) uint32 {
	if relu {
		return 0
	}
	return math.MaxUint32
}

func scale(dst []float32, sums []int32, scale, shift []float32, relu bool) {
	whole := len(dst) &^ 3
	if scale == nil || whole == 0 {
		generic.Scale(dst, sums, scale, shift, relu)
		return
	}
	scaleNEON(&dst[0], &sums[0], &scale[0], &shift[0], whole/4, allLanes(relu))
	generic.Scale(dst[whole:], sums[whole:], scale[whole:], shift[whole:], relu)
}

func scaleFloat(dst, sums []float32, scale, shift []float32, relu bool) {
	whole := len(dst) &^ 3
	if scale == nil || whole == 0 {
		generic.ScaleFloat(dst, sums, scale, shift, relu)
		return
	}
	scaleFloatNEON(&dst[0], &sums[0], &scale[0], &shift[0], whole/4, allLanes(relu))
	generic.ScaleFloat(dst[whole:], sums[whole:], scale[whole:], shift[whole:], relu)
}

func add(dst, a, b []float32, relu bool) {
	whole := len(dst) &^ 3
	if whole > 0 {
		addNEON(&dst[0], &a[0], &b[0], whole/4, allLanes(relu))
	}
	generic.Add(dst[whole:], a[whole:], b[whole:], relu)
}

func prelu(x, slope []float32) {
	whole := len(x) &^ 3
	if whole > 0 {
		preluNEON(&x[0], &slope[0], whole/4)
	}
	generic.PReLU(x[whole:], slope[whole:])
}

func clip(x []float32, low, high float32) {
	whole := len(x) &^ 3
	if whole > 0 {
		clipNEON(&x[0], whole/4, low, high)
	}
	generic.Clip(x[whole:], low, high)
}

func mul(dst, a, b []float32) {
	whole := len(dst) &^ 3
	if whole > 0 {
		mulNEON(&dst[0], &a[0], &b[0], whole/4)
	}
	generic.Mul(dst[whole:], a[whole:], b[whole:])
}

func divide(x []float32, n, y float32) {
	whole := len(x) &^ 3
	if whole > 0 {
		divideNEON(&x[0], whole/4, n, y)
	}
	generic.Divide(x[whole:], n, y)
}

func choose(dst []float32, src []uint64, one, zero []float32) {
	whole := len(dst) / bits.WordBits * bits.WordBits
	if whole > 0 {
		chooseNEON(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), &one[0], &zero[0], whole/8)
	}
	if whole < len(dst) {
		generic.Choose(dst[whole:], src[whole/bits.WordBits:], one[whole:], zero[whole:])
	}
}
