package bcnn

import (
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// newBorder computes the border classes of a convolution on bits. It returns
// nil where a border of 0 bits (−1) is already right: padding of −1, or no
// padded tap.
func newBorder(c *ConvStep, in Shape) *Border {
	if c.PadValue == -1 || c.Pad == (Padding{}) {
		return nil
	}
	h, w, err := c.Window.output(in)
	if err != nil {
		return nil
	}
	rows := classify(h, c.KH, c.StrideH, c.DilationH, c.Pad.Top, in.H)
	cols := classify(w, c.KW, c.StrideW, c.DilationW, c.Pad.Left, in.W)
	if len(rows.spans) == 1 && len(cols.spans) == 1 {
		return nil
	}
	b := &Border{Row: rows.of, Col: cols.of, Rows: len(rows.spans), Cols: len(cols.spans)}
	b.Correction = make([]int32, b.Rows*b.Cols*c.Out)
	// A 0 bit adds −w; 0 instead of it is +w, and +1 is +2w.
	factor := int32(c.PadValue + 1)
	group := in.C / c.Groups
	words := bits.Words(group)
	taps := make([]int32, c.KH*c.KW) // Σ w over the channels of a tap
	for o := range c.Out {
		var all int32
		for k := range taps {
			ones := 0
			for _, word := range c.Bits[(o*len(taps)+k)*words:][:words] {
				ones += mathbits.OnesCount64(word)
			}
			taps[k] = int32(2*ones - group)
			all += taps[k]
		}
		for r, rs := range rows.spans {
			for k, cs := range cols.spans {
				inside := int32(0)
				for ky := rs.from; ky < rs.to; ky++ {
					for kx := cs.from; kx < cs.to; kx++ {
						inside += taps[ky*c.KW+kx]
					}
				}
				b.Correction[(r*b.Cols+k)*c.Out+o] = factor * (all - inside)
			}
		}
	}
	return b
}

// span is the range of taps of a window that lie inside the image.
type span struct{ from, to int }

type spanClasses struct {
	of    []int  // class of each output position
	spans []span // taps inside, per class; class 0 has all of them
}

func classify(out, kernel, stride, dilation, pad, in int) spanClasses {
	s := spanClasses{of: make([]int, out), spans: []span{{0, kernel}}}
	index := map[span]int{s.spans[0]: 0}
	for y := range out {
		start := y*stride - pad
		sp := span{}
		for sp.from < kernel && start+sp.from*dilation < 0 {
			sp.from++
		}
		for sp.to = sp.from; sp.to < kernel && start+sp.to*dilation < in; sp.to++ {
		}
		class, ok := index[sp]
		if !ok {
			class = len(s.spans)
			index[sp] = class
			s.spans = append(s.spans, sp)
		}
		s.of[y] = class
	}
	return s
}
