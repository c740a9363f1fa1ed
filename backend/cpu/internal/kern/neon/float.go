//go:build arm64 && !purego

package neon

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// The kernels of sums, of 1, 2, … pixels at a time.
var (
	fmaPixels64 = []func(*uint8){fmaPixels1x64NEON}
	fmaPixels16 = []func(*uint8){fmaPixels1x16NEON, fmaPixels2x16NEON, fmaPixels3x16NEON, fmaPixels4x16NEON}
	fmaPixels4  = []func(*uint8){fmaPixels1x4NEON, fmaPixels2x4NEON, fmaPixels3x4NEON, fmaPixels4x4NEON}
	fmaEach16   = []func(*uint8){fmaEach1x16NEON, fmaEach2x16NEON, fmaEach3x16NEON}
	fmaEach4    = []func(*uint8){fmaEach1x4NEON, fmaEach2x4NEON, fmaEach3x4NEON}
	fmaEach1    = []func(*uint8){fmaEach1x1NEON}
	// Of rows of 3 and of 5 runs, a step apart.
	fmaSlide3 = []func(*uint8){nil, nil, fmaSlide3_3x8NEON, fmaSlide3_4x8NEON, fmaSlide3_5x8NEON, fmaSlide3_6x8NEON, fmaSlide3_7x8NEON, fmaSlide3_8x8NEON}
	fmaSlide5 = []func(*uint8){nil, nil, fmaSlide5_3x8NEON, fmaSlide5_4x8NEON, fmaSlide5_5x8NEON, fmaSlide5_6x8NEON, fmaSlide5_7x8NEON, fmaSlide5_8x8NEON}
)

func fmaPixels(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, first, n int, end kern.End) {
	for o := 0; o < n; {
		kernels, outputs := fmaPixels16, 16
		switch {
		case at.Pixels == 1 && n-o >= 64:
			kernels, outputs = fmaPixels64, 64
		case n-o < 16:
			kernels, outputs = fmaPixels4, min(n-o, 4)
		}
		kern.FMATiles(kernels, dst[o:], stride, src, at, w, first+o, outputs, &kern.End{})
		o += outputs
	}
	if !end.None() {
		scaleFloat(dst, stride, dst, stride, n, at.Pixels, end)
	}
}

func fmaEach(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, end kern.End) {
	slides := at.Slides(fmaSlide3, fmaSlide5, nil)
	for c := 0; c < w.Outputs; {
		kernels, n := fmaEach16, 16
		switch left := w.Outputs - c; {
		case slides != nil && left >= 8:
			kernels, n = slides, 8
		case left < 4:
			kernels, n = fmaEach1, 1
		case left < 16:
			kernels, n = fmaEach4, 4
		}
		kern.FMATiles(kernels, dst[c:], stride, src[c:], at, w, c, n, &kern.End{})
		c += n
	}
	if !end.None() {
		scaleFloat(dst, stride, dst, stride, w.Outputs, at.Pixels, end)
	}
}

func blend(dst, src []float32, rows, cols []kern.BlendTap, n, pixels int) {
	if n > 0 && pixels > 0 {
		job := kern.NewBlendJob(dst, src, rows, cols, n, pixels)
		blendNEON(job.Address())
	}
}
