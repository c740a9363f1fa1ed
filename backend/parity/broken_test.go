package parity

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

type stepFunc = func(op plan.Op, in bcnn.Tensor) (bcnn.Tensor, error)

// change makes a hook that lets edit change a copy of operations of type Op.
func change[Op any](edit func(op *Op, in bcnn.Tensor)) func(plan.Op, bcnn.Tensor, stepFunc) (bcnn.Tensor, error) {
	return func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		if p, ok := any(op).(*Op); ok {
			c := *p
			edit(&c, in)
			op = any(&c).(plan.Op)
		}
		return honest(op, in)
	}
}

// after makes a hook that lets edit change the result of operations of type Op.
func after[Op any](edit func(op *Op, in, out bcnn.Tensor)) func(plan.Op, bcnn.Tensor, stepFunc) (bcnn.Tensor, error) {
	return func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		out, err := honest(op, in)
		if p, ok := any(op).(*Op); ok && err == nil {
			edit(p, in, out)
		}
		return out, err
	}
}

// shifted returns thresholds that are one off.
func shifted(t *plan.Threshold, by int32) *plan.Threshold {
	if t == nil {
		return nil
	}
	s := *t
	s.I32, s.F32 = slices.Clone(t.I32), slices.Clone(t.F32)
	for i, v := range s.I32 {
		if v != math.MinInt32 && v != math.MaxInt32 {
			s.I32[i] += by
		}
	}
	for i, v := range s.F32 {
		s.F32[i] = math.Nextafter32(v, v+float32(math.Copysign(1+math.Abs(float64(v)), float64(by))))
	}
	return &s
}

// complement negates all channels.
func complement(t bcnn.Tensor) bcnn.Tensor {
	c := t
	c.Words = slices.Clone(t.Words)
	words := bits.Words(t.Shape.C)
	for i := range c.Words {
		c.Words[i] = ^c.Words[i]
		if i%words == words-1 {
			c.Words[i] &= bits.TailMask(t.Shape.C)
		}
	}
	return c
}

// rotated moves the channels of bits by n.
func rotated(t bcnn.Tensor, n int) bcnn.Tensor {
	c := t.Shape.C
	values := make([]int8, t.N*t.Shape.Values())
	bits.Unpack(values, t.Words, c)
	for i := 0; i < len(values); i += c {
		copy(values[i:], append(slices.Clone(values[i+n:i+c]), values[i:i+n]...))
	}
	t.Words = make([]uint64, len(t.Words))
	bits.Pack(t.Words, values, c)
	return t
}

// afterRun makes a hook that lets edit do something after an honest Run.
func afterRun(edit func(x *fakeEngine, out, in bcnn.Tensor)) func(*fakeEngine, context.Context, bcnn.Tensor, bcnn.Tensor) error {
	return func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		err := x.honest(ctx, out, in)
		if err == nil {
			edit(x, out, in)
		}
		return err
	}
}

// stray writes one value at element i of a slice, which may lie outside.
func stray(s []float32, i int) {
	*(*float32)(unsafe.Add(unsafe.Pointer(&s[0]), 4*i)) = 1
}

var errBroken = errors.New("broken")

// brokenDevice has one fault: the start of the names of the cases that must find it,
// and what the first failure says.
type brokenDevice struct {
	name string
	dev  fake
	in   string
	says string
}

var broken = []brokenDevice{
	{"threshold one too high", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) { op.Threshold = shifted(op.Threshold, 1) })}, "conv/", "want +1, got -1"},
	{"threshold one too low", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) { op.Threshold = shifted(op.Threshold, -1) })}, "conv/", "want -1, got +1"},
	{"x > T for x ≥ T in sign", fake{step: change(func(op *plan.Sign, _ bcnn.Tensor) { op.Threshold = *shifted(&op.Threshold, 1) })}, "sign-", "(sign): image"},
	{"x > T for x ≥ T in levels", fake{step: change(func(op *plan.Quantize, _ bcnn.Tensor) {
		op.Thresholds = shifted(&plan.Threshold{F32: op.Thresholds}, 1).F32
	})}, "levels/", "(quantize): image"},
	{"one level too few", fake{step: change(func(op *plan.Sign, in bcnn.Tensor) {
		if op.Planes > 1 {
			op.Threshold.F32 = slices.Clone(op.Threshold.F32)
			for i := len(op.Threshold.F32) - in.Shape.C; i < len(op.Threshold.F32); i++ {
				op.Threshold.F32[i] = float32(math.Inf(1))
			}
		}
	})}, "levels/", "(sign): image"},
	{"thresholds of planes two off", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) {
		if op.InPlanes > 1 && op.Threshold != nil && op.Threshold.I32 != nil {
			op.Threshold = shifted(op.Threshold, 2)
		}
	})}, "levels/", "image"},
	{"binarize threshold one off", fake{step: change(func(op *plan.Binarize, _ bcnn.Tensor) { op.Threshold = shifted(op.Threshold, 1) })}, "binarize/", "(binarize): image"},
	{"grey threshold one off", fake{step: change(func(op *plan.Binarize, _ bcnn.Tensor) {
		if op.Scheme == bcnn.SchemeGrey {
			op.Threshold = shifted(op.Threshold, -1)
		}
	})}, "binarize/", "want -1, got +1"},
	{"sums without sign of threshold extremes", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) {
		if op.Threshold != nil { // a kernel that compares with T−1 by subtraction
			op.Threshold = shifted(op.Threshold, 0)
			for i, v := range op.Threshold.I32 {
				if v == math.MinInt32 {
					op.Threshold.I32[i] = math.MaxInt32
				}
			}
		}
	})}, "changed/", "want +1, got -1"},
	{"padding −1 for 0", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) {
		if op.PadValue == 0 {
			op.PadValue = -1
		}
	})}, "conv/bits/4x3x", "(conv): image"},
	{"padding 0 for +1", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) { op.PadValue = min(op.PadValue, 0) })}, "conv/bits/13x11", "(conv): image"},
	{"padding 0 for −1", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) { op.PadValue = max(op.PadValue, 0) })}, "conv/", "(conv): image"},
	{"zero point ignored", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) { op.ZeroPoint = 0 })}, "conv/bytes/", "image"},
	{"flip of convolutions missing", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) {
		if op.Threshold = shifted(op.Threshold, 0); op.Threshold != nil {
			op.Threshold.Flip = nil
		}
	})}, "conv/bits/8x7x33/", "image"},
	{"flip of pools missing", fake{step: change(func(op *plan.MaxPool, _ bcnn.Tensor) { op.Flip = nil })}, "conv/bits/8x7x33/", "(maxpool): image"},
	{"flip of signs missing", fake{step: change(func(op *plan.Sign, _ bcnn.Tensor) { op.Threshold.Flip = nil })}, "changed/flip=true/", "(sign): image"},
	{"AND for OR in pools", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		if pool, ok := op.(*plan.MaxPool); ok && in.DType == bcnn.Bits {
			out, err := honest(pool, complement(in))
			if err == nil {
				out = complement(out)
			}
			return out, err
		}
		return honest(op, in)
	}}, "maxpool/", "(maxpool): image"},
	{"AND for OR in fused pools", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		conv, ok := op.(*plan.Conv)
		if !ok || conv.Pool == nil {
			return honest(op, in)
		}
		plain := *conv
		plain.Pool, plain.Threshold = nil, shifted(conv.Threshold, 0)
		plain.Threshold.Flip = nil
		sums, err := honest(&plain, in)
		if err != nil {
			return sums, err
		}
		w := *conv.Pool
		w.StrideH, w.StrideW = w.KH, w.KW
		out, err := honest(&plan.MaxPool{Window: w, Flip: conv.Threshold.Flip}, complement(sums))
		if err == nil {
			out = complement(out)
		}
		return out, err
	}}, "conv/bits/8x7x33/", "image"},
	{"padding of float pools counts as 0", fake{step: after(func(op *plan.MaxPool, _, out bcnn.Tensor) {
		for i, v := range out.F32 {
			if op.Pad != (bcnn.Padding{}) {
				out.F32[i] = max(v, 0)
			}
		}
	})}, "maxpool/", "(maxpool): image"},
	{"float pools prefer +0", fake{step: after(func(_ *plan.MaxPool, in, out bcnn.Tensor) {
		for i, v := range out.F32 {
			if v == 0 {
				out.F32[i] = 0
			}
		}
	})}, "maxpool/", "(maxpool): image"},
	{"dirty padding bits", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		out, err := honest(op, in)
		if c := out.Shape.C; out.DType == bcnn.Bits && c%64 != 0 && err == nil {
			out.Words[len(out.Words)-1] |= 1 << 63
		}
		return out, err
	}}, "", "channel 63: padding bit is 1"},
	{"affine rounds twice", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		a, ok := op.(*plan.Affine)
		if !ok || a.Scale == nil {
			return honest(op, in)
		}
		out, err := honest(&plan.Affine{}, in)
		twice(out.F32, a.Scale, a.Shift, a.Activation)
		return out, err
	}}, "affine/", "(affine): image"},
	{"scale of sums rounds twice", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		c, ok := op.(*plan.Conv)
		if !ok || c.Scale == nil {
			return honest(op, in)
		}
		plain := *c
		plain.Scale, plain.Shift, plain.Activation = nil, nil, plan.Activation{}
		out, err := honest(&plain, in)
		twice(out.F32, c.Scale, c.Shift, c.Activation)
		return out, err
	}}, "conv/bits/3x3x64/", "image"},
	{"bias of float sums added last", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		c, ok := op.(*plan.Conv)
		if !ok || c.F32 == nil || c.Scale != nil || c.Threshold != nil {
			return honest(op, in)
		}
		plain := *c
		plain.Bias, plain.Activation = make([]float32, c.Out), plan.Activation{}
		out, err := honest(&plain, in)
		ones := slices.Repeat([]float32{1}, c.Out)
		twice(out.F32, ones, c.Bias, c.Activation)
		return out, err
	}}, "conv/float/", "image"},
	{"float weights round to half precision", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) {
		op.F32 = slices.Clone(op.F32)
		for i, v := range op.F32 {
			op.F32[i] = math.Float32frombits(math.Float32bits(v) &^ 0x1fff)
		}
	})}, "conv/float/", "image"},
	{"subnormals flushed", fake{step: after(func(_ *plan.Conv, _, out bcnn.Tensor) { flush(out.F32) })}, "conv/float/5x6x20/", "image"},
	{"subnormals flushed by affine", fake{step: after(func(_ *plan.Affine, _, out bcnn.Tensor) { flush(out.F32) })}, "affine/float/4x4x65/tiny", "image"},
	{"activation of convolutions missing", fake{step: change(func(op *plan.Conv, _ bcnn.Tensor) { op.Activation = plan.Activation{} })}, "conv/float/", "image"},
	{"activation of affines missing", fake{step: change(func(op *plan.Affine, _ bcnn.Tensor) { op.Activation = plan.Activation{} })}, "affine1+relu/", "(affine): image"},
	{"sums of 16 bits", fake{step: after(func(op *plan.Conv, _, out bcnn.Tensor) {
		for i, v := range out.F32 {
			if op.F32 == nil && op.Scale == nil && op.Activation.Kind == plan.ActivationNone {
				out.F32[i] = float32(int16(int32(v)))
			}
		}
	})}, "dense/bytes/16x16", "image"},
	{"group rotated", fake{step: func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
		if c, ok := op.(*plan.Conv); ok && c.Groups > 1 && in.DType == bcnn.Bits {
			in = rotated(in, in.Shape.C/c.Groups)
		}
		return honest(op, in)
	}}, "conv/bits/5x6x64/", "(conv): image"},
	{"kernels transposed", fake{step: change(func(op *plan.Conv, in bcnn.Tensor) {
		if op.Dense || op.KH != op.KW || in.DType == bcnn.Float32 {
			return
		}
		words := bits.Words(in.Shape.C / op.Groups)
		transposed := make([]uint64, 0, len(op.Bits))
		for o := range op.Out {
			for k := range op.KH * op.KW {
				from := ((o*op.KH+k%op.KH)*op.KW + k/op.KH) * words
				transposed = append(transposed, op.Bits[from:from+words]...)
			}
		}
		op.Bits = transposed
	})}, "conv/bits/", "image"},
	{"flatten of channels first", fake{step: after(func(_ *plan.Flatten, in, out bcnn.Tensor) {
		pixels, c := in.Shape.Pixels(), in.Shape.C
		for i := range out.F32 {
			k := i % (pixels * c)
			out.F32[i] = in.F32[i-k+k%pixels*c+k/pixels]
		}
	})}, "flatten/", "(flatten): image"},
	{"images mixed up", fake{run: afterRun(func(x *fakeEngine, out, in bcnn.Tensor) {
		size := x.plan.OutputShape().Values()
		for n := 1; n < out.N; n++ {
			copy(out.F32[n*size:], out.F32[:size])
		}
	})}, "", "image 1"},
	{"another output wrong", fake{run: afterRun(func(x *fakeEngine, _, _ bcnn.Tensor) {
		if len(x.outputs) > 1 {
			x.outputs[1].F32[0]++
		}
	})}, "ends/outputs", "output 2: image 0, y 0, x 0, channel 0"},
	{"images mixed up without Tap", fake{run: afterRun(func(x *fakeEngine, out, in bcnn.Tensor) {
		if size := x.plan.OutputShape().Values(); !x.config.Stepwise && out.N == 2 {
			copy(out.F32[size:], out.F32[:size])
		}
	})}, "", "of a batch of 2: output: image 1"},
	{"second run differs", fake{run: afterRun(func(x *fakeEngine, out, in bcnn.Tensor) {
		if x.runs > 3 {
			out.F32[0]++
		}
	})}, "", "run 4, of a batch of 3: output: image 0, y 0, x 0, channel 0"},
	{"a value stays from run to run", fake{run: afterRun(func(x *fakeEngine, out, _ bcnn.Tensor) {
		size := x.plan.OutputShape().Values()
		if x.left = append(x.left, make([]bool, max(0, out.N-len(x.left)))...); x.left[out.N-1] && out.N > 2 {
			out.F32[(out.N-1)*size]++
		}
		x.left[out.N-1] = true
	})}, "", "run 4, of a batch of 3: output: image 2, y 0, x 0, channel 0"},
	{"a batch larger than the last one", fake{run: afterRun(func(x *fakeEngine, out, _ bcnn.Tensor) {
		if x.before < out.N && x.before > 0 {
			out.F32[0]++
		}
		x.before = out.N
	})}, "", "run 3, of a batch of 2: output: image 0, y 0, x 0, channel 0"},
	{"a batch smaller than the last one", fake{run: afterRun(func(x *fakeEngine, out, _ bcnn.Tensor) {
		if out.N < x.before {
			out.F32[0]++
		}
		x.before = out.N
	})}, "", "run 2, of a batch of 1: output: image 0, y 0, x 0, channel 0"},
	{"a value not written", fake{run: func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		last := out.F32[len(out.F32)-1]
		err := x.honest(ctx, out, in)
		out.F32[len(out.F32)-1] = last
		return err
	}}, "", "output: image 1"},
	{"writes behind out", fake{run: afterRun(func(_ *fakeEngine, out, _ bcnn.Tensor) { stray(out.F32, len(out.F32)+3) })}, "", "Run wrote outside of out"},
	{"writes before out", fake{run: afterRun(func(_ *fakeEngine, out, _ bcnn.Tensor) { stray(out.F32, -1) })}, "", "Run wrote outside of out, at element -1"},
	{"writes behind in", fake{run: afterRun(func(_ *fakeEngine, _, in bcnn.Tensor) {
		if in.F32 != nil {
			stray(in.F32, len(in.F32))
		}
	})}, "", "Run wrote outside of in"},
	{"modifies the input", fake{run: afterRun(func(_ *fakeEngine, _, in bcnn.Tensor) {
		if in.U8 != nil {
			in.U8[len(in.U8)-1]++
		} else {
			in.F32[len(in.F32)-1]++
		}
	})}, "", "Run modified its input: image 1"},
	{"no kernel", fake{compile: func(p *plan.Plan) error {
		for _, s := range p.Steps {
			if s.Kind() == "maxpool" {
				return plan.Unsupported(s.Name)
			}
		}
		return nil
	}}, "maxpool/", "compile: fake: compile: maxpool"},
	{"Run fails", fake{run: afterRunError(errBroken, func(_ *fakeEngine, n int) bool { return n == 2 })}, "binarize/", "run: broken"},
	{"Run fails without Tap", fake{run: afterRunError(errBroken, func(x *fakeEngine, _ int) bool { return !x.config.Stepwise })}, "", "run: broken"},
	{"a step without Tap", fake{run: func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		after := x.after
		x.after = func(step int, took time.Duration) error {
			if step == 1 {
				return nil
			}
			return after(step, took)
		}
		return x.honest(ctx, out, in)
	}}, "", "with Tap: "},
	{"no times", fake{run: func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		after := x.after
		x.after = func(step int, _ time.Duration) error { return after(step, -1) }
		return x.honest(ctx, out, in)
	}}, "", "call 0 of Timed"},
	{"memory of the image taken too early", fake{run: together(0)}, "whole/", "of a batch of 1: output: image 0"},
	{"a variant of kernels differs", fake{kernels: []string{"x", "y"}, run: afterRun(func(x *fakeEngine, out, _ bcnn.Tensor) {
		if x.config.Kernels == "y" {
			out.F32[0]++
		}
	})}, "whole/", "y kernels: with Tap: "},
}

func afterRunError(err error, when func(x *fakeEngine, n int) bool) func(*fakeEngine, context.Context, bcnn.Tensor, bcnn.Tensor) error {
	return func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		if honest := x.honest(ctx, out, in); honest != nil || !when(x, in.N) {
			return honest
		}
		return err
	}
}

// twice is an affine function whose product is rounded before the sum is.
func twice(v, scale, shift []float32, a plan.Activation) {
	for i := range v {
		v[i] = float32(v[i]*scale[i%len(scale)]) + shift[i%len(scale)]
	}
	activate(v, len(scale), a)
}

func flush(v []float32) {
	for i, f := range v {
		if math.Abs(float64(f)) < 0x1p-126 {
			v[i] = 0
		}
	}
}
