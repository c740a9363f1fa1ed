package generic

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/num"
)

// packInt8 keeps the rows as they are.
func packInt8(w []int8, outputs, k int, zeroPoint uint8) *kern.DotInt8Weights {
	padded := num.RoundUp(outputs, Block)
	b := &kern.DotInt8Weights{Outputs: outputs, K: k, Data: make([]int8, padded*k), Fix: make([]int32, padded)}
	copy(b.Data, w[:outputs*k])
	for o := range outputs {
		for _, v := range w[o*k:][:k] {
			b.Fix[o] += int32(zeroPoint) * int32(v)
		}
	}
	return b
}

// dotInt8 sums run by run, two outputs at a time.
func dotInt8(dst []int32, stride int, src []uint8, at *kern.Patches, w *kern.DotInt8Weights, first, n int) {
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
