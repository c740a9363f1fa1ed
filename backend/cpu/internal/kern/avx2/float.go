//go:build amd64 && !purego

package avx2

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// The kernels of sums, of 1, 2, … pixels at a time.
var (
	fmaPixels64 = []func(*uint8){fmaPixels1x64AVX2}
	fmaPixels16 = []func(*uint8){fmaPixels1x16AVX2, fmaPixels2x16AVX2, fmaPixels3x16AVX2, fmaPixels4x16AVX2, fmaPixels5x16AVX2, fmaPixels6x16AVX2}
	fmaPixels8  = []func(*uint8){fmaPixels1x8AVX2, fmaPixels2x8AVX2, fmaPixels3x8AVX2, fmaPixels4x8AVX2, fmaPixels5x8AVX2, fmaPixels6x8AVX2, fmaPixels7x8AVX2, fmaPixels8x8AVX2, fmaPixels9x8AVX2, fmaPixels10x8AVX2, fmaPixels11x8AVX2, fmaPixels12x8AVX2}
	fmaEach16   = []func(*uint8){fmaEach1x16AVX2, fmaEach2x16AVX2, fmaEach3x16AVX2, fmaEach4x16AVX2, fmaEach5x16AVX2, fmaEach6x16AVX2}
	fmaEach8    = []func(*uint8){fmaEach1x8AVX2, fmaEach2x8AVX2, fmaEach3x8AVX2, fmaEach4x8AVX2, fmaEach5x8AVX2, fmaEach6x8AVX2}
	// Of rows of 3 and of 5 runs, a step apart.
	fmaSlide3 = []func(*uint8){nil, nil, fmaSlide3_3x8AVX2, fmaSlide3_4x8AVX2, fmaSlide3_5x8AVX2, fmaSlide3_6x8AVX2, fmaSlide3_7x8AVX2, fmaSlide3_8x8AVX2}
	fmaSlide5 = []func(*uint8){nil, nil, fmaSlide5_3x8AVX2, fmaSlide5_4x8AVX2, fmaSlide5_5x8AVX2, fmaSlide5_6x8AVX2, fmaSlide5_7x8AVX2, fmaSlide5_8x8AVX2}
	// Of windows that move by 2, of 16 channels.
	fmaSlide3By2 = []func(*uint8){nil, fmaSlide3By2_2x16AVX2, fmaSlide3By2_3x16AVX2, fmaSlide3By2_4x16AVX2}
	// Of windows, of 1, 2, … columns.
	fmaColumns3 = kern.ColumnKernels{Kernels: []func(*uint8){fmaColumns3_1x8AVX2, fmaColumns3_2x8AVX2, fmaColumns3_3x8AVX2, fmaColumns3_4x8AVX2},
		Wide: []func(*uint8){fmaColumns3_1x16AVX2, fmaColumns3_2x16AVX2}, WideChannels: 16}
)

func fmaPixels(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, first, n int, end kern.End) {
	for o := 0; o < n; {
		kernels, outputs := fmaPixels16, 16
		switch {
		case at.Pixels == 1 && n-o >= 64:
			kernels, outputs = fmaPixels64, 64
		case n-o < 16:
			kernels, outputs = fmaPixels8, min(n-o, 8)
		}
		kern.FMATiles(kernels, dst[o:], stride, src, at, w, first+o, outputs, &end)
		end = end.From(outputs)
		o += outputs
	}
}

func fmaEach(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, end kern.End) {
	slides := at.Slides(fmaSlide3, fmaSlide5, fmaSlide3By2, nil)
	for c := 0; c < w.Outputs; {
		kernels, n := fmaEach16, (w.Outputs-c)&^15
		if n == 0 {
			kernels, n = fmaEach8, min(w.Outputs-c, 8)
		}
		if slides != nil && n >= 8 && (at.Stride == 1 || n%16 == 0) {
			kernels = slides
		}
		kern.FMATiles(kernels, dst[c:], stride, src[c:], at, w, c, n, &end)
		end = end.From(n)
		c += n
	}
}

// columns reports for which windows fmaColumns is there.
func columns(taps, _ int) bool { return taps == 3 }

func fmaColumns(dst, src []float32, at *kern.FloatColumns, w *kern.ColumnWeights, end kern.End) {
	fmaColumns3.Run(dst, src, at, w, &end)
}

func blend(dst, src []float32, rows, cols []kern.BlendTap, n, pixels int) {
	if n > 0 && pixels > 0 {
		job := kern.NewBlendJob(dst, src, rows, cols, n, pixels)
		blendAVX2(job.Address())
	}
}

// The kernels of rows of pixels of few channels, of one row of the output, of two, and of two
// that are mirrored.
var (
	blendRows2 = [3]func(*uint8){blendRow2x1AVX2, blendRow2x2AVX2, blendRow2MirroredAVX2}
	blendRows4 = [3]func(*uint8){blendRow4x1AVX2, nil}
)

func blendRows(dst, src []float32, rows []kern.BlendTap, cols *kern.BlendColumns) {
	kernels := &blendRows2
	if cols.Taps == 4 {
		kernels = &blendRows4
	}
	kern.BlendRowTiles(kernels, dst, src, rows, cols)
}
