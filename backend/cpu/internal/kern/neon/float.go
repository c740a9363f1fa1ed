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
	// Of rows of 3 and of 5 runs, of windows that move by 1 and by 2 taps.
	fmaSlide3    = []func(*uint8){nil, nil, fmaSlide3_3x8NEON, fmaSlide3_4x8NEON, fmaSlide3_5x8NEON, fmaSlide3_6x8NEON, fmaSlide3_7x8NEON, fmaSlide3_8x8NEON}
	fmaSlide5    = []func(*uint8){nil, nil, fmaSlide5_3x8NEON, fmaSlide5_4x8NEON, fmaSlide5_5x8NEON, fmaSlide5_6x8NEON, fmaSlide5_7x8NEON, fmaSlide5_8x8NEON}
	fmaSlide3By2 = []func(*uint8){nil, nil, fmaSlide3s2_3x8NEON, fmaSlide3s2_4x8NEON, fmaSlide3s2_5x8NEON, fmaSlide3s2_6x8NEON, fmaSlide3s2_7x8NEON, fmaSlide3s2_8x8NEON}
	fmaSlide5By2 = []func(*uint8){nil, nil, fmaSlide5s2_3x8NEON, fmaSlide5s2_4x8NEON, fmaSlide5s2_5x8NEON, fmaSlide5s2_6x8NEON, fmaSlide5s2_7x8NEON, fmaSlide5s2_8x8NEON}
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
		its := end.From(o)
		if outputs < 4 { // the kernels end four
			its = kern.End{}
		}
		kern.FMATiles(kernels, dst[o:], stride, src, at, w, first+o, outputs, &its)
		o += outputs
	}
	endLast(dst, stride, n, at.Pixels, end)
}

func fmaEach(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, end kern.End) {
	slides := at.Slides(fmaSlide3, fmaSlide5, fmaSlide3By2, fmaSlide5By2)
	for c := 0; c < w.Outputs; {
		left, its := w.Outputs-c, end.From(c)
		kernels, n := fmaEach16, left&^15
		switch {
		case slides != nil && n > 0:
			kernels = slides
		case slides != nil && left >= 8:
			kernels, n = slides, 8
		case n == 0 && left >= 4:
			kernels, n = fmaEach4, 4
		case n == 0:
			kernels, n, its = fmaEach1, 1, kern.End{}
		}
		kern.FMATiles(kernels, dst[c:], stride, src[c:], at, w, c, n, &its)
		c += n
	}
	endLast(dst, stride, w.Outputs, at.Pixels, end)
}

// endLast ends those of n sums of a pixel that are less than a vector, which the kernels
// leave as they are.
func endLast(dst []float32, stride, n, pixels int, end kern.End) {
	if whole := n &^ 3; whole < n {
		scaleFloat(dst[whole:], stride, dst[whole:], stride, n-whole, pixels, end.From(whole))
	}
}

func blend(dst, src []float32, rows, cols []kern.BlendTap, n, pixels int) {
	if n > 0 && pixels > 0 {
		job := kern.NewBlendJob(dst, src, rows, cols, n, pixels)
		blendNEON(job.Address())
	}
}

// The kernels of rows of pixels of few channels, of one row of the output, of two, and of two
// that are mirrored.
var (
	blendRows2 = [3]func(*uint8){blendRow2x1NEON, blendRow2x2NEON, blendRow2MirroredNEON}
	blendRows4 = [3]func(*uint8){blendRow4x1NEON, blendRow4x2NEON, blendRow4MirroredNEON}
)

func blendRows(dst, src []float32, rows []kern.BlendTap, cols *kern.BlendColumns) {
	kernels := &blendRows2
	if cols.Taps == 4 {
		kernels = &blendRows4
	}
	kern.BlendRowTiles(kernels, dst, src, rows, cols)
}
