package ref

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// checkPlan makes sure that Run cannot read or write outside a slice.
func checkPlan(p *bcnn.Plan) error {
	if len(p.Tensors) == 0 {
		return errors.New("no tensors")
	}
	for i, t := range p.Tensors {
		if t.Shape.H < 1 || t.Shape.W < 1 || t.Shape.C < 1 {
			return fmt.Errorf("tensor %d %q has shape %v", i, t.Name, t.Shape)
		}
		if t.DType != bcnn.Uint8 && t.DType != bcnn.Bits && t.DType != bcnn.Float32 {
			return fmt.Errorf("tensor %d %q has type %v", i, t.Name, t.DType)
		}
	}
	written := make([]bool, len(p.Tensors))
	written[0] = true
	valid := func(i int) bool { return 0 <= i && i < len(p.Tensors) && written[i] }
	for i, s := range p.Steps {
		if s.Op == nil {
			return fmt.Errorf("step %d %q has no operation", i, s.Name)
		}
		inputs := 1
		if _, ok := s.Op.(*bcnn.AddStep); ok {
			inputs = 2
		}
		if len(s.In) != inputs {
			return fmt.Errorf("step %d %q: %d inputs, want %d", i, s.Name, len(s.In), inputs)
		}
		for _, in := range s.In {
			if !valid(in) {
				return fmt.Errorf("step %d %q reads tensor %d, which no step has written", i, s.Name, in)
			}
		}
		if s.Out < 1 || s.Out >= len(p.Tensors) || written[s.Out] {
			return fmt.Errorf("step %d %q cannot write tensor %d", i, s.Name, s.Out)
		}
		written[s.Out] = true
		if err := checkStep(p, s); err != nil {
			return fmt.Errorf("step %d %q (%s): %w", i, s.Name, s.Kind(), err)
		}
	}
	if !valid(p.Output) {
		return fmt.Errorf("output tensor %d is not written", p.Output)
	}
	return nil
}

func checkStep(p *bcnn.Plan, s bcnn.Step) error {
	in, out := p.Tensors[s.In[0]], p.Tensors[s.Out]
	types := func(ok bool, want bcnn.Shape) error {
		if !ok {
			return fmt.Errorf("cannot make %v of %v", out.DType, in.DType)
		}
		if out.Shape != want {
			return fmt.Errorf("output shape %v, want %v", out.Shape, want)
		}
		return nil
	}
	switch op := s.Op.(type) {
	case *bcnn.BinarizeStep:
		return errors.Join(checkBinarize(op, in.Shape, out.Shape), types(in.DType == bcnn.Uint8 && out.DType == bcnn.Bits,
			bcnn.Shape{H: in.Shape.H, W: in.Shape.W, C: out.Shape.C}))
	case *bcnn.ConvStep:
		if err := checkConv(op, in, out); err != nil {
			return err
		}
		shape := convShape(op, in.Shape)
		if op.Pool != nil {
			shape = poolShape(poolWindow(op), shape)
		}
		return types(out.DType != bcnn.Uint8, shape)
	case *bcnn.MaxPoolStep:
		if err := checkPool(op.Window, in.Shape); err != nil {
			return err
		}
		if op.Flip != nil && in.DType != bcnn.Bits {
			return errors.New("flip mask, but not Bits")
		}
		return errors.Join(checkMask(op.Flip, in.Shape.C),
			types(in.DType == out.DType && in.DType != bcnn.Uint8, poolShape(op.Window, in.Shape)))
	case *bcnn.AffineStep:
		return errors.Join(checkScale(op.Scale, op.Shift, in.Shape.C), types(out.DType == bcnn.Float32, in.Shape))
	case *bcnn.SignStep:
		return errors.Join(checkThreshold(&op.Threshold, bcnn.Float32, in.Shape.C),
			types(in.DType == bcnn.Float32 && out.DType == bcnn.Bits, in.Shape))
	case *bcnn.AddStep:
		other := p.Tensors[s.In[1]]
		if other.Shape != in.Shape || other.DType != in.DType {
			return fmt.Errorf("cannot add %v %v and %v %v", in.DType, in.Shape, other.DType, other.Shape)
		}
		return types(in.DType == bcnn.Float32 && out.DType == bcnn.Float32, in.Shape)
	case *bcnn.FlattenStep:
		return types(in.DType == out.DType && in.DType != bcnn.Uint8, bcnn.Shape{H: 1, W: 1, C: in.Shape.Values()})
	}
	return fmt.Errorf("unknown operation %T", s.Op)
}

func checkBinarize(op *bcnn.BinarizeStep, in, out bcnn.Shape) error {
	channels, thresholds := in.C, 0
	switch op.Scheme {
	case bcnn.SchemeThreshold:
		thresholds = in.C
	case bcnn.SchemeGrey:
		channels, thresholds = 1, 1
	case bcnn.SchemeLBP:
		channels = 3
	case bcnn.SchemeMinMax:
	default:
		return fmt.Errorf("unknown scheme %q", op.Scheme)
	}
	if (op.Scheme == bcnn.SchemeGrey || op.Scheme == bcnn.SchemeLBP) && in.C != 1 && in.C != 3 {
		return fmt.Errorf("scheme %q needs 1 or 3 channels, not %d", op.Scheme, in.C)
	}
	if out.C != channels {
		return fmt.Errorf("scheme %q makes %d channels, not %d", op.Scheme, channels, out.C)
	}
	if thresholds == 0 && op.Threshold == nil {
		return nil
	}
	return checkThreshold(op.Threshold, bcnn.Bits, thresholds)
}

func checkConv(op *bcnn.ConvStep, in, out bcnn.PlanTensor) error {
	if op.KH < 1 || op.KW < 1 || op.StrideH < 1 || op.StrideW < 1 || op.DilationH < 1 || op.DilationW < 1 {
		return fmt.Errorf("window %+v", op.Window)
	}
	if min(op.Pad.Top, op.Pad.Left, op.Pad.Bottom, op.Pad.Right) < 0 {
		return fmt.Errorf("padding %+v", op.Pad)
	}
	if op.Groups < 1 || op.Out < 1 || in.Shape.C%op.Groups != 0 || op.Out%op.Groups != 0 {
		return fmt.Errorf("%d groups of %d input and %d output channels", op.Groups, in.Shape.C, op.Out)
	}
	if op.PadValue < -1 || op.PadValue > 1 {
		return fmt.Errorf("padding value %d", op.PadValue)
	}
	rows, group := op.Out*op.KH*op.KW, in.Shape.C/op.Groups
	if in.DType == bcnn.Float32 {
		if len(op.F32) != rows*group || len(op.Bias) != op.Out {
			return fmt.Errorf("%d weights and %d biases, want %d and %d", len(op.F32), len(op.Bias), rows*group, op.Out)
		}
	} else {
		if len(op.Bits) != rows*bits.Words(group) {
			return fmt.Errorf("%d words of weights, want %d", len(op.Bits), rows*bits.Words(group))
		}
		if err := bits.CheckPadding(op.Bits, group); err != nil {
			return fmt.Errorf("weights: %w", err)
		}
	}
	if out.DType == bcnn.Float32 {
		if op.Threshold != nil || op.Pool != nil {
			return errors.New("threshold or pooling with Float32 output")
		}
		return checkScale(op.Scale, op.Shift, op.Out)
	}
	if op.Scale != nil || op.ReLU {
		return errors.New("scale or ReLU with Bits output")
	}
	if op.Pool != nil {
		if err := checkPool(poolWindow(op), convShape(op, in.Shape)); err != nil {
			return err
		}
	}
	return checkThreshold(op.Threshold, in.DType, op.Out)
}

// checkPool also demands that every window sees the image: the maximum of
// nothing is undefined.
func checkPool(w bcnn.Window, in bcnn.Shape) error {
	if w.KH < 1 || w.KW < 1 || w.StrideH < 1 || w.StrideW < 1 || w.DilationH > 1 || w.DilationW > 1 ||
		min(w.Pad.Top, w.Pad.Left, w.Pad.Bottom, w.Pad.Right) < 0 {
		return fmt.Errorf("pooling window %+v", w)
	}
	out := poolShape(w, in)
	if w.Pad.Top >= w.KH || w.Pad.Left >= w.KW ||
		(out.H-1)*w.StrideH-w.Pad.Top >= in.H || (out.W-1)*w.StrideW-w.Pad.Left >= in.W {
		return fmt.Errorf("pooling window %+v lies wholly in the padding somewhere", w)
	}
	return nil
}

// checkThreshold checks the threshold of n channels of values of type d.
func checkThreshold(t *bcnn.Threshold, d bcnn.DType, n int) error {
	if t == nil {
		return errors.New("no threshold")
	}
	have := len(t.I32)
	if d == bcnn.Float32 {
		have = len(t.F32)
	}
	if have != n {
		return fmt.Errorf("%d thresholds for %v, want %d", have, d, n)
	}
	return checkMask(t.Flip, n)
}

func checkMask(mask []uint64, n int) error {
	if mask == nil {
		return nil
	}
	if len(mask) != bits.Words(n) {
		return fmt.Errorf("flip mask of %d words for %d channels", len(mask), n)
	}
	return bits.CheckPadding(mask, n)
}

func checkScale(scale, shift []float32, n int) error {
	if len(scale) != len(shift) || scale != nil && len(scale) != n {
		return fmt.Errorf("%d scales and %d shifts for %d channels", len(scale), len(shift), n)
	}
	return nil
}

// convShape is the shape of the output of a convolution, before pooling.
func convShape(op *bcnn.ConvStep, in bcnn.Shape) bcnn.Shape { return op.Window.Output(in, op.Out) }

// poolWindow is the window of the pooling after a convolution, whose strides
// are its size by definition.
func poolWindow(op *bcnn.ConvStep) bcnn.Window {
	return bcnn.Window{KH: op.Pool.KH, KW: op.Pool.KW, StrideH: op.Pool.KH, StrideW: op.Pool.KW}
}

func poolShape(w bcnn.Window, in bcnn.Shape) bcnn.Shape { return w.Output(in, in.C) }
