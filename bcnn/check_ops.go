package bcnn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Check tests a window over images of a shape. Each number is at most most, so that
// computing with some of them cannot overflow.
func (w Window) Check(in Shape, most int) error {
	for _, v := range []int{w.KH, w.KW, w.StrideH, w.StrideW, w.DilationH, w.DilationW} {
		if v < 1 || v > most {
			return fmt.Errorf("kernel %d×%d, stride %d×%d, dilation %d×%d: want values from 1 to %d",
				w.KH, w.KW, w.StrideH, w.StrideW, w.DilationH, w.DilationW, most)
		}
	}
	for _, v := range []int{w.Pad.Top, w.Pad.Left, w.Pad.Bottom, w.Pad.Right} {
		if v < 0 || v > most {
			return fmt.Errorf("padding %d, want 0 to %d", v, most)
		}
	}
	if out := w.Output(in, in.C); out.H == 0 || out.W == 0 {
		return fmt.Errorf("a window of %d×%d does not fit into %v with its padding",
			w.DilationH*(w.KH-1)+1, w.DilationW*(w.KW-1)+1, in)
	}
	return nil
}

// CheckPool also demands that every position of the window sees the image: the
// maximum and the mean of nothing are undefined.
func (w Window) CheckPool(in Shape, most int) error {
	if w.DilationH != 1 || w.DilationW != 1 {
		return errors.New("a pool with dilation is not supported")
	}
	if err := w.Check(in, most); err != nil {
		return err
	}
	out := w.Output(in, in.C)
	if w.Pad.Top >= w.KH || w.Pad.Left >= w.KW ||
		(out.H-1)*w.StrideH-w.Pad.Top >= in.H || (out.W-1)*w.StrideW-w.Pad.Left >= in.W {
		return errors.New("a window of the pool lies wholly in the padding")
	}
	return nil
}

// MaxPoolTaps is the largest number of taps of an average pool.
const MaxPoolTaps = 1 << 22

// CheckTaps bounds the taps of an average pool.
func (w Window) CheckTaps() error {
	if taps := int64(w.KH) * int64(w.KW); taps > MaxPoolTaps {
		return fmt.Errorf("an average pool of %d taps, want at most %d", taps, MaxPoolTaps)
	}
	return nil
}

// CheckPair tests whether values can be combined with others: they are as many, or
// repeated over channels or pixels or both.
func CheckPair(values, others Shape) error {
	pixels := others.H == values.H && others.W == values.W
	if !pixels && (others.H != 1 || others.W != 1) || others.C != values.C && others.C != 1 {
		return fmt.Errorf("shapes %v and %v cannot be combined: the second must be equal to the first, or 1 in channels or pixels", values, others)
	}
	return nil
}

// Check tests which of so many channels are picked.
func (c Channels) Check(channels int) error {
	for c, from := range c.Index {
		if from < -1 || int(from) >= channels {
			return fmt.Errorf("channel %d of the output is channel %d of an input with %d channels", c, from, channels)
		}
	}
	return nil
}

func finite(what string, values []float32) error {
	const exponent = 0x7f800000 // all ones in infinities and NaNs alone
	for i, v := range values {
		if math.Float32bits(v)&exponent == exponent {
			return fmt.Errorf("%s[%d] is %v, want a finite number", what, i, v)
		}
	}
	return nil
}

// perChannel checks a vector of parameters of the given length; empty is
// allowed where optional is set.
func perChannel(what string, values []float32, n int, optional bool) error {
	if len(values) != n && !(optional && len(values) == 0) {
		return fmt.Errorf("%d values of %s for %d channels", len(values), what, n)
	}
	return finite(what, values)
}

// check tests rows of n weights each.
func (w Weights) check(rows, n int) error {
	kinds := 0
	for _, set := range []bool{w.Bits != nil, w.Int8 != nil, w.F32 != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return errors.New("weights are of more than one kind: want either binary, integer or real ones")
	case w.Int8 != nil:
		if int64(len(w.Int8)) != int64(rows)*int64(n) {
			return fmt.Errorf("%d weights, want %d×%d", len(w.Int8), rows, n)
		}
		return nil
	case w.Bits == nil:
		if int64(len(w.F32)) != int64(rows)*int64(n) {
			return fmt.Errorf("%d weights, want %d×%d", len(w.F32), rows, n)
		}
		return finite("weights", w.F32)
	}
	if int64(len(w.Bits)) != int64(rows)*int64(bits.Words(n)) {
		return fmt.Errorf("%d words of weights, want %d rows of %d bits in %d words", len(w.Bits), rows, n, bits.Words(n))
	}
	if err := bits.CheckPadding(w.Bits, n); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	return nil
}

func (b Binarize) output(in []ValueType) (ValueType, error) {
	t := in[0]
	if t.Kind != ByteValue {
		return t, errors.New("binarize must follow the network's uint8 input")
	}
	thresholds := 0
	switch b.Scheme {
	case SchemeThreshold:
		thresholds = t.Shape.C
	case SchemeGrey, SchemeLBP:
		if t.Shape.C != 1 && t.Shape.C != 3 {
			return t, fmt.Errorf("scheme %s needs 1 or 3 channels, the input has %d", b.Scheme, t.Shape.C)
		}
		if b.Scheme == SchemeGrey {
			thresholds = 1
			t.Shape.C = 1
		} else {
			t.Shape.C = 3
		}
	case SchemeMinMax:
	default:
		return t, fmt.Errorf("unknown scheme %s", text.Quote(string(b.Scheme)))
	}
	if len(b.Thresholds) != thresholds {
		return t, fmt.Errorf("scheme %s has %d thresholds, want %d", b.Scheme, len(b.Thresholds), thresholds)
	}
	t.Kind = SignValue
	return t, nil
}

func (c Conv2D) output(in []ValueType) (ValueType, error) {
	t := in[0]
	c.Window = c.Window.Normal()
	groups := max(c.Groups, 1)
	err := c.Window.Check(t.Shape, maxSide)
	switch {
	case err != nil:
		return t, err
	case c.Out < 1 || c.Out > maxChannels:
		return t, fmt.Errorf("%d output channels are too few or too many", c.Out)
	case c.Groups < 0 || c.Out%groups != 0 || t.Shape.C%groups != 0:
		return t, fmt.Errorf("%d groups do not divide %d input and %d output channels", c.Groups, t.Shape.C, c.Out)
	case c.PadValue < -1 || c.PadValue > 1:
		return t, fmt.Errorf("padding value %d, want −1, 0 or +1", c.PadValue)
	case c.PadValue != 0 && c.Pad != (Padding{}) && (t.Kind != SignValue || c.Weights.Real()):
		return t, fmt.Errorf("padding value %+d needs binary or integer weights, and a binary input", c.PadValue)
	}
	if taps := int64(c.KH) * int64(c.KW) * int64(t.Shape.C/groups); taps > maxValues {
		return t, fmt.Errorf("%d taps, want at most %d", taps, maxValues)
	}
	// Binary rows are one tap each, real ones run over all taps.
	rows, n := c.Out*c.KH*c.KW, t.Shape.C/groups
	if int64(c.Out)*int64(c.KH)*int64(c.KW) > maxValues {
		return t, fmt.Errorf("weights have more than %d rows of output channels × kernel height × kernel width", maxValues)
	}
	if err := c.Weights.check(rows, n); err != nil {
		return t, err
	}
	if err := perChannel("bias", c.Bias, c.Out, true); err != nil {
		return t, err
	}
	return ValueType{c.Window.Output(t.Shape, c.Out), RealValue}, nil
}

func (d Dense) output(in []ValueType) (ValueType, error) {
	t := in[0]
	if d.Out < 1 || d.Out > maxChannels {
		return t, fmt.Errorf("%d outputs are too few or too many", d.Out)
	}
	if err := d.Weights.check(d.Out, t.Shape.Values()); err != nil {
		return t, err
	}
	if err := perChannel("bias", d.Bias, d.Out, true); err != nil {
		return t, err
	}
	return ValueType{Shape{1, 1, d.Out}, RealValue}, nil
}

func (b BatchNorm) output(in []ValueType) (ValueType, error) {
	t := in[0]
	for _, p := range []struct {
		name   string
		values []float32
	}{{"gamma", b.Gamma}, {"beta", b.Beta}, {"mean", b.Mean}, {"variance", b.Var}, {"epsilon", []float32{b.Epsilon}}} {
		n := t.Shape.C
		if p.name == "epsilon" {
			n = 1
		}
		if err := perChannel(p.name, p.values, n, false); err != nil {
			return t, err
		}
	}
	for c, v := range b.Var {
		if float64(v)+float64(b.Epsilon) <= 0 {
			return t, fmt.Errorf("variance[%d] + epsilon is %v, want more than 0", c, float64(v)+float64(b.Epsilon))
		}
	}
	return ValueType{t.Shape, RealValue}, nil
}

func (a Affine) output(in []ValueType) (ValueType, error) {
	t := in[0]
	for _, p := range []struct {
		name   string
		values []float32
	}{{"scale", a.Scale}, {"bias", a.Bias}} {
		n := t.Shape.C
		if len(p.values) == 1 {
			n = 1
		}
		if err := perChannel(p.name, p.values, n, true); err != nil {
			return t, err
		}
	}
	return ValueType{t.Shape, RealValue}, nil
}

func (s Sign) output(in []ValueType) (ValueType, error) {
	if s.Zero != ZeroIsPlus && s.Zero != ZeroIsMinus {
		return in[0], errors.New("sign has no rule for 0: want ZeroIsPlus or ZeroIsMinus")
	}
	return ValueType{in[0].Shape, SignValue}, nil
}

func (q Quantize) output(in []ValueType) (ValueType, error) {
	t := ValueType{in[0].Shape, RealValue}
	if err := finite("threshold", q.Thresholds); err != nil {
		return t, err
	}
	return t, q.Check(t.Shape.C)
}

// Check tests levels and their thresholds, one list for all channels or one each.
func (q Quantize) Check(channels int) error {
	low, levels, thresholds := q.Low, q.Levels, q.Thresholds
	if levels < 2 || levels > MaxLevels || low < -MaxLevels || low > MaxLevels+1-levels {
		return fmt.Errorf("%d levels from %d on, want 2 to %d levels of magnitudes up to %d", levels, low, MaxLevels, MaxLevels)
	}
	n := levels - 1
	if len(thresholds) != n && int64(len(thresholds)) != int64(n)*int64(channels) {
		return fmt.Errorf("%d thresholds for %d levels and %d channels, want one less than levels, for all channels or for each", len(thresholds), levels, channels)
	}
	for i := range thresholds {
		if i%n > 0 && !(thresholds[i] >= thresholds[i-1]) {
			return fmt.Errorf("threshold[%d], %v, is below the one before it, %v", i, thresholds[i], thresholds[i-1])
		}
	}
	return nil
}

func (ReLU) output(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, nil
}

func (p MaxPool) output(in []ValueType) (ValueType, error) {
	t := in[0]
	w := p.Window.Normal()
	if err := w.CheckPool(t.Shape, maxSide); err != nil {
		return t, err
	}
	t.Shape = w.Output(t.Shape, t.Shape.C)
	if t.Kind == ByteValue {
		t.Kind = RealValue
	}
	return t, nil
}

func (p AvgPool) output(in []ValueType) (ValueType, error) {
	t := in[0]
	w := p.Window.Normal()
	if err := w.CheckPool(t.Shape, maxSide); err != nil {
		return t, err
	}
	return ValueType{w.Output(t.Shape, t.Shape.C), RealValue}, w.CheckTaps()
}

func (p PReLU) output(in []ValueType) (ValueType, error) {
	t := in[0]
	n := t.Shape.C
	if len(p.Slope) == 1 {
		n = 1
	}
	return ValueType{t.Shape, RealValue}, perChannel("slope", p.Slope, n, false)
}

func (c Clip) output(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, c.Check()
}

func (f Function) output(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, f.Name.Check()
}

func (Mul) output(in []ValueType) (ValueType, error)  { return pairOutput(in) }
func (Min) output(in []ValueType) (ValueType, error)  { return pairOutput(in) }
func (Max) output(in []ValueType) (ValueType, error)  { return pairOutput(in) }
func (Mask) output(in []ValueType) (ValueType, error) { return pairOutput(in) }

func pairOutput(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, CheckPair(in[0].Shape, in[1].Shape)
}

func (Concat) output(in []ValueType) (ValueType, error) {
	out := in[0]
	channels := int64(0)
	for _, t := range in {
		if t.Shape.H != out.Shape.H || t.Shape.W != out.Shape.W {
			return out, fmt.Errorf("heights or widths of %v and %v differ", out.Shape, t.Shape)
		}
		if channels += int64(t.Shape.C); t.Kind != SignValue {
			out.Kind = RealValue
		}
	}
	if channels > maxChannels {
		return out, fmt.Errorf("%d channels, at most %d are allowed", channels, maxChannels)
	}
	out.Shape.C = int(channels)
	return out, nil
}

func (c Channels) output(in []ValueType) (ValueType, error) {
	t := in[0]
	if err := c.Check(t.Shape.C); err != nil {
		return t, err
	}
	if t.Kind == ByteValue || slices.Contains(c.Index, -1) {
		t.Kind = RealValue
	}
	t.Shape.C = len(c.Index)
	return t, nil
}

func (Add) output(in []ValueType) (ValueType, error) {
	if in[0].Shape != in[1].Shape {
		return in[0], fmt.Errorf("shapes %v and %v differ", in[0].Shape, in[1].Shape)
	}
	return ValueType{in[0].Shape, RealValue}, nil
}

func (Flatten) output(in []ValueType) (ValueType, error) {
	t := in[0]
	t.Shape = Shape{1, 1, t.Shape.Values()}
	return t, nil
}

func (Softmax) output(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, nil
}

// Check tests the bounds of a clip, of which one may be infinite.
func (c Clip) Check() error {
	low, high := c.Min, c.Max
	if !(low <= high) {
		return fmt.Errorf("clip from %v to %v, want the lower bound first", low, high)
	}
	if math.IsInf(float64(low), 0) && math.IsInf(float64(high), 0) {
		return errors.New("clip without a finite bound")
	}
	return nil
}

// Check tests whether there is such a function.
func (f FunctionName) Check() error {
	if f32.Named(string(f)) == nil {
		return fmt.Errorf("unknown function %s", text.Quote(string(f)))
	}
	return nil
}
