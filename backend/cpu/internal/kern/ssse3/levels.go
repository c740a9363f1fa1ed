//go:build amd64 && !purego

package ssse3

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func levelBytes(dst []uint8, src []float32, l *kern.Levels) {
	if !l.Usual() || l.Rest != nil {
		generic.LevelBytes(dst, src, l)
		return
	}
	job := kern.NewLevelsJob(l, 0)
	for len(src) > 0 {
		n := min(len(src), len(l.Scale))
		whole := n &^ 15
		if whole > 0 {
			kern.LevelsOf(&job, dst, src[:whole])
			levelBytesSSSE3(job.Address())
		}
		if whole < n {
			rest := l.From(whole)
			generic.LevelBytes(dst[whole:n], src[whole:n], &rest)
		}
		dst, src = dst[n:], src[n:]
	}
}

func levelFloats(dst, src []float32, l *kern.Levels, low float32) {
	if !l.Usual() || l.Rest != nil {
		generic.LevelFloats(dst, src, l, low)
		return
	}
	job := kern.NewLevelsJob(l, low)
	for len(src) > 0 {
		n := min(len(src), len(l.Scale))
		whole := n &^ 15
		if whole > 0 {
			kern.LevelsOf(&job, dst, src[:whole])
			levelFloatsSSSE3(job.Address())
		}
		if whole < n {
			rest := l.From(whole)
			generic.LevelFloats(dst[whole:n], src[whole:n], &rest, low)
		}
		dst, src = dst[n:], src[n:]
	}
}
