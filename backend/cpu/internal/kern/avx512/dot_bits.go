//go:build amd64 && !purego

package avx512

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

func dotBits(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	const lanes = 8
	for o := 0; o < n; {
		job := kern.NewDotJob(dst[o:], stride, src, at, w, first+o, lanes)
		if n-o > 3*lanes {
			dotBits4x32AVX512(job.Address())
			dotBits1x32AVX512(job.Address())
			o += 4 * lanes
		} else {
			dotBits4x8AVX512(job.Address())
			dotBits1x8AVX512(job.Address())
			o += lanes
		}
	}
}
