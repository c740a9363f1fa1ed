package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// What values layers can give, and which of them they give often.

// interval returns bounds of the values of a layer.
func (b *Builder) interval(layer, depth int) (lo, hi float64) {
	lo, hi = math.Inf(-1), math.Inf(1)
	if b.Bytes(layer) {
		return 0, math.MaxUint8
	}
	l, ok := b.made(layer)
	if !ok || depth == 0 {
		return lo, hi
	}
	switch op := l.Op.(type) {
	case bcnn.Sign, bcnn.Binarize:
		return -1, 1
	case bcnn.Quantize:
		return float64(op.Low), float64(op.Low + op.Levels - 1)
	case bcnn.ReLU:
		lo, hi = b.interval(l.Inputs[0], depth-1)
		return max(lo, 0), max(hi, 0)
	case bcnn.MaxPool, bcnn.Flatten:
		return b.interval(l.Inputs[0], depth-1)
	case bcnn.Clip:
		lo, hi = b.interval(l.Inputs[0], depth-1)
		low, high := float64(op.Min), float64(op.Max)
		return max(low, min(lo, high)), max(low, min(hi, high))
	case bcnn.AvgPool:
		lo, hi = b.interval(l.Inputs[0], depth-1)
		if op.CountPadding {
			lo, hi = min(lo, 0), max(hi, 0)
		}
		if lo != -1 && lo != 0 { // a mean of many may round beyond others
			lo = math.Inf(-1)
		}
		if hi != 1 && hi != 0 {
			hi = math.Inf(1)
		}
		return lo, hi
	case bcnn.Function:
		switch op.Name {
		case bcnn.Sigmoid:
			return 0, 1
		case bcnn.Tanh, bcnn.Erf:
			return -1, 1
		}
	case bcnn.Add:
		if len(l.Inputs) == 2 {
			lo, hi = b.interval(l.Inputs[0], depth-1)
			lo2, hi2 := b.interval(l.Inputs[1], depth-1)
			return lo + lo2, hi + hi2
		}
	case bcnn.Affine:
		scale, shift := 1.0, 0.0
		if len(op.Scale) > 0 {
			scale = float64(op.Scale[0])
		}
		if len(op.Bias) > 0 {
			shift = float64(op.Bias[0])
		}
		if len(op.Scale) < 2 && len(op.Bias) < 2 && scale != 0 {
			lo, hi = b.interval(l.Inputs[0], depth-1)
			lo, hi = lo*scale+shift, hi*scale+shift
			return min(lo, hi), max(lo, hi)
		}
	}
	return lo, hi
}

// sums are the values that a layer gives often where they are integers times a unit:
// at most so large, odd or even multiples of the unit, or both.
type sums struct {
	unit, most float64
	odd, even  bool
	// real says that there are real numbers beside them.
	real bool
	// rounded says that the unit is a fraction, of whose multiples the values may
	// differ by rounding.
	rounded bool
}

// onlyZero are the values of a ReLU on real numbers: what it cuts off.
var onlyZero = sums{unit: 1, even: true, real: true}

// or returns what has values of both.
func (s sums) or(r sums) sums {
	out := sums{
		unit: min(s.unit, r.unit), most: max(s.most, r.most), odd: s.odd || r.odd, even: s.even || r.even,
		real: s.real || r.real, rounded: s.rounded || r.rounded,
	}
	if s.unit != r.unit {
		out.odd, out.even = true, true
		if math.Mod(max(s.unit, r.unit), out.unit) != 0 { // such as thirds and quarters
			out.unit, out.rounded = s.unit*r.unit/max(s.unit, r.unit, 1), true
		}
	}
	return out
}

// averaged returns what a mean over windows makes of sums.
func (s sums) averaged(p bcnn.AvgPool) sums {
	n := p.KH * p.KW
	padded := p.Pad != (bcnn.Padding{})
	s.odd, s.even = padded || s.odd && (s.even || n%2 == 1), padded || s.even || n%2 == 0
	if padded && !p.CountPadding {
		n = multiple(p.KH, p.Pad.Top, p.Pad.Bottom) * multiple(p.KW, p.Pad.Left, p.Pad.Right)
	}
	s.unit /= float64(n)
	s.rounded = s.rounded || n&(n-1) != 0
	return s
}

// mostTaps bounds multiple: beyond it, every value is near one of the multiples.
const mostTaps = 1 << 12

// multiple returns a number that the number of taps inside the image divides, in a
// window of k rows with so many in the padding.
func multiple(k, begin, end int) int {
	out := k
	for i := max(1, k-begin-end); i < k && out < mostTaps; i++ {
		a, b := out, i
		for b > 0 {
			a, b = b, a%b
		}
		out *= i / a
	}
	return out
}

// finest is the smallest unit that counts as one: 2^-finest.
const finest = 8

// integers returns the sums that a layer gives; ok is false for other values.
func (b *Builder) integers(layer, depth int) (s sums, ok bool, err error) {
	if b.Bytes(layer) {
		return sums{unit: 1, most: math.MaxUint8, odd: true, even: true}, true, nil
	}
	l, ok := b.made(layer)
	if !ok || depth == 0 {
		return s, false, nil
	}
	if s, ok := b.sums[layer]; ok {
		return s, !biased(l.Op), nil
	}
	switch op := l.Op.(type) {
	case bcnn.Sign, bcnn.Binarize:
		return sums{unit: 1, most: 1, odd: true}, true, nil
	case bcnn.Quantize:
		most := max(-op.Low, op.Low+op.Levels-1)
		return sums{unit: 1, most: float64(most), odd: true, even: true}, true, nil
	case bcnn.MaxPool, bcnn.Flatten:
		return b.integers(l.Inputs[0], depth-1)
	case bcnn.ReLU:
		s, ok, err = b.integers(l.Inputs[0], depth-1)
		if !ok {
			return onlyZero, err == nil, err
		}
		s.even = true
		return s, true, err
	case bcnn.PReLU:
		return b.leaky(l.Inputs[0], op, depth)
	case bcnn.AvgPool:
		if s, ok, err = b.integers(l.Inputs[0], depth-1); !ok || err != nil {
			return s, false, err
		}
		return s.averaged(op), true, nil
	case bcnn.Pixels:
		s, ok, err = b.integers(l.Inputs[0], depth-1)
		if err == nil {
			err = b.budget.Charge(int64(len(op.Rows) + len(op.Cols)))
		}
		if err != nil || !slices.Contains(op.Rows, -1) && !slices.Contains(op.Cols, -1) {
			return s, ok, err
		}
		switch {
		case op.Fill != 0:
			return s, false, nil
		case !ok:
			return onlyZero, true, nil
		}
		return s.or(sums{unit: s.unit, even: true}), true, nil
	case bcnn.Channels:
		s, ok, err = b.integers(l.Inputs[0], depth-1)
		if err == nil {
			err = b.budget.Charge(int64(len(op.Index)))
		}
		if err != nil || !slices.Contains(op.Index, -1) {
			return s, ok, err
		}
		if !ok {
			return onlyZero, true, nil
		}
		return s.or(sums{unit: s.unit, even: true}), true, nil
	case bcnn.Concat:
		return b.joined(l.Inputs, depth)
	case bcnn.Add:
		if len(l.Inputs) != 2 {
			return s, false, nil
		}
		x, ok, err := b.integers(l.Inputs[0], depth-1)
		if !ok || err != nil || x.real {
			return s, false, err
		}
		y, ok, err := b.integers(l.Inputs[1], depth-1)
		ok = ok && !y.real
		s = sums{
			unit: x.unit, most: x.most + y.most, rounded: x.rounded || y.rounded,
			odd: x.odd && y.even || x.even && y.odd, even: x.odd && y.odd || x.even && y.even,
		}
		if large := max(x.unit, y.unit); x.unit != y.unit {
			s.unit, s.odd, s.even = min(x.unit, y.unit), true, true
			ok = ok && math.Mod(large, s.unit) == 0
		}
		return s, ok, err
	case bcnn.Affine:
		if s, ok, err = b.integers(l.Inputs[0], depth-1); !ok || err != nil {
			return s, false, err
		}
		return b.scaled(s, op)
	}
	return s, false, nil
}

// scaled returns what an Affine layer makes of sums.
func (b *Builder) scaled(s sums, op bcnn.Affine) (sums, bool, error) {
	if len(op.Bias) == 0 && len(op.Scale) < 2 { // keeps what is odd and what is even
		k := math.Abs(number(op.Scale, 0, 1))
		s.unit, s.most = s.unit*k, s.most*k
		return s, k > 0, nil
	}
	// The largest power of two that all numbers are multiples of.
	unit, least := math.Ldexp(1, 24), math.Ldexp(1, -finest)
	divide := func(list []float32, times float64) (largest float64, err error) {
		err = b.budget.Loop(len(list), func(lo, hi int) {
			for _, x := range list[lo:hi] {
				largest = max(largest, math.Abs(float64(x)))
				for unit >= least && math.Mod(float64(x)*times, unit) != 0 {
					unit /= 2
				}
			}
		})
		return largest, err
	}
	scale := op.Scale
	if len(scale) == 0 {
		scale = []float32{1}
	}
	factor, err := divide(scale, s.unit)
	if err != nil {
		return s, false, err
	}
	shift, err := divide(op.Bias, 1)
	return sums{unit: unit, most: s.most*factor + shift, odd: true, even: true, real: s.real, rounded: s.rounded}, unit >= least, err
}

// leaky returns the sums that a PReLU layer gives.
func (b *Builder) leaky(in int, op bcnn.PReLU, depth int) (sums, bool, error) {
	s, ok, err := b.integers(in, depth-1)
	if err == nil {
		err = b.budget.Charge(12 * int64(len(op.Slope)))
	}
	switch {
	case err != nil:
		return s, false, err
	case ok: // both branches
		s, ok, err = b.scaled(s, bcnn.Affine{Scale: append([]float32{1}, op.Slope...)})
		return s, ok, err
	}
	return onlyZero, slices.Contains(op.Slope, 0), nil
}

// joined returns the sums that layers give together.
func (b *Builder) joined(layers []int, depth int) (s sums, ok bool, err error) {
	all := true
	if err := b.budget.Charge(64 * int64(len(layers))); err != nil {
		return s, false, err
	}
	for _, in := range layers {
		r, known, err := b.integers(in, depth-1)
		switch {
		case err != nil:
			return s, false, err
		case !known:
			all = false
		case ok:
			s = s.or(r)
		default:
			s, ok = r, true
		}
	}
	s.real = s.real || !all
	return s, ok, nil
}

// biased reports whether a layer adds a bias to its sums.
func biased(op bcnn.Op) bool {
	switch op := op.(type) {
	case bcnn.Conv2D:
		return len(op.Bias) > 0
	case bcnn.Dense:
		return len(op.Bias) > 0
	}
	return false
}
