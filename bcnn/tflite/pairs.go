package tflite

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
)

// pair is the two operands of an operator on values of FLOAT32, repeated as their dimensions say.
type pair struct {
	v, w *value    // images; w is nil where the other operand is constant
	list []float32 // the constant: one number, or one for each channel of v
	k    int       // which input is constant, −1 if none is

	// What the result is like.
	layout
	blocks blocks
	folded *bcnn.Shape // of which the channels of v, one pixel, are the values; nil if they are not
}

// pair returns the operands of an operator; one at least is computed.
func (im *importer) pair(o *schema.Operator) *pair {
	if len(o.Inputs) != 2 {
		try.Failf("it has %d inputs, want 2", len(o.Inputs))
	}
	return im.pairOf(o, 0, 1)
}

// pairOf is pair of two inputs.
func (im *importer) pairOf(o *schema.Operator, i, j int) *pair {
	for k, n := range []int{i, j} {
		if c := im.operand(o, n).constant; c != nil {
			v := im.numbers(o, i+j-n)
			p := im.withList(o, v, c)
			p.k = k
			return p
		}
	}
	v := im.numbers(o, i)
	w := im.numbers(o, j)
	return im.pairOfValues(o, v, w)
}

// numbers returns a computed input of real numbers, or of 0 and 1 for BOOL, in any layout.
func (im *importer) numbers(o *schema.Operator, i int) *value {
	v := checked(im.operand(o, i), i)
	try.Check(v.checkBounded())
	if v.typ != schema.Bool {
		try.Check(v.checkReal())
	}
	return v
}

// image returns a value without its layout, for operators that do the same everywhere.
func (v *value) image() *value {
	out := *v
	out.layout, out.blocks = nil, blocks{}
	return &out
}

// done gives the result of an operator on a pair its dimensions.
func (im *importer) done(o *schema.Operator, p *pair, y *value) *value {
	if p.folded != nil {
		y = im.reshaped(o, y, *p.folded)
	}
	out := floats(y)
	if p.blocks.some() {
		out.blocks, out.rank, out.by = p.blocks, len(p.dims), o
		return out
	}
	return out.arranged(o, p.layout)
}

// withList pairs a value with a constant.
func (im *importer) withList(o *schema.Operator, v *value, c *constant) *pair {
	list := c.floats(im.budget)
	p := &pair{v: v.image(), layout: im.layout(v), blocks: v.blocks}
	d := slices.Clone(c.dims)
	for len(d) > 0 && d[0] == 1 && len(d) > len(p.dims) {
		d = d[1:]
	}
	if len(d) > len(p.dims) {
		try.Failf("a constant of shape %v does not fit values of %v", c.dims, v.shape)
	}
	if p.v.shape.Values() == 1 && num.Product(d...) != 1 && !p.blocks.some() && len(d) > 1 && d[len(d)-1] != num.Product(d...) {
		return im.perValue(o, v, c, list)
	}
	at := len(p.dims) - len(d) // of the first dimension of the constant
	dims := slices.Clone(p.dims)
	for k, n := range d {
		size := view.Product(dims[at+k])
		switch {
		case n == 1 || n == size:
		case size != 1 || at+k == p.batch:
			try.Failf("a constant of shape %v does not fit values of %v", c.dims, v.shape)
		default:
			dims[at+k] = im.grown(o, p, dims, n, c)
		}
	}
	p.dims = dims
	if len(list) == 1 {
		p.list = list
		return p
	}
	if of, ok := im.listed(p, d, dims[at:], list); ok {
		p.list = of
		return p
	}
	return im.perValue(o, v, c, list)
}

// grown gives a value another dimension of n positions, at which it is the same: channels that are
// repeated, or repeated already.
func (im *importer) grown(o *schema.Operator, p *pair, dims view.View, n int, c *constant) []view.Atom {
	if p.v.shape.C == 1 {
		s := p.v.shape
		s.C = n
		p.v = im.repeated(o, p.v, s)
		return view.All(view.C, n)
	}
	var used []view.Atom
	for _, d := range dims {
		for _, a := range d {
			if a.Axis == view.C {
				used = append(used, a)
			}
		}
	}
	slices.SortFunc(used, func(a, b view.Atom) int { return a.Stride - b.Stride })
	from := 1
	for _, a := range append(used, view.Atom{Stride: p.v.shape.C, Size: 1}) {
		if gap := a.Stride / from; gap == n {
			return []view.Atom{{Axis: view.C, Stride: from, Size: n}}
		}
		from = a.Stride * a.Size
	}
	panic(try.Errorf("a constant of shape %v does not fit values of %v", c.dims, p.v.shape))
}

// listed returns the numbers of a constant with dimensions d by the channels of a value, over which
// the dimensions run; ok is false where they differ by pixel.
func (im *importer) listed(p *pair, d []int, dims view.View, list []float32) (of []float32, ok bool) {
	if n := len(d) - 1; len(list) == p.v.shape.C && d[n] == len(list) && slices.Equal(dims[n], view.All(view.C, d[n])) {
		return list, true
	}
	stride := strides(d, d)
	across := make([]int, len(d)) // strides over channels alone
	channels := false
	for k := range d {
		if view.Only(dims[k], view.C) && d[k] > 1 {
			across[k], channels = stride[k], true
		}
	}
	same := true
	im.walk(d, len(list), stride, across, func(_, at, base int) { same = same && list[at] == list[base] })
	if !same {
		return nil, false
	}
	if !channels {
		return list[:1], true
	}
	of = im.newFloats(p.v.shape.C)
	try.Check(im.budget.Loop(len(of), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			at := 0
			for k, s := range across {
				if s > 0 {
					at += s * view.Position(dims[k], c)
				}
			}
			of[c] = list[at]
		}
	}))
	return of, true
}

// perValue pairs a value with a constant that differs by pixel: of one pixel whose channels are all
// values.
func (im *importer) perValue(o *schema.Operator, v *value, c *constant, list []float32) *pair {
	if v.blocks.some() || im.batch != 1 {
		try.Failf("a constant of shape %v with different values per pixel is not supported here, only per channel", c.dims)
	}
	v = im.settled(v)
	s := try.Value(im.shape(alignedDims(c.dims, max(v.rank, 1))))
	if s.Values() != len(list) || v.shape != s && v.shape.Values() != 1 {
		try.Failf("a constant of shape %v with different values per pixel does not fit values of %v", c.dims, v.shape)
	}
	vector := bcnn.Shape{H: 1, W: 1, C: s.Values()}
	p := &pair{list: list, folded: &s, layout: layout{imageDims(s, v.rank), im.layout(v).batch}}
	switch {
	case v.shape == vector:
		p.v = v.image()
	case v.shape.Values() == 1:
		p.v = im.repeated(o, v, vector)
	default:
		p.v = im.emit(o, "/flat", bcnn.Flatten{}, vector, v)
	}
	return p
}

// alignedDims are dimensions with ones in front.
func alignedDims(d []int, rank int) []int {
	for len(d) > rank && d[0] == 1 {
		d = d[1:]
	}
	return append(slices.Repeat([]int{1}, max(0, rank-len(d))), d...)
}

// pairOfValues lines up two values at their last dimensions.
func (im *importer) pairOfValues(o *schema.Operator, v, w *value) *pair {
	if v.blocks != w.blocks {
		try.Failf("one of its inputs lies between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, the other does not")
	}
	p := &pair{k: -1, blocks: v.blocks}
	ok := im.lineUp(p, v, w)
	if !ok && (v.layout != nil || w.layout != nil) {
		v, w = im.settled(v), im.settled(w)
		ok = im.lineUp(p, v, w)
	}
	if !ok {
		try.Failf("values of shapes %v and %v cannot be combined", im.dims(v), im.dims(w))
	}
	return p
}

func (im *importer) lineUp(p *pair, v, w *value) bool {
	a, b := im.layout(v), im.layout(w)
	n := max(len(a.dims), len(b.dims))
	lift := func(l layout) layout {
		k := n - len(l.dims)
		if l.batch >= 0 {
			l.batch += k
		}
		return layout{append(make(view.View, k), l.dims...), l.batch}
	}
	a, b = lift(a), lift(b)
	p.layout = layout{make(view.View, n), max(a.batch, b.batch)}
	if a.batch >= 0 && b.batch >= 0 && a.batch != b.batch {
		return false
	}
	var left, right []view.Atom // of dimensions that only one of them has
	for i := range n {
		x, y := a.dims[i], b.dims[i]
		switch {
		case slices.Equal(x, y), len(y) == 0:
			p.dims[i] = x
		case len(x) == 0:
			p.dims[i] = y
		default:
			return false
		}
		if len(y) == 0 {
			left = append(left, x...)
		}
		if len(x) == 0 {
			right = append(right, y...)
		}
	}
	if meet(left, b.dims) || meet(right, a.dims) {
		return false
	}
	p.v, p.w = v.image(), w.image()
	for _, d := range []int{dimH, dimW, dimC} {
		if x, y := v.size(d), w.size(d); x != y && x != 1 && y != 1 {
			return false
		}
	}
	return true
}

// meet reports whether atoms cover a part of those of a view.
func meet(atoms []view.Atom, of view.View) bool {
	for _, x := range atoms {
		for _, d := range of {
			for _, y := range d {
				if x.Axis == y.Axis && x.Stride < y.Stride*y.Size && y.Stride < x.Stride*x.Size {
					return true
				}
			}
		}
	}
	return false
}

// shape is that of the result of two values.
func (p *pair) shape() bcnn.Shape {
	if p.w == nil {
		return p.v.shape
	}
	a, b := p.v.shape, p.w.shape
	return bcnn.Shape{H: max(a.H, b.H), W: max(a.W, b.W), C: max(a.C, b.C)}
}

// alike repeats both values to the shape of the result.
func (im *importer) alike(o *schema.Operator, p *pair) {
	p.v = im.repeated(o, p.v, p.shape())
	p.w = im.repeated(o, p.w, p.shape())
}

// fitting orders two values so that the second one may be repeated over the first, as Mul takes
// them, and repeats the first where neither has the shape of the result.
func (im *importer) fitting(o *schema.Operator, v, w *value, s bcnn.Shape) (a, b *value) {
	if v.shape != s && w.shape == s {
		v, w = w, v
	}
	v = im.repeated(o, v, s)
	if bcnn.CheckPair(s, w.shape) != nil {
		w = im.repeated(o, w, s)
	}
	return v, w
}

// repeated repeats a value over rows, columns or channels of which it has one.
func (im *importer) repeated(o *schema.Operator, v *value, s bcnn.Shape) *value {
	out := v.image()
	zeros := func(n int) []int32 {
		return try.Value(budget.List(im.budget, n, func(int) int32 { return 0 }))
	}
	if out.shape.C != s.C {
		shape := out.shape
		shape.C = s.C
		out = im.emit(o, "/repeated", bcnn.Channels{Index: zeros(s.C)}, shape, out)
	}
	if out.shape != s {
		op := bcnn.Pixels{}
		if out.shape.H != s.H {
			op.Rows = zeros(s.H)
		}
		if out.shape.W != s.W {
			op.Cols = zeros(s.W)
		}
		out = im.emit(o, "/repeated", im.pixels(op, 0, s.H, 0, s.W, s), s, out)
	}
	y := *out
	y.like(v)
	return &y
}

// add is ADD, and sub SUB.
func (im *importer) add(o *schema.Operator) *value { return im.sum(o, 1) }
func (im *importer) sub(o *schema.Operator) *value { return im.sum(o, -1) }

// sum is ADD, or SUB if the sign is −1.
func (im *importer) sum(o *schema.Operator, sign float32) *value {
	act := int(o.Options.Uint8(0, 0))
	if v, w := im.both8(o); v != nil {
		return im.add8(o, v, w, int64(sign), act)
	}
	if v, k := im.withConstant8(o); v != nil {
		return im.addConstant8(o, v, k, int64(sign), act)
	}
	p := im.pair(o)
	y := im.summed(o, "", p, sign)
	y = im.activation(o, y, act)
	return im.done(o, p, y)
}

// addN is ADD_N, of two values or more.
func (im *importer) addN(o *schema.Operator) *value {
	if n := len(o.Inputs); n < 2 {
		try.Failf("it has %d inputs, want at least 2", n)
	}
	var y *value
	for i := range o.Inputs[1:] {
		var p *pair
		if c := im.operand(o, i+1).constant; i == 0 {
			p = im.pairOf(o, 0, 1)
		} else if c != nil {
			p = im.withList(o, y, c)
		} else {
			p = im.pairOfValues(o, y, im.numbers(o, i+1))
		}
		suffix := ""
		if i+2 < len(o.Inputs) {
			suffix = "/sum"
		}
		y = im.done(o, p, im.summed(o, suffix, p, 1))
	}
	return y
}

// summed emits the sum of a pair, or the difference if the sign is −1.
func (im *importer) summed(o *schema.Operator, suffix string, p *pair, sign float32) *value {
	if p.w != nil {
		im.alike(o, p)
		w := p.w
		if sign < 0 {
			w = im.affine(o, "/minus", w, []float32{-1}, nil)
		}
		return im.emit(o, suffix, bcnn.Add{}, p.v.shape, p.v, w)
	}
	bias := im.newFloats(len(p.list))
	scale := []float32(nil)
	for i, b := range p.list {
		bias[i] = b
		if p.k == 1 {
			bias[i] *= sign
		}
	}
	if p.k == 0 && sign < 0 {
		scale = []float32{-1}
	}
	return im.affine(o, suffix, p.v, scale, bias)
}

// mul is MUL.
func (im *importer) mul(o *schema.Operator) *value {
	act := int(o.Options.Uint8(0, 0))
	if v, w := im.both8(o); v != nil {
		return im.mul8(o, v, w, act)
	}
	if v, k := im.withConstant8(o); v != nil {
		return im.mulConstant8(o, v, k, act)
	}
	p := im.pair(o)
	var y *value
	if p.w != nil {
		v, w := im.fitting(o, p.v, p.w, p.shape())
		y = im.emit(o, "", bcnn.Mul{}, v.shape, v, w)
	} else {
		y = im.affine(o, "", p.v, p.list, nil)
	}
	y = im.activation(o, y, act)
	return im.done(o, p, y)
}

// squaredDifference is SQUARED_DIFFERENCE.
func (im *importer) squaredDifference(o *schema.Operator) *value {
	p := im.pair(o)
	d := im.summed(o, "/difference", p, -1)
	y := im.emit(o, "", bcnn.Mul{}, d.shape, d, d)
	return im.done(o, p, y)
}

// square is SQUARE.
func (im *importer) square(o *schema.Operator) *value {
	v := im.real(o, 0)
	return floats(im.emit(o, "", bcnn.Mul{}, v.shape, v, v))
}

// extreme is MAXIMUM or MINIMUM.
func (im *importer) extreme(o *schema.Operator) *value {
	if v, w := im.both8(o); v != nil {
		return im.extreme8(o, v, w)
	}
	if v, k := im.withConstant8(o); v != nil {
		return im.extremeConstant8(o, v, k)
	}
	if y, ok := im.limitedByNumber(o); ok {
		return y
	}
	p := im.pair(o)
	y := im.extremeOfPair(o, p)
	return im.done(o, p, y)
}

func (im *importer) extremeOfPair(o *schema.Operator, p *pair) *value {
	if p.w == nil && len(p.list) == 1 {
		clip := bcnn.Clip{Min: p.list[0], Max: float32(math.Inf(1))}
		if o.Name == "MINIMUM" {
			clip = bcnn.Clip{Min: float32(math.Inf(-1)), Max: p.list[0]}
		}
		return im.emit(o, "", clip, p.v.shape, p.v)
	}
	w := p.w
	if w == nil {
		w = im.channelled(o, p.v, p.list)
	}
	v, w := im.fitting(o, p.v, w, p.shape())
	return im.extremeOf(o, v, w)
}
