//go:build arm64 && !purego

package neon

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/internal/num"
)

func dotBits(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	if at.Pixels == 0 || n == 0 || w.Words == 0 {
		generic.DotBits(dst, stride, src, at, w, first, n)
		return
	}
	block := w.Words * generic.Block
	skip := 8 * (at.RowStep - at.RowLen)
	_ = src[(at.Pixels-1)*at.Step+(at.Rows-1)*at.RowStep+at.RowLen-1]
	_ = dst[(at.Pixels-1)*stride+num.RoundUp(n, generic.Block)-1]
	for o := 0; o < n; o += generic.Block {
		weights := &w.Data[(first+o)/generic.Block*block:][:block][0]
		p := 0
		for ; p+1 < at.Pixels; p += 2 {
			dotBits2NEON(&dst[p*stride+o], &dst[(p+1)*stride+o], &src[p*at.Step], &src[(p+1)*at.Step], at.Rows, at.RowLen, skip, weights, w.K)
		}
		if p < at.Pixels {
			dotBits1NEON(&dst[p*stride+o], &src[p*at.Step], at.Rows, at.RowLen, skip, weights, w.K)
		}
	}
}
