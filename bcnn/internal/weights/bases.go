package weights

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// mostBases is how many binary bases weights may be sums of, and mostValues how many
// values a filter of them has at the most.
const (
	mostBases  = 3
	mostValues = mostBases + 1
)

// LeastPart is how small a factor of a base may be, or a number that is a sum or difference
// of such, as a fraction of the largest: less is lost in the roundings of sums.
const LeastPart = 0x1p-10

// Bases are weights as a sum of ±1 times a factor of each filter.
type Bases struct {
	Signs, Alpha [][]float32 // by base; signs in the order of the weights, and a factor of each filter
	// Deviation is the largest distance of a weight from the sum, relative to the largest
	// of its filter.
	Deviation float64
}

// FindBases returns weights as sums of binary bases with factors of each filter, as ABC-Net
// (Lin, Zhao and Pan, NeurIPS 2017), LQ-Net (Zhang et al., ECCV 2018) and least squares
// binarisation (ls2) have them: of four values ±(a + b) and ±(a − b) two bases, of others that
// reach as far below 0 as above it a base for each step from one to the next. It is nil for
// other weights.
func FindBases(b *budget.Budget, rows Rows, within Tolerance) (*Bases, error) {
	s := &Bases{}
	size := rows.Size()
	for o := range rows.Out {
		filter := rows.Filter(o)
		if err := b.Charge(int64(mostValues * size)); err != nil {
			return nil, err
		}
		steps := stepsOf(filter, within.Rounding)
		if steps == nil {
			return nil, nil
		}
		for len(s.Signs) < len(steps.alpha) {
			if err := b.Charge(4 * int64(len(rows.Values)+rows.Out)); err != nil {
				return nil, err
			}
			s.Signs = append(s.Signs, slices.Repeat([]float32{1}, len(rows.Values)))
			s.Alpha = append(s.Alpha, make([]float32, rows.Out))
		}
		for m, a := range steps.alpha {
			s.Alpha[m][o] = float32(a)
		}
		for i, w := range filter {
			sum := 0.0
			for m, a := range steps.alpha {
				if steps.minus(m, w) {
					a = -a
					s.Signs[m][o*size+i] = -1
				}
				sum += a
			}
			if last := float64(steps.values[len(steps.values)-1]); last > 0 {
				s.Deviation = max(s.Deviation, math.Abs(sum-float64(w))/last)
			}
		}
	}
	if len(s.Signs) < 2 {
		return nil, nil
	}
	return s, nil
}

// steps are the few values of a filter, ascending, and the factors of the bases that they are
// sums of: one for each step from a value to the next, or where pair is set one for the sign
// and one for the magnitude.
type steps struct {
	values []float32
	alpha  []float64
	pair   bool
}

// minus reports whether a weight has base m with a minus.
func (s *steps) minus(m int, w float32) bool {
	if !s.pair {
		return w < (s.values[m]+s.values[min(m+1, len(s.values)-1)])/2
	}
	minus := w < 0
	if m == 1 && max(w, -w) < (s.values[2]+s.values[3])/2 {
		minus = !minus
	}
	return minus
}

// stepsOf returns what the weights of a filter are sums of, nil if of none.
func stepsOf(filter []float32, rounding float64) *steps {
	values, ok := fewValues(filter, rounding)
	if !ok {
		return nil
	}
	first, last := float64(values[0]), float64(values[len(values)-1])
	within := rounding * last
	if math.Abs(first+last) > within || Tiny(values, within) {
		return nil
	}
	s := &steps{values: values, pair: len(values) == 4 && math.Abs(float64(values[1])+float64(values[2])) <= within}
	if s.pair {
		s.alpha = []float64{(last + float64(values[2])) / 2, (last - float64(values[2])) / 2}
	} else {
		for i := range values[1:] {
			s.alpha = append(s.alpha, (float64(values[i+1])-float64(values[i]))/2)
		}
	}
	// What roundings tell apart is no base.
	if slices.ContainsFunc(s.alpha, func(a float64) bool { return a < LeastPart*last }) {
		return nil
	}
	return s
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

// Tiny reports whether one of several numbers is lost in the roundings of sums of numbers as
// large as the largest. Up to a magnitude they count as 0.
func Tiny(values []float32, zero float64) bool {
	largest := 0.0
	for _, v := range values {
		largest = max(largest, math.Abs(float64(v)))
	}
	return slices.ContainsFunc(values, func(v float32) bool {
		x := math.Abs(float64(v))
		return x > zero && x < LeastPart*largest
	})
}
