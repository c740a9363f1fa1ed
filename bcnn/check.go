package bcnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Limits that keep a hostile description from claiming absurd memory: values
// of one tensor, its channels, and its rows and columns, which are also those
// of kernel, padding, stride and dilation.
const (
	maxValues   = 1 << 28
	maxChannels = 1 << 22
	maxSide     = 1 << 16
	maxName     = 256
)

type valueKind uint8

const (
	byteValue valueKind = iota // the network's uint8 input itself
	signValue                  // ±1
	realValue
)

// valueType is the type of a layer's output.
type valueType struct {
	shape Shape
	kind  valueKind
}

// Check reports whether the network is well formed: the graph is in order and
// wholly used, shapes fit, weights have the right lengths and finite values,
// names and labels are plain text: UTF-8 without control characters, separators
// of lines and characters that set the direction of writing. The error names
// the layer.
func (n *Network) Check() error {
	_, err := n.infer(budget.New(context.Background(), 0))
	return err
}

// Shapes returns the output shape of every layer.
func (n *Network) Shapes() ([]Shape, error) {
	types, err := n.infer(budget.New(context.Background(), 0))
	if err != nil {
		return nil, err
	}
	shapes := make([]Shape, len(types))
	for i, t := range types {
		shapes[i] = t.shape
	}
	return shapes, nil
}

// infer checks the network and returns the type of every layer's output. The
// budget grows by what the network's size allows, and is charged for the check.
func (n *Network) infer(b *budget.Budget) ([]valueType, error) {
	if n == nil {
		return nil, errors.New("no network")
	}
	spend := func(size int64) error {
		b.Grow(workPerByte * size)
		return b.Charge(size)
	}
	if err := spend(int64(len(n.Name))); err != nil {
		return nil, err
	}
	if err := checkText(n.Name); err != nil {
		return nil, fmt.Errorf("the network's name %w", err)
	}
	var largest int64
	values := 0
	for i, in := range n.Inputs() {
		if err := spend(int64(min(i, 1))*bytesOfLayer + in.Source.size()); err != nil {
			return nil, err
		}
		if err := in.check(); err != nil {
			return nil, fmt.Errorf("network %s: %s: %w", text.Quote(n.Name), inputName(i), err)
		}
		largest = max(largest, in.Shape.sides())
		if values += in.Shape.Values(); values > maxValues {
			return nil, fmt.Errorf("network %s: the inputs have more than %d values together", text.Quote(n.Name), maxValues)
		}
	}
	if len(n.Layers) == 0 {
		return nil, fmt.Errorf("network %s has no layers", text.Quote(n.Name))
	}
	types := make([]valueType, len(n.Layers))
	names := make(map[string]bool, len(n.Layers))
	used := make([]bool, len(n.Layers)) // by others, or as outputs
	for i, l := range n.Layers {
		fail := func(err error) ([]valueType, error) {
			return nil, fmt.Errorf("network %s: layer %d %s: %w", text.Quote(n.Name), i, text.Quote(l.Name), err)
		}
		if err := spend(l.size()); err != nil {
			return fail(err)
		}
		if err := checkText(l.Name); err != nil {
			return nil, fmt.Errorf("network %s: layer %d: the name %w", text.Quote(n.Name), i, err)
		}
		switch {
		case l.Name == "" || len(l.Name) > maxName:
			return fail(fmt.Errorf("the name must have 1 to %d bytes", maxName))
		case names[l.Name]:
			return fail(errors.New("another layer has this name"))
		case l.Op == nil:
			return fail(errors.New("no operation"))
		case reflect.TypeOf(l.Op).Kind() == reflect.Pointer: // perhaps a nil one
			return fail(fmt.Errorf("the operation is a pointer, %T", l.Op))
		}
		names[l.Name] = true
		in := make([]valueType, len(l.Inputs))
		for j, source := range l.Inputs {
			switch {
			case source <= NetworkInput && NetworkInput-source <= len(n.MoreInputs):
				in[j] = n.inputAt(NetworkInput - source).valueType()
			case source < 0 || source >= i:
				return fail(fmt.Errorf("input %d is layer %d, which is not an earlier one", j, source))
			default:
				if n.Layers[source].Op.Kind() == (Softmax{}).Kind() {
					return fail(errors.New("softmax must stand at the end"))
				}
				in[j] = types[source]
				used[source] = true
			}
		}
		if least, most := operands(l.Op); len(in) < least || len(in) > most {
			return fail(fmt.Errorf("%s has %d inputs, want %s", l.Op.Kind(), len(in), counted(least, most)))
		}
		t, err := l.Op.output(in)
		if err == nil {
			err = t.shape.check()
		}
		if err == nil {
			err = l.Source.check(t.shape)
		}
		if err != nil {
			return fail(err)
		}
		types[i] = t
		largest = max(largest, t.shape.sides())
	}
	if err := spend(largest); err != nil {
		return nil, err
	}
	if err := spend(8 * int64(len(n.Outputs))); err != nil {
		return nil, err
	}
	isOutput := make([]bool, len(n.Layers))
	values = 0
	for i, l := range n.OutputLayers() {
		if l < 0 || l >= len(n.Layers) || isOutput[l] {
			return nil, fmt.Errorf("network %s: output %d is layer %d, which does not exist or is an output already", text.Quote(n.Name), i, l)
		}
		isOutput[l] = true
		if values += types[l].shape.Values(); values > maxValues {
			return nil, fmt.Errorf("network %s: the outputs have more than %d values together", text.Quote(n.Name), maxValues)
		}
		used[l] = true
	}
	for i, u := range used {
		if !u {
			return nil, fmt.Errorf("network %s: layer %d %q: its output is not used", text.Quote(n.Name), i, n.Layers[i].Name)
		}
	}
	out := types[n.OutputLayers()[0]].shape
	if len(n.Labels) != 0 && len(n.Labels) != out.Values() {
		return nil, fmt.Errorf("network %s has %d labels for %d outputs", text.Quote(n.Name), len(n.Labels), out.Values())
	}
	for i, label := range n.Labels {
		if err := spend(int64(len(label))); err != nil {
			return nil, err
		}
		if err := checkText(label); err != nil {
			return nil, fmt.Errorf("network %s: label %d: %w", text.Quote(n.Name), i, err)
		}
	}
	return types, nil
}

// operands returns how many inputs an operation has, at least and at most.
func operands(op Op) (least, most int) {
	switch op.(type) {
	case Add, Mul:
		return 2, 2
	case Concat:
		return 2, maxChannels
	}
	return 1, 1
}

func counted(least, most int) string {
	if least < most {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprint(least)
}

// inputAt returns input number k.
func (n *Network) inputAt(k int) Input {
	if k == 0 {
		return n.Input
	}
	return n.MoreInputs[k-1]
}

// inputName is what input number k is called: the first "input", then "input 2".
func inputName(k int) string {
	if k == 0 {
		return "input"
	}
	return fmt.Sprintf("input %d", k+1)
}

func (in Input) valueType() valueType {
	if in.DType == Uint8 {
		return valueType{in.Shape, byteValue}
	}
	return valueType{in.Shape, realValue}
}

func (in Input) check() error {
	if in.DType != Uint8 && in.DType != Float32 {
		return fmt.Errorf("type is %v, want uint8 or float32", in.DType)
	}
	if in.Resize != 0 && (in.Resize < max(in.Shape.H, in.Shape.W) || in.Resize > maxSide) {
		return fmt.Errorf("resize %d is less than the crop of %v or absurd", in.Resize, in.Shape)
	}
	if err := in.Shape.check(); err != nil {
		return err
	}
	return in.Source.check(in.Shape)
}

func (s Shape) check() error {
	if s.H < 1 || s.W < 1 || s.C < 1 {
		return fmt.Errorf("shape %v is empty", s)
	}
	if s.H > maxSide || s.W > maxSide || s.C > maxChannels {
		return fmt.Errorf("shape %v is larger than %d×%d×%d", s, maxSide, maxSide, maxChannels)
	}
	if int64(s.H)*int64(s.W)*int64(s.C) > maxValues {
		return fmt.Errorf("shape %v has more than %d values", s, maxValues)
	}
	return nil
}

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
		return fmt.Errorf("a mean of %d taps, want at most %d", taps, MaxPoolTaps)
	}
	return nil
}

// checkFactor tests whether a product with so many factors is defined: they are
// as many as the values, or repeated over channels or pixels or both.
func checkFactor(values, factors Shape) error {
	pixels := factors.H == values.H && factors.W == values.W
	if !pixels && (factors.H != 1 || factors.W != 1) || factors.C != values.C && factors.C != 1 {
		return fmt.Errorf("%v values times %v", values, factors)
	}
	return nil
}

// checkIndex tests which of so many channels are picked.
func checkIndex(index []int32, channels int) error {
	for c, from := range index {
		if from < -1 || int(from) >= channels {
			return fmt.Errorf("channel %d is channel %d of %d", c, from, channels)
		}
	}
	return nil
}

func finite(what string, values []float32) error {
	const exponent = 0x7f800000 // all ones in infinities and NaNs alone
	for i, v := range values {
		if math.Float32bits(v)&exponent == exponent {
			return fmt.Errorf("%s[%d] is %v", what, i, v)
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
		return errors.New("weights are both of one kind and another: binary, integer, real")
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
		return t, fmt.Errorf("%d output channels", c.Out)
	case c.Groups < 0 || c.Out%groups != 0 || t.shape.C%groups != 0:
		return t, fmt.Errorf("%d groups do not divide %d input and %d output channels", c.Groups, t.shape.C, c.Out)
	case c.PadValue < -1 || c.PadValue > 1:
		return t, fmt.Errorf("padding value %d, want −1, 0 or +1", c.PadValue)
	case c.PadValue != 0 && c.Pad != (Padding{}) && (t.kind != signValue || c.Weights.real()):
		return t, fmt.Errorf("padding value %+d needs binary weights, or integer ones, on a binary input", c.PadValue)
	}
	if taps := int64(c.KH) * int64(c.KW) * int64(t.shape.C/groups); taps > maxValues {
		return t, fmt.Errorf("%d taps, want at most %d", taps, maxValues)
	}
	// Binary rows are one tap each, real ones run over all taps.
	rows, n := c.Out*c.KH*c.KW, t.shape.C/groups
	if int64(c.Out)*int64(c.KH)*int64(c.KW) > maxValues {
		return t, fmt.Errorf("more than %d kernel rows", maxValues)
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
		return t, fmt.Errorf("%d outputs", d.Out)
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
		return in[0], errors.New("sign has no rule for 0")
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
		return fmt.Errorf("%d levels from %d, want 2 to %d of magnitudes up to %d", levels, low, MaxLevels, MaxLevels)
	}
	n := levels - 1
	if len(thresholds) != n && int64(len(thresholds)) != int64(n)*int64(channels) {
		return fmt.Errorf("%d thresholds for %d levels and %d channels", len(thresholds), levels, channels)
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

func (Tanh) output(in []valueType) (valueType, error) {
	return valueType{in[0].shape, realValue}, nil
}

func (Mul) output(in []valueType) (valueType, error) {
	return valueType{in[0].shape, realValue}, checkFactor(in[0].shape, in[1].shape)
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
		return out, fmt.Errorf("%d channels, at most %d are possible", channels, maxChannels)
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
