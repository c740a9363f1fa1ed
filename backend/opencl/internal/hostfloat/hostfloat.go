// Package hostfloat executes float steps on the processor, for devices whose float32
// arithmetic falls short of the numeric contract.
package hostfloat

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Step returns the function that computes a float step. tensor returns the memory of a
// tensor of the plan, whose batch may change between calls.
func Step(s plan.Step, tensor func(int) *bcnn.Tensor) (func(), error) {
	in, out := tensor(s.In[0]), tensor(s.Out)
	switch op := s.Op.(type) {
	case *plan.Conv:
		sums := make([]float32, op.Out)
		if in.DType == bcnn.Uint8 { // of sums that float32 does not hold
			exact := make([]int32, op.Out)
			if op.Int16 != nil {
				return func() { convBytes(op, op.Int16, out, in, exact) }, nil
			}
			return func() { convBytes(op, op.Int8, out, in, exact) }, nil
		}
		return func() { floatConv(op, out, in, sums) }, nil
	case *plan.MaxPool:
		return func() { maxPool(op.Window, out, in) }, nil
	case *plan.Affine:
		return func() { Affine(op, out, in) }, nil
	case *plan.Table: // of bits, the device makes it
		return func() {
			for i, v := range in.U8 {
				out.F32[i] = op.Of(i % in.Shape.C)[v]
			}
		}, nil
	case *plan.Sign:
		return func() { sign(op, out, in) }, nil
	case *plan.Quantize:
		return func() { quantize(op, out, in) }, nil
	case *plan.Add:
		other := tensor(s.In[1])
		return func() {
			for i, v := range in.F32 {
				out.F32[i] = op.Activation.Of(v+other.F32[i], i%in.Shape.C)
			}
		}, nil
	case *plan.Flatten:
		return func() { copy(out.F32, in.F32) }, nil
	case *plan.AvgPool:
		return func() { avgPool(op, out, in) }, nil
	case *plan.Pair:
		others := tensor(s.In[1])
		return func() { pair(op.Kind, out, in, others) }, nil
	case *plan.Concat:
		parts := make([]*bcnn.Tensor, len(s.In))
		for i, t := range s.In {
			parts[i] = tensor(t)
		}
		return func() { concat(out, parts) }, nil
	case *plan.Pixels:
		return func() { pixels(op, out, in) }, nil
	case *plan.Resample:
		return func() { resample(op, out, in) }, nil
	case *plan.TopK:
		return func() { topK(op, out, in) }, nil
	case *plan.MatMul:
		other := tensor(s.In[1])
		return func() { matMul(out, in, other) }, nil
	case *plan.Transpose:
		return func() { transpose(out, in) }, nil
	case *plan.Channels:
		return func() { channels(op, out, in) }, nil
	}
	return nil, plan.Unsupported(fmt.Sprintf("operation %T on the host", s.Op))
}

// floatConv is a convolution of floats; sums has a place for every output channel.
func floatConv(op *plan.Conv, out, in *bcnn.Tensor, sums []float32) {
	poolH, poolW := 1, 1
	if op.Pool != nil {
		poolH, poolW = op.Pool.KH, op.Pool.KW
	}
	for pixel := range out.N * out.Shape.Pixels() {
		image, y, x := split(pixel, out.Shape)
		if out.DType == bcnn.Float32 {
			floatSums(op, in, image, y, x, sums)
			to := out.F32[pixel*op.Out:]
			for o, v := range sums {
				if op.Scale != nil {
					v = f32.FMA(v, op.Scale[o], op.Shift[o])
				}
				to[o] = op.Activation.Of(v, o)
			}
			continue
		}
		words := bits.Words(op.Out)
		row := out.Words[pixel*words:][:words]
		clear(row)
		for i := range poolH * poolW {
			floatSums(op, in, image, y*poolH+i/poolW, x*poolW+i%poolW, sums)
			orSigns(row, sums, op.Threshold.F32)
		}
		flip(row, op.Threshold.Flip)
	}
}

// convBytes is a convolution of bytes and weights of 8 or 16 bits.
func convBytes[W int8 | int16](op *plan.Conv, rows []W, out, in *bcnn.Tensor, sums []int32) {
	group, perGroup := in.Shape.C/op.Groups, op.Out/op.Groups
	for pixel := range out.N * out.Shape.Pixels() {
		image, y, x := split(pixel, out.Shape)
		clear(sums)
		eachTap(op.Window, in.Shape, image, y, x, func(tap, at int) {
			values := in.U8[at*in.Shape.C:][:in.Shape.C]
			for o := range sums {
				weights := rows[(o*op.KH*op.KW+tap)*group:][:group]
				for c, v := range values[o/perGroup*group:][:group] {
					sums[o] += (int32(v) - int32(op.ZeroPoint)) * int32(weights[c])
				}
			}
		})
		to := out.F32[pixel*op.Out:]
		for o, sum := range sums {
			v := float32(sum)
			if op.Scale != nil {
				v = f32.FMA(v, op.Scale[o], op.Shift[o])
			}
			to[o] = op.Activation.Of(v, o)
		}
	}
}

// eachTap calls f for the taps inside the image of an output pixel, with the number of the
// pixel of the batch that is under each.
func eachTap(w bcnn.Window, in bcnn.Shape, image, y, x int, f func(tap, pixel int)) {
	for ky := range w.KH {
		for kx := range w.KW {
			iy, ix := y*w.StrideH-w.Pad.Top+ky*w.DilationH, x*w.StrideW-w.Pad.Left+kx*w.DilationW
			if iy >= 0 && iy < in.H && ix >= 0 && ix < in.W {
				f(ky*w.KW+kx, (image*in.H+iy)*in.W+ix)
			}
		}
	}
}

// split finds the place of a pixel of a batch.
func split(pixel int, s bcnn.Shape) (image, y, x int) {
	image, pixel = pixel/s.Pixels(), pixel%s.Pixels()
	return image, pixel / s.W, pixel % s.W
}

// floatSums makes the accumulators of all output channels of a pixel, in the
// order of the numeric contract.
func floatSums(op *plan.Conv, in *bcnn.Tensor, image, y, x int, sums []float32) {
	group, perGroup := in.Shape.C/op.Groups, op.Out/op.Groups
	copy(sums, op.Bias)
	eachTap(op.Window, in.Shape, image, y, x, func(tap, at int) {
		values := in.F32[at*in.Shape.C:][:in.Shape.C]
		for o := range sums {
			sum := sums[o]
			weights := op.F32[(o*op.KH*op.KW+tap)*group:][:group]
			for c, v := range values[o/perGroup*group:][:group] {
				sum = f32.FMA(v, weights[c], sum)
			}
			sums[o] = sum
		}
	})
}

// orSigns sets the bits of the values that reach their thresholds.
func orSigns(row []uint64, values, thresholds []float32) {
	for c, v := range values {
		if v >= thresholds[c] {
			row[c/64] |= 1 << (c % 64)
		}
	}
}

func flip(row, mask []uint64) {
	for i, m := range mask {
		row[i] ^= m
	}
}

func sign(op *plan.Sign, out, in *bcnn.Tensor) {
	c, planes := in.Shape.C, max(op.Planes, 1)
	words := bits.Words(c)
	plane := in.Shape.W * words
	clear(out.Words)
	for pixel := range in.N * in.Shape.Pixels() {
		rows := out.Words[pixel/in.Shape.W*planes*plane+pixel%in.Shape.W*words:]
		for i, v := range in.F32[pixel*c:][:c] {
			reached := uint64(0)
			for k := i; k < len(op.Threshold.F32); k += c {
				if v >= op.Threshold.F32[k] {
					reached++
				}
			}
			for j := range planes {
				rows[j*plane+i/64] |= reached >> j & 1 << (i % 64)
			}
		}
		for j := range planes {
			flip(rows[j*plane:][:words], op.Threshold.Flip)
		}
	}
}

// Affine may be given the same tensor twice.
func Affine(op *plan.Affine, out, in *bcnn.Tensor) {
	channels := in.Shape.C
	words := bits.Words(channels)
	for pixel := range in.N * in.Shape.Pixels() {
		for c := range channels {
			i := pixel*channels + c
			var v float32
			switch in.DType {
			case bcnn.Uint8:
				v = float32(in.U8[i])
			case bcnn.Bits:
				v = float32(int(in.Words[pixel*words+c/64]>>(c%64)&1)*2 - 1)
			case bcnn.Float32:
				v = in.F32[i]
			}
			if op.Scale != nil {
				v = f32.FMA(v, op.Scale[c], op.Shift[c])
			}
			out.F32[i] = op.Activation.Of(v, c)
		}
	}
}

// maxPool keeps the first of equal values in the order (ky, kx).
func maxPool(w bcnn.Window, out, in *bcnn.Tensor) {
	channels := in.Shape.C
	for pixel := range out.N * out.Shape.Pixels() {
		image, y, x := split(pixel, out.Shape)
		to := out.F32[pixel*channels:][:channels]
		first := true
		for ky := range w.KH {
			for kx := range w.KW {
				iy, ix := y*w.StrideH-w.Pad.Top+ky, x*w.StrideW-w.Pad.Left+kx
				if iy < 0 || iy >= in.Shape.H || ix < 0 || ix >= in.Shape.W {
					continue
				}
				from := in.F32[((image*in.Shape.H+iy)*in.Shape.W+ix)*channels:][:channels]
				if first {
					copy(to, from)
				}
				for c, v := range from {
					if v > to[c] {
						to[c] = v
					}
				}
				first = false
			}
		}
	}
}
