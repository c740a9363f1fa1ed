package hostfloat

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func matMul(out, a, b *bcnn.Tensor) {
	depth, outputs := a.Shape.C, out.Shape.C
	for pixel := range out.N * out.Shape.Pixels() {
		row := pixel / out.Shape.W
		x := a.F32[pixel*depth:][:depth]
		for o := range outputs {
			sum := float32(0)
			for k, y := range b.F32[(row*outputs+o)*depth:][:depth] {
				sum = f32.FMA(x[k], y, sum)
			}
			out.F32[pixel*outputs+o] = sum
		}
	}
}

func transpose(out, in *bcnn.Tensor) {
	columns, channels := in.Shape.W, in.Shape.C
	for row := range in.N * in.Shape.H {
		from, to := in.F32[row*columns*channels:], out.F32[row*columns*channels:]
		for x := range columns {
			for c := range channels {
				to[c*columns+x] = from[x*channels+c]
			}
		}
	}
}
