//go:build amd64 && !purego

package avx512

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/avx2"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// The kernels of means, of 1, 2, … pixels at a time.
var (
	mean64 = []func(*uint8){mean1x64AVX512, mean2x64AVX512, mean3x64AVX512, mean4x64AVX512, mean5x64AVX512, mean6x64AVX512}
	mean16 = []func(*uint8){mean1x16AVX512, mean2x16AVX512, mean3x16AVX512, mean4x16AVX512, mean5x16AVX512, mean6x16AVX512}
	// Of rows of 3 runs, a step apart.
	meanSlide3 = []func(*uint8){nil, nil, meanSlide3_3x16AVX512, meanSlide3_4x16AVX512, meanSlide3_5x16AVX512, meanSlide3_6x16AVX512, meanSlide3_7x16AVX512, meanSlide3_8x16AVX512, meanSlide3_9x16AVX512, meanSlide3_10x16AVX512, meanSlide3_11x16AVX512, meanSlide3_12x16AVX512}
)

func mean(dst, src []float32, at *kern.FloatPatches, n int, taps, y float32) {
	slides := at.Slides(meanSlide3, nil, nil, nil)
	for c := 0; c < n; {
		kernels, some := mean64, (n-c)&^63
		switch {
		case slides != nil && n-c >= 16:
			kernels, some = slides, (n-c)&^15
		case some == 0:
			kernels, some = mean16, min(n-c, 16)
		}
		kern.MeanTiles(kernels, dst[c:], n, src[c:], at, some, taps, y)
		c += some
	}
}

func meanSigns(dst []float32, src []uint64, n int, p *kern.Pool, divisor, y float32) {
	var taps [kern.MaxPoolTaps]int
	words := n / bits.WordBits
	job, ok := kern.NewSignsJob(dst, src, n, words, p, divisor, y, &taps)
	if ok {
		if len(p.Taps) == 4 {
			meanSigns4AVX512(job.Address())
		} else {
			meanSignsAVX512(job.Address())
		}
		runtime.KeepAlive(dst)
		runtime.KeepAlive(src)
	} else {
		words = 0
	}
	first := words * bits.WordBits
	generic.SumSignsFrom(dst, src, n, first, p)
	for x := 0; first < n && x < p.Pixels; x++ {
		avx2.Divide(dst[x*n+first:][:n-first], divisor, y)
	}
}
