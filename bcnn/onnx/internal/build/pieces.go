package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// pieces is a Func whose pieces at thresholds have become a part of their neighbours: it is
// values[k] from thresholds[k−1] on and below thresholds[k]. A threshold has one number, or one per
// channel.
type pieces struct {
	in         *Value
	thresholds [][]float32
	values     []piece
	lists      [][]float32 // of the constants; nil for those that vary over pixels, and for lines
}

// piecesLayer emits the layers of any function of several pieces: a sign if it has two values,
// levels if it only rises or only falls, in multiples of one step, and otherwise a sum of its
// values, of which all but one are 0.
func (b *Builder) piecesLayer(v *Value) *Value {
	p := b.piecesOf(b.levelsOf(v.Func, v.Type))
	if slices.ContainsFunc(p.lists, func(l []float32) bool { return l == nil }) {
		return b.chosen(v, p)
	}
	for _, form := range []func(*Value, *pieces) *Value{b.twoValued, b.levelled} {
		if out := form(v, p); out != nil {
			return out
		}
	}
	return b.chosen(v, p)
}

// above returns the next larger float32.
func above(t float32) float32 { return math.Nextafter32(t, math.MaxFloat32) }

// Levels returns an operand whose roundings in some of several pieces have become constants, one
// for each integer. It returns others as they are.
func (b *Builder) Levels(r Operand) Operand {
	v := r.Value
	if v == nil || v.Func == nil || len(v.Func.pieces) == 1 || v.IsStep() {
		return r
	}
	out := v.With(v.Node)
	out.Func = b.levelsOf(v.Func, v.Type)
	return Operand{Value: out}
}

// levelsOf returns a function without roundings, which become constants, if its thresholds and
// lines are the same for all channels; otherwise it returns f.
func (b *Builder) levelsOf(f *Func, typ pb.DataType) *Func {
	if f.steps() || !f.scalar() {
		return f
	}
	out := &Func{base: f.base, node: f.node}
	for k, p := range f.pieces {
		if p.constant != nil || p.line.rounding == nil {
			out.pieces = append(out.pieces, p)
		} else {
			b.levels(out, f, k, typ)
		}
		if k%2 == 0 && k/2 < len(f.t) {
			out.t = append(out.t, f.t[k/2])
		}
	}
	out.merge()
	return out
}

// levels appends piece k of f to out, with a constant for each integer that it rounds to.
func (b *Builder) levels(out, f *Func, k int, typ pb.DataType) {
	l := f.pieces[k].line
	number := func(x float32) piece {
		return piece{constant: eval.Scalar(typ, float64(l.value(0, x)))}
	}
	from, to := f.interval(k)
	if from == to {
		out.pieces = append(out.pieces, number(from))
		return
	}
	whole := func(x float32) float64 { return max(l.lo, min(l.rounding.at(0, x), l.hi)) }
	last := float32(math.MaxFloat32)
	if to < math.MaxFloat32 {
		last = math.Nextafter32(to, -math.MaxFloat32)
	}
	lowest, highest := whole(between(from)), whole(last)
	(&line{lo: lowest, hi: highest, shift: l.shift}).checkBounded()
	out.pieces = append(out.pieces, number(between(from)))
	for j := lowest + 1; j <= highest; j++ {
		try.Check(b.budget.Charge(searchUnits))
		t := l.least(0, j)
		if t > from && t < to {
			out.t = append(out.t, eval.Scalar(pb.Float, float64(t)))
			out.pieces = append(out.pieces, number(t), number(t))
		}
	}
}

// piecesOf returns a function as pieces. A threshold at which it has a value of its own becomes
// two.
func (b *Builder) piecesOf(s *Func) *pieces {
	p := &pieces{in: s.base, values: s.pieces[:1:1]}
	for i, t := range s.t {
		var list []float32
		p.in, list = b.Broadcast(p.in, b.inFloat(t), p.in.Node)
		lo, mid, hi := s.pieces[2*i], s.pieces[2*i+1], s.pieces[2*i+2]
		units := 1
		if mid.constant != nil {
			units = mid.constant.Len()
		}
		try.Check(b.budget.Charge(pieceUnits + int64(units)))
		own := !mid.equal(lo) && !mid.equal(hi)
		if own {
			zeros := try.Value(b.values.Meets(p.in.Layer, list))
			own = zeros != values.Never
		}
		next := b.NewFloats(len(list))
		for c, t := range list {
			next[c] = above(t)
		}
		switch {
		case own:
			p.thresholds, p.values = append(p.thresholds, list, next), append(p.values, mid, hi)
		case mid.equal(lo):
			p.thresholds, p.values = append(p.thresholds, next), append(p.values, hi)
		default:
			p.thresholds, p.values = append(p.thresholds, list), append(p.values, hi)
		}
	}
	for _, q := range p.values {
		if q.constant == nil {
			p.lists = append(p.lists, nil)
			continue
		}
		in, list, ok := b.PerChannel(p.in, b.inFloat(q.constant), p.in.Node)
		if ok {
			p.in = in
		}
		p.lists = append(p.lists, list)
	}
	return p
}

// pick returns the number of channel c in a list of one number or one per channel.
func pick(list []float32, c int) float32 {
	if len(list) == 1 {
		return list[0]
	}
	return list[c]
}

// channels returns how many channels have numbers of their own, 1 if all have the same.
func (p *pieces) channels() int {
	n := 1
	for _, l := range slices.Concat(p.thresholds, p.lists) {
		n = max(n, len(l))
	}
	return n
}

// sign emits +1 from threshold k on and −1 below it.
func (b *Builder) sign(v *Value, p *pieces, k int) *Value {
	offset := b.NewFloats(len(p.thresholds[k]))
	for c, t := range p.thresholds[k] {
		offset[c] = -t
	}
	d := b.Emit(v.Node, "/threshold", bcnn.Affine{Bias: offset}, p.in.Shape, p.in)
	return b.Emit(v.Node, "/sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, p.in.Shape, d)
}

// twoValued emits a function of two values as the sign of a sum of signs, of alternating signs. It
// is nil if there are more values, or others for some channels.
func (b *Builder) twoValued(v *Value, p *pieces) *Value {
	for k, l := range p.lists {
		if len(l) != 1 || k > 0 && l[0] == p.lists[k-1][0] || k > 1 && l[0] != p.lists[k-2][0] {
			return nil
		}
	}
	if len(p.lists) < 2 {
		return nil
	}
	var sum *Value
	for k := range p.thresholds {
		s := b.sign(v, p, k)
		if k%2 == 1 {
			s = b.Emit(v.Node, "/negative", bcnn.Affine{Scale: []float32{-1}}, s.Shape, s)
		}
		if sum == nil {
			sum = s
		} else {
			sum = b.Emit(v.Node, "/sum", bcnn.Add{}, s.Shape, sum, s)
		}
	}
	t := eval.Scalar(v.Type, float64(1-len(p.thresholds)%2)) // the sum is 0 or 2, or −1 or 1
	r := b.Threshold(v.Node, sum, t, p.values[0].constant, p.values[1].constant, p.values[1].constant)
	return b.signLayer(r.Value)
}

// levelled emits a function as levels with a scale and an offset, which may be one per channel. It
// is nil if the function rises and falls, or if its steps are no multiples of one.
func (b *Builder) levelled(v *Value, p *pieces) *Value {
	channels, m := p.channels(), len(p.thresholds)
	try.Check(b.budget.Charge(signUnits * int64(channels) * int64(m+1)))
	direction, scale, shift := make([]float32, channels), make([]float32, channels), make([]float32, channels)
	thresholds, steps := make([][]float32, channels), make([]values.Steps, channels)
	levels, uniform, plain, same := 2, true, true, true
	for c := range channels {
		list := make([]float32, m+1)
		for k, l := range p.lists {
			list[k] = pick(l, c)
		}
		limits := make([]float32, m)
		for k, l := range p.thresholds {
			limits[k] = pick(l, c)
		}
		direction[c] = 1
		if list[0] > list[m] { // x < t is −x ≥ above(−t)
			direction[c] = -1
			slices.Reverse(list)
			slices.Reverse(limits)
			for k, t := range limits {
				limits[k] = above(-t)
			}
		}
		var ok bool
		if steps[c], ok = values.EqualSteps(list); !ok {
			return nil
		}
		scale[c], shift[c], thresholds[c] = steps[c].Scale, steps[c].Shift, limits
		levels = max(levels, steps[c].Numbers[m]+1)
		uniform = uniform && scale[c] == scale[0] && shift[c] == shift[0]
		plain = plain && direction[c] == 1
	}
	try.Check(b.budget.Charge(4 * int64(channels) * int64(levels)))
	q := bcnn.Quantize{Levels: levels}
	for c := range channels {
		for k, t := range thresholds[c] {
			for range steps[c].Numbers[k+1] - steps[c].Numbers[k] {
				q.Thresholds = append(q.Thresholds, t)
			}
		}
		for len(q.Thresholds) < (c+1)*(levels-1) { // never reached
			q.Thresholds = append(q.Thresholds, math.MaxFloat32)
		}
		same = same && slices.Equal(q.Thresholds[c*(levels-1):], q.Thresholds[:levels-1])
	}
	if same {
		q.Thresholds = q.Thresholds[:levels-1]
	}
	in := p.in
	if !plain {
		in = b.Emit(v.Node, "/direction", bcnn.Affine{Scale: direction}, in.Shape, in)
	}
	if low, ok := steps[0].Low(levels); ok && uniform { // the level of value 0 is 0
		q.Low = low
		clear(shift)
	}
	return b.scaled(v.Node, b.Emit(v.Node, "", q, in.Shape, in), scale, shift)
}

// chosen emits the sum of all values, constants times 1 or 0 and others behind masks. It is exact, but
// that −0 becomes +0.
func (b *Builder) chosen(v *Value, p *pieces) *Value {
	signs := make([]*Value, len(p.thresholds))
	for k := range signs {
		signs[k] = b.sign(v, p, k)
	}
	var sum *Value
	for k, list := range p.lists {
		if len(list) == 1 && list[0] == 0 {
			continue
		}
		// 2 between the two thresholds, below the first or above the last one, and 0 elsewhere.
		var piece *Value
		switch last := len(signs); k {
		case 0:
			piece = b.Emit(v.Node, "/below", bcnn.Affine{Scale: []float32{-1}, Bias: []float32{1}}, p.in.Shape, signs[0])
		case last:
			piece = b.Emit(v.Node, "/above", bcnn.Affine{Bias: []float32{1}}, p.in.Shape, signs[last-1])
		default:
			piece = b.Emit(v.Node, "/negative", bcnn.Affine{Scale: []float32{-1}}, p.in.Shape, signs[k])
			piece = b.Emit(v.Node, "/between", bcnn.Add{}, p.in.Shape, signs[k-1], piece)
		}
		piece = b.Emit(v.Node, "/half", bcnn.Affine{Scale: []float32{0.5}}, p.in.Shape, piece)
		if list != nil {
			piece = b.Emit(v.Node, "/value", bcnn.Affine{Scale: list}, p.in.Shape, piece)
		} else {
			piece = b.Mask(v.Node, b.valueOf(v, p, k), piece)
		}
		if sum == nil {
			sum = piece
		} else {
			sum = b.Emit(v.Node, "", bcnn.Add{}, p.in.Shape, sum, piece)
		}
	}
	if sum == nil { // all values are 0
		sum = b.always(v.Node, p.in, 0)
	}
	return sum
}

// valueOf returns the values of piece k, a line or a constant that varies over pixels.
func (b *Builder) valueOf(v *Value, p *pieces, k int) *Value {
	l := p.values[k].line
	if l == nil {
		return b.Constant(v.Node, b.inFloat(p.values[k].constant), p.in, -1)
	}
	return b.Settle(b.pending(v.Node, pb.Float, (&Func{base: p.in}).with(l)))
}
