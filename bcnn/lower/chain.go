package lower

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// A chain is what stands between a tensor and the next step that is emitted: functions of one value
// each, kept as they were given. So thresholds can be found by evaluating them in float64 without
// composing them first. (A composed scale and shift would move ties: (x − mean)·a + 0 is exactly 0
// at x = mean, x·a − mean·a need not be.)
//
// No function in a chain both rises and falls.
type link struct {
	layers []int // that it implements: one, or ReLUs in a row
	kind   linkKind
	// affine: (x − mean)·scale + shift; PReLU: scale where x < 0. Each list has one value, or one
	// per channel.
	mean, scale, shift []float64
	low, high          float64 // clip
	function           bcnn.FunctionName
	values             *f32.Function // how it is computed
	pool               *bcnn.Window
	out                bcnn.Shape // of the pool
}

type linkKind uint8

const (
	linkAffine linkKind = iota
	linkReLU
	linkPReLU
	linkClip
	linkFunction
	linkPool
)

// uniform reports whether the function is the same for all channels.
func (l link) uniform() bool { return len(l.mean) <= 1 && len(l.scale) <= 1 && len(l.shift) <= 1 }

func uniform(chain []link) bool {
	return !slices.ContainsFunc(chain, func(l link) bool { return !l.uniform() })
}

func at(v []float64, c int) float64 {
	if len(v) == 1 {
		return v[0]
	}
	return v[c]
}

func widen(v []float32, empty float64) []float64 {
	if len(v) == 0 {
		return []float64{empty}
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

func affineLink(layer int, a bcnn.Affine) link {
	return link{layers: []int{layer}, kind: linkAffine, mean: []float64{0}, scale: widen(a.Scale, 1), shift: widen(a.Bias, 0)}
}

func batchNormLink(layer int, b bcnn.BatchNorm) link {
	scale := make([]float64, len(b.Gamma))
	for c := range scale {
		scale[c] = float64(b.Gamma[c]) / math.Sqrt(float64(b.Var[c])+float64(b.Epsilon))
	}
	return link{layers: []int{layer}, kind: linkAffine, mean: widen(b.Mean, 0), scale: scale, shift: widen(b.Beta, 0)}
}

func preluLink(layer int, p bcnn.PReLU) link {
	return link{layers: []int{layer}, kind: linkPReLU, scale: widen(p.Slope, 1)}
}

func clipLink(layer int, c bcnn.Clip) link {
	return link{layers: []int{layer}, kind: linkClip, low: float64(c.Min), high: float64(c.Max)}
}

func functionLink(layer int, f bcnn.Function) link {
	return link{layers: []int{layer}, kind: linkFunction, function: f.Name, values: f32.Named(string(f.Name))}
}

// bends reports whether the function both falls and rises in some channel.
func (l *link) bends() bool {
	return l.kind == linkPReLU && slices.Min(l.scale) < 0 || l.kind == linkFunction && f32.Bends(string(l.function))
}

// activation returns the function as an activation at the end of a step with that many channels.
func (l *link) activation(channels int) plan.Activation {
	switch l.kind {
	case linkReLU:
		return plan.Activation{Kind: plan.ActivationReLU}
	case linkPReLU:
		slope := make([]float32, channels)
		for c := range slope {
			slope[c] = float32(at(l.scale, c)) // as it was given
		}
		return plan.Activation{Kind: plan.ActivationPReLU, Slope: slope}
	case linkClip:
		return plan.Activation{Kind: plan.ActivationClip, Min: float32(l.low), Max: float32(l.high)}
	case linkFunction:
		return plan.Activation{Kind: plan.ActivationFunction, Function: l.function}
	}
	return plan.Activation{}
}

// apply evaluates the function for a value of channel c. The conversions keep
// the compiler from fusing multiply and add, so that every machine lowers to
// the same plan.
func (l *link) apply(c int, x float64) float64 {
	switch l.kind {
	case linkAffine:
		s := at(l.scale, c)
		if s == 0 { // even if a link in front gives an infinite x
			return at(l.shift, c)
		}
		d := float64(x - at(l.mean, c))
		return float64(d*s) + at(l.shift, c)
	case linkReLU:
		if x < 0 {
			return 0
		}
	case linkPReLU:
		if x < 0 {
			return x * at(l.scale, c)
		}
	case linkClip:
		if x < l.low {
			x = l.low
		}
		if x > l.high {
			x = l.high
		}
	case linkFunction:
		return float64(l.values.Of(float32(x)))
	}
	return x // a maximum of one value
}

// evaluate applies the functions one after the other. Each result is rounded to float32, as the
// output of a layer of its own is.
func evaluate(chain []link, c int, x float64) float64 {
	for i := range chain {
		x = float64(float32(chain[i].apply(c, x)))
	}
	return x
}

// direction returns +1 if the chain never falls as x grows, and −1 if it never rises. A constant
// counts as +1.
func direction(chain []link, c int) int {
	d := 1
	for i := range chain { // links are large: no copies
		if l := &chain[i]; l.kind == linkAffine {
			switch s := at(l.scale, c); {
			case s < 0:
				d = -d
			case s == 0:
				return 1
			}
		}
	}
	return d
}

// poolAt returns the index of the pool in the chain, or its length.
func poolAt(chain []link) int {
	for i, l := range chain {
		if l.kind == linkPool {
			return i
		}
	}
	return len(chain)
}

// compose returns one scale and shift for affine links of a channel, for a single fma in float32.
func compose(chain []link, c int) (scale, shift float32) {
	a, b := 1.0, 0.0
	for _, l := range chain {
		s := at(l.scale, c)
		a = float64(a * s)
		b = float64(float64(b-at(l.mean, c))*s) + at(l.shift, c)
	}
	return float32(a), float32(b)
}

// Adding a constant and subtracting it again rounds, and a network may mean that: (x + 1.5·2²³) −
// 1.5·2²³ is x rounded to an integer. So a link is not composed with those in front of it if it
// subtracts what they add, with less than a part of cancelled left, or if one of them has a
// constant of at least roundsAt, beside which hardly any value keeps a fraction. Nor are factors
// composed whose product is infinite, or below leastNormal, where float32 has fewer bits, unless a
// summand of at least besides makes it negligible, as in a channel that a network has given up.
//
// Links that round nothing may be composed whatever they cancel.
const (
	cancelled   = 1.0 / (1 << 20)
	roundsAt    = 1 << 20
	leastNormal = 0x1p-126
	besides     = 0x1p-64
)

// together returns how many affine links, from the first one on, may be composed for channel c of
// these values.
func together(affine []link, c int, of values) int {
	a, b := 1.0, 0.0 // the factor and the summand so far
	for i := range affine {
		l := &affine[i]
		of = of.after(l, c)
		s, mean, shift := at(l.scale, c), at(l.mean, c), at(l.shift, c)
		moved := b - mean
		next := float64(moved*s) + shift
		if i > 0 && (math.Abs(a*s) > math.MaxFloat32 || (subnormal(a) || subnormal(a*s)) && math.Abs(next) < besides) {
			return i
		}
		a *= s
		if before := math.Abs(b); s != 0 && before > 0 && of.unit == 0 {
			if left := min(math.Abs(moved), math.Abs(next/s)); left < before*cancelled ||
				max(before, math.Abs(mean), math.Abs(moved*s), math.Abs(shift)) >= roundsAt {
				return i
			}
		}
		b = next
	}
	return len(affine)
}

func subnormal(a float64) bool { return a != 0 && math.Abs(a) < leastNormal }

// composes reports whether composed affine links give for ±1 exactly what the links give one after
// the other.
func composes(affine []link, c int) bool {
	scale, shift := compose(affine, c)
	return evaluate(affine, c, 1) == float64(shift+scale) && evaluate(affine, c, -1) == float64(shift-scale)
}

// integral returns the first link but the last that adds something to multiples of unit, if links
// before it are factors of powers of two and what it adds are multiples, too. after is the unit of
// its results. Without such a link, or if unit is 0, at is −1.
func integral(affine []link, unit float64) (at int, after float64) {
	for i := range affine {
		l := &affine[i]
		if i == len(affine)-1 || len(l.mean) > 1 || l.mean[0] != 0 || len(l.scale) > 1 {
			break
		}
		if unit *= l.scale[0]; !powerOfTwo(unit) {
			break
		}
		if len(l.shift) == 1 && l.shift[0] == 0 {
			continue
		}
		for _, x := range l.shift {
			if x/unit != math.Trunc(x/unit) {
				return -1, 0
			}
		}
		return i, unit
	}
	return -1, 0
}

func powerOfTwo(x float64) bool {
	fraction, _ := math.Frexp(x)
	return fraction == 0.5
}

// slopeOf returns the product of the factors of affine links, for channel c.
func slopeOf(chain []link, c int) float64 {
	a := 1.0
	for _, l := range chain {
		a = float64(a * at(l.scale, c))
	}
	return a
}

// cut is the number at which the sign of a chain changes, for one channel.
type cut struct {
	i32 int32
	f32 float32
}

// domain is the numbers among which a threshold is searched: float32, or integers from lo to hi.
type domain struct {
	float  bool
	lo, hi int64 // of integers
}

// search returns the smallest x of the domain for which up holds. up must be false, then true, as x
// grows. If it always holds, the result is −∞ or the least int32, and if it never does, +∞ or the
// greatest.
func (d domain) search(up func(x float64) bool) cut {
	if d.float {
		const hi = int64(0x7f7fffff) // orderedFloat(hi) is math.MaxFloat32
		const lo = -hi - 1
		value := func(i int64) float64 { return float64(orderedFloat(i)) }
		switch {
		case up(value(lo)):
			return cut{f32: float32(math.Inf(-1))}
		case !up(value(hi)):
			return cut{f32: float32(math.Inf(1))}
		}
		return cut{f32: orderedFloat(bisect(lo, hi, func(i int64) bool { return up(value(i)) }))}
	}
	value := func(i int64) float64 { return float64(i) }
	switch {
	case up(value(d.lo)):
		return cut{i32: math.MinInt32}
	case !up(value(d.hi)):
		return cut{i32: math.MaxInt32}
	}
	return cut{i32: int32(bisect(d.lo, d.hi, func(i int64) bool { return up(value(i)) }))}
}

// bisect returns the smallest i in (lo, hi] with up(i), where up(lo) is false
// and up(hi) is true.
func bisect(lo, hi int64, up func(int64) bool) int64 {
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; up(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// orderedFloat numbers the finite float32 values in ascending order: 0 is +0, −1 is −0.
func orderedFloat(i int64) float32 {
	if i < 0 {
		return -math.Float32frombits(uint32(-i - 1))
	}
	return math.Float32frombits(uint32(i))
}

// positive reports whether a Sign layer gives +1 for y.
func positive(r bcnn.ZeroRule, y float64) bool {
	return y > 0 || y == 0 && r == bcnn.ZeroIsPlus
}

// decision is how the bit of a channel is made of its values:
//
//	OR over the window of ((value ≥ cut) XOR before), XOR after
//
// If negate is set, of the negated values.
type decision struct {
	cut
	negate, before, after bool
}

// decide turns a chain and a condition of its results into a decision for channel c. met must be
// false, then true, as the result grows. The chain may have a max-pool; behind a falling function
// it is a minimum of the values. canNegate allows to negate the values (by complementing the
// filter), so that no flip is needed before the OR.
func decide(chain []link, met func(float64) bool, c int, d domain, canNegate bool) decision {
	pre, all := direction(chain[:poolAt(chain)], c), direction(chain, c)
	out := decision{}
	value := func(x float64) float64 { return x }
	if pre < 0 {
		if canNegate {
			out.negate = true
			value = func(x float64) float64 { return -x }
			all = -all
		} else {
			out.before = true
		}
	}
	rising := all > 0
	out.cut = d.search(func(x float64) bool {
		return met(evaluate(chain, c, value(x))) == rising
	})
	// (value ≥ cut) is the wanted bit, or its complement if the chain falls. The flip before the OR
	// has complemented it once.
	out.after = !rising != out.before
	return out
}
