package parity

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// eachSum makes a hook that computes the sums of layers with weights of 8 bits that read
// one pixel or all of them, sum(x, w, zero), where nothing follows them.
func eachSum(sum func(x []uint8, w []int8, zero uint8) float32) func(plan.Op, bcnn.Tensor, stepFunc) (bcnn.Tensor, error) {
	return after(func(op *plan.Conv, in, out bcnn.Tensor) {
		n := len(op.Int8) / op.Out
		if n == 0 || op.Scale != nil || op.Activation.Kind != plan.ActivationNone || !op.Dense && (n != in.Shape.C || op.StrideH > 1 || op.Pad != bcnn.Padding{}) {
			return
		}
		for i := range out.F32 {
			out.F32[i] = sum(in.U8[i/op.Out*n:][:n], op.Int8[i%op.Out*n:][:n], op.ZeroPoint)
		}
	})
}

// brokenBytes are devices with faults in levels of bytes and weights of 8 bits.
var brokenBytes = []brokenDevice{
	{"sums of two products saturate to 16 bits", fake{step: eachSum(func(x []uint8, w []int8, zero uint8) float32 {
		sum := 0
		for i := 0; i < len(x); i += 2 {
			pair := int(x[i]) * int(w[i])
			if i+1 < len(x) {
				pair += int(x[i+1]) * int(w[i+1])
			}
			sum += min(max(pair, math.MinInt16), math.MaxInt16)
		}
		for _, v := range w {
			sum -= int(zero) * int(v)
		}
		return float32(sum)
	})}, "bytes/", "image"},
	{"sums in float32", fake{step: eachSum(func(x []uint8, w []int8, zero uint8) (sum float32) {
		for i, v := range x {
			sum += float32((int(v) - int(zero)) * int(w[i]))
		}
		return sum
	})}, "bytes/largest/", "(dense): image"},
	{"sums of 8-bit weights of 24 bits", fake{step: eachSum(func(x []uint8, w []int8, zero uint8) float32 {
		sum := int32(0)
		for i, v := range x {
			sum += (int32(v) - int32(zero)) * int32(w[i])
		}
		return float32(sum << 8 >> 8)
	})}, "bytes/largest/", "(dense): image"},
	{"padding of bytes is 0 and no zero point", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		c, ok := op.(*plan.Conv)
		if !ok || c.Int8 == nil || c.Scale != nil || c.Activation.Kind != plan.ActivationNone {
			return honest(op, in)
		}
		changed := *c
		changed.ZeroPoint = 0
		out, err := honest(&changed, in)
		n := len(c.Int8) / c.Out
		for i := range out.F32 {
			for _, w := range c.Int8[i%c.Out*n:][:n] {
				out.F32[i] -= float32(int(c.ZeroPoint) * int(w))
			}
		}
		return out, err
	}}, "bytes/k3/", "(conv): image"},
	{"largest of bytes with a sign", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		if _, pool := op.(*plan.MaxPool); !pool || in.DType != bcnn.Uint8 {
			return honest(op, in)
		}
		in.U8 = slices.Clone(in.U8)
		for i := range in.U8 {
			in.U8[i] ^= 1 << 7
		}
		out, err := honest(op, in)
		for i := range out.U8 {
			out.U8[i] ^= 1 << 7
		}
		return out, err
	}}, "bytes/maxpool", "(maxpool): image"},
	{"numbers of levels from the lowest on", fake{step: after(func(op *plan.Quantize, _, out bcnn.Tensor) {
		for i := range out.U8 {
			out.U8[i] += uint8(op.Low)
		}
	})}, "bytes/", "(quantize): image"},
	{"the last level is never reached", fake{step: after(func(_ *plan.Quantize, _, out bcnn.Tensor) {
		for i, v := range out.U8 {
			out.U8[i] = min(v, 254)
		}
	})}, "bytes/", "(quantize): image"},
}
