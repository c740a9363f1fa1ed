//go:build amd64 && !purego

package avx2

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// poolRow calls a kernel; it returns false where the pool is nothing for it.
func poolRow[T uint64 | float32](dst, src []T, p *kern.Pool, kind poolKind) bool {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		return false
	}
	switch address := job.Address(); {
	case kind == maxima:
		maxPoolAVX2(address)
	case kind == sums:
		sumPoolAVX2(address)
	case len(p.Taps) == 4:
		orPool4AVX2(address, p.Flip)
	default:
		orPoolAVX2(address)
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
	return true
}

type poolKind int

const (
	ors poolKind = iota
	maxima
	sums
)

func orPool(dst, src []uint64, p *kern.Pool) {
	if p.Flip != 0 && len(p.Taps) != 4 || !poolRow(dst, src, p, ors) {
		generic.OrPool(dst, src, p)
	}
}

func maxPool(dst, src []float32, p *kern.Pool) {
	if !poolRow(dst, src, p, maxima) {
		generic.MaxPool(dst, src, p)
	}
}

func sumPool(dst, src []float32, p *kern.Pool) {
	if !poolRow(dst, src, p, sums) {
		generic.SumPoolBy(dst, src, p, add)
	}
}

func sumSigns(dst []float32, src []uint64, n int, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	words := n / bits.WordBits
	job, ok := kern.NewSignsJob(dst, src, n, words, p, &taps)
	if ok {
		sumSignsAVX2(job.Address())
		runtime.KeepAlive(dst)
		runtime.KeepAlive(src)
	} else {
		words = 0
	}
	generic.SumSignsFrom(dst, src, n, words*bits.WordBits, p)
}
