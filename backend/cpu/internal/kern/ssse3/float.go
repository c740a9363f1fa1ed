//go:build amd64 && !purego

package ssse3

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// The kernels of sums, of 1 and 2 pixels at a time.
var (
	fmaPixels8 = []func(*uint8){fmaPixels1x8SSSE3, fmaPixels2x8SSSE3}
	fmaPixels4 = []func(*uint8){fmaPixels1x4SSSE3, fmaPixels2x4SSSE3}
	fmaEach8   = []func(*uint8){fmaEach1x8SSSE3, fmaEach2x8SSSE3}
	fmaEach4   = []func(*uint8){fmaEach1x4SSSE3, fmaEach2x4SSSE3}
)

func fmaPixels(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, first, n int, end kern.End) {
	for o := 0; o < n; {
		kernels, outputs := fmaPixels8, 8
		if n-o < 8 {
			kernels, outputs = fmaPixels4, min(n-o, 4)
		}
		kern.FMATiles(kernels, dst[o:], stride, src, at, w, first+o, outputs, &kern.End{})
		o += outputs
	}
	if !end.None() {
		scaleFloat(dst, stride, dst, stride, n, at.Pixels, end)
	}
}

func fmaEach(dst []float32, stride int, src []float32, at *kern.FloatPatches, w *kern.FloatWeights, end kern.End) {
	c := 0
	for w.Outputs-c >= 4 {
		kernels, n := fmaEach8, 8
		if w.Outputs-c < 8 {
			kernels, n = fmaEach4, 4
		}
		kern.FMATiles(kernels, dst[c:], stride, src[c:], at, w, c, n, &kern.End{})
		c += n
	}
	generic.FMAEachFrom(dst, stride, src, at, w, c)
	if !end.None() {
		scaleFloat(dst, stride, dst, stride, w.Outputs, at.Pixels, end)
	}
}

func scaleFloat(dst []float32, stride int, sums []float32, step, n, rows int, end kern.End) {
	if end.Scale == nil {
		generic.ScaleFloat(dst, stride, sums, step, n, rows, end)
		return
	}
	even := n &^ 1
	for r := range rows {
		out, in := dst[r*stride:][:n], sums[r*step:][:n]
		if even > 0 {
			fmaSSSE3(&out[0], &in[0], &end.Scale[0], &end.Shift[0], even)
		}
		if even < n {
			out[even] = f32.FMA(in[even], end.Scale[even], end.Shift[even])
		}
	}
	if end.Slope != nil || end.Clip {
		generic.ScaleFloat(dst, stride, dst, stride, n, rows, kern.End{Activation: end.Activation})
	}
}

func scale(dst []float32, stride int, sums []int32, step, n, rows int, end kern.End) {
	generic.Scale(dst, stride, sums, step, n, rows, kern.End{})
	scaleFloat(dst, stride, dst, stride, n, rows, end)
}

func blend(dst, src []float32, rows, cols []kern.BlendTap, n, pixels int) {
	const few, some = 4, 64 // channels
	if n <= few {           // a call takes longer
		generic.Blend(dst, src, rows, cols, n, pixels)
		return
	}
	var weights [some]float32
	each := len(cols) / max(pixels, 1)
	for p := range pixels {
		sums := dst[p*n:][:n]
		clear(sums)
		for _, row := range rows {
			for _, col := range cols[p*each:][:each] {
				at, weight := row.Value(col)
				for i := range min(n, some) {
					weights[i] = weight
				}
				for i := 0; i < n; i += some {
					part := sums[i:min(i+some, n)]
					scaleFloat(part, 0, src[at+i:], 0, len(part), 1, kern.End{Scale: weights[:], Shift: part})
				}
			}
		}
	}
}
