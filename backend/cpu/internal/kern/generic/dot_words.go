package generic

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/num"
)

// packWords keeps the rows as they are.
func packWords[W int8 | int16](w []W, outputs, k int, zeroPoint uint8) *kern.DotWordsWeights {
	padded := num.RoundUp(outputs, Block)
	b := &kern.DotWordsWeights{Outputs: outputs, K: k, Data: make([]int16, padded*k), Fix: make([]int32, padded)}
	for o := range outputs {
		for i, v := range w[o*k:][:k] {
			b.Data[o*k+i] = int16(v)
			b.Fix[o] += int32(zeroPoint) * int32(v)
		}
	}
	return b
}

// dotWords sums run by run, two outputs at a time.
func dotWords(dst []int32, stride int, src []uint8, at *kern.Patches, w *kern.DotWordsWeights, first, n int) {
	n = num.RoundUp(n, Block)
	for p := range at.Pixels {
		out := dst[p*stride:][:n]
		for o := 0; o < n; o += 2 {
			a := w.Data[(first+o)*w.K:][:w.K]
			b := w.Data[(first+o+1)*w.K:][:w.K]
			x, y := -w.Fix[first+o], -w.Fix[first+o+1]
			for r := range at.Rows {
				from := r * at.RowLen
				u, v := a[from:][:at.RowLen], b[from:][:at.RowLen]
				for i, t := range src[p*at.Step+r*at.RowStep:][:at.RowLen] {
					x += int32(t) * int32(u[i])
					y += int32(t) * int32(v[i])
				}
			}
			out[o], out[o+1] = x, y
		}
	}
}
