package bcnn

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/text"
)

const (
	// maxDim bounds every size that a plan names, so that sums of a few cannot
	// overflow.
	maxDim = 1 << 24
	// maxTensor bounds the bytes of a tensor of one image, with 8 for each value.
	maxTensor = min(1<<42, math.MaxInt/2)
)

// Check makes sure that executing the plan stays within its slices: every step reads
// what has been written, types and shapes fit, parameters have the right lengths and
// padding, and sums fit into 32 bits. Plans that Lower made pass; others may have been
// made by hand. The error names the step. Where nothing is wrong but steps of unknown
// kinds or types, it is an *UnsupportedError, which lists each of them.
func (p *Plan) Check() error {
	if p == nil {
		return errors.New("no plan")
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("plan %s: %w", text.Quote(p.Name), err)
	}
	return nil
}

func (p *Plan) check() error {
	switch {
	case len(p.Tensors) == 0:
		return errors.New("no tensors")
	case len(p.Inputs) == 0:
		return errors.New("no inputs")
	case len(p.Outputs) == 0:
		return errors.New("no outputs")
	}
	for i, t := range p.Tensors {
		if err := t.check(); err != nil {
			return fmt.Errorf("tensor %d (%s): %w", i, text.Escape(t.Name), err)
		}
	}
	if len(p.Inputs) > len(p.Tensors) {
		return fmt.Errorf("%d tensors for %d inputs", len(p.Tensors), len(p.Inputs))
	}
	written := make([]bool, len(p.Tensors))
	for i, want := range p.Inputs {
		if in := p.Tensors[i]; in.DType != want.DType || in.Shape != want.Shape {
			return fmt.Errorf("tensor %d is %v %v, but the input is %v %v", i, in.DType, in.Shape, want.DType, want.Shape)
		}
		written[i] = true
	}
	has := func(i int) bool { return 0 <= i && i < len(written) && written[i] }
	var unsupported UnsupportedError
	for i, s := range p.Steps {
		fail := func(err error) error { return fmt.Errorf("step %d (%s): %w", i, text.Escape(s.Name), err) }
		if err := checkInputs(s); err != nil {
			return fail(err)
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
		if err := p.checkStep(s); err != nil {
			if err := unsupported.Add(p, i, err); err != nil {
				return err
			}
		}
	}
	if err := unsupported.Err(); err != nil {
		return err
	}
	isOutput := make([]bool, len(p.Tensors))
	for _, t := range p.Outputs {
		if !has(t) || p.Tensors[t].DType != Float32 || isOutput[t] || t < len(p.Inputs) {
			return fmt.Errorf("output tensor %d is not written, not float32, an input, or an output already", t)
		}
		isOutput[t] = true
	}
	return nil
}

// checkInputs tests how many tensors a step reads.
func checkInputs(s Step) error {
	switch s.Op.(type) {
	case *ConcatStep:
		if len(s.In) < 2 {
			return fmt.Errorf("%d inputs, want 2 or more", len(s.In))
		}
		return nil
	case *AddStep, *PairStep:
		if len(s.In) != 2 {
			return fmt.Errorf("%d inputs, want 2", len(s.In))
		}
		return nil
	}
	if len(s.In) != 1 {
		return fmt.Errorf("%d inputs, want 1", len(s.In))
	}
	return nil
}

func (t PlanTensor) check() error {
	if min(t.Shape.H, t.Shape.W, t.Shape.C) < 1 || max(t.Shape.H, t.Shape.W, t.Shape.C) > maxDim ||
		num.Product(t.Shape.H, t.Shape.W, t.Shape.C, 8) > maxTensor {
		return fmt.Errorf("shape %v", t.Shape)
	}
	if t.DType != Uint8 && t.DType != Bits && t.DType != Float32 {
		return fmt.Errorf("type %v", t.DType)
	}
	return nil
}

// hasOp reports whether the step has an operation at all.
func (s Step) hasOp() bool {
	v := reflect.ValueOf(s.Op)
	return v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil())
}

// checkStep checks a step whose tensors exist.
func (p *Plan) checkStep(s Step) error {
	if !s.hasOp() {
		return Unsupported("no operation")
	}
	in, out := p.Tensors[s.In[0]], p.Tensors[s.Out]
	var types bool
	var shape Shape // of the output, as it must be
	var err error
	switch op := s.Op.(type) {
	case *BinarizeStep:
		types = in.DType == Uint8 && out.DType == Bits
		shape = in.Shape
		shape.C, err = op.check(in.Shape.C)
	case *ConvStep:
		types = out.DType != Uint8
		shape, err = op.check(in, out)
	case *MaxPoolStep:
		types = in.DType == out.DType
		shape, err = op.check(in)
	case *AffineStep:
		types = out.DType == Float32
		shape = in.Shape
		if err = checkScale(op.Scale, op.Shift, in.Shape.C); err == nil {
			err = op.Activation.check(in.Shape.C)
		}
	case *TableStep:
		types = in.DType == Uint8
		shape, err = op.check(in.Shape, out.DType)
	case *SignStep:
		types = in.DType == Float32 && out.DType == Bits
		shape = in.Shape
		if err = checkPlanes(op.Planes, 0); err == nil {
			shape.H *= max(op.Planes, 1)
			err = op.Threshold.checkPlanes(false, shape.C, op.Planes)
		}
	case *QuantizeStep:
		types = in.DType == Float32 && (out.DType == Float32 || out.DType == Uint8)
		shape, err = in.Shape, checkLevels(op.Low, op.Levels, op.Thresholds, in.Shape.C)
	case *AddStep:
		other := p.Tensors[s.In[1]]
		types = in.DType == Float32 && other.DType == Float32 && out.DType == Float32
		shape, err = in.Shape, op.Activation.checkFused(in.Shape.C)
		if other.Shape != shape {
			err = fmt.Errorf("it adds %v and %v", in.Shape, other.Shape)
		}
	case *PairStep:
		if op.Kind > PairMax {
			return Unsupported(fmt.Sprintf("PairKind(%d)", op.Kind))
		}
		other := p.Tensors[s.In[1]]
		types = in.DType == Float32 && other.DType == Float32 && out.DType == Float32
		shape, err = in.Shape, checkPair(in.Shape, other.Shape)
	case *AvgPoolStep:
		types = in.DType != Uint8 && out.DType == Float32
		shape, err = op.check(in.Shape)
	case *ConcatStep:
		types = in.DType == out.DType && in.DType != Uint8
		shape = in.Shape
		for _, i := range s.In[1:] {
			other := p.Tensors[i]
			types = types && other.DType == in.DType
			if other.Shape.H != shape.H || other.Shape.W != shape.W {
				err = fmt.Errorf("it joins %v and %v", in.Shape, other.Shape)
			}
			shape.C = num.Sum(shape.C, other.Shape.C)
		}
	case *ChannelsStep:
		types = in.DType == out.DType && in.DType != Uint8
		shape = in.Shape
		shape.C = len(op.Index)
		if err = checkIndex(op.Index, in.Shape.C); err == nil && in.DType == Bits && slices.Contains(op.Index, -1) {
			err = errors.New("a channel of zeros in bits")
		}
	case *PixelsStep:
		types = in.DType == out.DType && in.DType != Uint8
		shape, err = Pixels(*op).shape(in.Shape)
		if err == nil && in.DType == Bits && !Pixels(*op).keepsSigns() {
			err = fmt.Errorf("pixels of %v in bits", op.Fill)
		}
	case *ResampleStep:
		types = in.DType == Float32 && out.DType == Float32
		shape, err = Resample(*op).shape(in.Shape)
	case *TopKStep:
		types = in.DType == Float32 && out.DType == Float32
		shape, err = TopK(*op).shape(in.Shape)
	case *FlattenStep:
		types = in.DType == out.DType && in.DType != Uint8
		shape = Shape{H: 1, W: 1, C: in.Shape.Values()}
	default:
		return Unsupported(fmt.Sprintf("operation %T", s.Op))
	}
	if !types {
		return Unsupported(fmt.Sprintf("%s from %v to %v", s.Kind(), in.DType, out.DType))
	}
	if err == nil && out.Shape != shape {
		err = fmt.Errorf("output shape %v, want %v", out.Shape, shape)
	}
	return err
}

// check returns the number of output channels.
func (op *BinarizeStep) check(channels int) (int, error) {
	thresholds, out := 0, channels
	switch op.Scheme {
	case SchemeThreshold:
		thresholds = channels
	case SchemeGrey:
		thresholds, out = 1, 1
	case SchemeLBP:
		out = 3
	case SchemeMinMax:
	default:
		return 0, Unsupported(fmt.Sprintf("scheme %q", op.Scheme))
	}
	if (op.Scheme == SchemeGrey || op.Scheme == SchemeLBP) && channels != 1 && channels != 3 {
		return 0, fmt.Errorf("scheme %s of %d channels, want 1 or 3", op.Scheme, channels)
	}
	if thresholds == 0 {
		if op.Threshold != nil {
			return 0, fmt.Errorf("scheme %s takes no thresholds", op.Scheme)
		}
		return out, nil
	}
	return out, op.Threshold.check(true, thresholds)
}

// check tests thresholds of integers or of floats.
func (t *Threshold) check(integer bool, channels int) error {
	return t.checkPlanes(integer, channels, 1)
}

// checkPlanes tests the thresholds of so many planes.
func (t *Threshold) checkPlanes(integer bool, channels, planes int) error {
	if t == nil {
		return errors.New("no threshold")
	}
	have := len(t.F32)
	if integer {
		have = len(t.I32)
	}
	n := 1<<max(planes, 1) - 1
	if have != num.Product(n, channels) {
		return fmt.Errorf("%d thresholds for %d channels, want %d each", have, channels, n)
	}
	for i := range have - channels {
		if integer && t.I32[i] > t.I32[channels+i] || !integer && !(t.F32[i] <= t.F32[channels+i]) {
			return fmt.Errorf("threshold %d of channel %d is above the next one", i/channels, i%channels)
		}
	}
	return checkFlip(t.Flip, channels)
}

// checkPlanes tests a number of planes, in so many rows.
func checkPlanes(planes, rows int) error {
	if planes < 0 || planes > MaxPlanes || rows%max(planes, 1) != 0 {
		return fmt.Errorf("%d planes in %d rows, at most %d are supported", planes, rows, MaxPlanes)
	}
	return nil
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

// check returns the shape of the output.
func (op *ConvStep) check(in, out PlanTensor) (Shape, error) {
	if err := checkPlanes(op.InPlanes, in.Shape.H); err != nil {
		return Shape{}, err
	}
	if err := checkPlanes(op.OutPlanes, 0); err != nil {
		return Shape{}, err
	}
	if op.InPlanes > 1 && in.DType != Bits || op.OutPlanes > 1 && (in.DType != Bits || out.DType != Bits) {
		return Shape{}, fmt.Errorf("planes from %v to %v", in.DType, out.DType)
	}
	in.Shape = op.Image(in.Shape)
	if err := op.Window.check(in.Shape, maxDim); err != nil {
		return Shape{}, err
	}
	if op.Out < 1 || op.Out > maxDim || op.Groups < 1 || in.Shape.C%op.Groups != 0 || op.Out%op.Groups != 0 {
		return Shape{}, fmt.Errorf("%d groups of %d input and %d output channels", op.Groups, in.Shape.C, op.Out)
	}
	if op.Parts < 0 || in.Shape.C/op.Groups%max(op.Parts, 1) != 0 {
		return Shape{}, fmt.Errorf("%d parts of weights for %d channels in %d groups", op.Parts, in.Shape.C, op.Groups)
	}
	if most := op.maxPadValue(); op.PadValue < -most || op.PadValue > most {
		return Shape{}, fmt.Errorf("padding value %d, want −%d to %d", op.PadValue, most, most)
	}
	if op.PadValue != 0 && in.DType != Bits {
		return Shape{}, fmt.Errorf("padding value %d of %v", op.PadValue, in.DType)
	}
	shape := op.Window.Output(in.Shape, op.Out)
	if op.Dense && (shape.Pixels() != 1 || op.KH != in.Shape.H || op.KW != in.Shape.W || op.Pad != (Padding{}) || op.Groups != 1) {
		return Shape{}, errors.New("a dense layer whose window is not the whole input")
	}
	if err := op.checkWeights(in, out); err != nil {
		return Shape{}, err
	}
	if in.DType == Bits {
		if err := op.checkBorder(in.Shape, shape); err != nil {
			return Shape{}, err
		}
	}
	if out.DType == Float32 {
		if op.Threshold != nil || op.Pool != nil {
			return Shape{}, errors.New("a threshold or a pool for float32 output")
		}
		if err := checkScale(op.Scale, op.Shift, op.Out); err != nil {
			return Shape{}, err
		}
		return shape, op.Activation.checkFused(op.Out)
	}
	if op.Scale != nil || op.Shift != nil || op.Activation.Kind != ActivationNone {
		return Shape{}, errors.New("a scale or an activation for bits")
	}
	if op.Pool != nil {
		if op.Pool.KH < 1 || op.Pool.KW < 1 || op.Pool.Pad != (Padding{}) {
			return Shape{}, fmt.Errorf("pool %+v", *op.Pool)
		}
		shape.H /= op.Pool.KH
		shape.W /= op.Pool.KW
	}
	err := op.Threshold.checkPlanes(in.DType != Float32, op.Out, op.OutPlanes)
	shape.H *= max(op.OutPlanes, 1)
	return shape, err
}

// maxPadValue is the largest magnitude of the padding value.
func (op *ConvStep) maxPadValue() int {
	if op.InPlanes > 1 {
		return MaxPadValue
	}
	return 1
}

// largest is the largest magnitude of an input of bits, padding included, and the least
// that backends begin a border with.
func (op *ConvStep) largest() int {
	return max(1<<max(op.InPlanes, 1)-1, op.PadValue, -op.PadValue)
}

// maxTapsInt8 is the largest number of taps of weights of 8 bits: the sums of bytes, with
// and without the zero point, fit into int32.
const maxTapsInt8 = math.MaxInt32 / (255 * 128)

func (op *ConvStep) checkWeights(in, out PlanTensor) error {
	group := in.Shape.C / op.Groups
	if op.whole() && (in.DType != Uint8 || out.DType != Float32) {
		return fmt.Errorf("integer weights from %v to %v", in.DType, out.DType)
	}
	if in.DType == Float32 {
		if want := num.Product(op.Out, op.KH, op.KW, group); len(op.F32) != want || len(op.Bias) != op.Out {
			return fmt.Errorf("%d weights and %d biases, want %d and %d", len(op.F32), len(op.Bias), want, op.Out)
		}
		return nil
	}
	taps := num.Product(op.KH, op.KW, group)
	if op.Int16 != nil {
		if want := num.Product(op.Out, taps); len(op.Int16) != want || op.Int8 != nil || op.Bits != nil {
			return fmt.Errorf("%d weights of 16 bits, want %d, %d of 8 bits and %d words of bits", len(op.Int16), want, len(op.Int8), len(op.Bits))
		}
		if sum := largestSum(op.Int16, taps); sum > math.MaxInt32/255 {
			return fmt.Errorf("sums of 255 times weights of %d in all do not fit into 32 bits", sum)
		}
		return nil
	}
	if op.Int8 != nil {
		if want := num.Product(op.Out, taps); len(op.Int8) != want || op.Bits != nil {
			return fmt.Errorf("%d weights of 8 bits, want %d, and %d words of bits", len(op.Int8), want, len(op.Bits))
		}
		if taps > maxTapsInt8 {
			return fmt.Errorf("sums of %d taps do not fit into 32 bits", taps)
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
	largest := 2 * op.largest()
	if in.DType == Uint8 {
		largest = 2 * 255
	}
	if taps > math.MaxInt32/largest {
		return fmt.Errorf("sums of %d taps do not fit into 32 bits", taps)
	}
	return nil
}

// largestSum is the largest sum of the magnitudes of rows of n weights.
func largestSum(weights []int16, n int) int64 {
	var largest int64
	for row := range slices.Chunk(weights, n) {
		var sum int64
		for _, w := range row {
			sum += max(int64(w), -int64(w))
		}
		largest = max(largest, sum)
	}
	return largest
}

func (op *ConvStep) checkBorder(in, out Shape) error {
	b := op.Border
	if b == nil {
		if op.PadValue == op.zeroBits() || !op.Window.ReadsPadding(in, out) {
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
	taps := num.Product(op.KH, op.KW, in.C/op.Groups)
	most := 2 * op.largest() * taps
	for _, v := range b.Correction {
		if int(v) < -most || int(v) > most {
			return fmt.Errorf("border correction %d of a sum of %d taps", v, taps)
		}
	}
	return nil
}

// check returns the shape of the output.
func (op *MaxPoolStep) check(in PlanTensor) (Shape, error) {
	if err := checkPlanes(op.Planes, in.Shape.H); err != nil {
		return Shape{}, err
	}
	k := max(op.Planes, 1)
	in.Shape.H /= k
	w, err := op.Window.checkPlanned(in.Shape)
	if err != nil {
		return Shape{}, err
	}
	if (op.Flip != nil || k > 1) && in.DType != Bits {
		return Shape{}, errors.New("a flip mask or planes, but no bits")
	}
	shape := w.Output(in.Shape, in.Shape.C)
	shape.H *= k
	return shape, checkFlip(op.Flip, in.Shape.C)
}

// check returns the shape of the output.
func (op *AvgPoolStep) check(in Shape) (Shape, error) {
	w, err := op.Window.checkPlanned(in)
	if err == nil {
		err = w.checkTaps()
	}
	if err != nil {
		return Shape{}, err
	}
	return w.Output(in, in.C), nil
}

// checkPlanned checks the window of a pool of a plan, and returns it with its
// dilation, which pools need not name.
func (w Window) checkPlanned(in Shape) (Window, error) {
	if w.DilationH == 0 && w.DilationW == 0 {
		w.DilationH, w.DilationW = 1, 1
	}
	return w, w.checkPool(in, maxDim)
}
