package tflite

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Comparisons, whose values of BOOL are 0 and 1 here, and what chooses by them.

// comparisons are the operators that compare, as what is left of one with its sides changed, and
// whether they hold of equal numbers.
var comparisons = map[string]struct {
	swapped string
	equal   bool
}{
	"EQUAL": {"EQUAL", true}, "NOT_EQUAL": {"NOT_EQUAL", false},
	"GREATER": {"LESS", false}, "GREATER_EQUAL": {"LESS_EQUAL", true},
	"LESS": {"GREATER", false}, "LESS_EQUAL": {"GREATER_EQUAL", true},
}

// compare is a comparison: of a value with numbers, or of the difference of two values with 0.
func (im *importer) compare(o *schema.Operator) *value {
	if v, k := im.withConstant8(o); v != nil {
		return im.compare8(o, v, k)
	}
	p := im.pair(o)
	name, v, list := o.Name, p.v, p.list
	switch {
	case p.w != nil:
		v = im.summed(o, "/difference", p, -1)
		list = []float32{0}
	case p.k == 0:
		name = comparisons[name].swapped
	}
	if p.folded != nil {
		try.Failf("a comparison with different numbers per pixel is not supported, only per channel")
	}
	y := im.compared(o, "", v, name, list)
	out := im.done(o, p, y)
	out.typ = schema.Bool
	return out
}

// compared emits 1 where a comparison of a value with the numbers of all channels, or of each,
// holds, else 0.
func (im *importer) compared(o *schema.Operator, suffix string, v *value, name string, list []float32) *value {
	equal := comparisons[name].equal
	switch name {
	case "EQUAL", "NOT_EQUAL":
		a := im.compared(o, "/least", v, "GREATER_EQUAL", list)
		b := im.compared(o, "/most", v, "LESS_EQUAL", list)
		if name == "EQUAL" {
			return im.emit(o, suffix, bcnn.Mul{}, v.shape, a, b)
		}
		y := im.emit(o, "/equal", bcnn.Mul{}, v.shape, a, b)
		return im.not(o, suffix, y)
	case "LESS", "LESS_EQUAL": // of the negative, so that NaN gives 0
		v = im.scaled(o, "/minus", v, -1)
	}
	thresholds := im.newFloats(len(list))
	for i, t := range list {
		if name == "LESS" || name == "LESS_EQUAL" {
			t = -t
		}
		if !equal {
			t = math.Nextafter32(t, float32(math.Inf(1)))
		}
		if math.IsNaN(float64(t)) || math.IsInf(float64(t), 0) {
			try.Failf("a comparison with %v is not supported", list[i])
		}
		thresholds[i] = t
	}
	return im.emit(o, suffix, bcnn.Quantize{Levels: 2, Thresholds: thresholds}, v.shape, v)
}

// not emits 1 − x.
func (im *importer) not(o *schema.Operator, suffix string, v *value) *value {
	return im.affine(o, suffix, v, []float32{-1}, []float32{1})
}

// compare8 is a comparison of 8-bit values with input k, a constant: of both in units of 1/256, times
// their scales.
func (im *importer) compare8(o *schema.Operator, v *value, k int) *value {
	c := im.constant8(o, k, v)
	name := o.Name
	if k == 0 {
		name = comparisons[name].swapped
	}
	const shift = 8
	if v.scale >= 1 || c.scale >= 1 {
		try.Failf("8-bit values of scales %v and %v are not supported, only below 1", v.scale, c.scale)
	}
	f, g := newFactor(float64(v.scale)), newFactor(float64(c.scale))
	holds := func(x, t int64) bool {
		a, b := f.of(x<<shift, halvesAway), g.of(t<<shift, halvesAway)
		switch name {
		case "EQUAL":
			return a == b
		case "NOT_EQUAL":
			return a != b
		case "GREATER":
			return a > b
		case "GREATER_EQUAL":
			return a >= b
		case "LESS":
			return a < b
		}
		return a <= b
	}
	try.Check(im.budget.Charge(tableUnits * int64(len(c.list))))
	// What is 1 from −128 on, up to a number, is 1 less what is 1 beyond it.
	flipped := slices.Contains([]string{"LESS", "LESS_EQUAL"}, name)
	if name == "EQUAL" || name == "NOT_EQUAL" {
		try.Failf("a comparison of 8-bit values is not supported here, only with larger or smaller numbers: leave this operator unquantised")
	}
	thresholds := im.newFloats(len(c.list))
	for i, t := range c.list {
		thresholds[i] = never8
		for q := range steps8 + 1 {
			if x := v.integer8(q); holds(x, t) != flipped {
				thresholds[i] = float32(x)
				break
			}
		}
	}
	v = im.centred(o, v)
	y := im.emit(o, "", bcnn.Quantize{Levels: 2, Thresholds: thresholds}, v.shape, v)
	if flipped {
		y = im.not(o, "/else", y)
	}
	y.typ = schema.Bool
	return y
}

// logical is LOGICAL_AND, LOGICAL_OR or LOGICAL_NOT.
func (im *importer) logical(o *schema.Operator) *value {
	if o.Name == "LOGICAL_NOT" {
		v := im.numbers(o, 0)
		y := im.not(o, "", im.settled(v).undivided())
		y.typ = schema.Bool
		return y
	}
	p := im.pair(o)
	if p.w == nil || p.v.typ != schema.Bool || p.w.typ != schema.Bool {
		try.Failf("its inputs must be comparisons")
	}
	op := bcnn.Op(bcnn.Mul{})
	if o.Name == "LOGICAL_OR" {
		op = bcnn.Max{}
	}
	v, w := im.fitting(o, p.v, p.w, p.shape())
	y := im.emit(o, "", op, v.shape, v, w)
	out := im.done(o, p, y)
	out.typ = schema.Bool
	return out
}

// cast is CAST of a comparison to numbers, or of numbers to their own type.
func (im *importer) cast(o *schema.Operator) *value {
	v := im.numbers(o, 0)
	v = im.settled(v).undivided()
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if t.Type != schema.Float32 {
		try.Failf("a cast of computed values from %v to %v is not supported, only from BOOL to FLOAT32", v.typ, t.Type)
	}
	out := *v
	out.typ = t.Type
	return &out
}

// choose is SELECT or SELECT_V2: the second input where the first one holds, else the third.
func (im *importer) choose(o *schema.Operator) *value {
	if len(o.Inputs) != 3 {
		try.Failf("it has %d inputs, want 3", len(o.Inputs))
	}
	c := im.value(o, 0)
	if c.typ != schema.Bool {
		try.Failf("its condition must be a comparison")
	}
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if t.Type == schema.Int8 {
		return im.choose8(o, c)
	}
	var sides [2]*side
	for i := range sides {
		sides[i] = im.side(o, c, i+1)
	}
	return floats(im.chosen(o, c, sides))
}

// side is what a choice may give: a value, or a number or numbers of the channels.
type side struct {
	v    *value
	list []float32
}

func (im *importer) side(o *schema.Operator, c *value, i int) *side {
	r := im.operand(o, i)
	if r.constant == nil {
		v := im.real(o, i)
		if v.shape != c.shape || o.Name == "SELECT" && v.rank != c.rank {
			try.Failf("a choice between values of shape %v by a condition of %v is not supported", v.shape, c.shape)
		}
		return &side{v: v}
	}
	list := im.perChannel(o, i, c)
	for _, x := range list {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			try.Failf("a choice of %v is not supported, only of numbers", x)
		}
	}
	return &side{list: list}
}

// chosen emits a choice between two sides. Between numbers it is one multiple of the condition if no
// rounding comes between, else the sum of both sides, of which one is 0.
func (im *importer) chosen(o *schema.Operator, c *value, sides [2]*side) *value {
	a, b := sides[0].list, sides[1].list
	if a != nil && b != nil {
		n := max(len(a), len(b))
		scale, bias, exact := im.newFloats(n), im.newFloats(n), true
		for i := range n {
			x, y := a[i%len(a)], b[i%len(b)]
			scale[i], bias[i] = x-y, y
			exact = exact && float64(scale[i])+float64(y) == float64(x)
		}
		if exact {
			return im.affine(o, "", c, scale, bias)
		}
	}
	var parts [2]*value
	for i, s := range sides {
		when := c
		if i == 1 {
			when = im.not(o, "/else", c)
		}
		if s.v != nil {
			parts[i] = im.emit(o, "/part", bcnn.Mask{}, s.v.shape, s.v, when)
		} else {
			parts[i] = im.affine(o, "/part", when, s.list, nil)
		}
	}
	for i, s := range sides {
		if len(s.list) == 1 && s.list[0] == 0 {
			return parts[1-i]
		}
	}
	return im.emit(o, "", bcnn.Add{}, c.shape, parts[0], parts[1])
}

// choose8 is choose between 8-bit values, all of one scale and zero point.
func (im *importer) choose8(o *schema.Operator, c *value) *value {
	q := im.output8(o.Outputs[0])
	var sides [2]*side
	for i := range sides {
		like := &sides[i]
		if im.operand(o, i+1).constant == nil {
			v := im.moved(o, i+1)
			if v.typ != schema.Int8 || v.shape != c.shape || v.scale != q.scale || v.zero != q.zero {
				try.Failf("a choice between 8-bit values is supported only in the shape of the condition, and the scale and zero point of the output")
			}
			*like = &side{v: v}
			continue
		}
		k := im.constant8(o, i+1, c)
		if k.scale != q.scale || k.zero != q.zero {
			try.Failf("input %d has another scale or zero point than the output", i+1)
		}
		list := im.newFloats(len(k.list))
		for i, x := range k.list {
			list[i] = float32(x)
		}
		*like = &side{list: list}
	}
	y := *im.chosen(o, c, sides)
	y.like(q)
	y.offset = q.zero
	return &y
}
