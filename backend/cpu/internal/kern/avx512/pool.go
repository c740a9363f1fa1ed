//go:build amd64 && !purego

package avx512

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func sumSigns(dst []float32, src []uint64, n int, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	words := n / bits.WordBits
	job, ok := kern.NewSignsJob(dst, src, n, words, p, &taps)
	if ok {
		sumSignsAVX512(job.Address())
		runtime.KeepAlive(dst)
		runtime.KeepAlive(src)
	} else {
		words = 0
	}
	generic.SumSignsFrom(dst, src, n, words*bits.WordBits, p)
}
