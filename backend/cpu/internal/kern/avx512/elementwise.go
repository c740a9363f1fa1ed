//go:build amd64 && !purego

package avx512

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	if len(t) == 0 {
		return
	}
	for p := range pixels {
		thresholdAVX512(&dst[p*step], &sums[p*stride], &t[0], len(t))
	}
}

func thresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	if len(t) == 0 {
		return
	}
	for p := range pixels {
		thresholdFloatAVX512(&dst[p*step], &sums[p*stride], &t[0], len(t))
	}
}

// allLanes returns a mask of the lanes where negative results stay as they are.
func allLanes(relu bool) uint16 {
	if relu {
		return 0
	}
	return 0xffff
}

func scale(dst []float32, sums []int32, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.Scale(dst, sums, scale, shift, relu)
		return
	}
	scaleAVX512(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), allLanes(relu))
}

func scaleFloat(dst, sums, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.ScaleFloat(dst, sums, scale, shift, relu)
		return
	}
	scaleFloatAVX512(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), allLanes(relu))
}
