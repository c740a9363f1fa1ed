package conv

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// minStrip is the least number of columns of a strip, the most that a kernel takes.
const minStrip = 12

// floatSource computes float32 sums in the order of the numeric contract, over
// the taps inside the image only: adding a product of 0 would turn −0 into +0.
type floatSource struct {
	window
	set     *kern.Set
	in      *bcnn.Tensor
	bytes   *kern.End            // makes values of what bytes are as float32; nil where the input is values
	weights []*kern.FloatWeights // of each group, or of all channels for each
	all     *kern.FloatWeights   // of groups of few inputs together, where there are kernels; nil for none
	columns *kern.ColumnWeights  // instead of weights, where a tile is computed column by column
	each    bool                 // every channel has a filter of its own
	rowRuns bool                 // a row of a window is one run
	outs    int                  // output channels of a group
	stride  int                  // of the sums of a pixel
	end     kern.End             // of sums that are outputs
	rest    activation.Rest
	out     *bcnn.Tensor // where they go; nil where sums are not outputs

	// strip is the number of columns that are computed from the first to the last
	// row, where a channel is made of one; 0 for rows one after the other.
	strip int

	// Pixels from from to before to of a row have all columns of their windows
	// inside the image.
	from, to int
}

func newFloatSource(c *schedule.Context, op *plan.Conv, in bcnn.DType, w window, stride int) *floatSource {
	f := &floatSource{window: w, set: c.Set, in: c.In, stride: stride, outs: op.Out / op.Groups}
	f.rowRuns = w.groups == 1 && w.DilationW == 1
	f.from = num.CeilDiv(w.Pad.Left, w.StrideW)
	f.to = 0
	if last := w.image.W - (w.KW-1)*w.DilationW - 1 + w.Pad.Left; last >= 0 {
		f.to = last/w.StrideW + 1
	}
	f.each = w.groups > 1 && w.group == 1 && f.outs == 1
	if in == bcnn.Uint8 {
		f.bytes = levelsOf(c.Least, w.image.W*w.image.C)
	}
	groups, outs := w.groups, f.outs
	if f.each {
		groups, outs = 1, op.Out
	}
	if op.Threshold == nil {
		f.out, f.end, f.rest = c.Out, activation.End(op), activation.RestOf(c.Set, op.Activation)
		f.stride = op.Out
		if f.each {
			f.strip = w.strip(c.L1 / 4 / op.Out)
		}
	}
	taps := w.taps()
	if f.downColumns(op) {
		if c.Reserve(num.Product(4, kern.ColumnWeightsLen(c.Set, outs, taps)-len(op.F32))) {
			f.columns = schedule.Share(c, func() *kern.ColumnWeights {
				weights := kern.NewColumnWeights(c.Set, outs, taps, op.Bias)
				for o := range outs {
					if c.Ended() {
						return nil
					}
					weights.Put(o, op.F32[o*taps:][:taps])
				}
				return weights
			})
		}
		return f
	}
	// Weights may fill registers in part only.
	if !c.Reserve(num.Product(4, num.Product(groups, kern.FloatWeightsLen(c.Set, outs, taps))-len(op.F32))) {
		return f // the plan is too large
	}
	f.weights = schedule.Share(c, func() []*kern.FloatWeights {
		var all []*kern.FloatWeights
		for g := range groups {
			weights := packFloats(c, op, outs, taps, g*outs)
			if weights == nil {
				return nil
			}
			all = append(all, weights)
		}
		return all
	})
	together := kern.FloatPatches{Pixels: math.MaxInt, Slide: w.KW, Stride: w.StrideW}
	if groups > 1 && c.Set.FMAGroups != nil && c.Set.Groups(&together, w.group, outs, op.Out) &&
		c.Reserve(num.Product(4, kern.FloatWeightsLen(c.Set, op.Out, taps))) {
		f.all = schedule.Share(c, func() *kern.FloatWeights { return packFloats(c, op, op.Out, taps, 0) })
	}
	return f
}

// strip returns the number of columns whose inputs, and outputs of a row, are so many pixels.
func (w *window) strip(pixels int) int {
	if w.StrideH > 1 { // there is less to find again than a longer run of memory gains
		return w.cols
	}
	pixels -= w.KH * ((w.KW-1)*w.DilationW + 1 - w.StrideW)
	return max(pixels/(w.KH*w.StrideW+1), minStrip)
}

// levelsOf returns what makes levels of a row of n bytes, of which 0 stands for the least.
func levelsOf(least, n int) *kern.End {
	if least == 0 {
		return &kern.End{}
	}
	return &kern.End{Scale: slices.Repeat([]float32{1}, n), Shift: slices.Repeat([]float32{float32(least)}, n)}
}

// packFloats lays out the weights of so many outputs, from first on.
func packFloats(c *schedule.Context, op *plan.Conv, outs, taps, first int) *kern.FloatWeights {
	weights := kern.NewFloatWeights(c.Set, outs, taps, op.Bias[first:][:outs])
	for o := range outs {
		if c.Ended() {
			return nil
		}
		weights.Put(o, op.F32[(first+o)*taps:][:taps])
	}
	return weights
}

// downColumns reports whether the set has a kernel that goes down columns of such
// windows: it keeps the sums of all rows that a row of the input belongs to.
func (f *floatSource) downColumns(op *plan.Conv) bool {
	half := f.KH / 2
	return f.each && f.out != nil && op.Out >= f.set.FloatLanes && f.KH == f.KW && f.set.Columns(f.KH, f.stride) &&
		f.StrideH == 1 && f.StrideW == 1 && f.DilationH == 1 && f.DilationW == 1 && f.Pad.Top <= half && f.Pad.Left <= half &&
		f.rows <= f.image.H+f.Pad.Top-half && f.cols <= f.image.W+f.Pad.Left-half
}

func (f *floatSource) size(rows, pixels int) tiles.Size {
	need := tiles.Size{Runs: f.KH}
	if !f.rowRuns {
		need.Runs = num.Product(f.KH, f.KW)
	}
	if f.out == nil {
		need.Floats = num.Product(pixels, f.stride)
	}
	if f.bytes != nil {
		height, _ := f.span(rows)
		need.Values = num.Product(min(height, f.image.H), f.image.W, f.image.C)
	}
	return need
}

func (f *floatSource) prepare(s *tiles.Scratch, image, first, rows int) {
	s.Image, s.Base, s.Rows = image, first, rows
	if f.bytes == nil {
		return
	}
	height, _ := f.span(rows)
	top, row := first*f.StrideH-f.Pad.Top, f.image.W*f.image.C
	for y := max(top, 0); y < min(top+height, f.image.H) && !f.interrupted(s); y++ {
		at := (image*f.image.H + y) * row
		values := s.Values[at-f.first(s):][:row]
		f.set.Floats(values, f.in.U8[at:][:row])
		if f.bytes.Scale != nil {
			f.set.ScaleFloat(values, row, values, row, row, 1, *f.bytes)
		}
	}
}

// first returns where in the tensor the first value is that tiles have in their memory.
func (f *floatSource) first(s *tiles.Scratch) int {
	return (s.Image*f.image.H + max(s.Base*f.StrideH-f.Pad.Top, 0)) * f.image.W * f.image.C
}

// input returns the values of the tensor from the given one on.
func (f *floatSource) input(s *tiles.Scratch, at int) []float32 {
	switch {
	case f.bytes != nil:
		return s.Values[at-f.first(s):]
	case s.Source >= 0:
		return s.Made[at-s.Source:]
	}
	return f.in.F32[at:]
}

func (f *floatSource) sums(s *tiles.Scratch, y, x, pixels, channel, outs int) {
	if f.columns != nil {
		if y == 0 && x == 0 {
			f.tile(s)
		}
		return
	}
	inside := f.rowsInside(s)
	if f.out != nil && y == 0 && x == 0 {
		f.sides(s, inside, channel, outs)
		if f.strip > 0 {
			f.strips(s, inside)
		}
	}
	for first, end := x, x+pixels; x < end; {
		// Pixels with the same taps inside the image.
		n, border := 1, x < f.from || x >= f.to
		if !border {
			n = min(end, f.to) - x
		}
		switch {
		case f.out == nil:
			f.patches(s, y, x, n, f.StrideW*f.image.C)
			f.compute(s, s.Floats[(x-first)*f.stride:], f.stride, channel, outs)
		case !border && f.strip == 0 || y < inside.from || y >= inside.to: // not one of columns or strips
			f.patches(s, y, x, n, f.StrideW*f.image.C)
			f.compute(s, f.output(s, y, x, channel), f.stride, channel, outs)
		}
		x += n
	}
}

// span is a range of rows.
type span struct{ from, to int }

// rowsInside returns the prepared rows all of whose taps are inside the image.
func (f *floatSource) rowsInside(s *tiles.Scratch) span {
	last := f.image.H - (f.KH-1)*f.DilationH - 1 + f.Pad.Top
	if last < 0 {
		return span{}
	}
	from := max(num.CeilDiv(f.Pad.Top, f.StrideH)-s.Base, 0)
	return span{from, max(min(last/f.StrideH+1-s.Base, s.Rows), from)}
}

// tile computes the rows of a tile, column by column.
func (f *floatSource) tile(s *tiles.Scratch) {
	at := &s.Columns
	top, row := s.Base-f.Pad.Top, f.image.W*f.image.C
	bottom := top + s.Rows + f.KH - 1
	*at = kern.FloatColumns{
		Taps: f.KH, Pixels: f.cols, Rows: min(bottom, f.image.H) - max(top, 0), Step: f.image.C, RowStep: row,
		DstStep: f.stride, DstRow: f.cols * f.stride,
		Above: max(-top, 0), Below: max(bottom-f.image.H, 0), Left: f.Pad.Left, Right: max(f.cols-f.Pad.Left+f.KW-1-f.image.W, 0),
	}
	dst := f.output(s, 0, 0, 0)
	f.set.FMAColumns(dst, f.input(s, (s.Image*f.image.H+max(top, 0))*row), at, f.columns, f.end)
	f.rest.Do(dst, f.stride, f.groups, s.Rows*f.cols)
}

// sides computes the pixels at the left and the right border, those of all rows
// one after the other.
func (f *floatSource) sides(s *tiles.Scratch, rows span, channel, outs int) {
	if rows.from == rows.to {
		return
	}
	for x := 0; x < f.cols; x++ {
		if x == f.from {
			x = max(f.to, x)
		}
		if x >= f.cols {
			break
		}
		f.patches(s, rows.from, x, rows.to-rows.from, f.StrideH*f.image.W*f.image.C)
		f.compute(s, f.output(s, rows.from, x, channel), f.cols*f.stride, channel, outs)
	}
}

// strips computes the pixels that have all taps inside the image, so many columns at
// a time, from the last row to the first: of the rows of a window all but one are in the
// cache then, and the last ones were written last by the step before.
func (f *floatSource) strips(s *tiles.Scratch, rows span) {
	if rows.from == rows.to || f.from >= f.to {
		return
	}
	n := num.CeilDiv(f.to-f.from, num.CeilDiv(f.to-f.from, f.strip))
	for x := f.from; x < f.to; x += n {
		f.patches(s, rows.to-1, x, min(n, f.to-x), f.StrideW*f.image.C)
		for y := rows.to - 1; y >= rows.from; y-- {
			f.compute(s, f.output(s, y, x, 0), f.stride, 0, f.groups)
			s.Patch -= f.StrideH * f.image.W * f.image.C
		}
	}
}

// output returns the outputs from the pixel (y, x) on.
func (f *floatSource) output(s *tiles.Scratch, y, x, channel int) []float32 {
	return s.Out(f.out.F32, ((s.Image*f.rows+s.Base+y)*f.cols+x)*f.stride+channel)
}

// compute computes the sums of the patches in hand, stride apart.
func (f *floatSource) compute(s *tiles.Scratch, dst []float32, stride, channel, outs int) {
	switch src := f.input(s, s.Patch); {
	case f.each:
		outs = f.groups
		f.set.FMAEach(dst, stride, src, &s.Patches, f.weights[0], f.end)
	case f.groups == 1:
		f.set.FMAPixels(dst, stride, src, &s.Patches, f.weights[0], channel, outs, f.end.From(channel))
	case f.all != nil && f.set.Groups(&s.Patches, f.group, f.outs, f.groups*f.outs):
		outs = f.groups * f.outs
		f.set.FMAGroups(dst, stride, src, &s.Patches, f.all, f.group, f.outs, f.end)
	default:
		outs = f.groups * f.outs
		for g, w := range f.weights {
			f.set.FMAPixels(dst[g*f.outs:], stride, src[g*f.group:], &s.Patches, w, 0, f.outs, f.end.From(g*f.outs))
		}
	}
	f.rest.Do(dst, stride, outs, s.Patches.Pixels)
}

// patches finds the patches of pixels from (y, x) on, step apart, which have the
// same taps inside the image.
func (f *floatSource) patches(s *tiles.Scratch, y, x, pixels, step int) {
	top, left := (s.Base+y)*f.StrideH-f.Pad.Top, x*f.StrideW-f.Pad.Left
	ky0, ky1 := num.Inside(top, f.KH, f.DilationH, f.image.H)
	kx0, kx1 := num.Inside(left, f.KW, f.DilationW, f.image.W)
	at := &s.Patches
	at.Pixels, at.Step, at.RunLen = pixels, step, f.group
	at.Runs = s.Runs[:0]
	if ky0 >= ky1 || kx0 >= kx1 { // no taps
		switch s.Patch = 0; {
		case f.bytes != nil:
			s.Patch = f.first(s)
		case s.Source >= 0:
			s.Patch = s.Source
		}
		return
	}
	for ky := ky0; ky < ky1; ky++ {
		row := (ky - ky0) * f.DilationH * f.image.W * f.image.C
		tap := (ky*f.KW + kx0) * f.group
		if f.rowRuns {
			at.Runs = append(at.Runs, kern.FloatRun{Src: row, Tap: tap})
			continue
		}
		for kx := range kx1 - kx0 {
			at.Runs = append(at.Runs, kern.FloatRun{Src: row + kx*f.DilationW*f.image.C, Tap: tap + kx*f.group})
		}
	}
	if f.rowRuns {
		at.RunLen *= kx1 - kx0
	}
	at.Slide, at.Stride = 0, 1
	switch step {
	case f.DilationW * f.image.C:
		at.Slide = kx1 - kx0
	case 2 * f.DilationW * f.image.C:
		at.Slide, at.Stride = kx1-kx0, 2
	}
	s.Patch = ((s.Image*f.image.H+top+ky0*f.DilationH)*f.image.W + left + kx0*f.DilationW) * f.image.C
}
