//go:build amd64 && !purego

package ssse3

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func dotBits(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	for o := 0; o < n; o += generic.Block {
		job := kern.NewDotJob(dst[o:], stride, src, at, w, first+o, generic.Block)
		dotBits4SSSE3(job.Address())
	}
}
