package bcnn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/text"
)

// check tests a window over images of a shape. Each number is at most most, so that
// computing with some of them cannot overflow.
func (w Window) check(in Shape, most int) error {
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

// checkPool also demands that every position of the window sees the image: the
// maximum and the mean of nothing are undefined.
func (w Window) checkPool(in Shape, most int) error {
	if w.DilationH != 1 || w.DilationW != 1 {
		return errors.New("a pool with dilation is not supported")
	}
	if err := w.check(in, most); err != nil {
		return err
	}
	out := w.Output(in, in.C)
	if w.Pad.Top >= w.KH || w.Pad.Left >= w.KW ||
		(out.H-1)*w.StrideH-w.Pad.Top >= in.H || (out.W-1)*w.StrideW-w.Pad.Left >= in.W {
		return errors.New("a window of the pool lies wholly in the padding")
	}
	return nil
}

// checkTaps bounds the taps of an average pool.
func (w Window) checkTaps() error {
	if taps := int64(w.KH) * int64(w.KW); taps > MaxPoolTaps {
		return fmt.Errorf("an average pool of %d taps, want at most %d", taps, MaxPoolTaps)
	}
	return nil
}

// checkPair tests whether values can be combined with others: they are as many, or
// repeated over channels or pixels or both.
func checkPair(values, others Shape) error {
	pixels := others.H == values.H && others.W == values.W
	if !pixels && (others.H != 1 || others.W != 1) || others.C != values.C && others.C != 1 {
		return fmt.Errorf("shapes %v and %v cannot be combined: the second must be equal to the first, or 1 in channels or pixels", values, others)
	}
	return nil
}

// checkIndex tests which of so many channels are picked.
func checkIndex(index []int32, channels int) error {
	for c, from := range index {
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

func (b Binarize) output(in []valueType) (valueType, error) {
	t := in[0]
	if t.kind != byteValue {
		return t, errors.New("binarize must follow the network's uint8 input")
	}
	thresholds := 0
	switch b.Scheme {
	case SchemeThreshold:
		thresholds = t.shape.C
	case SchemeGrey, SchemeLBP:
		if t.shape.C != 1 && t.shape.C != 3 {
			return t, fmt.Errorf("scheme %s needs 1 or 3 channels, the input has %d", b.Scheme, t.shape.C)
		}
		if b.Scheme == SchemeGrey {
			thresholds = 1
			t.shape.C = 1
		} else {
			t.shape.C = 3
		}
	case SchemeMinMax:
	default:
		return t, fmt.Errorf("unknown scheme %s", text.Quote(string(b.Scheme)))
	}
	if len(b.Thresholds) != thresholds {
		return t, fmt.Errorf("scheme %s has %d thresholds, want %d", b.Scheme, len(b.Thresholds), thresholds)
	}
	t.kind = signValue
	return t, nil
}

func (c Conv2D) output(in []valueType) (valueType, error) {
	t := in[0]
	c.Window = c.Window.normal()
	groups := max(c.Groups, 1)
	err := c.Window.check(t.shape, maxSide)
	switch {
	case err != nil:
		return t, err
	case c.Out < 1 || c.Out > maxChannels:
		return t, fmt.Errorf("%d output channels are too few or too many", c.Out)
	case c.Groups < 0 || c.Out%groups != 0 || t.shape.C%groups != 0:
		return t, fmt.Errorf("%d groups do not divide %d input and %d output channels", c.Groups, t.shape.C, c.Out)
	case c.PadValue < -1 || c.PadValue > 1:
		return t, fmt.Errorf("padding value %d, want −1, 0 or +1", c.PadValue)
	case c.PadValue != 0 && c.Pad != (Padding{}) && (t.kind != signValue || c.Weights.real()):
		return t, fmt.Errorf("padding value %+d needs binary or integer weights, and a binary input", c.PadValue)
	}
	if taps := int64(c.KH) * int64(c.KW) * int64(t.shape.C/groups); taps > maxValues {
		return t, fmt.Errorf("%d taps, want at most %d", taps, maxValues)
	}
	// Binary rows are one tap each, real ones run over all taps.
	rows, n := c.Out*c.KH*c.KW, t.shape.C/groups
	if int64(c.Out)*int64(c.KH)*int64(c.KW) > maxValues {
		return t, fmt.Errorf("weights have more than %d rows of output channels × kernel height × kernel width", maxValues)
	}
	if err := c.Weights.check(rows, n); err != nil {
		return t, err
	}
	if err := perChannel("bias", c.Bias, c.Out, true); err != nil {
		return t, err
	}
	return valueType{c.Window.Output(t.shape, c.Out), realValue}, nil
}

func (d Dense) output(in []valueType) (valueType, error) {
	t := in[0]
	if d.Out < 1 || d.Out > maxChannels {
		return t, fmt.Errorf("%d outputs are too few or too many", d.Out)
	}
	if err := d.Weights.check(d.Out, t.shape.Values()); err != nil {
		return t, err
	}
	if err := perChannel("bias", d.Bias, d.Out, true); err != nil {
		return t, err
	}
	return valueType{Shape{1, 1, d.Out}, realValue}, nil
}

func (b BatchNorm) output(in []valueType) (valueType, error) {
	t := in[0]
	for _, p := range []struct {
		name   string
		values []float32
	}{{"gamma", b.Gamma}, {"beta", b.Beta}, {"mean", b.Mean}, {"variance", b.Var}, {"epsilon", []float32{b.Epsilon}}} {
		n := t.shape.C
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
	return valueType{t.shape, realValue}, nil
}

func (a Affine) output(in []valueType) (valueType, error) {
	t := in[0]
	for _, p := range []struct {
		name   string
		values []float32
	}{{"scale", a.Scale}, {"bias", a.Bias}} {
		n := t.shape.C
		if len(p.values) == 1 {
			n = 1
		}
		if err := perChannel(p.name, p.values, n, true); err != nil {
			return t, err
		}
	}
	return valueType{t.shape, realValue}, nil
}

func (s Sign) output(in []valueType) (valueType, error) {
	if s.Zero != ZeroIsPlus && s.Zero != ZeroIsMinus {
		return in[0], errors.New("sign has no rule for 0: want ZeroIsPlus or ZeroIsMinus")
	}
	return valueType{in[0].shape, signValue}, nil
}

func (q Quantize) output(in []valueType) (valueType, error) {
	t := valueType{in[0].shape, realValue}
	if err := finite("threshold", q.Thresholds); err != nil {
		return t, err
	}
	return t, checkLevels(q.Low, q.Levels, q.Thresholds, t.shape.C)
}

// checkLevels tests levels and their thresholds, one list for all channels or one each.
func checkLevels(low, levels int, thresholds []float32, channels int) error {
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

func (ReLU) output(in []valueType) (valueType, error) {
	return valueType{in[0].shape, realValue}, nil
}

func (p MaxPool) output(in []valueType) (valueType, error) {
	t := in[0]
	w := p.Window.normal()
	if err := w.checkPool(t.shape, maxSide); err != nil {
		return t, err
	}
	t.shape = w.Output(t.shape, t.shape.C)
	if t.kind == byteValue {
		t.kind = realValue
	}
	return t, nil
}

func (p AvgPool) output(in []valueType) (valueType, error) {
	t := in[0]
	w := p.Window.normal()
	if err := w.checkPool(t.shape, maxSide); err != nil {
		return t, err
	}
	return valueType{w.Output(t.shape, t.shape.C), realValue}, w.checkTaps()
}

func (p PReLU) output(in []valueType) (valueType, error) {
	t := in[0]
	n := t.shape.C
	if len(p.Slope) == 1 {
		n = 1
	}
	return valueType{t.shape, realValue}, perChannel("slope", p.Slope, n, false)
}

func (c Clip) output(in []valueType) (valueType, error) {
	return valueType{in[0].shape, realValue}, checkClip(c.Min, c.Max)
}

func (f Function) output(in []valueType) (valueType, error) {
	return valueType{in[0].shape, realValue}, f.Name.check()
}

func (Mul) output(in []valueType) (valueType, error) { return pairOutput(in) }
func (Min) output(in []valueType) (valueType, error) { return pairOutput(in) }
func (Max) output(in []valueType) (valueType, error) { return pairOutput(in) }

func pairOutput(in []valueType) (valueType, error) {
	return valueType{in[0].shape, realValue}, checkPair(in[0].shape, in[1].shape)
}

func (Concat) output(in []valueType) (valueType, error) {
	out := in[0]
	channels := int64(0)
	for _, t := range in {
		if t.shape.H != out.shape.H || t.shape.W != out.shape.W {
			return out, fmt.Errorf("heights or widths of %v and %v differ", out.shape, t.shape)
		}
		if channels += int64(t.shape.C); t.kind != signValue {
			out.kind = realValue
		}
	}
	if channels > maxChannels {
		return out, fmt.Errorf("%d channels, at most %d are allowed", channels, maxChannels)
	}
	out.shape.C = int(channels)
	return out, nil
}

func (c Channels) output(in []valueType) (valueType, error) {
	t := in[0]
	if err := checkIndex(c.Index, t.shape.C); err != nil {
		return t, err
	}
	if t.kind == byteValue || slices.Contains(c.Index, -1) {
		t.kind = realValue
	}
	t.shape.C = len(c.Index)
	return t, nil
}

func (Add) output(in []valueType) (valueType, error) {
	if in[0].shape != in[1].shape {
		return in[0], fmt.Errorf("shapes %v and %v differ", in[0].shape, in[1].shape)
	}
	return valueType{in[0].shape, realValue}, nil
}

func (Flatten) output(in []valueType) (valueType, error) {
	t := in[0]
	t.shape = Shape{1, 1, t.shape.Values()}
	return t, nil
}

func (Softmax) output(in []valueType) (valueType, error) {
	return valueType{in[0].shape, realValue}, nil
}
