package generic

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// fma takes the short way of f32.FMA where it is exact: the product of
// two float32 values is exact in float64, and rounding their sum twice differs
// from rounding it once only where the first result lies in the middle between
// two float32 values, or where float32 becomes subnormal.
func fma(acc, x, w []float32, stride int) {
	const (
		lost   = 1<<29 - 1 // bits of a float64 that float32 lacks
		middle = 1 << 28
		normal = 0x1p-126
	)
	for i, v := range x {
		row := w[i*stride:][:len(acc)]
		for o, c := range acc {
			s := float64(float64(v)*float64(row[o])) + float64(c)
			if math.Float64bits(s)&lost == middle || math.Abs(s) < normal {
				acc[o] = f32.FMA(v, row[o], c)
			} else {
				acc[o] = float32(s)
			}
		}
	}
}

// FMAPixelsFrom is FMAPixels of kern.Set for the pixels from first on, one after
// the other by fma, which is FMA.
func FMAPixelsFrom(dst []float32, stride int, src []float32, at *kern.Patches, w []float32, step int, bias []float32, first int,
	fma func(acc, x, w []float32, stride int)) {
	for p := first; p < at.Pixels; p++ {
		acc := dst[p*stride:][:len(bias)]
		copy(acc, bias)
		for r := range at.Rows {
			fma(acc, src[p*at.Step+r*at.RowStep:][:at.RowLen], w[r*at.RowLen*step:], step)
		}
	}
}

func fmaEach(acc, x, w []float32) {
	for i, c := range acc {
		acc[i] = f32.FMA(x[i], w[i], c)
	}
}
