package bcnn

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Pixels makes an image of the pixels of another: the pixel in row y and column x is
// the one in row Rows[y] and column Cols[x] of the input, or has Fill in all channels
// where one of the two is −1. Crops, flips, resizing to the nearest pixel, rows and
// columns between those of the image, and padding by a constant, by reflection or by
// the pixel at the edge are such.
//
// Where BlockH·BlockW is more than 1, they are rows and columns of an image that the
// input's channels are spread over (depth to space): with C channels of the output,
// channel (i·BlockW + j)·C + c of the pixel in row y and column x is channel c of the
// one in row y·BlockH + i and column x·BlockW + j. Blocks of 0 mean 1.
type Pixels struct {
	Rows, Cols     []int32
	Fill           float32
	BlockH, BlockW int
}

func (Pixels) Kind() string              { return "pixels" }
func (Pixels) inputs() (least, most int) { return 1, 1 }

func (p Pixels) output(in []ValueType) (ValueType, error) {
	t := in[0]
	shape, err := p.Normal().OutputShape(t.Shape)
	if t.Shape = shape; t.Kind == ByteValue || !p.KeepsSigns() {
		t.Kind = RealValue
	}
	return t, err
}

func (p Pixels) values(_ Shape, of []sets.Set) sets.Set {
	return sets.Picked(of[0], p.Fill, p.Rows, p.Cols)
}

// Normal returns the layer with its defaults filled in.
func (p Pixels) Normal() Pixels {
	if p.BlockH == 0 && p.BlockW == 0 {
		p.BlockH, p.BlockW = 1, 1
	}
	return p
}

// Filled reports whether a position is outside the input.
func (p Pixels) Filled() bool {
	return slices.Contains(p.Rows, -1) || slices.Contains(p.Cols, -1)
}

// KeepsSigns reports whether ±1 stays ±1.
func (p Pixels) KeepsSigns() bool { return !p.Filled() || p.Fill == 1 || p.Fill == -1 }

// KeepsLevels reports whether values of several bits each stay what they are.
func (p Pixels) KeepsLevels() bool { return !p.Filled() && p.BlockH*p.BlockW == 1 }

// OutputShape checks against the shape of the input and returns that of the output.
func (p Pixels) OutputShape(in Shape) (Shape, error) {
	if err := finite("fill", []float32{p.Fill}); err != nil {
		return Shape{}, err
	}
	if p.BlockH < 1 || p.BlockW < 1 || in.C%num.Product(p.BlockH, p.BlockW) != 0 {
		return Shape{}, fmt.Errorf("blocks of %d×%d pixels do not divide %d channels", p.BlockH, p.BlockW, in.C)
	}
	out := Shape{H: len(p.Rows), W: len(p.Cols), C: in.C / (p.BlockH * p.BlockW)}
	if err := checkPositions("row", p.Rows, -1, num.Product(in.H, p.BlockH)); err != nil {
		return Shape{}, err
	}
	return out, checkPositions("column", p.Cols, -1, num.Product(in.W, p.BlockW))
}

// checkPositions tests rows or columns, which are from least on, of so many.
func checkPositions(what string, list []int32, least int32, size int) error {
	if len(list) == 0 {
		return fmt.Errorf("the list of %ss is empty", what)
	}
	for i, from := range list {
		if from < least || int(from) >= size {
			return fmt.Errorf("%s %d of the output is %s %d of an input with %d", what, i, what, from, size)
		}
	}
	return nil
}

// Resample makes sums of weighted pixels, of some rows and columns each: bilinear and
// bicubic resizing, means over areas of unequal size.
type Resample struct {
	Rows, Cols Taps
}

func (Resample) Kind() string              { return "resample" }
func (Resample) inputs() (least, most int) { return 1, 1 }

func (r Resample) output(in []ValueType) (ValueType, error) {
	shape, err := r.OutputShape(in[0].Shape)
	return ValueType{shape, RealValue}, err
}

func (r Resample) values(_ Shape, of []sets.Set) sets.Set {
	return sets.Weighted(of[0], r.Rows.Weight, r.Cols.Weight)
}

// Taps are the rows or columns that those of the output are made of: N for each,
// [output][N].
type Taps struct {
	N      int
	Index  []int32 // of the input
	Weight []float32
}

// check tests the taps along a dimension of the input and returns their number.
func (t Taps) check(what string, size int) (int, error) {
	if t.N < 1 || t.N > maxSide || len(t.Index)%t.N != 0 || len(t.Weight) != len(t.Index) {
		return 0, fmt.Errorf("%d taps, %d for each of the %ss, do not fit %d weights", len(t.Index), t.N, what, len(t.Weight))
	}
	if err := finite("weight", t.Weight); err != nil {
		return 0, err
	}
	return len(t.Index) / t.N, checkPositions(what, t.Index, 0, size)
}

// OutputShape checks against the shape of the input and returns that of the output.
func (r Resample) OutputShape(in Shape) (Shape, error) {
	h, err := r.Rows.check("row", in.H)
	if err != nil {
		return Shape{}, err
	}
	w, err := r.Cols.check("column", in.W)
	return Shape{H: h, W: w, C: in.C}, err
}
