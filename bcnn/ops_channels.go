package bcnn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
)

// Concat joins two or more layers of the same height and width along their
// channels.
type Concat struct{}

func (Concat) Kind() string              { return "concat" }
func (Concat) inputs() (least, most int) { return 2, maxChannels }

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

func (Concat) values(_ Shape, of []sets.Set) sets.Set {
	out := of[0]
	for _, s := range of[1:] {
		out = out.Or(s)
	}
	return out
}

// Channels picks channels: channel c of the output is channel Index[c] of the
// input, or all zeros where Index[c] is −1. Slices, padding and shuffles of
// channels are such.
type Channels struct {
	Index []int32
}

func (Channels) Kind() string              { return "channels" }
func (Channels) inputs() (least, most int) { return 1, 1 }

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

func (c Channels) values(_ Shape, of []sets.Set) sets.Set { return sets.Picked(of[0], 0, c.Index) }

// Check tests which of so many channels are picked.
func (c Channels) Check(channels int) error {
	for c, from := range c.Index {
		if from < -1 || int(from) >= channels {
			return fmt.Errorf("channel %d of the output is channel %d of an input with %d channels", c, from, channels)
		}
	}
	return nil
}

// Flatten makes a vector of all values, in NHWC order.
type Flatten struct{}

func (Flatten) Kind() string              { return "flatten" }
func (Flatten) inputs() (least, most int) { return 1, 1 }

func (Flatten) output(in []ValueType) (ValueType, error) {
	t := in[0]
	t.Shape = Shape{1, 1, t.Shape.Values()}
	return t, nil
}

func (Flatten) values(_ Shape, of []sets.Set) sets.Set { return of[0] }

// Transpose swaps columns and channels: of an input H×W×C the output is H×C×W, and
// y[h][c][w] = x[h][w][c].
type Transpose struct{}

func (Transpose) Kind() string              { return "transpose" }
func (Transpose) inputs() (least, most int) { return 1, 1 }

func (Transpose) output(in []ValueType) (ValueType, error) {
	t := in[0]
	t.Shape = t.Shape.Transposed()
	if t.Kind == ByteValue {
		t.Kind = RealValue
	}
	return t, nil
}

func (Transpose) values(_ Shape, of []sets.Set) sets.Set { return of[0] }

// Transposed returns the shape with columns and channels swapped.
func (s Shape) Transposed() Shape { return Shape{H: s.H, W: s.C, C: s.W} }

// TopK finds the K largest values among the channels of every pixel, the largest
// first; of equal ones the one of the first channel. A NaN counts as −∞. The output
// has K channels: which they are, or the values themselves. With K = 1 it is ArgMax.
type TopK struct {
	K      int
	Values bool
}

// maxTopK bounds K times the number of channels.
const maxTopK = 1 << 24

func (TopK) Kind() string              { return "topk" }
func (TopK) inputs() (least, most int) { return 1, 1 }

func (t TopK) output(in []ValueType) (ValueType, error) {
	shape, err := t.OutputShape(in[0].Shape)
	return ValueType{shape, RealValue}, err
}

func (TopK) values(Shape, []sets.Set) sets.Set { return sets.Unknown }

// OutputShape checks against the shape of the input and returns that of the output.
func (t TopK) OutputShape(in Shape) (Shape, error) {
	if t.K < 1 || t.K > in.C {
		return Shape{}, fmt.Errorf("K is %d, want 1 to the number of channels, %d", t.K, in.C)
	}
	if int64(t.K)*int64(in.C) > maxTopK {
		return Shape{}, errors.New("the product of K and the number of channels is more than 2²⁴")
	}
	in.C = t.K
	return in, nil
}
