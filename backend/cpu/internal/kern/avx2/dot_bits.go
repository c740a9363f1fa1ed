//go:build amd64 && !purego

package avx2

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

func dotBits(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	const lanes = 4
	for o := 0; o < n; {
		job := kern.NewDotJob(dst[o:], stride, src, at, w, first+o, lanes)
		if n-o > 3*lanes {
			dotBits1x16AVX2(job.Address())
			o += 4 * lanes
		} else {
			dotBits4x4AVX2(job.Address())
			dotBits1x4AVX2(job.Address())
			o += lanes
		}
	}
}
