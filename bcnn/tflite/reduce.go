package tflite

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/roots"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
)

// reduce is MEAN, SUM, REDUCE_MAX or REDUCE_MIN: over heights, widths and channels, or groups of
// channels.
func (im *importer) reduce(o *schema.Operator) *value {
	v := checked(im.operand(o, 0), 0).undivided()
	try.Check(v.checkBounded())
	rank := v.rank
	axes := im.positions(o, rank)
	keep := o.Options.Uint8(0, 0) != 0
	if keep {
		im.ranked(o, rank, "keep_dims is true")
	} else {
		im.ranked(o, rank-len(axes), "keep_dims is false")
	}
	if v.typ == schema.Int8 {
		if v.layout != nil && len(v.layout.dims) > 4 {
			try.Fail(errQuantized)
		}
		v = im.settled(v)
	} else {
		try.Check(v.checkReal())
	}
	l := im.layout(v)
	if l.batch >= 0 && slices.Contains(axes, l.batch) {
		try.Failf("a reduction over dimension %d, the batch, is not supported", l.batch)
	}
	to, over, kept := l.reduced(axes, keep)
	if v.typ == schema.Int8 {
		y := im.reduce8(o, axes)
		return y.arranged(o, to)
	}
	window := bcnn.Window{KH: over[view.H], KW: over[view.W], StrideH: over[view.H], StrideW: over[view.W]}
	if window.KH != 1 && window.KH != v.shape.H || window.KW != 1 && window.KW != v.shape.W ||
		over[view.C] != 1 && over[view.C]*sizeOfView(view.View{kept}) != v.shape.C {
		try.Failf("a reduction over dimensions %v of %v is not supported, only over all of the height, the width or the channels, or groups of channels", axes, im.dims(v))
	}
	y := v.image()
	if window.KH > 1 || window.KW > 1 || over[view.C] == 1 {
		y = im.overPixels(o, y, window)
	}
	if over[view.C] > 1 {
		y = im.overChannels(o, y, kept)
	}
	return floats(y).arranged(o, to)
}

// reduced returns the layout that is left of l when the dimensions axes are reduced, and kept as
// dimensions of 1 or not; how many values of each axis become one; and the parts of channels that are
// left.
func (l layout) reduced(axes []int, keep bool) (to layout, over map[view.Axis]int, kept []view.Atom) {
	to = layout{batch: l.batch}
	over = map[view.Axis]int{view.H: 1, view.W: 1, view.C: 1}
	for i, d := range l.dims {
		reduced := slices.Contains(axes, i)
		for _, a := range d {
			switch {
			case reduced:
				over[a.Axis] *= a.Size
			case a.Axis == view.C:
				kept = append(kept, a)
			}
		}
		switch {
		case !reduced:
			to.dims = append(to.dims, d)
		case keep:
			to.dims = append(to.dims, nil)
		case i < l.batch:
			to.batch--
		}
	}
	if len(to.dims) == 0 {
		to.dims = view.View{nil} // the rank is that of the file
	}
	return to, over, kept
}

// positions returns the dimensions that a constant input lists, of a tensor of so many.
func (im *importer) positions(o *schema.Operator, rank int) []int {
	var axes []int
	for _, a := range im.integers(o, 1) {
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) {
			try.Failf("there is no dimension %d, its input has %d dimensions", a, rank)
		}
		if !slices.Contains(axes, int(a)) {
			axes = append(axes, int(a))
		}
	}
	return axes
}

// scaled multiplies by a number.
func (im *importer) scaled(o *schema.Operator, suffix string, v *value, by float32) *value {
	return im.affine(o, suffix, v, []float32{by}, nil)
}

// overPixels reduces all rows, all columns or both to one.
func (im *importer) overPixels(o *schema.Operator, v *value, window bcnn.Window) *value {
	shape := window.Output(v.shape, v.shape.C)
	switch o.Name {
	case "MEAN":
		return im.emit(o, "", bcnn.AvgPool{Window: window}, shape, v)
	case "SUM":
		y := im.emit(o, "/mean", bcnn.AvgPool{Window: window}, shape, v)
		return im.scaled(o, "", y, float32(window.KH*window.KW))
	case "REDUCE_MIN":
		v = im.scaled(o, "/minus", v, -1)
		y := im.emit(o, "/maximum", bcnn.MaxPool{Window: window}, shape, v)
		return im.scaled(o, "", y, -1)
	}
	return im.emit(o, "", bcnn.MaxPool{Window: window}, shape, v)
}

// overChannels reduces all channels that agree in the atoms kept to one, which then is in the place
// of each of them.
func (im *importer) overChannels(o *schema.Operator, v *value, kept []view.Atom) *value {
	groups := sizeOfView(view.View{kept})
	shape := v.shape
	shape.C = groups
	if o.Name == "REDUCE_MAX" || o.Name == "REDUCE_MIN" {
		if groups > 1 {
			try.Failf("a maximum or minimum of groups of channels is not supported, only of all")
		}
		if o.Name == "REDUCE_MIN" {
			v = im.scaled(o, "/minus", v, -1)
			y := im.emit(o, "/maximum", bcnn.TopK{K: 1, Values: true}, shape, v)
			return im.scaled(o, "", y, -1)
		}
		return im.emit(o, "", bcnn.TopK{K: 1, Values: true}, shape, v)
	}
	group := func(c int) int {
		at := 0
		for _, a := range kept {
			at = at*a.Size + c/a.Stride%a.Size
		}
		return at
	}
	size := v.shape.C / groups
	try.Check(im.budget.Charge(int64(16+4*len(kept)) * int64(v.shape.C)))
	if groups > 1 {
		order := try.Value(budget.List(im.budget, v.shape.C, func(i int) int32 { return int32(i) }))
		slices.SortStableFunc(order, func(a, b int32) int { return group(int(a)) - group(int(b)) })
		if !slices.IsSorted(order) {
			y := im.emit(o, "/groups", bcnn.Channels{Index: order}, v.shape, v)
			v = y
		}
	}
	ones := im.newFloats(v.shape.C)
	for c := range ones {
		ones[c] = 1
	}
	window := bcnn.Window{KH: 1, KW: 1}
	y := im.emit(o, "/sum", bcnn.Conv2D{Window: window, Out: groups, Groups: groups, Weights: bcnn.Weights{F32: ones}}, shape, v)
	if o.Name == "MEAN" {
		y = im.scaled(o, "", y, 1/float32(size))
	}
	if groups == 1 {
		return y
	}
	each := try.Value(budget.List(im.budget, v.shape.C, func(c int) int32 { return int32(group(c)) }))
	return im.emit(o, "/each", bcnn.Channels{Index: each}, v.shape, y)
}

// root is SQRT or RSQRT.
func (im *importer) root(o *schema.Operator) *value {
	v := im.real(o, 0)
	emit := func(suffix string, op bcnn.Op, in ...*value) *value {
		return im.emit(o, suffix, op, v.shape, in...)
	}
	if o.Name == "SQRT" {
		return floats(roots.Sqrt(emit, v))
	}
	return floats(roots.RSqrt(emit, v))
}

// reduce8 is a reduction of 8-bit values: over heights, widths and channels.
func (im *importer) reduce8(o *schema.Operator, axes []int) *value {
	v := im.moved(o, 0)
	window := bcnn.Window{KH: 1, KW: 1}
	shape := v.shape
	for _, a := range axes {
		switch dim(int64(a), v.rank) {
		case dimH:
			window.KH, shape.H = v.shape.H, 1
		case dimW:
			window.KW, shape.W = v.shape.W, 1
		case dimC:
			shape.C = 1
		default:
			try.Failf("a reduction over dimensions %v of 8-bit values of %v is not supported", axes, v.shape)
		}
	}
	window.StrideH, window.StrideW = window.KH, window.KW
	switch mean := o.Name == "MEAN" || o.Name == "SUM"; {
	case mean && shape.C == v.shape.C:
		return im.mean8(o, v, window, shape)
	case mean:
		return im.channelMean8(o, v, window, shape)
	}
	q := im.output8(o.Outputs[0])
	if q.scale != v.scale || q.zero != v.zero {
		try.Failf("its output has another scale or zero point than its input")
	}
	y := v
	if window.KH > 1 || window.KW > 1 || shape.C == v.shape.C {
		y = im.overPixels(o, y, window)
	}
	if shape.C != v.shape.C {
		y = im.overChannels(o, y, nil)
	}
	return as(v, y)
}

// channelMean8 is MEAN or SUM of 8-bit values over channels too: thresholds of their sums.
func (im *importer) channelMean8(o *schema.Operator, v *value, window bcnn.Window, shape bcnn.Shape) *value {
	q := im.output8(o.Outputs[0])
	n := int64(num.Product(window.KH, window.KW, v.shape.C))
	if n > maxMean {
		try.Failf("a mean or sum of %d 8-bit values is not supported, only of at most %d", n, maxMean)
	}
	level := meanLevels(o, v, q, n)
	thresholds := im.newFloats(steps8)
	im.steps8Of(thresholds, n*int64(math.MinInt8-v.zero), n*int64(math.MaxInt8-v.zero), level)
	try.Check(im.budget.Charge(n))
	ones := make([]int8, n)
	for i := range ones {
		ones[i] = 1
	}
	v = im.centred(o, v)
	y := im.emit(o, "/sum", bcnn.Conv2D{Window: window, Out: 1, Weights: bcnn.Weights{Int8: ones}}, shape, v)
	return im.integers8(o, y, thresholds, q)
}

// meanLevels returns the integers of the mean of n values, or of SUM, as a function of their sum.
func meanLevels(o *schema.Operator, v, q *value, n int64) func(sum int64) int64 {
	if o.Name == "SUM" {
		return sumLevels(v, q, n)
	}
	f := newFactor(float64(v.scale) / float64(q.scale))
	bits := 0
	for n>>(bits+1) > 0 && bits < 32 && bits < 31+f.exponent {
		bits++
	}
	f.fraction, f.exponent = f.fraction<<bits/n, f.exponent-bits
	f.fits(n * math.MaxUint8)
	limits := clamp{math.MinInt8, math.MaxInt8}
	return func(sum int64) int64 { return limits.of(f.of(sum, halvesAway) + int64(q.zero)) }
}

// sumLevels is meanLevels for SUM, which the interpreter rounds in float32 from the sum of the
// integers as they are stored.
func sumLevels(v, q *value, n int64) func(sum int64) int64 {
	if v.scale == q.scale && v.zero == q.zero {
		try.Failf("a sum of 8-bit values with the scale and zero point of its input is not supported, since TensorFlow Lite adds zero points there: convert the model without quantising it")
	}
	scale := v.scale / q.scale
	bias := float32(float32(float32(-v.zero)*scale) * float32(n))
	limits := clamp{math.MinInt8, math.MaxInt8}
	return func(sum int64) int64 {
		x := float32(float32(sum+n*int64(v.zero))*scale) + bias
		return limits.of(int64(math.Round(float64(x))) + int64(q.zero))
	}
}
