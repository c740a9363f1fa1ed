package sets

import (
	"iter"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/internal/f32"
)

// Picked returns the values that lists of indices pick, and what fills the places of −1.
func Picked(in Set, fill float32, lists ...[]int32) Set {
	if slices.ContainsFunc(lists, func(l []int32) bool { return slices.Contains(l, -1) }) {
		return in.Or(Single(float64(fill)))
	}
	return in
}

// Weighted returns sums of weighted values, of which something is known where neither values nor
// weights are negative.
func Weighted(in Set, lists ...[]float32) Set {
	if in.Min < 0 || slices.ContainsFunc(lists, negative) {
		return Unknown
	}
	return Set{Max: math.Inf(1), Often: onlyZero(in.Often)}
}

// Sums returns the sums of so many products with weights, ±1 or the given integers, of which some
// may be with zeros around an image. They are known where float32 holds all of them.
func Sums(in Set, integers []int8, taps int, zeros bool) Set {
	m := in.Often
	largest := 1.0
	if integers != nil {
		largest = 0
		for _, x := range integers {
			largest = max(largest, math.Abs(float64(x)))
		}
	}
	m.Most *= largest * float64(taps)
	if !in.Only || m.Most/m.Unit > exact {
		return Unknown
	}
	m.Rounded = m.Rounded || !holds(m)
	if integers != nil || m.Even || zeros {
		m.Odd, m.Even = true, true
	} else {
		m.Odd, m.Even = taps%2 == 1, taps%2 == 0
	}
	return only(m)
}

// Products returns the sums of k products of values of two tensors, where all are multiples.
func Products(x, y Set, k int) Set {
	a, b := x.Often, y.Often
	m := Multiples{Unit: a.Unit * b.Unit, Most: a.Most * b.Most * float64(k), Rounded: a.Rounded || b.Rounded}
	if !x.Only || !y.Only || m.Unit == 0 || m.Most/m.Unit > exact {
		return Unknown
	}
	m.Rounded = m.Rounded || !holds(m)
	if m.Odd, m.Even = k%2 == 1, k%2 == 0; a.Even || b.Even {
		m.Odd, m.Even = true, true
	}
	return only(m)
}

// only returns sums that are multiples and nothing else, up to the roundings of a sum.
func only(m Multiples) Set {
	most := m.Most
	if m.Rounded {
		most *= 1 + roundings
	}
	return Set{Min: -most, Max: most, Often: m, Only: true}
}

// Biased adds the bias of a layer to its sums.
func Biased(s Set, bias []float32) Set {
	if len(bias) == 0 {
		return s
	}
	return Affine(s, nil, bias)
}

// roundings bounds what the roundings of a sum make of it, as a fraction.
const roundings = 0x1p-10

// Side is a side of a window, and how much of it is padding at most.
type Side struct{ Size, Before, After int }

// Means returns the means over windows, in which padded positions count as zeros where counted
// says so.
func Means(s Set, rows, cols Side, counted bool) Set {
	padded := rows.Before+rows.After+cols.Before+cols.After > 0
	if padded && counted {
		s = s.Or(Single(0))
	}
	n := rows.Size * cols.Size
	sum := Multiples{Unit: s.Often.Unit, Most: s.Often.Most * float64(n)}
	if !s.Only || s.Often.Rounded || !holds(sum) {
		// The sum of many values may be rounded beyond the sum of their bounds.
		if s.Min < 0 {
			s.Min = math.Inf(-1)
		}
		if s.Max > 0 {
			s.Max = math.Inf(1)
		}
		s.Often.Rounded = true
	}
	if !s.Only || sum.Most > exact*sum.Unit {
		// Where all values of a window are 0, as a ReLU often makes them, their mean is.
		return Set{Min: s.Min, Max: s.Max, Often: onlyZero(s.Often)}
	}
	m := &s.Often
	m.Odd, m.Even = padded || m.Odd && (m.Even || n%2 == 1), padded || m.Even || n%2 == 0
	if padded && !counted {
		n = rows.multiple() * cols.multiple()
	}
	m.Unit /= float64(n)
	m.Rounded = m.Rounded || n&(n-1) != 0
	return s
}

// onlyZero keeps of multiples the 0.
func onlyZero(m Multiples) Multiples {
	if m.Unit == 0 || !m.Even {
		return Multiples{}
	}
	return zero
}

// mostTaps bounds multiple: beyond it, every value is near one of the multiples.
const mostTaps = 1 << 12

// multiple returns a number that the number of taps inside the image divides.
func (s Side) multiple() int {
	out := s.Size
	for i := max(1, s.Size-s.Before-s.After); i < s.Size && out < mostTaps; i++ {
		a, b := out, i
		for b > 0 {
			a, b = b, a%b
		}
		out *= i / a
	}
	return out
}

// Clip returns values that are limited.
func Clip(s Set, lo, hi float64) Set {
	out := Set{Min: max(lo, min(s.Min, hi)), Max: max(lo, min(s.Max, hi)), Often: s.Often, Only: s.Only}
	if s.Min >= lo && s.Max <= hi {
		return out
	}
	for _, limit := range []float64{lo, hi} { // where it cuts, values are often at it
		if at := Single(limit); s.Min < limit && limit == lo || s.Max > limit && limit == hi {
			if !at.Only {
				out.Only = false
				continue
			}
			out.Only, out.Often = out.Only && at.Only, Set{Often: out.Often}.Or(at).Often
		}
	}
	return out
}

// Leaky returns what slopes below 0 make of values.
func Leaky(s Set, slope []float32) Set {
	if s.Min >= 0 {
		return s
	}
	out := Clip(s, 0, math.Inf(1)).Or(Affine(Clip(s, math.Inf(-1), 0), slope, nil))
	switch {
	case s.Often.Unit != 0: // both branches
		out.Often, out.Only = scaled(append([]float32{1}, slope...), nil, s.Often)
		out.Only = out.Only && s.Only
	case slices.Contains(slope, 0):
		out.Often = zero
	default:
		out.Often = Multiples{}
	}
	return out
}

// Norm are the numbers of a normalisation, (x − Mean)·Scale + Shift.
type Norm struct{ Mean, Scale, Shift float64 }

// Normed returns normalised values, of which only bounds are known: how a plan rounds them depends on
// the layers around.
func Normed(s Set, norms iter.Seq[Norm]) Set {
	out := Set{Min: math.Inf(1), Max: math.Inf(-1)}
	for n := range norms {
		for _, end := range []float64{s.Min, s.Max} {
			x, off := n.Shift, 0.0
			if n.Scale != 0 {
				x += (end - n.Mean) * n.Scale
				off = normRoundings * (math.Abs((end-n.Mean)*n.Scale) + math.Abs(n.Mean*n.Scale) + math.Abs(n.Shift))
			}
			if math.IsInf(x, 0) {
				off = 0
			}
			out.Min, out.Max = min(out.Min, x-off), max(out.Max, x+off)
		}
	}
	return out
}

// normRoundings bounds the roundings of a normalisation, as a fraction of its terms.
const normRoundings = 0x1p-20

// Affine returns values times a scale, plus a bias, in one fused operation: one of each per
// channel, one for all or none.
func Affine(s Set, scale, bias []float32) Set {
	if len(scale) == 0 {
		scale = []float32{1}
	}
	if len(bias) == 0 {
		bias = []float32{0}
	}
	out := Set{Min: math.Inf(1), Max: math.Inf(-1)}
	for c := range max(len(scale), len(bias)) {
		k, b := scale[c%len(scale)], bias[c%len(bias)]
		for _, end := range []float64{s.Min, s.Max} { // rounded as the values are
			x := float64(b)
			if k != 0 {
				x = float64(f32.FMA(float32(end), k, b))
			}
			out.Min, out.Max = min(out.Min, x), max(out.Max, x)
		}
	}
	out.Often, out.Only = scaled(scale, bias, s.Often)
	out.Only = out.Only && s.Only
	return out
}

// finest is the smallest unit that counts as one of many numbers: 2^-finest.
const finest = 8

// scaled returns multiples times a scale, plus a bias; ok is false where nothing is known.
func scaled(scale, bias []float32, m Multiples) (out Multiples, ok bool) {
	if m.Unit == 0 {
		return Multiples{}, false
	}
	if len(scale) == 1 && !slices.ContainsFunc(bias, func(b float32) bool { return b != 0 }) {
		k := math.Abs(float64(scale[0]))
		if k == 0 || math.IsInf(k, 0) {
			return Multiples{}, false
		}
		m.Unit, m.Most = m.Unit*k, m.Most*k
		m.Rounded = m.Rounded || !holds(m)
		return m, true
	}
	// The largest power of two that all numbers are multiples of.
	unit, least := math.Ldexp(1, 24), math.Ldexp(1, -finest)
	divide := func(list []float32, times float64) (largest float64) {
		for _, x := range list {
			largest = max(largest, math.Abs(float64(x)))
			for unit >= least && math.Mod(float64(x)*times, unit) != 0 {
				unit /= 2
			}
		}
		return largest
	}
	factor, shift := divide(scale, m.Unit), divide(bias, 1)
	out = Multiples{Unit: unit, Most: m.Most*factor + shift, Odd: true, Even: true, Rounded: m.Rounded}
	return out, unit >= least && holds(out)
}

// holds reports whether float32 holds all multiples.
func holds(m Multiples) bool {
	fraction, _ := math.Frexp(m.Unit)
	bits := 0.0
	for fraction != math.Trunc(fraction) && bits < 53 {
		fraction *= 2
		bits++
	}
	return m.Most/m.Unit*math.Ldexp(1, int(bits)) <= exact
}

// negative reports whether one of several numbers is below 0.
func negative(list []float32) bool {
	return slices.ContainsFunc(list, func(x float32) bool { return x < 0 })
}

// Product returns the products of two values.
func Product(s, t Set) Set {
	out := Set{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, x := range []float64{s.Min, s.Max} {
		for _, y := range []float64{t.Min, t.Max} {
			k := float64(float32(x * y))
			if x == 0 || y == 0 { // also of what has no bound
				k = 0
			}
			out.Min, out.Max = min(out.Min, k), max(out.Max, k)
		}
	}
	return out
}

// Either returns the one of two values that a function picks.
func Either(s, t Set, of func(x, y float64) float64) Set {
	out := s.Or(t)
	out.Min, out.Max = of(s.Min, t.Min), of(s.Max, t.Max)
	return out
}
