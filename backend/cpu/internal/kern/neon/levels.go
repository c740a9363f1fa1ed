//go:build arm64 && !purego

package neon

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func levelBytes(dst []uint8, src []float32, l *kern.Levels) {
	if len(src) >= 4 && len(l.Scale) >= 4 {
		job := kern.NewLevelsJob(l, 0)
		for len(src) >= 4 {
			n := min(len(src), len(l.Scale))
			kern.LevelsOf(&job, dst, src[:n])
			levelBytesNEON(job.Address())
			dst, src = dst[n:], src[n:]
		}
	}
	generic.LevelBytes(dst, src, l)
}

func levelFloats(dst, src []float32, l *kern.Levels, low float32) {
	if len(src) >= 4 && len(l.Scale) >= 4 {
		job := kern.NewLevelsJob(l, low)
		for len(src) >= 4 {
			n := min(len(src), len(l.Scale))
			kern.LevelsOf(&job, dst, src[:n])
			levelFloatsNEON(job.Address())
			dst, src = dst[n:], src[n:]
		}
	}
	generic.LevelFloats(dst, src, l, low)
}
