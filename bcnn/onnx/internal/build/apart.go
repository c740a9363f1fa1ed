package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// parts are signs and levels that a layer joins along their channels, or adds, which as
// numbers have no few levels.
type parts struct {
	list []*Value
	sum  bool
}

// mostParts is how many parts of a layer are kept apart.
const mostParts = 16

// Unlike remembers that a layer joins signs and levels of unlike factors.
func (b *Builder) Unlike(y *Value, list []*Value) {
	if b.err == nil && len(list) <= mostParts && !slices.ContainsFunc(list, func(v *Value) bool { return !v.codedAs(v) }) {
		b.parts[y.Layer] = parts{list, false}
	}
}

// terms returns what a value is a sum of: itself where it is signs or levels, nil where it is
// no sum of such.
func (b *Builder) terms(v *Value) []*Value {
	switch p := b.parts[v.Layer]; {
	case v.codedAs(v):
		return []*Value{v}
	case p.sum && v.bare():
		return p.list
	}
	return nil
}

// bare reports whether nothing is pending on a value.
func (v *Value) bare() bool {
	return v.Clip == nil && v.Step == nil && v.Stairs == nil && v.Windows == nil && v.Pad == nil
}

// Added remembers that a layer adds two values, given as SettleSigns makes them, if both are
// sums of signs and levels.
func (b *Builder) Added(y, v, w *Value) {
	if b.err != nil || !v.bare() || !w.bare() || v.Shape != w.Shape || !v.View.Equal(w.View) {
		return
	}
	left, right := b.terms(v), b.terms(w)
	if left != nil && right != nil && len(left)+len(right) <= mostParts {
		b.parts[y.Layer] = parts{slices.Concat(left, right), true}
	}
}

// ScaledSum remembers that a layer multiplies a value with a number, if that is a sum of
// signs and levels.
func (b *Builder) ScaledSum(n *pb.Node, y, v *Value, factor float32) {
	p := b.parts[v.Layer]
	if b.err != nil || !p.sum || !v.bare() || !(factor > 0) {
		return
	}
	list := make([]*Value, len(p.list))
	for i, t := range p.list {
		t = t.With(n)
		t.Gain, t.Offset = t.gain()*factor, t.Offset*factor
		list[i] = t
	}
	b.parts[y.Layer] = parts{list, true}
}

// Rising remembers that a layer is a sum of signs, each times half of what the function of
// the values in lists rises by there, where it does so by one number for all channels, and no
// value is so small beside the others that sums of them lose it.
func (b *Builder) Rising(n *pb.Node, y *Value, signs []*Value, lists [][]float32) {
	if b.err != nil || len(signs) > mostParts || slices.ContainsFunc(lists, func(l []float32) bool { return len(l) != 1 }) {
		return
	}
	values := slices.Concat(lists...)
	if len(values) == 0 || tiny(values, 0) {
		return
	}
	list := make([]*Value, len(signs))
	for k, s := range signs {
		s = s.With(n)
		s.Signs, s.Gain = true, (values[k+1]-values[k])/2
		if !(s.Gain > 0 && s.Gain <= math.MaxFloat32) {
			return
		}
		list[k] = s
	}
	if len(list) > 0 {
		list[0].Offset = (values[0] + values[len(signs)]) / 2
		b.parts[y.Layer] = parts{list, true}
	}
}

// PooledParts remembers what a max-pool, by a layer on a value, makes of parts that are
// joined.
func (b *Builder) PooledParts(n *pb.Node, y, v *Value, op bcnn.MaxPool) {
	p, ok := b.parts[v.Layer]
	if !ok || p.sum || !v.bare() {
		return
	}
	list := make([]*Value, len(p.list))
	for i, t := range p.list {
		s := y.Shape
		s.C = t.Shape.C
		list[i] = b.Emit(n, "/part", op, s, t)
		list[i].Signs, list[i].Levels, list[i].Gain, list[i].Offset = t.Signs, t.Levels, t.Gain, t.Offset
	}
	b.Unlike(y, list)
}

// apart emits a layer with weights [out][…][rowLen] on a concatenation, or a sum, of signs
// and levels, as a layer of its own for each of them, whose sums are of integers, and the
// sum of their outputs. ok is false for other values, and for weights that are no few
// multiples of one number per filter.
func (b *Builder) apart(n *pb.Node, v *Value, rows []float32, out, rowLen int, bias []float32, shape bcnn.Shape, padded bool,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (sum *Value, ok bool, err error) {
	of, ok := b.parts[v.Layer]
	inside := v
	if v.Pad != nil && v.Pad.Value == 0 {
		inside = v.With(v.Node)
		inside.Pad = nil
	}
	if !ok || v.codedAs(v) || !inside.bare() || !of.sum && rowLen != v.Shape.C {
		return nil, false, nil
	}
	from := 0
	weights := make([][]float32, len(of.list))
	for i, p := range of.list {
		list, size := rows, rowLen
		if !of.sum {
			size = p.Shape.C
			if list, err = b.Floats(len(rows) / rowLen * size); err != nil {
				return nil, false, err
			}
			for r := range len(rows) / rowLen {
				copy(list[r*size:], rows[r*rowLen+from:][:size])
			}
		}
		if few, err := b.few(p, list, out, size, padded); err != nil || !few {
			return nil, false, err
		}
		weights[i] = list
		from += size
	}
	for i, p := range of.list {
		p = p.With(p.Node)
		p.Pad = v.Pad
		size := rowLen
		if !of.sum {
			size = p.Shape.C
		}
		y, err := b.Weighted(n, p, weights[i], out, size, bias, shape, padded, build)
		if err != nil {
			return nil, false, err
		}
		if bias = nil; sum != nil {
			y = b.Emit(n, "/parts", bcnn.Add{}, shape, sum, y)
		}
		sum = y
	}
	return sum, true, nil
}

// few reports whether weights on signs or levels are ±α or multiples of an α of each filter,
// or sums of binary bases.
func (b *Builder) few(v *Value, rows []float32, out, rowLen int, padded bool) (bool, error) {
	packed, _, _, err := b.binaryWeights(rows, out, rowLen)
	if packed != nil || err != nil {
		return packed != nil, err
	}
	integers, _, _, err := b.integerWeights(rows, out, v.Signs)
	if integers != nil || err != nil {
		return integers != nil, err
	}
	if few, err := b.fewLevels(v, padded); !few || err != nil {
		return false, err
	}
	_, ok, err := b.basesOf(rows, out)
	return ok, err
}
