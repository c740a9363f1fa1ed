//go:build amd64 && !purego

package avx2

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
			thresholdAVX2(&dst[p*step], &sums[p*stride], &t[0], words)
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
			thresholdFloatAVX2(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.ThresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

// allLanes returns all ones where negative results stay as they are.
func allLanes(relu bool) uint32 {
	if relu {
		return 0
	}
	return math.MaxUint32
}

func scale(dst []float32, sums []int32, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.Scale(dst, sums, scale, shift, relu)
		return
	}
	scaleAVX2(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), allLanes(relu))
}

func scaleFloat(dst, sums []float32, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.ScaleFloat(dst, sums, scale, shift, relu)
		return
	}
	scaleFloatAVX2(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), allLanes(relu))
}

func add(dst, a, b []float32, relu bool) {
	if len(dst) > 0 {
		addAVX2(&dst[0], &a[0], &b[0], len(dst), allLanes(relu))
	}
}

func prelu(x, slope []float32) {
	if len(x) > 0 {
		preluAVX2(&x[0], &slope[0], len(x))
	}
}

func clip(x []float32, low, high float32) {
	if len(x) > 0 {
		clipAVX2(&x[0], len(x), low, high)
	}
}

func mul(dst, a, b []float32) {
	if len(dst) > 0 {
		mulAVX2(&dst[0], &a[0], &b[0], len(dst))
	}
}

func divide(x []float32, n, y float32) {
	if len(x) > 0 {
		divideAVX2(&x[0], len(x), n, y)
	}
}

func choose(dst []float32, src []uint64, one, zero []float32) {
	if len(dst) > 0 {
		chooseAVX2(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), &one[0], &zero[0], len(dst))
	}
}
