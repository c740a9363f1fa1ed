package build

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// fewestTaps is how many weights a filter must have at least for two values of them to be
// no coincidence.
const fewestTaps = 5

// kindUnits is what finding one kind of border costs.
const kindUnits = 64

// twoValues returns weights that have two values in each filter as ±1, of which they are
// alpha·±1 + middle; signs is nil where there are others, up to the tolerance of the
// options, relative to alpha.
func (b *Builder) twoValues(rows []float32, out int) (signs, alpha, middle []float32, deviation float64, err error) {
	size := len(rows) / out
	if size < fewestTaps {
		return nil, nil, nil, 0, nil
	}
	if alpha, err = b.Floats(out); err == nil {
		middle, err = b.Floats(out)
	}
	if err != nil {
		return nil, nil, nil, 0, err
	}
	for o := range out {
		filter := rows[o*size:][:size]
		least, most := filter[0], filter[0]
		err := b.budget.Loop(size, func(lo, hi int) {
			for _, w := range filter[lo:hi] {
				least, most = min(least, w), max(most, w)
			}
		})
		if err != nil {
			return nil, nil, nil, 0, err
		}
		half := (float64(most) - float64(least)) / 2
		alpha[o], middle[o] = float32(half), float32((float64(most)+float64(least))/2)
		good := half-half == 0
		err = b.budget.Loop(size, func(lo, hi int) {
			for _, w := range filter[lo:hi] {
				off := min(float64(most)-float64(w), float64(w)-float64(least))
				if good = good && off <= b.options.WeightTolerance*half; off > 0 && half > 0 {
					deviation = max(deviation, off/half)
				}
			}
		})
		if err != nil || !good {
			return nil, nil, nil, 0, err
		}
		if o == 0 {
			if signs, err = b.Floats(len(rows)); err != nil {
				return nil, nil, nil, 0, err
			}
		}
		err = b.budget.Loop(size, func(lo, hi int) {
			for i, w := range filter[lo:hi] {
				if at := o*size + lo + i; float64(w)-float64(least) < float64(most)-float64(w) {
					signs[at] = -1
				} else {
					signs[at] = 1
				}
			}
		})
		if err != nil {
			return nil, nil, nil, 0, err
		}
	}
	return signs, alpha, middle, deviation, nil
}

// offset emits a layer whose weights or whose input have an offset that Weighted's own way
// has no place for; ok is false where it has.
func (b *Builder) offset(n *pb.Node, v *Value, of weights, rowLen int, bias []float32, shape bcnn.Shape, padded bool,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (y *Value, ok bool, err error) {
	if !v.Signs && !v.Levels || v.Pad != nil && v.Pad.Value != 0 {
		return nil, false, nil
	}
	around := v.Offset / v.gain()
	zeros := padded && around != 0 && (v.Levels || around != 1 && around != -1) // which are no value of the input
	if (of.integers != nil || of.packed != nil) && !zeros {
		return nil, false, nil
	}
	var alpha, middle []float32
	deviation := 0.0
	signs := of.rows
	if of.packed == nil {
		signs, alpha, middle, deviation, err = b.twoValues(of.rows, of.out)
		if err != nil || signs == nil && of.integers == nil {
			return nil, false, err
		}
	}
	rows := of.rows
	if of.packed == nil && signs != nil {
		of.rows, of.integers = signs, nil
	} else { // α times ±1 or integers
		deviation = of.deviation
		if middle, err = b.Floats(of.out); err == nil {
			alpha, err = b.Floats(of.out)
		}
		if err != nil {
			return nil, false, err
		}
		for o := range alpha {
			if alpha[o] = 1; len(of.alpha) > 0 {
				alpha[o] = of.alpha[o%len(of.alpha)]
			}
		}
	}
	of.alpha = nil
	y, err = b.shifted(n, v, rows, of, alpha, middle, rowLen, bias, shape, padded, build)
	if err == nil && deviation > 0 && b.err == nil {
		b.Nearly = append(b.Nearly, Nearly{n, deviation, true, y.Layer})
	}
	return y, true, err
}

// shifted emits a layer whose weights, rows, are alpha·t + middle with t of ±1 or integers, and whose input
// is g·s + o with s of ±1 or a few levels:
//
//	Σ (αt + m)·(gs + o) = αg·Σ ts + mg·Σ s + o·Σ (αt + m)
//
// The first two sums are a binary layer with one more filter, of ones, and exact.
// Where zeros around the image are no g·s + o, padded taps count in none of the sums, so
// that the last one is one number for each kind of border.
func (b *Builder) shifted(n *pb.Node, v *Value, rows []float32, of weights, alpha, middle []float32, rowLen int, bias []float32, shape bcnn.Shape, padded bool,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (*Value, error) {
	gain, offset := v.gain(), v.Offset
	plain := v.With(v.Node)
	plain.Gain, plain.Offset, plain.Pad = 0, 0, nil
	around, positional := float32(0), false
	if padded && offset != 0 {
		around = -offset / gain
		if positional = v.Levels || around != 1 && around != -1; positional {
			around = 0
		}
	}
	if around != 0 {
		plain.Pad = &Pending{Value: around, Node: n}
	}
	signs, out := of.rows, of.out
	size := len(rows) / out
	groups := 1
	ones := 0 // filters of ones, one for each group
	if slices.ContainsFunc(middle, func(m float32) bool { return m != 0 }) {
		if conv, ok := build(bcnn.Weights{}, nil, 0).(bcnn.Conv2D); ok {
			groups = max(conv.Groups, 1)
		}
		ones = groups
	}
	filters := signs
	if ones > 0 {
		var err error
		if filters, err = b.Floats(len(signs) + ones*size); err != nil {
			return nil, err
		}
		for g := range groups { // behind the others of their group
			from := signs[g*len(signs)/groups:][:len(signs)/groups]
			to := filters[g*len(filters)/groups:][:len(filters)/groups]
			for i := range to[copy(to, from):] {
				to[len(from)+i] = 1
			}
		}
	}
	of.rows, of.out = filters, out+ones
	if of.integers == nil {
		var err error
		if of.packed, _, _, err = b.binaryWeights(filters, of.out, rowLen); err != nil {
			return nil, err
		}
	}
	all := shape
	all.C += ones
	if err := b.CheckShape(all); err != nil {
		return nil, err
	}
	y, err := b.weighted(n, plain, of, nil, all, padded, func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op {
		switch op := build(w, bias, padValue).(type) {
		case bcnn.Conv2D:
			op.Out += ones
			return op
		case bcnn.Dense:
			op.Out += ones
			return op
		default:
			return op
		}
	})
	if err != nil {
		return nil, err
	}
	if b.err != nil {
		return y, nil
	}
	op := b.Net.Layers[y.Layer].Op
	if offset != 0 && !positional {
		// Σ ts + (o/g)·Σ t, before it is scaled, if that is an integer.
		of := weights{rows: filters, out: out + ones, packed: of.packed, integers: of.integers}
		sums, integers, err := b.filterSums(&of, float64(offset)/float64(gain))
		if err != nil {
			return nil, err
		}
		if integers {
			y = b.Emit(n, "/values", bcnn.Affine{Bias: sums}, all, y)
			offset = 0
		}
	}
	scale, err := b.Floats(out)
	if err != nil {
		return nil, err
	}
	shift, err := b.Floats(out)
	if err != nil {
		return nil, err
	}
	for o := range out {
		scale[o] = float32(float64(alpha[o]) * float64(gain))
		sum := 0.0
		if offset != 0 && !positional {
			err := b.budget.Loop(size, func(lo, hi int) {
				for _, w := range rows[o*size+lo : o*size+hi] {
					sum += float64(w)
				}
			})
			if err != nil {
				return nil, err
			}
		}
		if bias != nil {
			shift[o] = bias[o]
		}
		shift[o] += float32(sum * float64(offset))
	}
	if ones == 0 {
		y = b.Emit(n, "/scale", bcnn.Affine{Scale: scale, Bias: shift}, shape, y)
	} else if y, err = b.joinTotals(n, y, groups, scale, shift, middle, gain, shape); err != nil {
		return nil, err
	}
	if positional {
		borders, err := b.borders(n, y, v.Shape, op, rows, out, offset)
		if err != nil {
			return nil, err
		}
		y = b.Emit(n, "/borders", bcnn.Add{}, shape, y, borders)
	}
	return y, nil
}

// joinTotals takes apart what filters and, behind those of each group, a filter of ones have
// made: the sums are scaled and shifted, and the total of the group is added, times gain and
// a factor of each filter.
func (b *Builder) joinTotals(n *pb.Node, y *Value, groups int, scale, shift, factors []float32, gain float32, shape bcnn.Shape) (*Value, error) {
	index, err := b.indices(shape.C)
	if err != nil {
		return nil, err
	}
	total, err := b.indices(shape.C)
	if err != nil {
		return nil, err
	}
	middle, err := b.Floats(shape.C)
	if err != nil {
		return nil, err
	}
	size := shape.C / groups
	for o := range index {
		g := o / size
		index[o], total[o] = int32(o+g), int32((g+1)*size+g)
		middle[o] = float32(float64(factors[o]) * float64(gain))
	}
	sums := b.Emit(n, "/sums", bcnn.Channels{Index: index}, shape, y)
	sums = b.Emit(n, "/scale", bcnn.Affine{Scale: scale, Bias: shift}, shape, sums)
	y = b.Emit(n, "/totals", bcnn.Channels{Index: total}, shape, y)
	y = b.Emit(n, "/middle", bcnn.Affine{Scale: middle}, shape, y)
	return b.Emit(n, "/sum", bcnn.Add{}, shape, sums, y), nil
}

// borders is factor times the sum of the weights of each filter that lie inside the image,
// for every pixel of the output of a convolution. like is a value of as many pixels.
func (b *Builder) borders(n *pb.Node, like *Value, in bcnn.Shape, op bcnn.Op, rows []float32, out int, factor float32) (*Value, error) {
	conv, ok := op.(bcnn.Conv2D)
	if !ok {
		return nil, fmt.Errorf("padding of a %s", op.Kind())
	}
	type span struct{ from, to int } // of the taps inside
	// The kinds of rows or columns, and which kind each of them is.
	kinds := func(size, outs, k, stride, dilation, before int) (list []span, which []int32, err error) {
		if which, err = b.indices(outs); err != nil {
			return nil, nil, err
		}
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
		return list, which, b.budget.Charge(int64(outs) * int64(k+kindUnits))
	}
	w := conv.Window
	heights, rowKinds, err := kinds(in.H, like.Shape.H, w.KH, max(w.StrideH, 1), max(w.DilationH, 1), w.Pad.Top)
	if err != nil {
		return nil, err
	}
	widths, colKinds, err := kinds(in.W, like.Shape.W, w.KW, max(w.StrideW, 1), max(w.DilationW, 1), w.Pad.Left)
	if err != nil {
		return nil, err
	}
	// Sums of the channels of each tap.
	taps := w.KH * w.KW
	channels := len(rows) / out / taps
	if err := b.budget.Charge(8 * int64(out*taps)); err != nil {
		return nil, err
	}
	sums := make([]float64, out*taps)
	err = b.budget.Loop(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sums[i/channels] += float64(rows[i])
		}
	})
	if err != nil {
		return nil, err
	}
	small := bcnn.Shape{H: 1, W: 1, C: len(heights) * len(widths) * out}
	if err := b.CheckShape(small); err != nil {
		return nil, err
	}
	if err := b.budget.Charge(int64(small.C) * int64(taps)); err != nil {
		return nil, err
	}
	list, err := b.Floats(small.C)
	if err != nil {
		return nil, err
	}
	for i := range list {
		o, kind := i%out, i/out
		h, wd := heights[kind/len(widths)], widths[kind%len(widths)]
		sum := 0.0
		for ky := h.from; ky < h.to; ky++ {
			for kx := wd.from; kx < wd.to; kx++ {
				sum += sums[o*taps+ky*w.KW+kx]
			}
		}
		list[i] = float32(float64(factor) * sum)
	}
	zeros, err := b.indices(small.C)
	if err != nil {
		return nil, err
	}
	for i := range zeros {
		zeros[i] = -1
	}
	y, err := b.Pixels(n, "/pixel", like, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}})
	if err != nil {
		return nil, err
	}
	y = b.Emit(n, "/zeros", bcnn.Channels{Index: zeros}, small, y)
	y = b.Emit(n, "/constant", bcnn.Affine{Bias: list}, small, y)
	y, err = b.Pixels(n, "/image", y, bcnn.Pixels{Rows: rowKinds, Cols: colKinds, BlockH: len(heights), BlockW: len(widths)})
	if err != nil {
		return nil, err
	}
	y = y.With(n)
	y.View = like.View
	return y, nil
}
