package build

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Settle returns a value with nothing pending. It makes layers of a pending function, and pixels of
// pending windows. If a function cannot be layers, the result is a hole.
func (b *Builder) Settle(v *Value) *Value {
	switch {
	case v.Func == nil && v.Windows == nil:
		return v
	case v.settled != nil:
		return v.settled
	case v.turned != nil: // so that all permutations are one layer
		out := b.Settle(v.turned.of).With(v.Node)
		if out.View != nil {
			out.View = out.View.Permuted(v.turned.perm)
		}
		v.settled = out
		return out
	case v.Windows != nil:
		return b.spread(v)
	}
	l := v.line()
	if l != nil && l.rounding == nil {
		v.settled = b.lineLayer(v)
		return v.settled
	}
	try.Check(v.CheckReal())
	layer, what := b.piecesLayer, "as a function of several pieces"
	switch {
	case l != nil:
		layer, what = b.lineLayer, "as a quantisation"
	case v.IsStep():
		layer, what = b.signLayer, "as a binarisation"
	}
	out, err := try.Do(func() *Value { return layer(v) })
	if err == nil {
		v.settled = out
		return out
	}
	try.Check(b.budget.Charge(0))
	like := v.With(v.Node)
	like.Func, like.Type = nil, pb.Float
	v.settled = b.Hole(v.Node, fmt.Errorf("%s: %w", what, err), like, []*Value{v})
	return v.settled
}

// Settled returns the value itself if nothing is pending, or else what Settle has made of it. It is
// nil if Settle was not called yet, and for holes.
func (v *Value) Settled() *Value {
	if v != nil && (v.Func != nil || v.Windows != nil) {
		v = v.settled
	}
	if v == nil || v.Hole || v.View == nil {
		return nil
	}
	return v
}

// signUnits is the cost of a channel of a sign: four numbers, which are visited several times.
const signUnits = 32

// binary is a step of one threshold as layers: sign(direction·x + offset)·scale + shift, by
// channel.
type binary struct{ direction, offset, scale, shift []float32 }

func newBinary(channels int) binary {
	return binary{make([]float32, channels), make([]float32, channels), make([]float32, channels), make([]float32, channels)}
}

// constant makes channel c always x.
func (g binary) constant(c int, x float64) {
	g.offset[c], g.scale[c] = float32(math.Copysign(1, x)), float32(math.Abs(x))
}

// compare makes channel c the sign of x − t, or if negative is set of t − x.
func (g binary) compare(c int, t float64, negative bool) {
	if g.direction[c], g.offset[c] = 1, float32(-t); negative {
		g.direction[c], g.offset[c] = -1, float32(t)
	}
}

// gives reports whether channel c gives exactly lo for −1 and hi for +1.
func (g binary) gives(c int, lo, hi float64) bool {
	return float64(g.shift[c]+g.scale[c]) == hi && float64(g.shift[c]-g.scale[c]) == lo
}

// stepped emits a step whose two values are not exactly scaled and shifted ±1 in float32. Levels
// may give them; the sum of both, each times 1 or 0, always does.
func (b *Builder) stepped(v *Value) *Value {
	p := b.piecesOf(v.Func)
	if out := b.levelled(v, p); out != nil {
		return out
	}
	return b.chosen(v, p)
}

// input emits the input of the sign, direction·x + offset, or returns in if that is the same.
func (b *Builder) input(g binary, v, in *Value) *Value {
	in = b.without(v.Node, in, g.direction)
	for c := range g.direction {
		if g.direction[c] != 1 || g.offset[c] != 0 {
			return b.Emit(v.Node, "/threshold", bcnn.Affine{Scale: g.direction, Bias: g.offset}, in.Shape, in)
		}
	}
	return in
}

// signLayer emits the layers of a step: the difference to the threshold, negated if the step falls,
// its sign, and the scale of the result.
func (b *Builder) signLayer(v *Value) *Value {
	s := v.Func
	if len(s.t) > 1 {
		return b.piecesLayer(v)
	}
	in, lists, ok := b.stepLists(s)
	if !ok {
		return b.piecesLayer(v)
	}
	// If all channels fall, the input is negated, so that the result is plain ±1. If only some do,
	// they get a negative scale.
	falls := true
	ternary := false // a channel has a value of its own at the threshold
	for c := range lists.channels() {
		try.Check(b.budget.Charge(signUnits))
		_, lo, mid, hi := lists.at(c)
		if lo == hi && mid != lo {
			return b.piecesLayer(v)
		}
		falls = falls && lo >= hi
		ternary = ternary || mid != lo && mid != hi
	}
	zeros := values.Never
	if ternary {
		zeros = try.Value(b.values.Meets(in.Layer, lists[0]))
		if zeros != values.Never && (b.options.SignOfZero == 0 || zeros == values.Often && !b.options.OverrideZeros) {
			return b.ternaryLayer(v, in, lists, zeros)
		}
	}
	g, rule, exact := b.binaryOf(lists, falls, zeros)
	if !ternary && !exact {
		return b.stepped(v)
	}
	out := b.Emit(v.Node, "", bcnn.Sign{Zero: rule}, in.Shape, b.input(g, v, in))
	if ternary && zeros != values.Never && b.err == nil {
		b.Zeros = append(b.Zeros, Zero{v.Node, zeros == values.Often, out.Layer})
	}
	return b.scaled(v.Node, out, g.scale, g.shift)
}

// binaryOf returns a step of one threshold as a sign and its rule for 0. falls negates the input.
// exact says that scale and shift give exactly the two values of every channel.
func (b *Builder) binaryOf(lists stepLists, falls bool, zeros values.Frequency) (g binary, rule bcnn.ZeroRule, exact bool) {
	g, exact = newBinary(lists.channels()), true
	for c := range g.scale {
		t, lo, mid, hi := lists.at(c)
		if lo == hi && mid == lo {
			g.constant(c, lo)
			continue
		}
		above := b.zeroRule(lo, mid, hi, zeros)
		if falls {
			lo, hi, above = hi, lo, !above
		}
		g.compare(c, t, falls)
		r := bcnn.ZeroIsMinus
		if above {
			r = bcnn.ZeroIsPlus
		}
		if rule != 0 && r != rule {
			try.Failf("its channels differ at the threshold: all must take the value above it there, or all the value below it")
		}
		rule = r
		g.scale[c], g.shift[c] = b.halves(lo, mid, hi)
		exact = exact && g.gives(c, lo, hi)
	}
	if rule == 0 {
		rule = bcnn.ZeroIsPlus // every channel is constant
	}
	return g, rule, exact
}

// scaled emits v·scale + shift, or returns v if that is the same.
func (b *Builder) scaled(n *pb.Node, v *Value, scale, shift []float32) *Value {
	one, none := true, true
	for c := range scale {
		one, none = one && scale[c] == 1, none && shift[c] == 0
	}
	if one && none {
		return v
	}
	op := bcnn.Affine{Scale: common(scale), Bias: common(shift)}
	if none {
		op.Bias = nil
	}
	return b.Emit(n, "/values", op, v.Shape, v)
}

// common returns a list whose numbers are all equal as one number.
func common(list []float32) []float32 {
	for _, x := range list {
		if x != list[0] {
			return list
		}
	}
	return list[:1]
}

// searchUnits is the cost of a binary search for a float32.
const searchUnits = 256

// halves returns scale and shift with shift + scale = hi and shift − scale = lo in float32, and
// with shift = mid if mid lies between them. An exporter may have rounded all three, so it tries
// several shifts next to the middle. If none fits, the result is off by a rounding.
func (b *Builder) halves(lo, mid, hi float64) (scale, shift float32) {
	if lo > hi {
		scale, shift = b.halves(hi, mid, lo)
		return -scale, shift
	}
	low, high := float32(lo), float32(hi)
	fits := func(scale, shift float32) bool { return shift+scale == high && shift-scale == low }
	// The shift with which both sums round correctly may be next to the middle.
	middle := float32((hi + lo) / 2)
	more, less := math.Nextafter32(middle, high), math.Nextafter32(middle, low)
	shifts := [...]float32{float32(mid), middle, more, less, math.Nextafter32(more, high), math.Nextafter32(less, low)}
	between := mid > lo && mid < hi
	for i, shift := range shifts {
		if i == 0 && !between {
			continue
		}
		if scale := float32((hi - lo) / 2); fits(scale, shift) {
			return scale, shift
		}
		try.Check(b.budget.Charge(searchUnits))
		// The smallest scale with which both sums reach the values.
		scale := max(f32.Least(func(x float32) bool { return shift+x >= high }), f32.Least(func(x float32) bool { return shift-x <= low }))
		if fits(scale, shift) {
			return scale, shift
		}
	}
	// Nothing fits: a value is off in its last place, or 0 does not become mid.
	shift = middle
	if between && math.Abs(mid-float64(shift)) <= weights.OfFloat32*max(-lo, hi) {
		shift = shifts[0]
	}
	return float32((hi - lo) / 2), shift
}

// zeroRule reports whether a sign has at its threshold the value above it. It fails if the values
// below and above are equal.
func (b *Builder) zeroRule(lo, mid, hi float64, zeros values.Frequency) (above bool) {
	switch {
	case mid == hi && lo != hi:
		return true
	case mid == lo && lo != hi:
		return false
	case lo == hi:
		try.Failf("it is %v at a single input value and %v elsewhere, which no layer computes", mid, lo)
	case zeros == values.Never:
		return true
	}
	return b.options.SignOfZero == bcnn.ZeroIsPlus
}

// rounded is the largest distance of the value at a threshold from the middle of the two around it,
// as a fraction of their distance, that rounding to float32 can explain.
const rounded = 0x1p-12

// ternaryLayer emits the layers of a step with a value of its own at the threshold of some channel:
// the difference to the threshold, negated if the step falls, its sign of three values, and the
// scale of the result.
func (b *Builder) ternaryLayer(v, in *Value, lists stepLists, zeros values.Frequency) *Value {
	channels := lists.channels()
	try.Check(b.budget.Charge(signUnits * int64(channels)))
	g := newBinary(channels)
	const tiny = math.SmallestNonzeroFloat32
	rules := make([]float32, 0, 2*channels) // thresholds of the sign, by channel
	same, uniform, exact := true, true, true
	for c := range channels {
		try.Check(b.budget.Charge(signUnits))
		t, lo, mid, hi := lists.at(c)
		rule := []float32{0, tiny}
		if lo == hi && mid == lo {
			g.constant(c, lo)
		} else {
			falls := lo > hi
			if falls {
				lo, hi = hi, lo
			}
			g.compare(c, t, falls)
			g.scale[c], g.shift[c] = b.halves(lo, mid, hi)
			if mid == lo || mid == hi {
				exact = exact && g.gives(c, lo, hi)
			}
			switch {
			case mid == hi:
				rule = []float32{0, 0}
			case mid == lo:
				rule = []float32{tiny, tiny}
			case math.Abs(mid-float64(g.shift[c])) > min(weights.OfFloat32*max(-lo, hi), rounded*(hi-lo)):
				option := "SignOfZero"
				if b.options.SignOfZero != 0 {
					option = "OverrideZeros"
				}
				try.Fail(&Choice{option, fmt.Errorf("it gives %v at its threshold, which is not in the middle of %v and %v", mid, lo, hi)})
			}
		}
		rules = append(rules, rule...)
		same = same && rule[0] == rules[0] && rule[1] == rules[1]
		uniform = uniform && g.scale[c] == g.scale[0] && g.shift[c] == g.shift[0] && g.scale[c] != 0
	}
	if !exact {
		return b.stepped(v)
	}
	if same {
		rules = rules[:2]
	}
	q := bcnn.Quantize{Low: -1, Levels: 3, Thresholds: rules}
	if k := g.shift[0] / g.scale[0]; uniform && k == float32(math.Trunc(float64(k))) && max(k, -k) < bcnn.MaxLevels {
		q.Low += int(k) // the level of value 0 stays 0
		clear(g.shift)
	}
	out := b.Emit(v.Node, "", q, in.Shape, b.input(g, v, in))
	if b.err == nil {
		b.Ternary = append(b.Ternary, Zero{v.Node, zeros == values.Often, out.Layer})
	}
	return b.scaled(v.Node, out, g.scale, g.shift)
}
