//go:build amd64 && !purego

package ssse3

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func orPool(dst, src []uint64, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	four := len(p.Taps) == 4 && p.Values == 1
	if p.Flip != 0 && !four {
		generic.OrPool(dst, src, p)
		return
	}
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	switch address := job.Address(); {
	case !ok:
		generic.OrPool(dst, src, p)
	case four:
		orPool4SSSE3(address, p.Flip)
	default:
		orPoolSSSE3(address)
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
	maxPoolSSSE3(job.Address())
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
	maxPoolBytesSSSE3(job.Address())
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}
