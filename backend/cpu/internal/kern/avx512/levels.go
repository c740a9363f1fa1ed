//go:build amd64 && !purego

package avx512

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

// lanes is the least number of values that the kernels of levels take.
const lanes = 16

func levelBytes(dst []uint8, src []float32, l *kern.Levels) {
	if len(src) >= lanes && len(l.Scale) >= lanes {
		job := kern.NewLevelsJob(l, 0)
		for len(src) >= lanes {
			n := min(len(src), len(l.Scale))
			kern.LevelsOf(&job, dst, src[:n])
			levelBytesAVX512(job.Address())
			dst, src = dst[n:], src[n:]
		}
	}
	generic.LevelBytes(dst, src, l)
}

func levelFloats(dst, src []float32, l *kern.Levels, low float32) {
	if len(src) >= lanes && len(l.Scale) >= lanes {
		job := kern.NewLevelsJob(l, low)
		for len(src) >= lanes {
			n := min(len(src), len(l.Scale))
			kern.LevelsOf(&job, dst, src[:n])
			levelFloatsAVX512(job.Address())
			dst, src = dst[n:], src[n:]
		}
	}
	generic.LevelFloats(dst, src, l, low)
}
