package simplify

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
)

// sums returns the sums of each filter's weights without their α, times a factor, and whether
// all of that are integers that float32 holds.
func (l *layer) sums(form *weights.Form, factor float64) (sums []float32, integers bool) {
	sums, integers = make([]float32, l.rows.Out), true
	size := l.rows.Size()
	for o := range sums {
		sum := 0
		for i, w := range l.rows.Filter(o) {
			switch {
			case form.Int8 != nil:
				sum += int(form.Int8[o*size+i])
			case w > 0:
				sum++
			default:
				sum--
			}
		}
		x := factor * float64(sum)
		sums[o] = float32(x)
		integers = integers && x == math.Trunc(x) && math.Abs(x) <= 1<<24
	}
	return sums, integers
}

// shifted emits a layer whose weights are α·t + m, of t that are ±1 or integers, on g·q + o:
//
//	Σ (α·t + m)·(g·q + o) = α·g·Σ t·q + m·g·Σ q + o·Σ (α·t + m)
//
// The first two sums are a layer of integers with one more filter for each group of channels,
// of ones, and exact. Where zeros around the image are no g·q + o, padded taps count in none of
// the sums, so that the last one is one number for each kind of border. Weights are given as a
// form, or as two values; ok is false where there are too many kinds.
func (p *pass) shifted(l *layer, c scaled, form *weights.Form, two *weights.Two) (y int, ok bool, err error) {
	var middle []float32
	t := *l // with the filters that are summed
	if two != nil {
		middle = two.Middle
		t.rows.Values = two.Signs
		form = &weights.Form{Alpha: two.Alpha}
	}
	around, fits := float32(0), true
	if l.padded {
		around, fits = l.around(c)
		if !fits {
			around = 0
		}
	}
	ones := 0 // filters of ones
	if slices.ContainsFunc(middle, func(m float32) bool { return m != 0 }) {
		ones = l.groups()
		if t.rows, err = p.withOnes(t.rows, ones); err != nil {
			return 0, false, err
		}
	}
	sums := &weights.Form{Bits: form.Bits, Int8: form.Int8}
	if two != nil {
		if sums.Bits, err = weights.Pack(p.budget, t.rows); err != nil {
			return 0, false, err
		}
	}
	var edges *borders
	if !fits {
		if edges, err = p.borders(l, c.offset); edges == nil || err != nil {
			return 0, false, err
		}
	}
	t.out.C += ones
	y = p.emit("/sum", l.with(bcnn.Weights{Bits: sums.Bits, Int8: sums.Int8}, nil, int(around), ones), t.out, c.layer)
	offset := c.offset
	if offset != 0 && fits {
		// Σ t·q + (o/g)·Σ t, before it is scaled, if that is an integer.
		if list, integers := t.sums(sums, float64(offset)/float64(c.gain)); integers {
			y = p.emit("/values", bcnn.Affine{Bias: list}, t.out, y)
			offset = 0
		}
	}
	if !fits {
		offset = 0
	}
	scale, shift := l.scales(form.Alpha, c.gain, offset)
	if ones == 0 {
		y = p.emit("/scale", bcnn.Affine{Scale: scale, Bias: shift}, l.out, y)
	} else {
		y = p.withTotals(l, y, ones, scale, shift, middle, c.gain)
	}
	if !fits {
		y = p.emit("/borders", bcnn.Add{}, l.out, y, p.constant(l, edges, y))
	}
	return y, true, nil
}

// scales returns what the sums of each filter are multiplied by, and what is added: the bias, and the
// sum of its weights times an offset.
func (l *layer) scales(alpha []float32, gain, offset float32) (scale, shift []float32) {
	scale, shift = make([]float32, l.rows.Out), make([]float32, l.rows.Out)
	for o := range scale {
		scale[o] = float32(float64(alpha[o]) * float64(gain))
		sum := 0.0
		if offset != 0 {
			for _, w := range l.rows.Filter(o) {
				sum += float64(w)
			}
		}
		if len(l.bias) > 0 {
			shift[o] = l.bias[o]
		}
		shift[o] += float32(sum * float64(offset))
	}
	return scale, shift
}

// withOnes returns filters with one of ones behind those of each group.
func (p *pass) withOnes(rows weights.Rows, groups int) (weights.Rows, error) {
	size := rows.Size()
	filters, err := p.floats(len(rows.Values) + groups*size)
	if err != nil {
		return rows, err
	}
	for g := range groups {
		from := rows.Values[g*len(rows.Values)/groups:][:len(rows.Values)/groups]
		to := filters[g*len(filters)/groups:][:len(filters)/groups]
		for i := range to[copy(to, from):] {
			to[len(from)+i] = 1
		}
	}
	return weights.Rows{Values: filters, Out: rows.Out + groups, RowLen: rows.RowLen}, nil
}

// withTotals takes apart what filters and, behind those of each group, a filter of ones have
// made: the sums are scaled and shifted, and the total of the group is added, times gain and
// a factor of each filter.
func (p *pass) withTotals(l *layer, y, groups int, scale, shift, factors []float32, gain float32) int {
	index, total := make([]int32, l.out.C), make([]int32, l.out.C)
	middle := make([]float32, l.out.C)
	size := l.out.C / groups
	for o := range index {
		g := o / size
		index[o], total[o] = int32(o+g), int32((g+1)*size+g)
		middle[o] = float32(float64(factors[o]) * float64(gain))
	}
	sums := p.emit("/sums", bcnn.Channels{Index: index}, l.out, y)
	sums = p.emit("/scale", bcnn.Affine{Scale: scale, Bias: shift}, l.out, sums)
	y = p.emit("/totals", bcnn.Channels{Index: total}, l.out, y)
	y = p.emit("/middle", bcnn.Affine{Scale: middle}, l.out, y)
	return p.emit("/sum", bcnn.Add{}, l.out, sums, y)
}

// span are taps of a window inside the image, along one side.
type span struct{ from, to int }

// kindUnits is what finding one kind of border costs.
const kindUnits = 64

// kinds returns the kinds of rows or columns of an output, and which kind each of them is.
func (p *pass) kinds(size, outs, k, stride, dilation, before int) (list []span, which []int32, err error) {
	if err := p.budget.Charge(int64(outs) * int64(k+kindUnits)); err != nil {
		return nil, nil, err
	}
	which = make([]int32, outs)
	known := map[span]int32{}
	for i := range which {
		first := i*stride - before
		s := span{0, k}
		for s.from < k && first+s.from*dilation < 0 {
			s.from++
		}
		for s.to > s.from && first+(s.to-1)*dilation >= size {
			s.to--
		}
		at, ok := known[s]
		if !ok {
			at = int32(len(list))
			known[s], list = at, append(list, s)
		}
		which[i] = at
	}
	return list, which, nil
}

// borders are numbers for every pixel of an output: those of its row and its column, of
// which there are a few kinds.
type borders struct {
	rows, cols      []int32 // which kind each of them is
	heights, widths int     // how many kinds there are
	list            []float32
}

// mostEdges is how many numbers those of all kinds of borders are at the most.
const mostEdges = 1 << 22

// borders returns factor times the sum of the weights of each filter that lie inside the image;
// nil where that are too many numbers.
func (p *pass) borders(l *layer, factor float32) (*borders, error) {
	conv, ok := l.op.(bcnn.Conv2D)
	if !ok {
		return nil, nil
	}
	w, out := conv.Window, l.rows.Out
	heights, rows, err := p.kinds(l.in.H, l.out.H, w.KH, max(w.StrideH, 1), max(w.DilationH, 1), w.Pad.Top)
	if err != nil {
		return nil, err
	}
	widths, cols, err := p.kinds(l.in.W, l.out.W, w.KW, max(w.StrideW, 1), max(w.DilationW, 1), w.Pad.Left)
	if err != nil {
		return nil, err
	}
	taps, n := w.KH*w.KW, len(heights)*len(widths)*out
	if n > mostEdges {
		return nil, nil
	}
	if err := p.budget.Charge(int64(len(l.rows.Values)) + 8*int64(out*taps) + int64(n)*int64(taps+12)); err != nil {
		return nil, err
	}
	// Sums of the channels of each tap.
	sums := make([]float64, out*taps)
	channels := len(l.rows.Values) / len(sums)
	for i, x := range l.rows.Values {
		sums[i/channels] += float64(x)
	}
	b := &borders{rows: rows, cols: cols, heights: len(heights), widths: len(widths), list: make([]float32, n)}
	for i := range b.list {
		o, kind := i%out, i/out
		h, wd := heights[kind/len(widths)], widths[kind%len(widths)]
		sum := 0.0
		for ky := h.from; ky < h.to; ky++ {
			for kx := wd.from; kx < wd.to; kx++ {
				sum += sums[o*taps+ky*w.KW+kx]
			}
		}
		b.list[i] = float32(float64(factor) * sum)
	}
	return b, nil
}

// constant emits an image of the shape of the output that holds the numbers of borders. It is
// made of a layer, of which nothing is left.
func (p *pass) constant(l *layer, b *borders, from int) int {
	small := bcnn.Shape{H: 1, W: 1, C: len(b.list)}
	y := p.emit("/pixel", bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}}, bcnn.Shape{H: 1, W: 1, C: p.shape(from).C}, from)
	y = p.emit("/zeros", bcnn.Channels{Index: slices.Repeat([]int32{-1}, small.C)}, small, y)
	y = p.emit("/constant", bcnn.Affine{Bias: b.list}, small, y)
	return p.emit("/image", bcnn.Pixels{Rows: b.rows, Cols: b.cols, BlockH: b.heights, BlockW: b.widths}, l.out, y)
}
