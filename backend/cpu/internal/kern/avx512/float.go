//go:build amd64 && !purego

package avx512

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// The kernels of sums, of 1, 2, … pixels at a time.
var (
	fmaPixels64 = []func(*uint8){fmaPixels1x64AVX512, fmaPixels2x64AVX512, fmaPixels3x64AVX512, fmaPixels4x64AVX512, fmaPixels5x64AVX512, fmaPixels6x64AVX512}
	// Of at most 32 outputs, 16 and 8.
	fmaPixels32 = []func(*uint8){fmaPixels1x32AVX512, fmaPixels2x32AVX512, fmaPixels3x32AVX512, fmaPixels4x32AVX512, fmaPixels5x32AVX512, fmaPixels6x32AVX512, fmaPixels7x32AVX512, fmaPixels8x32AVX512, fmaPixels9x32AVX512, fmaPixels10x32AVX512, fmaPixels11x32AVX512, fmaPixels12x32AVX512}
	fmaPixels16 = []func(*uint8){fmaPixels1x16AVX512, fmaPixels2x16AVX512, fmaPixels3x16AVX512, fmaPixels4x16AVX512, fmaPixels5x16AVX512, fmaPixels6x16AVX512, fmaPixels7x16AVX512, fmaPixels8x16AVX512, fmaPixels9x16AVX512, fmaPixels10x16AVX512, fmaPixels11x16AVX512, fmaPixels12x16AVX512}
	fmaPixels8  = []func(*uint8){fmaPixels1x8AVX512, fmaPixels2x8AVX512, fmaPixels3x8AVX512, fmaPixels4x8AVX512, fmaPixels5x8AVX512, fmaPixels6x8AVX512, fmaPixels7x8AVX512, fmaPixels8x8AVX512, fmaPixels9x8AVX512, fmaPixels10x8AVX512, fmaPixels11x8AVX512, fmaPixels12x8AVX512}
	fmaEach64   = []func(*uint8){fmaEach1x64AVX512, fmaEach2x64AVX512, fmaEach3x64AVX512, fmaEach4x64AVX512, fmaEach5x64AVX512, fmaEach6x64AVX512}
	fmaEach32   = []func(*uint8){fmaEach1x32AVX512, fmaEach2x32AVX512, fmaEach3x32AVX512, fmaEach4x32AVX512, fmaEach5x32AVX512, fmaEach6x32AVX512}
	fmaEach16   = []func(*uint8){fmaEach1x16AVX512, fmaEach2x16AVX512, fmaEach3x16AVX512, fmaEach4x16AVX512, fmaEach5x16AVX512, fmaEach6x16AVX512}
	// Of rows of 3 and of 5 runs, a step apart.
	fmaSlide3 = []func(*uint8){nil, nil, fmaSlide3_3x16AVX512, fmaSlide3_4x16AVX512, fmaSlide3_5x16AVX512, fmaSlide3_6x16AVX512, fmaSlide3_7x16AVX512, fmaSlide3_8x16AVX512, fmaSlide3_9x16AVX512, fmaSlide3_10x16AVX512, fmaSlide3_11x16AVX512, fmaSlide3_12x16AVX512}
	fmaSlide5 = []func(*uint8){nil, nil, fmaSlide5_3x16AVX512, fmaSlide5_4x16AVX512, fmaSlide5_5x16AVX512, fmaSlide5_6x16AVX512, fmaSlide5_7x16AVX512, fmaSlide5_8x16AVX512, fmaSlide5_9x16AVX512, fmaSlide5_10x16AVX512, fmaSlide5_11x16AVX512, fmaSlide5_12x16AVX512}
	// Of groups of few inputs, 8 pixels at a time.
	fmaGroups = kern.NewGroupKernels(16, 8, map[int]func(*uint8){2: fmaGroups2_8x32AVX512, 4: fmaGroups4_8x32AVX512, 8: fmaGroups8_8x32AVX512})
	// Of windows, of 1, 2, … columns.
	fmaColumns3 = kern.ColumnKernels{
		Kernels: []func(*uint8){fmaColumns3_1x16AVX512, fmaColumns3_2x16AVX512, fmaColumns3_3x16AVX512, fmaColumns3_4x16AVX512, fmaColumns3_5x16AVX512, fmaColumns3_6x16AVX512, fmaColumns3_7x16AVX512},
		Wide:    []func(*uint8){fmaColumns3_1x64AVX512, fmaColumns3_2x64AVX512}, WideChannels: 64,
	}
	fmaColumns5 = kern.ColumnKernels{Kernels: []func(*uint8){fmaColumns5_1x16AVX512, fmaColumns5_2x16AVX512, fmaColumns5_3x16AVX512, fmaColumns5_4x16AVX512, fmaColumns5_5x16AVX512}}
)

func fmaPixels(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, first, n int, end kern.End) {
	for o := 0; o < n; {
		kernels, outputs := fmaPixels64, 64
		switch {
		case n-o <= 8:
			kernels, outputs = fmaPixels8, n-o
		case n-o <= 16:
			kernels, outputs = fmaPixels16, n-o
		case n-o < 64:
			kernels, outputs = fmaPixels32, min(n-o, 32)
		}
		kern.FMATiles(kernels, dst[o:], stride, src, at, w, first+o, outputs, &end)
		end = end.From(outputs)
		o += outputs
	}
}

func fmaEach(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, end kern.End) {
	slides := at.Slides(fmaSlide3, fmaSlide5, nil, nil)
	for c := 0; c < w.Outputs; {
		kernels, n := fmaEach64, (w.Outputs-c)&^63
		switch left := w.Outputs - c; {
		case slides != nil && left >= 16:
			kernels = slides
			if n == 0 {
				n = left &^ 15
			}
		case left < 32:
			kernels, n = fmaEach16, min(left, 16)
		case left < 64:
			kernels, n = fmaEach32, 32
		}
		kern.FMATiles(kernels, dst[c:], stride, src[c:], at, w, c, n, &end)
		end = end.From(n)
		c += n
	}
}

// groups reports for which groups fmaOfGroups is there.
func groups(at *kern.FloatPatches, n, outs, outputs int) bool {
	return fmaGroups.Groups(at, n, outs, outputs)
}

func fmaOfGroups(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, n, outs int, end kern.End) {
	fmaGroups.Run(dst, stride, src, at, w, n, outs, &end)
}

// columns reports for which windows, and values from a pixel to the next, fmaColumns is there.
func columns(taps, stride int) bool { return taps == 3 || taps == 5 && !kern.Far(stride) }

func fmaColumns(dst, src []float32, at *kern.FloatColumns, w *kern.ColumnWeights, end kern.End) {
	kernels := &fmaColumns3
	if at.Taps == 5 {
		kernels = &fmaColumns5
	}
	kernels.Run(dst, src, at, w, &end)
}

func blend(dst, src []float32, rows, cols []kern.BlendTap, n, pixels int) {
	if n > 0 && pixels > 0 {
		job := kern.NewBlendJob(dst, src, rows, cols, n, pixels)
		blendAVX512(job.Address())
	}
}

// The kernels of rows of pixels of few channels, of one row of the output, of two, and of two
// that are mirrored.
var (
	blendRows2 = [3]func(*uint8){blendRow2x1AVX512, blendRow2x2AVX512, blendRow2MirroredAVX512}
	blendRows4 = [3]func(*uint8){blendRow4x1AVX512, blendRow4x2AVX512}
)

func blendRows(dst, src []float32, rows []kern.BlendTap, cols *kern.BlendColumns) {
	kernels := &blendRows2
	if cols.Taps == 4 {
		kernels = &blendRows4
	}
	kern.BlendRowTiles(kernels, dst, src, rows, cols)
}
