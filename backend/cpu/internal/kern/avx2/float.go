//go:build amd64 && !purego

package avx2

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
		fma64AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o+8 <= len(acc); o += 8 {
		fma8AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o < len(acc); o++ {
		fma1AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
}

func fmaPixels(dst []float32, stride int, src []float32, at *kern.Patches, w []float32, step int, bias []float32) {
	done := at.Pixels / 6 * 6
	for o := 0; o < len(bias); {
		n := 16
		if len(bias)-o < n {
			n = min(len(bias)-o, 8)
		}
		job := kern.NewFMAJob(dst[o:], stride, src, at, w[o:], step, bias[o:o+n])
		if n == 16 {
			fmaPixels6x16AVX2(job.Address())
		} else {
			fmaPixels6x8AVX2(job.Address())
		}
		o += n
	}
	generic.FMAPixelsFrom(dst, stride, src, at, w, step, bias, done, fma)
}

func fmaEach(acc, x, w []float32) {
	if len(acc) > 0 {
		fmaEachAVX2(&acc[0], &x[0], &w[0], len(acc))
	}
}
