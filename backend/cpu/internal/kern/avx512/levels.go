//go:build amd64 && !purego

package avx512

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

// lanes is the least number of values that the kernels of levels take.
const lanes = 16

func levelBytes(dst []uint8, src []float32, l *kern.Levels) {
	for len(src) >= lanes && len(l.Scale) >= lanes {
		n := min(len(src), len(l.Scale))
		job := kern.NewLevelsJob(dst, src[:n], l, 0)
		levelBytesAVX512(job.Address())
		dst, src = dst[n:], src[n:]
	}
	generic.LevelBytes(dst, src, l)
}

func levelFloats(dst, src []float32, l *kern.Levels, low float32) {
	for len(src) >= lanes && len(l.Scale) >= lanes {
		n := min(len(src), len(l.Scale))
		job := kern.NewLevelsJob(dst, src[:n], l, low)
		levelFloatsAVX512(job.Address())
		dst, src = dst[n:], src[n:]
	}
	generic.LevelFloats(dst, src, l, low)
}
