package generic

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// floatBlock is the number of outputs whose weights lie side by side.
const floatBlock = 16

// fma takes the short way of f32.FMA where it is exact: the product of
// two float32 values is exact in float64, and rounding their sum twice differs
// from rounding it once only where the first result lies in the middle between
// two float32 values, or where float32 becomes subnormal.
func fma(x, w, c float32) float32 {
	const (
		lost   = 1<<29 - 1 // bits of a float64 that float32 lacks
		middle = 1 << 28
		normal = 0x1p-126
	)
	s := float64(float64(x)*float64(w)) + float64(c)
	if math.Float64bits(s)&lost == middle || math.Abs(s) < normal {
		return f32.FMA(x, w, c)
	}
	return float32(s)
}

func fmaPixels(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, first, n int, end kern.End) {
	for p := range at.Pixels {
		row := dst[p*stride:][:n]
		copy(row, w.Bias[first:])
		for o := 0; o < n; o += floatBlock {
			acc := row[o:min(o+floatBlock, n)]
			weights, width, _ := w.Block(first + o)
			for _, r := range at.Runs {
				for i, v := range src[p*at.Step+r.Src:][:at.RunLen] {
					for o, weight := range weights[(r.Tap+i)*width:][:len(acc)] {
						acc[o] = fma(v, weight, acc[o])
					}
				}
			}
		}
	}
	if !end.None() {
		ScaleFloat(dst, stride, dst, stride, n, at.Pixels, end)
	}
}

func fmaEach(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, end kern.End) {
	FMAEachFrom(dst, stride, src, at, w, 0)
	if !end.None() {
		ScaleFloat(dst, stride, dst, stride, w.Outputs, at.Pixels, end)
	}
}

// FMAEachFrom is FMAEach of kern.Set for the channels from first on, but for
// their end.
func FMAEachFrom(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, first int) {
	for p := range at.Pixels {
		for c := first; c < w.Outputs; {
			weights, width, lane := w.Block(c)
			n := min(width-lane, w.Outputs-c)
			acc := dst[p*stride+c:][:n]
			copy(acc, w.Bias[c:])
			for _, r := range at.Runs {
				x := src[p*at.Step+r.Src+c:][:n]
				for i, weight := range weights[r.Tap*width+lane:][:n] {
					acc[i] = fma(x[i], weight, acc[i])
				}
			}
			c += n
		}
	}
}

// Blend is that of kern.Set.
func Blend(dst, src []float32, rows, cols []kern.BlendTap, n, pixels int) {
	each := len(cols) / max(pixels, 1)
	for p := range pixels {
		sums := dst[p*n:][:n]
		clear(sums)
		for _, row := range rows {
			for _, col := range cols[p*each:][:each] {
				at, weight := row.Value(col)
				for i, v := range src[at:][:n] {
					sums[i] = fma(v, weight, sums[i])
				}
			}
		}
	}
}
