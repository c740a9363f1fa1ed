//go:build amd64 && !purego

package avx512

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func fma(acc, x, w []float32, stride int) {
	if len(x) == 0 {
		return
	}
	o := 0
	for ; o+64 <= len(acc); o += 64 {
		fma64AVX512(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o < len(acc); o += 16 {
		mask := uint16(1)<<min(len(acc)-o, 16) - 1
		fma16AVX512(&acc[o], &x[0], len(x), &w[o], 4*stride, mask)
	}
}

func fmaPixels(dst []float32, stride int, src []float32, at *kern.Patches, w []float32, step int, bias []float32) {
	for o := 0; o < len(bias); {
		var n, done int
		if len(bias)-o >= 64 {
			n, done = 64, at.Pixels/4*4
			job := kern.NewFMAJob(dst[o:], stride, src, at, w[o:], step, bias[o:o+n])
			fmaPixels4x64AVX512(job.Address())
		} else {
			n, done = min(len(bias)-o, 16), at.Pixels/6*6
			job := kern.NewFMAJob(dst[o:], stride, src, at, w[o:], step, bias[o:o+n])
			fmaPixels6x16AVX512(job.Address())
		}
		generic.FMAPixelsFrom(dst[o:], stride, src, at, w[o:], step, bias[o:o+n], done, fma)
		o += n
	}
}
