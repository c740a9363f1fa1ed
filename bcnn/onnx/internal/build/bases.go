package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// mostBases is how many binary bases weights may be sums of, and mostValues how many
// values a filter of them has at the most.
const (
	mostBases  = 3
	mostValues = mostBases + 1
)

// leastBase is how small a factor of a base may be, or a number that is a sum or difference
// of such, as a fraction of the largest.
const leastBase = 0x1p-10

// basesLevels is how many levels an input has at the most of which several products, with
// each base of the weights, are taken for one of real numbers.
const basesLevels = 4

// bases are weights as a sum of ±1 times a factor of each filter.
type bases struct {
	signs, alpha [][]float32 // by base; rows as those of the weights, and a factor of each filter
	// deviation is the largest distance of a weight from the sum, relative to the largest
	// of its filter.
	deviation float64
}

// basesOf returns weights as sums of binary bases with factors of each filter, as ABC-Net,
// LQ-Net and least squares binarisation (ls2) have them: of four values ±(a + b) and
// ±(a − b) two bases, of others that reach as far below 0 as above it a base for each step
// from one to the next. ok is false for other weights.
func (b *Builder) basesOf(rows []float32, out int) (s bases, ok bool, err error) {
	size := len(rows) / out
	for o := range out {
		filter := rows[o*size:][:size]
		if err := b.budget.Charge(int64(mostValues * size)); err != nil {
			return s, false, err
		}
		values, ok := fewValues(filter, b.Rounding)
		if !ok {
			return s, false, nil
		}
		first, last := float64(values[0]), float64(values[len(values)-1])
		within := b.Rounding * last
		if math.Abs(first+last) > within {
			return s, false, nil
		}
		if tiny(values, within) {
			return s, false, nil
		}
		pair := len(values) == 4 && math.Abs(float64(values[1])+float64(values[2])) <= within
		var alpha []float64
		if pair {
			alpha = []float64{(last + float64(values[2])) / 2, (last - float64(values[2])) / 2}
		} else {
			for i := range values[1:] {
				alpha = append(alpha, (float64(values[i+1])-float64(values[i]))/2)
			}
		}
		for len(s.signs) < len(alpha) {
			signs, err := b.Floats(len(rows))
			if err != nil {
				return s, false, err
			}
			for i := range signs {
				signs[i] = 1
			}
			factors, err := b.Floats(out)
			if err != nil {
				return s, false, err
			}
			s.signs, s.alpha = append(s.signs, signs), append(s.alpha, factors)
		}
		for m, a := range alpha {
			s.alpha[m][o] = float32(a)
		}
		for i, w := range filter {
			sum := 0.0
			for m, a := range alpha {
				minus := w < (values[m]+values[min(m+1, len(values)-1)])/2
				if pair {
					minus = w < 0
					if m == 1 && max(w, -w) < (values[2]+values[3])/2 {
						minus = !minus
					}
				}
				if minus {
					a = -a
					s.signs[m][o*size+i] = -1
				}
				sum += a
			}
			if last > 0 {
				s.deviation = max(s.deviation, math.Abs(sum-float64(w))/last)
			}
		}
		// What roundings tell apart is no base.
		if slices.ContainsFunc(alpha, func(a float64) bool { return a < leastBase*last }) {
			return s, false, nil
		}
	}
	return s, len(s.signs) > 1, nil
}

// fewValues returns the values of weights in ascending order, which are equal but for
// roundings, by a fraction of the largest; ok is false where there are more than mostValues.
func fewValues(filter []float32, rounding float64) (values []float32, ok bool) {
	largest := float32(0)
	for _, w := range filter {
		largest = max(largest, w, -w)
	}
	if !(largest <= math.MaxFloat32) {
		return nil, false
	}
	within := rounding * float64(largest)
	for _, w := range filter {
		if slices.ContainsFunc(values, func(v float32) bool { return math.Abs(float64(w)-float64(v)) <= within }) {
			continue
		}
		if len(values) == mostValues {
			return nil, false
		}
		values = append(values, w)
	}
	slices.Sort(values)
	return values, true
}

// tiny reports whether one of several numbers is lost in the roundings of sums of numbers as
// large as the largest. Up to a magnitude they count as 0.
func tiny(values []float32, zero float64) bool {
	largest := 0.0
	for _, v := range values {
		largest = max(largest, math.Abs(float64(v)))
	}
	return slices.ContainsFunc(values, func(v float32) bool {
		x := math.Abs(float64(v))
		return x > zero && x < leastBase*largest
	})
}

// fewLevels reports whether an input is signs or so few levels that products with several
// bases of the weights are taken. Zeros around it must be among them.
func (b *Builder) fewLevels(v *Value, padded bool) (bool, error) {
	of, err := b.values.Of(v.Layer)
	zeros := v.Offset == 0 || !padded || v.Signs && max(v.Offset, -v.Offset) == v.gain()
	return zeros && (v.Signs || v.Levels && of.Max-of.Min < basesLevels), err
}

// basesLayer emits a layer with weights that are sums of binary bases, as a layer for each of
// them and the sum of their outputs; ok is false for other weights and inputs.
func (b *Builder) basesLayer(n *pb.Node, v *Value, rows []float32, out, rowLen int, bias []float32, shape bcnn.Shape, padded bool,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (sum *Value, ok bool, err error) {
	if few, err := b.fewLevels(v, padded); !few || err != nil || v.Pad != nil && v.Pad.Value != 0 {
		return nil, false, err
	}
	s, ok, err := b.basesOf(rows, out)
	if !ok || err != nil {
		return nil, false, err
	}
	for m, signs := range s.signs {
		packed, _, _, err := b.binaryWeights(signs, out, rowLen)
		if err != nil {
			return nil, false, err
		}
		y, err := b.weighted(n, v, weights{rows: signs, out: out, packed: packed, alpha: s.alpha[m]}, bias, shape, padded, build)
		if err != nil {
			return nil, false, err
		}
		if bias = nil; sum != nil {
			y = b.Emit(n, "/bases", bcnn.Add{}, shape, sum, y)
		}
		sum = y
	}
	if s.deviation > 0 && b.err == nil {
		b.Nearly = append(b.Nearly, Nearly{n, s.deviation, true, sum.Layer})
	}
	return sum, true, nil
}
