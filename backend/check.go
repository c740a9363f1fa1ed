package backend

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

const (
	// maxDim bounds every size that a plan names, so that sums of a few cannot
	// overflow.
	maxDim = 1 << 24
	// maxBytes bounds the memory for tensors: no address space is larger.
	maxBytes = min(1<<42, math.MaxInt/2)
)

// CheckPlan makes sure that executing the plan stays within its slices, for
// Device.Compile. Plans that Lower made pass; others may have been made by hand.
func CheckPlan(p *bcnn.Plan) error {
	if p == nil {
		return errors.New("no plan")
	}
	if len(p.Tensors) == 0 {
		return errors.New("plan without tensors")
	}
	for i, t := range p.Tensors {
		if min(t.Shape.H, t.Shape.W, t.Shape.C) < 1 || max(t.Shape.H, t.Shape.W, t.Shape.C) > maxDim ||
			num.Product(t.Shape.H, t.Shape.W, t.Shape.C, 8) > maxBytes {
			return fmt.Errorf("tensor %d (%s): shape %v", i, t.Name, t.Shape)
		}
		if t.DType != bcnn.Uint8 && t.DType != bcnn.Bits && t.DType != bcnn.Float32 {
			return fmt.Errorf("tensor %d (%s): type %v", i, t.Name, t.DType)
		}
	}
	if in := p.Tensors[0]; in.DType != p.Input.DType || in.Shape != p.Input.Shape {
		return fmt.Errorf("tensor 0 is %v %v, but the input is %v %v", in.DType, in.Shape, p.Input.DType, p.Input.Shape)
	}
	written := make([]bool, len(p.Tensors))
	written[0] = true
	has := func(i int) bool { return 0 <= i && i < len(written) && written[i] }
	var unsupported error
	for i, s := range p.Steps {
		fail := func(err error) error { return fmt.Errorf("step %d (%s): %w", i, s.Name, err) }
		inputs := 1
		if _, ok := s.Op.(*bcnn.AddStep); ok {
			inputs = 2
		}
		if len(s.In) != inputs {
			return fail(fmt.Errorf("%d inputs, want %d", len(s.In), inputs))
		}
		for _, in := range s.In {
			if !has(in) {
				return fail(fmt.Errorf("it reads tensor %d, which no step before it writes", in))
			}
		}
		if s.Out < 1 || s.Out >= len(p.Tensors) || written[s.Out] {
			return fail(fmt.Errorf("it cannot write tensor %d", s.Out))
		}
		written[s.Out] = true
		switch err := checkStep(p, s); {
		case errors.Is(err, ErrUnsupported):
			unsupported = errors.Join(unsupported, fail(err))
		case err != nil:
			return fail(err)
		}
	}
	if unsupported != nil {
		return unsupported
	}
	if !has(p.Output) || p.Tensors[p.Output].DType != bcnn.Float32 {
		return fmt.Errorf("output tensor %d is not written or not float32", p.Output)
	}
	return nil
}

func checkStep(p *bcnn.Plan, s bcnn.Step) error {
	in, out := p.Tensors[s.In[0]], p.Tensors[s.Out]
	var types bool
	var shape bcnn.Shape
	var err error
	switch op := s.Op.(type) {
	case *bcnn.BinarizeStep:
		types = in.DType == bcnn.Uint8 && out.DType == bcnn.Bits
		shape = in.Shape
		shape.C, err = checkBinarize(op, in.Shape.C)
	case *bcnn.ConvStep:
		types = out.DType != bcnn.Uint8
		shape, err = checkConv(op, in, out)
	case *bcnn.MaxPoolStep:
		types = in.DType == out.DType && in.DType != bcnn.Uint8
		shape, err = checkMaxPool(op, in)
	case *bcnn.AffineStep:
		types = out.DType == bcnn.Float32
		shape, err = in.Shape, checkScale(op.Scale, op.Shift, in.Shape.C)
	case *bcnn.SignStep:
		types = in.DType == bcnn.Float32 && out.DType == bcnn.Bits
		shape, err = in.Shape, checkThreshold(&op.Threshold, false, in.Shape.C)
	case *bcnn.AddStep:
		other := p.Tensors[s.In[1]]
		types = in.DType == bcnn.Float32 && other.DType == bcnn.Float32 && out.DType == bcnn.Float32
		if shape = in.Shape; other.Shape != shape {
			err = fmt.Errorf("it adds %v and %v", in.Shape, other.Shape)
		}
	case *bcnn.FlattenStep:
		types = in.DType == out.DType && in.DType != bcnn.Uint8
		shape = bcnn.Shape{H: 1, W: 1, C: in.Shape.Values()}
	default:
		return fmt.Errorf("%w: operation %T", ErrUnsupported, s.Op)
	}
	if !types {
		return fmt.Errorf("%w: %s from %v to %v", ErrUnsupported, s.Kind(), in.DType, out.DType)
	}
	if err == nil && out.Shape != shape {
		err = fmt.Errorf("output shape %v, want %v", out.Shape, shape)
	}
	return err
}

// checkBinarize returns the number of output channels.
func checkBinarize(op *bcnn.BinarizeStep, channels int) (int, error) {
	thresholds, out := 0, channels
	switch op.Scheme {
	case bcnn.SchemeThreshold:
		thresholds = channels
	case bcnn.SchemeGrey:
		thresholds, out = 1, 1
	case bcnn.SchemeLBP:
		out = 3
	case bcnn.SchemeMinMax:
	default:
		return 0, fmt.Errorf("%w: scheme %q", ErrUnsupported, op.Scheme)
	}
	if (op.Scheme == bcnn.SchemeGrey || op.Scheme == bcnn.SchemeLBP) && channels != 1 && channels != 3 {
		return 0, fmt.Errorf("scheme %s of %d channels", op.Scheme, channels)
	}
	if thresholds == 0 {
		if op.Threshold != nil {
			return 0, fmt.Errorf("scheme %s takes no thresholds", op.Scheme)
		}
		return out, nil
	}
	return out, checkThreshold(op.Threshold, true, thresholds)
}

func checkThreshold(t *bcnn.Threshold, integer bool, channels int) error {
	if t == nil {
		return errors.New("no threshold")
	}
	have := len(t.F32)
	if integer {
		have = len(t.I32)
	}
	if have != channels {
		return fmt.Errorf("%d thresholds for %d channels", have, channels)
	}
	return checkFlip(t.Flip, channels)
}

func checkFlip(flip []uint64, channels int) error {
	if flip == nil {
		return nil
	}
	if len(flip) != bits.Words(channels) {
		return fmt.Errorf("flip mask of %d words for %d channels", len(flip), channels)
	}
	if err := bits.CheckPadding(flip, channels); err != nil {
		return fmt.Errorf("flip mask: %w", err)
	}
	return nil
}

func checkScale(scale, shift []float32, channels int) error {
	if len(scale) != len(shift) || scale != nil && len(scale) != channels {
		return fmt.Errorf("%d scales and %d shifts for %d channels", len(scale), len(shift), channels)
	}
	return nil
}

func checkWindow(w bcnn.Window) error {
	if min(w.KH, w.KW, w.StrideH, w.StrideW, w.DilationH, w.DilationW) < 1 ||
		min(w.Pad.Top, w.Pad.Left, w.Pad.Bottom, w.Pad.Right) < 0 ||
		max(w.KH, w.KW, w.StrideH, w.StrideW, w.DilationH, w.DilationW) > maxDim ||
		max(w.Pad.Top, w.Pad.Left, w.Pad.Bottom, w.Pad.Right) > maxDim {
		return fmt.Errorf("window %+v", w)
	}
	return nil
}

func checkConv(op *bcnn.ConvStep, in, out bcnn.PlanTensor) (bcnn.Shape, error) {
	var none bcnn.Shape
	if err := checkWindow(op.Window); err != nil {
		return none, err
	}
	if op.Out < 1 || op.Out > maxDim || op.Groups < 1 || in.Shape.C%op.Groups != 0 || op.Out%op.Groups != 0 {
		return none, fmt.Errorf("%d groups of %d input and %d output channels", op.Groups, in.Shape.C, op.Out)
	}
	shape := op.Window.Output(in.Shape, op.Out)
	if shape.H < 1 || shape.W < 1 {
		return none, fmt.Errorf("a window of %d×%d does not fit into %v with its padding", op.KH, op.KW, in.Shape)
	}
	if op.Dense && (shape.H != 1 || shape.W != 1 || op.KH != in.Shape.H || op.KW != in.Shape.W ||
		op.Pad != (bcnn.Padding{}) || op.Groups != 1) {
		return none, errors.New("a dense layer whose window is not the whole input")
	}
	if err := checkWeights(op, in); err != nil {
		return none, err
	}
	if in.DType == bcnn.Bits {
		if err := checkBorder(op, in.Shape, shape); err != nil {
			return none, err
		}
	}
	if out.DType == bcnn.Float32 {
		if op.Threshold != nil || op.Pool != nil {
			return none, errors.New("a threshold or a pool for float32 output")
		}
		return shape, checkScale(op.Scale, op.Shift, op.Out)
	}
	if op.Scale != nil || op.Shift != nil || op.ReLU {
		return none, errors.New("a scale or ReLU for bits")
	}
	if op.Pool != nil {
		if op.Pool.KH < 1 || op.Pool.KW < 1 || op.Pool.Pad != (bcnn.Padding{}) {
			return none, fmt.Errorf("pool %+v", *op.Pool)
		}
		shape.H /= op.Pool.KH
		shape.W /= op.Pool.KW
	}
	return shape, checkThreshold(op.Threshold, in.DType != bcnn.Float32, op.Out)
}

func checkWeights(op *bcnn.ConvStep, in bcnn.PlanTensor) error {
	group := in.Shape.C / op.Groups
	if in.DType == bcnn.Float32 {
		if want := num.Product(op.Out, op.KH, op.KW, group); len(op.F32) != want || len(op.Bias) != op.Out {
			return fmt.Errorf("%d weights and %d biases, want %d and %d", len(op.F32), len(op.Bias), want, op.Out)
		}
		return nil
	}
	if want := num.Product(op.Out, op.KH, op.KW, bits.Words(group)); len(op.Bits) != want {
		return fmt.Errorf("%d words of weights, want %d", len(op.Bits), want)
	}
	if err := bits.CheckPadding(op.Bits, group); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	// The sums, and what they are computed from, must fit into int32.
	largest := 2
	if in.DType == bcnn.Uint8 {
		largest = 2 * 255
	}
	if taps := num.Product(op.KH, op.KW, group); taps > math.MaxInt32/largest {
		return fmt.Errorf("sums of %d taps do not fit into 32 bits", taps)
	}
	return nil
}

func checkBorder(op *bcnn.ConvStep, in, out bcnn.Shape) error {
	b := op.Border
	if b == nil {
		if op.PadValue == -1 || !op.Window.ReadsPadding(in, out) {
			return nil
		}
		return fmt.Errorf("no border for padding with %d", op.PadValue)
	}
	if len(b.Row) != out.H || len(b.Col) != out.W || b.Rows < 1 || b.Cols < 1 ||
		len(b.Correction) != num.Product(b.Rows, b.Cols, op.Out) {
		return fmt.Errorf("border of %d×%d positions, %d×%d classes and %d corrections for output %v",
			len(b.Row), len(b.Col), b.Rows, b.Cols, len(b.Correction), out)
	}
	for _, r := range b.Row {
		if r < 0 || r >= b.Rows {
			return fmt.Errorf("border row class %d of %d", r, b.Rows)
		}
	}
	for _, c := range b.Col {
		if c < 0 || c >= b.Cols {
			return fmt.Errorf("border column class %d of %d", c, b.Cols)
		}
	}
	taps := 2 * num.Product(op.KH, op.KW, in.C/op.Groups)
	for _, v := range b.Correction {
		if int(v) < -taps || int(v) > taps {
			return fmt.Errorf("border correction %d of a sum of %d taps", v, taps/2)
		}
	}
	return nil
}

func checkMaxPool(op *bcnn.MaxPoolStep, in bcnn.PlanTensor) (bcnn.Shape, error) {
	w := op.Window
	if w.DilationH|w.DilationW|1 != 1 {
		return bcnn.Shape{}, errors.New("a pool with dilation")
	}
	w.DilationH, w.DilationW = 1, 1 // pools need not name them
	err := checkWindow(w)
	switch {
	case err != nil:
	case max(w.Pad.Top, w.Pad.Bottom) >= w.KH || max(w.Pad.Left, w.Pad.Right) >= w.KW:
		err = fmt.Errorf("padding %+v of a %d×%d pool", w.Pad, w.KH, w.KW)
	case op.Flip != nil && in.DType != bcnn.Bits:
		err = errors.New("a flip mask for float32")
	default:
		err = checkFlip(op.Flip, in.Shape.C)
	}
	if err != nil {
		return bcnn.Shape{}, err
	}
	return w.Output(in.Shape, in.Shape.C), nil
}

var errNoContext = errors.New("no context")

// CheckCompile checks the arguments of Device.Compile and returns the options with
// their defaults in place: a batch of 1, and memory for the tensors as Limits say or
// else memory bytes, where 0 means unknown. maxBatch is the largest batch that the
// device can count.
func CheckCompile(ctx context.Context, plan *bcnn.Plan, opts Options, maxBatch int, memory int64) (Options, error) {
	if ctx == nil {
		return opts, errNoContext
	}
	if err := ctx.Err(); err != nil {
		return opts, err
	}
	var err error
	if opts.Limits, err = opts.Limits.WithDefaults(); err != nil {
		return opts, err
	}
	if opts.Limits.ArenaBytes == 0 {
		opts.Limits.ArenaBytes = memory
	}
	if opts.Limits.ArenaBytes == 0 {
		opts.Limits.ArenaBytes = unknownMemory
	}
	opts.Limits.ArenaBytes = min(opts.Limits.ArenaBytes, maxBytes)
	if opts.MaxBatch == 0 {
		opts.MaxBatch = 1
	}
	if opts.MaxBatch < 0 || opts.MaxBatch > maxBatch {
		return opts, fmt.Errorf("a batch of %d images, want 1 to %d", opts.MaxBatch, maxBatch)
	}
	if err := CheckPlan(plan); err != nil {
		name := ""
		if plan != nil {
			name = plan.Name
		}
		return opts, fmt.Errorf("plan %q: %w", name, err)
	}
	return opts, nil
}

// unknownMemory is what a device may have that does not say how much it has.
const unknownMemory = 8 << 30

// CheckMemory refuses to reserve bytes of memory for the tensors of an executable
// and all else that grows with the images, where opts, which CheckCompile has
// returned, allow less. The error wraps ErrTooLarge.
func (o Options) CheckMemory(bytes int64) error {
	if bytes <= o.Limits.ArenaBytes {
		return nil
	}
	return fmt.Errorf("%w: the tensors of a batch of %d need at least %d bytes of memory, and the limit is %d",
		ErrTooLarge, o.MaxBatch, bytes, o.Limits.ArenaBytes)
}

// CheckRun checks the arguments of Executable.Run against a plan that
// CheckPlan has passed. The error wraps ErrShape, or is that of ctx.
func CheckRun(ctx context.Context, plan *bcnn.Plan, maxBatch int, out, in bcnn.Tensor) error {
	if ctx == nil {
		return errNoContext
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	input, output := plan.Tensors[0], plan.Tensors[plan.Output]
	if in.N > maxBatch {
		return fmt.Errorf("%w: a batch of %d images, at most %d", ErrShape, in.N, maxBatch)
	}
	if err := in.Check(input.DType, input.Shape); err != nil {
		return fmt.Errorf("%w: input: %w", ErrShape, err)
	}
	if out.N != in.N {
		return fmt.Errorf("%w: %d images in, %d out", ErrShape, in.N, out.N)
	}
	if err := out.Check(output.DType, output.Shape); err != nil {
		return fmt.Errorf("%w: output: %w", ErrShape, err)
	}
	if in.DType == bcnn.Bits {
		if err := bits.CheckPadding(in.Words, in.Shape.C); err != nil {
			return fmt.Errorf("%w: input: %w", ErrShape, err)
		}
	}
	return nil
}
