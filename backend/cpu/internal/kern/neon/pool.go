//go:build arm64 && !purego

package neon

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func orPool(dst, src []uint64, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.OrPool(dst, src, p)
		return
	}
	if address := job.Address(); len(p.Taps) == 4 && p.Values == 1 {
		orPool4NEON(address, p.Flip)
	} else {
		orPoolNEON(address, p.Flip)
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
	maxPoolNEON(job.Address())
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
	maxPoolBytesNEON(job.Address())
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

// The kernels of means, of 1, 2, … pixels at a time.
var (
	mean64 = []func(*uint8){mean1x64NEON}
	mean16 = []func(*uint8){mean1x16NEON, mean2x16NEON, mean3x16NEON}
	mean4  = []func(*uint8){mean1x4NEON, mean2x4NEON, mean3x4NEON}
	mean1  = []func(*uint8){mean1x1NEON}
)

func mean(dst, src []float32, at *kern.FloatPatches, n int, taps, y float32) {
	for c := 0; c < n; {
		kernels, some := mean16, (n-c)&^15
		switch left := n - c; {
		case at.Pixels == 1 && left >= 64:
			kernels, some = mean64, left&^63
		case left < 4:
			kernels, some = mean1, 1
		case left < 16:
			kernels, some = mean4, 4
		}
		kern.MeanTiles(kernels, dst[c:], n, src[c:], at, some, taps, y)
		c += some
	}
}

// Kernels of means of ±1 count so many taps, and round means right for so large divisors.
const maxSigns, maxSignsDivisor = 63, 1 << 20

func meanSigns(dst []float32, src []uint64, n int, p *kern.Pool, divisor, y float32) {
	words := bits.Words(n)
	if count := len(p.Taps); count > 0 && count <= maxSigns && divisor <= maxSignsDivisor {
		job, ok := kern.NewSignsJob(dst, src, n, words, p, divisor, y, nil)
		switch {
		case !ok:
			return
		case count == 4 && divisor == 4:
			meanSigns4NEON(job.Address())
		default:
			meanSignsNEON(job.Address())
		}
		runtime.KeepAlive(dst)
		runtime.KeepAlive(src)
		return
	}
	sums := dst[:n*p.Pixels]
	clear(sums)
	part := *p
	for left := p.Taps; len(left) > 0; left = left[len(part.Taps):] {
		part.Taps = left[:min(len(left), maxSigns)]
		if job, ok := kern.NewSignsJob(sums, src, n, words, &part, divisor, y, nil); ok {
			addSignsNEON(job.Address())
		}
	}
	divide(sums, divisor, y)
	runtime.KeepAlive(src)
}
