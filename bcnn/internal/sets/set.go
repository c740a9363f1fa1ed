// Package sets computes with what the values of a tensor can be: between which bounds they lie,
// and of which few numbers they often are, such as the sums of a binary convolution or the 0 of a
// ReLU. It knows no layers: package bcnn says of each operation what it makes of its inputs.
package sets

import "math"

// Set describes the values of a tensor, over all images, pixels and channels. It never leaves
// a value out but NaN, and what an infinity becomes.
type Set struct {
	// Min and Max bound the values, as float32 holds them; infinite where no bound is known.
	Min, Max float64
	// Often is what the values often are. A Unit of 0 says that nothing of the kind is known.
	Often Multiples
	// Only says that the values are Often and nothing else.
	Only bool
}

// Multiples are integers times a unit.
type Multiples struct {
	Unit float64 // above 0
	Most float64 // of their magnitude
	// Odd and Even say which integers there are.
	Odd, Even bool
	// Rounded says that float32 does not hold the multiples exactly: values differ from them
	// by roundings.
	Rounded bool
}

// Unknown is what a tensor is of which nothing is known.
var Unknown = Set{Min: math.Inf(-1), Max: math.Inf(1)}

// Signs are −1 and +1.
var Signs = Set{Min: -1, Max: 1, Often: Multiples{Unit: 1, Most: 1, Odd: true}, Only: true}

// zero is what padding is.
var zero = Multiples{Unit: 1, Even: true}

// Integers returns the set of those from least to most, two or more.
func Integers(least, most int) Set {
	return Set{Min: float64(least), Max: float64(most), Only: true,
		Often: Multiples{Unit: 1, Most: float64(max(-least, most)), Odd: true, Even: true}}
}

// Single returns the set of one number.
func Single(x float64) Set {
	s := Set{Min: x, Max: x}
	if x == math.Trunc(x) && math.Abs(x) <= exact {
		odd := math.Mod(x, 2) != 0
		s.Often, s.Only = Multiples{Unit: 1, Most: math.Abs(x), Odd: odd, Even: !odd}, true
	}
	return s
}

// exact is the magnitude up to which float32 holds all integers.
const exact = 1 << 24

// Or returns the values of either.
func (s Set) Or(t Set) Set {
	out := Set{Min: min(s.Min, t.Min), Max: max(s.Max, t.Max), Often: s.Often, Only: s.Only && t.Only}
	switch {
	case s.Often.Unit == 0:
		out.Often = t.Often
	case t.Often.Unit != 0:
		out.Often = s.Often.or(t.Often)
	}
	return out
}

// or returns multiples that are those of either.
func (m Multiples) or(n Multiples) Multiples {
	switch { // 0 is a multiple of every unit
	case m.Most == 0:
		m.Unit = n.Unit
	case n.Most == 0:
		n.Unit = m.Unit
	}
	out := Multiples{
		Unit: m.Unit, Most: max(m.Most, n.Most), Odd: m.Odd || n.Odd, Even: m.Even || n.Even, Rounded: m.Rounded || n.Rounded,
	}
	if m.Unit != n.Unit {
		unit, exactly := common(m.Unit, n.Unit)
		out.Unit, out.Odd, out.Even, out.Rounded = unit, true, true, out.Rounded || !exactly
	}
	return out
}

// common returns a number that both are multiples of, the largest or nearly; exactly is false
// where they are only nearly, such as thirds and quarters.
func common(a, b float64) (unit float64, exactly bool) {
	const nearly = 1e-6
	large, exactly := max(a, b), true
	for b != 0 {
		rest := math.Mod(a, b)
		if rest <= nearly*large || b-rest <= nearly*large {
			exactly = exactly && rest == 0
			rest = 0
		}
		a, b = b, rest
	}
	return a, exactly
}

// Plus returns the sums of two values.
func (s Set) Plus(t Set) Set {
	out := Set{Min: float64(float32(s.Min + t.Min)), Max: float64(float32(s.Max + t.Max))}
	if !s.Only || !t.Only {
		return out
	}
	m, n := s.Often, t.Often
	out.Only, out.Often = true, Multiples{
		Unit: m.Unit, Most: m.Most + n.Most, Rounded: m.Rounded || n.Rounded,
		Odd: m.Odd && n.Even || m.Even && n.Odd, Even: m.Odd && n.Odd || m.Even && n.Even,
	}
	if m.Unit != n.Unit {
		unit, exactly := common(m.Unit, n.Unit)
		out.Often.Unit, out.Often.Odd, out.Often.Even = unit, true, true
		out.Often.Rounded = out.Often.Rounded || !exactly
	}
	if !out.Often.Rounded && !holds(out.Often) {
		out.Often, out.Only = Multiples{}, false
	}
	return out
}
