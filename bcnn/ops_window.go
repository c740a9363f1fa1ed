package bcnn

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
)

// Window is the geometry of a sliding window. Strides and dilations of 0 mean 1.
type Window struct {
	KH, KW               int
	StrideH, StrideW     int
	DilationH, DilationW int
	Pad                  Padding
}

// Padding is the number of rows and columns added on each side.
type Padding struct {
	Top, Left, Bottom, Right int
}

// Output returns the shape of what the window makes of an image of the given
// shape, with so many channels. Along each side it has
//
//	⌊(size + padding − dilation·(kernel − 1) − 1)/stride⌋ + 1
//
// positions, and none where it does not fit.
func (w Window) Output(in Shape, channels int) Shape {
	w = w.Normal()
	positions := func(size, kernel, stride, dilation int) int {
		span := int64(dilation) * int64(kernel-1)
		if int64(size) <= span {
			return 0
		}
		return (size-int(span)-1)/stride + 1
	}
	return Shape{
		H: positions(in.H+w.Pad.Top+w.Pad.Bottom, w.KH, w.StrideH, w.DilationH),
		W: positions(in.W+w.Pad.Left+w.Pad.Right, w.KW, w.StrideW, w.DilationW),
		C: channels,
	}
}

// Normal returns the window with strides and dilations of 0 made 1.
func (w Window) Normal() Window {
	for _, p := range []*int{&w.StrideH, &w.StrideW, &w.DilationH, &w.DilationW} {
		if *p == 0 {
			*p = 1
		}
	}
	return w
}

// ReadsPadding reports whether any position of the window has a padded tap; out
// is its Output.
func (w Window) ReadsPadding(in, out Shape) bool {
	return w.Pad.Top > 0 || w.Pad.Left > 0 ||
		(out.H-1)*w.StrideH+(w.KH-1)*w.DilationH >= in.H ||
		(out.W-1)*w.StrideW+(w.KW-1)*w.DilationW >= in.W
}

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

// MaxPool takes the maximum over windows. Padded positions never win; dilation
// is not supported.
type MaxPool struct {
	Window
}

func (MaxPool) Kind() string              { return "maxpool" }
func (MaxPool) inputs() (least, most int) { return 1, 1 }

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

func (MaxPool) values(_ Shape, of []sets.Set) sets.Set { return of[0] }

// AvgPool takes the mean over windows of at most MaxPoolTaps taps. Padded
// positions add nothing; they count as taps only where CountPadding is set. A
// global pool has a window of the size of its input. Dilation is not supported.
type AvgPool struct {
	Window
	CountPadding bool
}

func (AvgPool) Kind() string              { return "avgpool" }
func (AvgPool) inputs() (least, most int) { return 1, 1 }

func (p AvgPool) output(in []ValueType) (ValueType, error) {
	t := in[0]
	w := p.Window.Normal()
	if err := w.CheckPool(t.Shape, maxSide); err != nil {
		return t, err
	}
	return ValueType{w.Output(t.Shape, t.Shape.C), RealValue}, w.CheckTaps()
}

func (p AvgPool) values(_ Shape, of []sets.Set) sets.Set {
	return sets.Means(of[0], sets.Side{Size: p.KH, Before: p.Pad.Top, After: p.Pad.Bottom}, sets.Side{Size: p.KW, Before: p.Pad.Left, After: p.Pad.Right}, p.CountPadding)
}
