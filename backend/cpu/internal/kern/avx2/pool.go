//go:build amd64 && !purego

package avx2

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func orPool(dst, src []uint64, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	four := len(p.Taps) == 4
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	switch {
	case !ok || p.Flip != 0 && !four:
		generic.OrPool(dst, src, p)
	case four:
		orPool4AVX2(job.Address(), p.Flip)
	default:
		orPoolAVX2(job.Address())
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func maxPool(dst, src []float32, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.MaxPool(dst, src, p)
		return
	}
	maxPoolAVX2(job.Address())
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func maxPoolBytes(dst, src []uint8, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.MaxPool(dst, src, p)
		return
	}
	maxPoolBytesAVX2(job.Address())
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

// The kernels of means, of 1, 2, … pixels at a time.
var (
	mean64 = []func(*uint8){mean1x64AVX2}
	mean16 = []func(*uint8){mean1x16AVX2, mean2x16AVX2, mean3x16AVX2, mean4x16AVX2, mean5x16AVX2, mean6x16AVX2}
	mean8  = []func(*uint8){mean1x8AVX2, mean2x8AVX2, mean3x8AVX2, mean4x8AVX2, mean5x8AVX2, mean6x8AVX2}
	// Of rows of 3 runs, a step apart.
	meanSlide3 = []func(*uint8){nil, nil, meanSlide3_3x8AVX2, meanSlide3_4x8AVX2, meanSlide3_5x8AVX2, meanSlide3_6x8AVX2, meanSlide3_7x8AVX2, meanSlide3_8x8AVX2}
)

func mean(dst, src []float32, at *kern.FloatPatches, n int, taps, y float32) {
	slides := at.Slides(meanSlide3, nil, nil, nil)
	for c := 0; c < n; {
		kernels, some := mean16, (n-c)&^15
		switch {
		case slides != nil && n-c >= 8:
			kernels, some = slides, (n-c)&^7
		case at.Pixels == 1 && n-c >= 64:
			kernels, some = mean64, (n-c)&^63
		case some == 0:
			kernels, some = mean8, min(n-c, 8)
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
			meanSigns4AVX2(job.Address())
		} else {
			meanSignsAVX2(job.Address())
		}
		runtime.KeepAlive(dst)
		runtime.KeepAlive(src)
	} else {
		words = 0
	}
	first := words * bits.WordBits
	generic.SumSignsFrom(dst, src, n, first, p)
	for x := 0; first < n && x < p.Pixels; x++ {
		Divide(dst[x*n+first:][:n-first], divisor, y)
	}
}
