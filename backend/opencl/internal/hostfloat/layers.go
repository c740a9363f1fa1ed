package hostfloat

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// avgPool adds bits as ±1, which is exact.
func avgPool(op *plan.AvgPool, out, in *bcnn.Tensor) {
	channels := in.Shape.C
	words := bits.Words(channels)
	for pixel := range out.N * out.Shape.Pixels() {
		image, y, x := split(pixel, out.Shape)
		to := out.F32[pixel*channels:][:channels]
		clear(to)
		taps := 0
		for ky := range op.KH {
			for kx := range op.KW {
				iy, ix := y*op.StrideH-op.Pad.Top+ky, x*op.StrideW-op.Pad.Left+kx
				inside := iy >= 0 && iy < in.Shape.H && ix >= 0 && ix < in.Shape.W
				if inside || op.CountPadding {
					taps++
				}
				if !inside {
					continue
				}
				at := (image*in.Shape.H+iy)*in.Shape.W + ix
				if in.DType == bcnn.Bits {
					for c := range to {
						to[c] += float32(bits.At(in.Words[at*words:], c))
					}
					continue
				}
				for c, v := range in.F32[at*channels:][:channels] {
					to[c] += v
				}
			}
		}
		n, reciprocal := float32(taps), 1/float32(taps)
		for c, a := range to {
			q := a * reciprocal
			to[c] = f32.FMA(f32.FMA(-n, q, a), reciprocal, q)
		}
	}
}

// pair repeats the others over pixels and channels where there is one.
func pair(kind plan.PairKind, out, in, others *bcnn.Tensor) {
	s, by := in.Shape, others.Shape
	for i, v := range in.F32 {
		image, pixel, c := i/s.Values(), i/s.C%s.Pixels(), i%s.C
		if by.Pixels() == 1 {
			pixel = 0
		}
		if by.C == 1 {
			c = 0
		}
		switch w := others.F32[(image*by.Pixels()+pixel)*by.C+c]; kind {
		case plan.PairMul:
			out.F32[i] = v * w
		case plan.PairMin:
			if out.F32[i] = w; v < w || v != v {
				out.F32[i] = v
			}
		case plan.PairMax:
			if out.F32[i] = w; v > w || v != v {
				out.F32[i] = v
			}
		case plan.PairMask:
			if out.F32[i] = 0; w != 0 {
				out.F32[i] = v
			}
		}
	}
}

func concat(out *bcnn.Tensor, parts []*bcnn.Tensor) {
	for pixel := range out.N * out.Shape.Pixels() {
		to := out.F32[pixel*out.Shape.C:][:out.Shape.C]
		for _, p := range parts {
			copy(to, p.F32[pixel*p.Shape.C:][:p.Shape.C])
			to = to[p.Shape.C:]
		}
	}
}

func channels(op *plan.Channels, out, in *bcnn.Tensor) {
	for pixel := range out.N * out.Shape.Pixels() {
		to, from := out.F32[pixel*out.Shape.C:][:out.Shape.C], in.F32[pixel*in.Shape.C:][:in.Shape.C]
		for c, i := range op.Index {
			to[c] = 0
			if i >= 0 {
				to[c] = from[i]
			}
		}
	}
}

// quantize counts the thresholds that values reach.
func quantize(op *plan.Quantize, out, in *bcnn.Tensor) {
	n := op.Levels - 1
	for i, v := range in.F32 {
		number := 0
		for _, t := range op.Thresholds[i%in.Shape.C*n%len(op.Thresholds):][:n] {
			if v >= t {
				number++
			}
		}
		if out.DType == bcnn.Uint8 {
			out.U8[i] = uint8(number)
		} else {
			out.F32[i] = float32(op.Low + number)
		}
	}
}
