package hostfloat

import (
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func matMul(out, a, b *bcnn.Tensor) {
	depth, words, outputs := a.Shape.C, bits.Words(a.Shape.C), out.Shape.C
	for pixel := range out.N * out.Shape.Pixels() {
		row := pixel / out.Shape.W
		for o := range outputs {
			other := row*outputs + o
			if a.DType == bcnn.Bits {
				differ := 0
				for k, y := range b.Words[other*words:][:words] {
					differ += mathbits.OnesCount64(a.Words[pixel*words+k] ^ y)
				}
				out.F32[pixel*outputs+o] = float32(depth - 2*differ)
				continue
			}
			sum := float32(0)
			for k, y := range b.F32[other*depth:][:depth] {
				sum = f32.FMA(a.F32[pixel*depth+k], y, sum)
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
