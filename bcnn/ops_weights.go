package bcnn

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
)

// Weights are the weights of a Conv2D or Dense layer: binary (Bits), integers of 8 bits
// (Int8) or real (F32), one of them.
type Weights struct {
	// Bits holds ±1 weights, packed along the input channels:
	// [output][ky][kx][bits.Words(C/Groups)] for Conv2D,
	// [output][bits.Words(H·W·C)] for Dense.
	Bits []uint64
	// Int8 holds integer weights, such as ternary ones: [output][ky][kx][C/Groups]
	// for Conv2D, [output][H·W·C] for Dense.
	Int8 []int8
	// F32 holds real weights, in the same order.
	F32 []float32
}

// Binary reports whether the weights are ±1.
func (w Weights) Binary() bool { return w.Bits != nil }

// Real reports whether the weights are neither ±1 nor integers.
func (w Weights) Real() bool { return w.Bits == nil && w.Int8 == nil }

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

// values returns the sums of so many products, of which some may be with zeros around an image, and
// of a bias. Nothing is known of those with real weights.
func (w Weights) values(x sets.Set, taps int, zeros bool, bias []float32) sets.Set {
	if w.F32 != nil {
		return sets.Biased(sets.Unknown, bias)
	}
	return sets.Biased(sets.Sums(x, w.Int8, taps, zeros), bias)
}

// Weighted is an operation with weights: Conv2D or Dense.
type Weighted interface {
	Op
	// Filters returns the number of outputs, the weights and the bias.
	Filters() (out int, w Weights, bias []float32)
	// With returns the operation with other filters.
	With(out int, w Weights, bias []float32) Weighted
}

// Conv2D is a two-dimensional convolution (cross-correlation, as everywhere in
// the field). Output size: (in + pad − dilation·(k−1) − 1)/stride + 1, rounded
// down.
type Conv2D struct {
	Window
	Out    int // output channels
	Groups int // 0 means 1
	// PadValue is the value of padded taps: −1, 0 or +1. Only 0 is possible
	// where the input is not a Sign or Binarize layer.
	PadValue int
	Weights  Weights
	Bias     []float32 // per output channel, or empty
}

func (Conv2D) Kind() string              { return "conv2d" }
func (Conv2D) inputs() (least, most int) { return 1, 1 }

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

func (c Conv2D) values(in Shape, of []sets.Set) sets.Set {
	x, padded := of[0], c.Pad != (Padding{})
	if padded && c.PadValue != 0 {
		x = x.Or(sets.Single(float64(c.PadValue)))
	}
	return c.Weights.values(x, c.KH*c.KW*(in.C/max(c.Groups, 1)), padded && c.PadValue == 0, c.Bias)
}

// Filters returns the output channels, their weights and the bias.
func (c Conv2D) Filters() (out int, w Weights, bias []float32) { return c.Out, c.Weights, c.Bias }

// With returns the layer with other filters.
func (c Conv2D) With(out int, w Weights, bias []float32) Weighted {
	c.Out, c.Weights, c.Bias = out, w, bias
	return c
}

// Dense is a fully connected layer over all H·W·C values of its input, in
// NHWC order.
type Dense struct {
	Out     int
	Weights Weights
	Bias    []float32 // per output, or empty
}

func (Dense) Kind() string              { return "dense" }
func (Dense) inputs() (least, most int) { return 1, 1 }

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

func (d Dense) values(in Shape, of []sets.Set) sets.Set {
	return d.Weights.values(of[0], in.Values(), false, d.Bias)
}

// Filters returns the output channels, their weights and the bias.
func (d Dense) Filters() (out int, w Weights, bias []float32) { return d.Out, d.Weights, d.Bias }

// With returns the layer with other filters.
func (d Dense) With(out int, w Weights, bias []float32) Weighted {
	d.Out, d.Weights, d.Bias = out, w, bias
	return d
}
