package values

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// of returns the values of an operation on inputs of which the values are known.
func of(op bcnn.Op, shape bcnn.Shape, in []Set) Set {
	switch op := op.(type) {
	case bcnn.Sign, bcnn.Binarize:
		return signs
	case bcnn.Quantize:
		top := op.Low + op.Levels - 1
		return Set{Min: float64(op.Low), Max: float64(top), Only: true,
			Often: Multiples{Unit: 1, Most: float64(max(-op.Low, top)), Odd: true, Even: true}}
	case bcnn.Conv2D:
		return biased(conv(op, shape, in[0]), op.Bias)
	case bcnn.Dense:
		return biased(sums(op.Weights, shape.Values(), false, in[0]), op.Bias)
	case bcnn.MaxPool, bcnn.Flatten, bcnn.Transpose:
		return in[0]
	case bcnn.AvgPool:
		return averaged(op, in[0])
	case bcnn.ReLU:
		return clipped(in[0], 0, math.Inf(1))
	case bcnn.Clip:
		return clipped(in[0], float64(op.Min), float64(op.Max))
	case bcnn.PReLU:
		return leaky(op, in[0])
	case bcnn.Affine:
		return affine(op, in[0])
	case bcnn.Function:
		return function(op)
	case bcnn.Add:
		if len(in) == 2 {
			return in[0].plus(in[1])
		}
	case bcnn.Mul:
		return product(in)
	case bcnn.MatMul:
		return matMul(shape.C, in)
	case bcnn.Resample:
		return resampled(op, in[0])
	case bcnn.Min:
		return pairs(in, math.Min)
	case bcnn.Max:
		return pairs(in, math.Max)
	case bcnn.Mask:
		return in[0].or(single(0))
	case bcnn.Concat:
		return union(in)
	case bcnn.Channels:
		return filled(in[0], 0, op.Index)
	case bcnn.Pixels:
		return filled(in[0], op.Fill, op.Rows, op.Cols)
	}
	return unknown
}

// filled returns the values that lists of indices pick, and what fills the places of −1.
func filled(in Set, fill float32, lists ...[]int32) Set {
	if slices.ContainsFunc(lists, func(l []int32) bool { return slices.Contains(l, -1) }) {
		return in.or(single(float64(fill)))
	}
	return in
}

// resampled returns weighted means: of values that are not negative, with weights that are not.
func resampled(op bcnn.Resample, in Set) Set {
	if in.Min < 0 || negative(op.Rows.Weight) || negative(op.Cols.Weight) {
		return unknown
	}
	return Set{Max: math.Inf(1), Often: onlyZero(in.Often)}
}

// conv returns the sums of a convolution, without its bias.
func conv(op bcnn.Conv2D, shape bcnn.Shape, in Set) Set {
	taps := op.KH * op.KW * (shape.C / max(op.Groups, 1))
	if op.PadValue != 0 && op.Pad != (bcnn.Padding{}) {
		in = in.or(single(float64(op.PadValue)))
	}
	return sums(op.Weights, taps, op.PadValue == 0 && op.Pad != (bcnn.Padding{}), in)
}

// sums returns the sums of so many products with weights, of which some may be with zeros
// around an image. They are known where all are integers, which float32 holds.
func sums(w bcnn.Weights, taps int, zeros bool, in Set) Set {
	m := in.Often
	largest := 1.0
	if w.Int8 != nil {
		largest = 0
		for _, x := range w.Int8 {
			largest = max(largest, math.Abs(float64(x)))
		}
	}
	m.Most *= largest * float64(taps)
	if w.F32 != nil || !in.Only || m.Most/m.Unit > exact {
		return unknown
	}
	m.Rounded = m.Rounded || !holds(m)
	if w.Int8 != nil || m.Even || zeros {
		m.Odd, m.Even = true, true
	} else {
		m.Odd, m.Even = taps%2 == 1, taps%2 == 0
	}
	return only(m)
}

// matMul returns the sums of k products of values of two tensors, where all are multiples.
func matMul(k int, in []Set) Set {
	a, b := in[0].Often, in[1].Often
	m := Multiples{Unit: a.Unit * b.Unit, Most: a.Most * b.Most * float64(k), Rounded: a.Rounded || b.Rounded}
	if !in[0].Only || !in[1].Only || m.Unit == 0 || m.Most/m.Unit > exact {
		return unknown
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

// roundings bounds what the roundings of a sum make of it, as a fraction.
const roundings = 0x1p-10

// biased adds the bias of a layer to its sums.
func biased(s Set, bias []float32) Set {
	if len(bias) == 0 {
		return s
	}
	return affine(bcnn.Affine{Bias: bias}, s)
}

// averaged returns the means over windows.
func averaged(op bcnn.AvgPool, s Set) Set {
	padded := op.Pad != (bcnn.Padding{})
	if padded && op.CountPadding {
		s = s.or(single(0))
	}
	n := op.KH * op.KW
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
	if padded && !op.CountPadding {
		n = multiple(op.KH, op.Pad.Top, op.Pad.Bottom) * multiple(op.KW, op.Pad.Left, op.Pad.Right)
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

// clipped returns values that are limited.
func clipped(s Set, lo, hi float64) Set {
	out := Set{Min: max(lo, min(s.Min, hi)), Max: max(lo, min(s.Max, hi)), Often: s.Often, Only: s.Only}
	if s.Min >= lo && s.Max <= hi {
		return out
	}
	for _, limit := range []float64{lo, hi} { // where it cuts, values are often at it
		if at := single(limit); s.Min < limit && limit == lo || s.Max > limit && limit == hi {
			if !at.Only {
				out.Only = false
				continue
			}
			out.Only, out.Often = out.Only && at.Only, Set{Often: out.Often}.or(at).Often
		}
	}
	return out
}

// leaky returns what slopes below 0 make of values.
func leaky(op bcnn.PReLU, s Set) Set {
	if s.Min >= 0 {
		return s
	}
	out := clipped(s, 0, math.Inf(1)).or(affine(bcnn.Affine{Scale: op.Slope}, clipped(s, math.Inf(-1), 0)))
	switch {
	case s.Often.Unit != 0: // both branches
		out.Often, out.Only = scaled(append([]float32{1}, op.Slope...), nil, s.Often)
		out.Only = out.Only && s.Only
	case slices.Contains(op.Slope, 0):
		out.Often = zero
	default:
		out.Often = Multiples{}
	}
	return out
}

// affine returns values times a scale, plus a bias, as an Affine layer computes it.
func affine(op bcnn.Affine, s Set) Set {
	scale, bias := op.Scale, op.Bias
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

// function returns the values of a function.
func function(op bcnn.Function) Set {
	out := unknown
	switch op.Name {
	case bcnn.Sigmoid:
		out.Min, out.Max = 0, 1
	case bcnn.Tanh, bcnn.Erf:
		out.Min, out.Max = -1, 1
	case bcnn.Exp, bcnn.Softplus:
		out.Min = 0
	case bcnn.ELU:
		out.Min = -1
	}
	return out
}

// negative reports whether one of several numbers is below 0.
func negative(list []float32) bool {
	return slices.ContainsFunc(list, func(x float32) bool { return x < 0 })
}

// product returns the products of two values.
func product(in []Set) Set {
	if len(in) != 2 {
		return unknown
	}
	out := Set{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, x := range []float64{in[0].Min, in[0].Max} {
		for _, y := range []float64{in[1].Min, in[1].Max} {
			k := float64(float32(x * y))
			if x == 0 || y == 0 { // also of what has no bound
				k = 0
			}
			out.Min, out.Max = min(out.Min, k), max(out.Max, k)
		}
	}
	return out
}

// pairs returns one of two values each.
func pairs(in []Set, of func(x, y float64) float64) Set {
	if len(in) != 2 {
		return unknown
	}
	out := in[0].or(in[1])
	out.Min, out.Max = of(in[0].Min, in[1].Min), of(in[0].Max, in[1].Max)
	return out
}

// union returns the values of all.
func union(in []Set) Set {
	if len(in) == 0 {
		return unknown
	}
	out := in[0]
	for _, s := range in[1:] {
		out = out.or(s)
	}
	return out
}
