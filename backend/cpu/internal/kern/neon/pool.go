//go:build arm64 && !purego

package neon

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
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

func sumPool(dst, src []float32, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.SumPoolBy(dst, src, p, add)
		return
	}
	sumPoolNEON(job.Address())
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}
