package parity

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// inAffine makes a hook that replaces what an affine step with an activation of a kind
// makes of a value of channel c; was is the honest result.
func inAffine(kind plan.ActivationKind, made func(a plan.Activation, x, was float32, c int) float32) fake {
	return fake{step: after(func(op *plan.Affine, in, out bcnn.Tensor) {
		if op.Activation.Kind != kind || op.Scale != nil || in.DType != bcnn.Float32 {
			return
		}
		for i, x := range in.F32 {
			out.F32[i] = made(op.Activation, x, out.F32[i], i%in.Shape.C)
		}
	})}
}

// inFunction makes a hook that replaces what a function makes of a value; was is the honest
// result.
func inFunction(name bcnn.FunctionName, made func(x, was float32) float32) fake {
	return inAffine(plan.ActivationFunction, func(a plan.Activation, x, was float32, _ int) float32 {
		if a.Function != name {
			return was
		}
		return made(x, was)
	})
}

// meansBy replaces the means of floats by what mean makes of the taps of each.
func meansBy(mean func(taps []float32, n int) float32) fake {
	return fake{step: after(func(op *plan.AvgPool, in, out bcnn.Tensor) {
		s, o := in.Shape, out.Shape
		for i := range out.F32 {
			if in.DType != bcnn.Float32 {
				return
			}
			image, y, x, c := i/o.Values(), i/(o.W*o.C)%o.H, i/o.C%o.W, i%o.C
			var taps []float32
			for ky := range op.KH {
				for kx := range op.KW {
					iy, ix := y*op.StrideH-op.Pad.Top+ky, x*op.StrideW-op.Pad.Left+kx
					if iy >= 0 && iy < s.H && ix >= 0 && ix < s.W {
						taps = append(taps, in.F32[((image*s.H+iy)*s.W+ix)*s.C+c])
					}
				}
			}
			n := len(taps)
			if op.CountPadding {
				n = op.KH * op.KW
			}
			out.F32[i] = mean(taps, n)
		}
	})}
}

// pairsBy replaces what one kind of step makes of two values.
func pairsBy(kind plan.PairKind, of func(x, y float32) float32) fake {
	return fake{joined: func(op plan.Op, out, a, b bcnn.Tensor) {
		if op, ok := op.(*plan.Pair); ok && op.Kind == kind {
			for i, x := range a.F32 {
				out.F32[i] = of(x, factor(a.Shape, b, i))
			}
		}
	}}
}

func sumOf(taps []float32) (sum float32) {
	for _, v := range taps {
		sum += v
	}
	return sum
}

// brokenLayers are faults of activations, means, products and channels.
var brokenLayers = []brokenDevice{
	{"one slope for all channels", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) {
		if op.Activation.Slope != nil {
			op.Activation.Slope = slices.Repeat(op.Activation.Slope[:1], op.Out)
		}
	})}, "conv/bits/", "image"},
	{"slopes of −0", inAffine(plan.ActivationPReLU, func(a plan.Activation, x, was float32, c int) float32 {
		if x == 0 && math.Signbit(float64(x)) {
			return x * a.Slope[c]
		}
		return was
	}), "prelu/", "want -0 (0x80000000), got 0"},
	{"another tanh", inAffine(plan.ActivationFunction, func(_ plan.Activation, x, _ float32, _ int) float32 {
		return float32(math.Tanh(float64(x)))
	}), "tanh/", "want"},
	{"1/0 is finite", inFunction(bcnn.Inverse, func(x, was float32) float32 {
		if x == 0 {
			return math.MaxFloat32
		}
		return was
	}), "special/", "got 3.4028235e+38"},
	{"1/∞ is not 0", inFunction(bcnn.Inverse, func(x, was float32) float32 {
		if math.IsInf(float64(x), 0) {
			return 0.25
		}
		return was
	}), "special/", "got 0.25"},
	{"1/−0 is +∞", inFunction(bcnn.Inverse, func(x, was float32) float32 {
		if x == 0 {
			return float32(math.Inf(1))
		}
		return was
	}), "special/", "want -Inf (0xff800000), got +Inf"},
	{"roots of negative numbers", inFunction(bcnn.RootFactor, func(x, was float32) float32 {
		if x < 0 {
			return 1
		}
		return was
	}), "special/", "want NaN"},
	{"√0 is NaN", inFunction(bcnn.RootFactor, func(x, was float32) float32 {
		if x == 0 {
			return float32(math.Inf(1))
		}
		return was
	}), "special/root of x", "got"},
	{"subnormal numbers of one power", inFunction(bcnn.RootPower, func(x, was float32) float32 { return min(was, 0x1p62) }), "special/", "want"},
	{"0·∞ is 0", fake{joined: func(op plan.Op, out, a, b bcnn.Tensor) {
		if op, ok := op.(*plan.Pair); ok && op.Kind == plan.PairMul {
			for i, x := range a.F32 {
				if x == 0 || factor(a.Shape, b, i) == 0 {
					out.F32[i] = 0
				}
			}
		}
	}}, "special/", "(mul): image"},
	{"sums without NaN", fake{step: after(func(_ *plan.Conv, _, out bcnn.Tensor) {
		for i, v := range out.F32 {
			if v != v {
				out.F32[i] = 0
			}
		}
	})}, "special/conv", "want NaN"},
	{"a clip drops NaN", inAffine(plan.ActivationClip, func(a plan.Activation, x, was float32, _ int) float32 {
		if x != x {
			return a.Min
		}
		return was
	}), "hardtanh/", "want NaN (0x"},
	{"a ReLU drops NaN", inAffine(plan.ActivationReLU, func(_ plan.Activation, x, was float32, _ int) float32 {
		if x != x {
			return 0
		}
		return was
	}), "relu/", "want NaN (0x"},
	{"a ReLU makes +0 of −0", inAffine(plan.ActivationReLU, func(_ plan.Activation, x, was float32, _ int) float32 {
		if x == 0 {
			return 0
		}
		return was
	}), "relu/", "want -0 (0x80000000), got 0"},
	{"a clip at 0 makes +0 of −0", inAffine(plan.ActivationClip, func(a plan.Activation, x, was float32, _ int) float32 {
		if x == a.Min {
			return a.Min
		}
		return was
	}), "relu6/", "want -0 (0x80000000), got 0"},
	{"clips without an upper bound", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) {
		if op.Activation.Kind == plan.ActivationClip {
			op.Activation.Max = float32(math.Inf(1))
		}
	})}, "conv/float/", "image"},
	{"activation of sums missing", fake{several: func(op plan.Op) plan.Op {
		if _, ok := op.(*plan.Add); ok {
			return &plan.Add{}
		}
		return op
	}}, "add+", "(add): image"},
	{"all taps of a window count", fake{step: change(func(op *plan.AvgPool, _ bcnn.Tensor) { op.CountPadding = true })}, "avgpool/", "(avgpool): image"},
	{"padding never counts", fake{step: change(func(op *plan.AvgPool, _ bcnn.Tensor) { op.CountPadding = false })}, "avgpool/", "(avgpool): image"},
	{"means by the reciprocal alone", meansBy(func(taps []float32, n int) float32 { return sumOf(taps) * (1 / float32(n)) }), "avgpool/", "(avgpool): image"},
	{"means of float64 sums", meansBy(func(taps []float32, n int) float32 {
		sum := 0.0
		for _, v := range taps {
			sum += float64(v)
		}
		return float32(sum / float64(n))
	}), "avgpool/", "(avgpool): image"},
	{"means by division", meansBy(func(taps []float32, n int) float32 { return sumOf(taps) / float32(n) }), "avgpool/", "(avgpool): image"},
	{"means from the last tap to the first", meansBy(func(taps []float32, n int) float32 {
		slices.Reverse(taps)
		return float32(float64(sumOf(taps)) / float64(n))
	}), "avgpool/", "(avgpool): image"},
	{"subnormal means flushed", fake{step: after(func(_ *plan.AvgPool, _, out bcnn.Tensor) { flush(out.F32) })}, "avgpool/", "(avgpool): image"},
	{"bits of means are 0 and 1", fake{step: after(func(_ *plan.AvgPool, in, out bcnn.Tensor) {
		for i, v := range out.F32 {
			if in.DType == bcnn.Bits {
				out.F32[i] = (v + 1) / 2
			}
		}
	})}, "avgpool/", "(avgpool): image"},
	{"one factor for all values", fake{joined: func(op plan.Op, out, a, b bcnn.Tensor) {
		if op, ok := op.(*plan.Pair); ok && op.Kind == plan.PairMul {
			for i, v := range a.F32 {
				out.F32[i] = v * b.F32[0]
			}
		}
	}}, "mul/", "(mul): image"},
	{"factors of the first image", fake{joined: func(op plan.Op, out, a, b bcnn.Tensor) {
		if op, ok := op.(*plan.Pair); ok && op.Kind == plan.PairMul {
			for i, v := range a.F32 {
				out.F32[i] = v * factor(a.Shape, b, i%a.Shape.Values())
			}
		}
	}}, "mul/", "(mul): image 1"},
	{"a number is larger than a NaN", pairsBy(plan.PairMax, func(x, y float32) float32 {
		if x > y || y != y {
			return x
		}
		return y
	}), "max/", "got"},
	{"a number is smaller than the first NaN", pairsBy(plan.PairMin, func(x, y float32) float32 {
		if x < y {
			return x
		}
		return y
	}), "min/", "want NaN"},
	{"+0 is larger than −0", pairsBy(plan.PairMax, func(x, y float32) float32 {
		return float32(math.Max(float64(x), float64(y)))
	}), "max/", "want -0 (0x80000000), got 0"},
	{"the first of equal values", pairsBy(plan.PairMin, func(x, y float32) float32 {
		if x <= y || x != x {
			return x
		}
		return y
	}), "min/", "0"},
	{"a mask multiplies", pairsBy(plan.PairMask, func(x, y float32) float32 { return x * y }), "mask/", "(mask): image"},
	{"a mask of 0 and 1 multiplies", pairsBy(plan.PairMask, func(x, y float32) float32 {
		if y != 0 {
			y = 1
		}
		return x * y
	}), "special/mask", "want 0 (0x00000000), got"},
	{"a mask keeps all", pairsBy(plan.PairMask, func(x, _ float32) float32 { return x }), "mask/", "want 0 (0x00000000), got"},
	{"a mask keeps what −0 drops", pairsBy(plan.PairMask, func(x, y float32) float32 {
		if math.Float32bits(y) != 0 {
			return x
		}
		return 0
	}), "special/mask", "want 0 (0x00000000), got"},
	{"a mask drops where it is NaN", pairsBy(plan.PairMask, func(x, y float32) float32 {
		if y < 0 || y > 0 {
			return x
		}
		return 0
	}), "special/mask", "got 0"},
	{"a mask flushes subnormal numbers of its second", pairsBy(plan.PairMask, func(x, y float32) float32 {
		if math.Abs(float64(y)) < 0x1p-126 {
			return 0
		}
		return x
	}), "special/mask", "got 0"},
	{"a mask drops to −0", pairsBy(plan.PairMask, func(x, y float32) float32 {
		if y != 0 {
			return x
		}
		return float32(math.Copysign(0, -1))
	}), "mask/", "want 0 (0x00000000), got -0"},
	{"the first channel of the second part lost", fake{joined: func(op plan.Op, out, a, b bcnn.Tensor) {
		if _, ok := op.(*plan.Concat); !ok {
			return
		}
		for pixel := range out.N * out.Shape.Pixels() {
			if c := a.Shape.C; out.DType == bcnn.Bits {
				out.Words[pixel*(len(out.Words)/out.N/out.Shape.Pixels())+c/64] &^= 1 << (c % 64)
			} else {
				out.F32[pixel*out.Shape.C+c] = 0
			}
		}
	}}, "concat/", "(concat): image"},
	{"bits joined at whole words", fake{joined: func(op plan.Op, out, a, b bcnn.Tensor) {
		if _, ok := op.(*plan.Concat); ok && out.DType == bcnn.Bits && a.Shape.C%64 != 0 {
			clear(out.Words[:1])
		}
	}}, "concat/", "want +1, got -1"},
	{"channels of zeros hold what was there", fake{step: after(func(op *plan.Channels, _, out bcnn.Tensor) {
		for i := range out.F32 {
			if op.Index[i%len(op.Index)] < 0 {
				out.F32[i] = 1
			}
		}
	})}, "channels/", "want 0 (0x00000000), got 1"},
	{"the next row picked", fake{step: change(func(op *plan.Pixels, in bcnn.Tensor) {
		op.Rows = slices.Clone(op.Rows)
		for i, y := range op.Rows {
			if y >= 0 {
				op.Rows[i] = (y + 1) % int32(in.Shape.H*op.BlockH)
			}
		}
	})}, "pixels/", "(pixels): image"},
	{"the table of the first channel", fake{step: change(func(op *plan.Table, _ bcnn.Tensor) {
		op.Values = op.Of(0)
	})}, "table/", "(table): image"},
	{"tables of signed bytes", fake{step: change(func(op *plan.Table, _ bcnn.Tensor) {
		op.Values = slices.Clone(op.Values)
		for from := 0; from < len(op.Values); from += plan.TableSize {
			for i := range op.Values[from:][:plan.TableSize] {
				op.Values[from+i] = op.Values[from+i&127]
			}
		}
	})}, "table/", "(table): image"},
	{"pixels filled with 0", fake{step: change(func(op *plan.Pixels, in bcnn.Tensor) {
		if in.DType == bcnn.Float32 {
			op.Fill = 0
		}
	})}, "pixels/", ", got 0"},
	{"columns of a block before its rows", fake{step: change(func(op *plan.Pixels, in bcnn.Tensor) {
		if op.BlockH == 2 && op.BlockW == 2 && in.DType == bcnn.Bits {
			op.Cols = slices.Clone(op.Cols)
			for i, x := range op.Cols {
				op.Cols[i] = max(x, 0) ^ 1
			}
		}
	})}, "pixels/", "(pixels): image"},
	{"weights of pixels multiplied behind each other", fake{step: after(func(op *plan.Resample, in, out bcnn.Tensor) {
		s, o := in.Shape, out.Shape
		for i := range out.F32 {
			image, y, x, c := i/o.Values(), i/(o.W*o.C)%o.H, i/o.C%o.W, i%o.C
			var sum float32
			for ky := range op.Rows.N {
				for kx := range op.Cols.N {
					row, col := y*op.Rows.N+ky, x*op.Cols.N+kx
					v := in.F32[((image*s.H+int(op.Rows.Index[row]))*s.W+int(op.Cols.Index[col]))*s.C+c]
					sum = f32.FMA(v*op.Rows.Weight[row], op.Cols.Weight[col], sum)
				}
			}
			out.F32[i] = sum
		}
	})}, "resample/", "(resample): image"},
	{"the last of equal values", fake{step: after(func(op *plan.TopK, in, out bcnn.Tensor) {
		if op.K > 1 || op.Values {
			return
		}
		for i := range out.F32 {
			values := in.F32[i*in.Shape.C:][:in.Shape.C]
			for c, v := range values {
				if v == values[int(out.F32[i])] {
					out.F32[i] = float32(c)
				}
			}
		}
	})}, "topk/", "(topk): image"},
	{"NaN is the largest value", fake{step: after(func(op *plan.TopK, in, out bcnn.Tensor) {
		for i := range out.F32 {
			if at := slices.IndexFunc(in.F32[i/op.K*in.Shape.C:][:in.Shape.C], func(v float32) bool { return v != v }); at >= 0 && !op.Values {
				out.F32[i] = float32(at)
			}
		}
	})}, "topk/", "(topk): image"},
	{"rows of a matrix multiplied by those of the next head", fake{joined: func(op plan.Op, out, _, _ bcnn.Tensor) {
		row := out.Shape.W * out.Shape.C
		if _, ok := op.(*plan.MatMul); ok && out.Shape.H > 1 {
			copy(out.F32[:row], out.F32[row:2*row])
		}
	}}, "matmul/", "(matmul): image"},
	{"columns and channels not swapped", fake{step: after(func(op *plan.Transpose, in, out bcnn.Tensor) {
		copy(out.F32, in.F32)
	})}, "transpose/", "(transpose): image"},
	// As lowering makes them for groups of values of several planes.
	{"channels repeated without their groups", fake{step: change(func(op *plan.Channels, in bcnn.Tensor) {
		if len(op.Index) > in.Shape.C {
			op.Index = slices.Clone(op.Index)
			for c := range op.Index {
				op.Index[c] = int32(c % in.Shape.C)
			}
		}
	})}, "levels/", "(channels): image"},
	{"the next channel picked", fake{step: change(func(op *plan.Channels, in bcnn.Tensor) {
		op.Index = slices.Clone(op.Index)
		for i, c := range op.Index {
			if c >= 0 {
				op.Index[i] = (c + 1) % int32(in.Shape.C)
			}
		}
	})}, "channels/", "(channels): image"},
}
