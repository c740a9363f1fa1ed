package lower

import (
	"math"
	"math/bits"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Affine functions in a row: which of them become one, and which become a part of the sums in front
// of them.

// prefix splits off the links that one step can do behind its sums: affine links as far as they may
// be composed for values of, then at most one activation. functions says that the step can evaluate
// a Function.
func (lo *lowering) prefix(chain []link, channels int, of values, functions bool) (affine []link, a plan.Activation, rest []link, err error) {
	n, err := lo.together(leading(chain), channels, of)
	if err != nil {
		return nil, a, nil, err
	}
	affine, rest = chain[:n], chain[n:]
	if len(rest) > 0 && rest[0].kind == linkAffine {
		return affine, a, rest, nil
	}
	if len(rest) > 0 && rest[0].kind != linkPool && (functions || rest[0].kind != linkFunction) {
		a, err = lo.activation(&rest[0], channels)
		rest = rest[1:]
	}
	return affine, a, rest, err
}

// leading returns the affine links at the beginning of a chain.
func leading(chain []link) []link {
	n := 0
	for n < len(chain) && chain[n].kind == linkAffine {
		n++
	}
	return chain[:n]
}

// values says what numbers a chain is evaluated for: ±1, or sums of bits or of levels that are
// multiples of unit, or any numbers, if unit is 0.
type values struct {
	signs bool
	unit  float64
	most  float64 // their largest magnitude, or 0 if that is not known
}

// after returns the values that an affine link makes of multiples of unit in channel c, if float32
// holds each of them, so that none is rounded. The result for other values is empty.
func (of values) after(l *link, c int) values {
	if of.unit == 0 || of.most == 0 {
		return values{}
	}
	s, mean, shift := at(l.scale, c), at(l.mean, c), at(l.shift, c)
	out := values{
		unit: min(min(of.unit, lowestBit(mean))*lowestBit(s), lowestBit(shift)),
		most: (of.most+math.Abs(mean))*math.Abs(s) + math.Abs(shift),
	}
	const held = 1 << 24 // float32 holds all integers up to here
	if s == 0 || out.unit < leastNormal || !(out.most <= held*out.unit) {
		return values{}
	}
	return out
}

// lowestBit returns the largest power of two of which x is a multiple.
func lowestBit(x float64) float64 {
	if x == 0 {
		return math.Inf(1)
	}
	fraction, exponent := math.Frexp(math.Abs(x))
	const digits = 53
	mantissa := uint64(math.Ldexp(fraction, digits))
	return math.Ldexp(1, exponent-digits+bits.TrailingZeros64(mantissa))
}

// behind returns what values are behind the step that does the first links of a chain. They are
// still sums if it only adds integers to them.
func (of values) behind(chain []link) values {
	at, unit := integral(leading(chain), of.unit)
	out := values{unit: unit}
	if at >= 0 && of.most > 0 {
		out.most = of.most
		for _, l := range chain[:at+1] {
			out.most = out.most*l.scale[0] + largest(l.shift)
		}
	}
	return out
}

// largest returns the largest magnitude of a list.
func largest(list []float64) float64 {
	var most float64
	for _, x := range list {
		most = max(most, math.Abs(x))
	}
	return most
}

// only returns what numbers a tensor has.
func (lo *lowering) only(t int) values {
	if lo.plan.Tensors[t].DType == bcnn.Bits {
		return values{signs: true}
	}
	if t < len(lo.plan.Inputs) {
		return values{}
	}
	s := lo.writer(t)
	if conv, ok := s.Op.(*plan.Conv); ok && conv.Scale == nil && conv.Activation.Kind == plan.ActivationNone {
		return lo.sums(value{conv: conv, convIn: s.In[0]})
	}
	return values{}
}

// sums returns what numbers the sums of a pending convolution are.
func (lo *lowering) sums(v value) values {
	switch {
	case !lo.counts(v.conv, v.convIn):
		return values{}
	case v.conv.F32 != nil || v.conv.Int16 != nil: // whose sums are not bounded here
		return values{unit: 1}
	}
	return values{unit: 1, most: float64(lo.bound(v))}
}

// counts reports whether the sums of a convolution of tensor t are integers: of bits, or of levels
// in float32.
func (lo *lowering) counts(conv *plan.Conv, t int) bool {
	return lo.plan.Tensors[t].DType == bcnn.Bits || lo.counting[conv]
}

// together returns how many affine links, from the first one on, may be composed for values of.
func (lo *lowering) together(affine []link, channels int, of values) (int, error) {
	if len(affine) < 2 {
		return len(affine), nil
	}
	if at, _ := integral(affine, of.unit); at >= 0 {
		return at + 1, nil // as addedIntegers adds them
	}
	if uniform(affine) {
		channels = 1
	}
	n := len(affine)
	for c := range channels {
		if err := lo.Charge(int64(n)); err != nil {
			return 0, err
		}
		if !of.signs {
			n = together(affine[:n], c, of)
		} else if !composes(affine, c) {
			return 1, nil
		}
	}
	return n, nil
}

// addedIntegers moves integers that links add to the sums of a pending convolution, which are of,
// into its offsets, and returns the chain without them and the values of the sums with them. If the
// sums were scaled first, sums and integers would be rounded separately, and a sum that is 0 might
// not give 0.
func (lo *lowering) addedIntegers(v value, chain []link, of values) ([]link, values, error) {
	const exact = 1 << 24 // beyond it the input of another link would be rounded
	for v.conv.F32 == nil && lo.bound(v) <= exact {
		at, unit := integral(leading(chain), 1)
		if at < 0 {
			break
		}
		if err := lo.hold(8 * int64(v.conv.Out)); err != nil {
			return nil, of, err
		}
		list := make([]float64, v.conv.Out)
		for o := range list {
			list[o] = chain[at].shift[o%len(chain[at].shift)] / unit
			if o < len(v.conv.Offset) {
				list[o] += float64(v.conv.Offset[o])
			}
		}
		offsets, err := lo.offsets(list)
		if err != nil || offsets == nil {
			return chain, of, err
		}
		before := v.conv.Offset
		if v.conv.Offset = offsets; lo.bound(v) > math.MaxInt32-1 {
			v.conv.Offset = before
			break
		}
		if of.most > 0 {
			of.most += largest(chain[at].shift) / unit
		}
		chain = slices.Clone(chain)
		chain[at].shift = []float64{0}
	}
	return chain, of, nil
}

// compose returns the scale and shift of affine links for all channels, or nil if there are no
// links.
func (lo *lowering) compose(affine []link, channels int) (scale, shift []float32, err error) {
	if len(affine) == 0 {
		return nil, nil, nil
	}
	if err := lo.hold(8 * int64(channels)); err != nil {
		return nil, nil, err
	}
	scale, shift = make([]float32, channels), make([]float32, channels)
	once := uniform(affine)
	for c := range channels {
		if c > 0 && once {
			scale[c], shift[c] = scale[0], shift[0]
			continue
		}
		if err := lo.Charge(int64(len(affine))); err != nil {
			return nil, nil, err
		}
		scale[c], shift[c] = compose(affine, c)
	}
	return scale, shift, nil
}
