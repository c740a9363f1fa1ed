package hostfloat

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func pixels(op *plan.Pixels, out, in *bcnn.Tensor) {
	channels := out.Shape.C
	for pixel := range out.N * out.Shape.Pixels() {
		image, y, x := split(pixel, out.Shape)
		to, row, col := out.F32[pixel*channels:][:channels], int(op.Rows[y]), int(op.Cols[x])
		if row < 0 || col < 0 {
			for c := range to {
				to[c] = op.Fill
			}
			continue
		}
		at := (image*in.Shape.H+row/op.BlockH)*in.Shape.W + col/op.BlockW
		block := row%op.BlockH*op.BlockW + col%op.BlockW
		copy(to, in.F32[at*in.Shape.C+block*channels:])
	}
}

func resample(op *plan.Resample, out, in *bcnn.Tensor) {
	channels := out.Shape.C
	for pixel := range out.N * out.Shape.Pixels() {
		image, y, x := split(pixel, out.Shape)
		to := out.F32[pixel*channels:][:channels]
		clear(to)
		for ky := y * op.Rows.N; ky < (y+1)*op.Rows.N; ky++ {
			for kx := x * op.Cols.N; kx < (x+1)*op.Cols.N; kx++ {
				weight := op.Rows.Weight[ky] * op.Cols.Weight[kx]
				at := (image*in.Shape.H+int(op.Rows.Index[ky]))*in.Shape.W + int(op.Cols.Index[kx])
				for c, v := range in.F32[at*channels:][:channels] {
					to[c] = f32.FMA(v, weight, to[c])
				}
			}
		}
	}
}

func topK(op *plan.TopK, out, in *bcnn.Tensor) {
	for pixel := range out.N * out.Shape.Pixels() {
		values := in.F32[pixel*in.Shape.C:][:in.Shape.C]
		last, before := -1, float32(math.Inf(1))
		for k := range op.K {
			best, most := -1, float32(0)
			for c, v := range values {
				if v != v {
					v = float32(math.Inf(-1))
				}
				if (v < before || v == before && c > last) && (best < 0 || v > most) {
					best, most = c, v
				}
			}
			last, before = best, most
			if out.F32[pixel*op.K+k] = float32(best); op.Values {
				out.F32[pixel*op.K+k] = values[best]
			}
		}
	}
}
