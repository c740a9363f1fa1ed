package lower

import (
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// border computes the border classes of a convolution on bits from an image of
// shape in to one of shape out, before any pooling. It returns nil where a border
// of 0 bits is already right, padding of what they stand for or no padded tap, and
// there is no offset.
func (lo *lowering) border(c *plan.Conv, in, out bcnn.Shape) (*plan.Border, error) {
	padded := c.PadValue != c.ZeroBits() && c.Pad != (bcnn.Padding{})
	if !padded && c.Offset == nil {
		return nil, nil
	}
	if err := lo.hold(8 * (int64(out.H) + int64(out.W))); err != nil {
		return nil, err
	}
	rows, cols := oneClass(out.H, c.KH), oneClass(out.W, c.KW)
	if padded {
		rows = classify(out.H, c.KH, c.StrideH, c.DilationH, c.Pad.Top, in.H)
		cols = classify(out.W, c.KW, c.StrideW, c.DilationW, c.Pad.Left, in.W)
	}
	padded = len(rows.spans) > 1 || len(cols.spans) > 1
	if !padded && c.Offset == nil {
		return nil, nil
	}
	b := &plan.Border{Row: rows.of, Col: cols.of, Rows: len(rows.spans), Cols: len(cols.spans)}
	if err := lo.hold(4 * int64(b.Rows) * int64(b.Cols) * int64(c.Out)); err != nil {
		return nil, err
	}
	b.Correction = make([]int32, b.Rows*b.Cols*c.Out)
	if c.Offset != nil {
		for i := range b.Rows * b.Cols {
			copy(b.Correction[i*c.Out:], c.Offset)
		}
		if !padded {
			return b, nil
		}
	}
	factor := int32(c.PadValue - c.ZeroBits())
	group := in.C / c.Groups
	words := bits.Words(group)
	sums := newWindowSums(c.KH, c.KW)
	for o := range c.Out {
		if err := lo.Charge(int64(c.KH*c.KW*words + b.Rows*b.Cols)); err != nil {
			return nil, err
		}
		for ky := range c.KH {
			for kx := range c.KW {
				ones := 0
				for _, word := range c.Bits[((o*c.KH+ky)*c.KW+kx)*words:][:words] {
					ones += mathbits.OnesCount64(word)
				}
				sums.set(ky, kx, int32(2*ones-group)) // Σ w over the channels of the tap
			}
		}
		all := sums.of(span{0, c.KH}, span{0, c.KW})
		for i, r := range rows.spans {
			for j, k := range cols.spans {
				b.Correction[(i*b.Cols+j)*c.Out+o] += factor * (all - sums.of(r, k))
			}
		}
	}
	return b, nil
}

// windowSums gives the sum of any rectangle of a window's taps from four sums
// of those that begin at the first tap (a summed-area table), so that a border
// class costs the same whatever the window's size.
type windowSums struct {
	sums   []int32 // [row][column] of the first tap outside
	stride int
}

func newWindowSums(kh, kw int) windowSums {
	return windowSums{make([]int32, (kh+1)*(kw+1)), kw + 1}
}

// set enters a tap; those above and to the left of it must have been set.
func (s windowSums) set(ky, kx int, tap int32) {
	above, here := s.sums[ky*s.stride:], s.sums[(ky+1)*s.stride:]
	here[kx+1] = tap + here[kx] + above[kx+1] - above[kx]
}

func (s windowSums) of(rows, cols span) int32 {
	top, bottom := s.sums[rows.from*s.stride:], s.sums[rows.to*s.stride:]
	return bottom[cols.to] - bottom[cols.from] - top[cols.to] + top[cols.from]
}

// span is the range of taps of a window that lie inside the image.
type span struct{ from, to int }

type spanClasses struct {
	of    []int  // class of each output position
	spans []span // taps inside, per class; class 0 has all of them
}

// oneClass are positions without padded taps.
func oneClass(out, kernel int) spanClasses {
	return spanClasses{of: make([]int, out), spans: []span{{0, kernel}}}
}

// classify puts the positions of a window in a row of in values into classes of
// the same taps inside. From one position to the next both ends of the span can
// only fall: a class is a run of positions, and there are at most 2·kernel + 2.
func classify(out, kernel, stride, dilation, pad, in int) spanClasses {
	s := oneClass(out, kernel)
	for y := range out {
		from, to := num.Inside(y*stride-pad, kernel, dilation, in)
		sp := span{from, to}
		if sp == s.spans[0] {
			continue
		}
		if sp != s.spans[len(s.spans)-1] {
			s.spans = append(s.spans, sp)
		}
		s.of[y] = len(s.spans) - 1
	}
	return s
}
