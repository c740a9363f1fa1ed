//go:build amd64 && !purego

package ssse3

import (
	"runtime"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func orPoolX86(dst, src []uint64, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	four := len(p.Taps) == 4 && p.Values == 1
	if p.Flip != 0 && !four {
		generic.OrPool(dst, src, p)
		return
	}
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	switch address := (*uint8)(unsafe.Pointer(&job)); {
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

func maxPoolX86(dst, src []float32, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.MaxPool(dst, src, p)
		return
	}
	maxPoolSSSE3((*uint8)(unsafe.Pointer(&job)))
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}
