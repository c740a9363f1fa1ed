// Package weights finds what the weights of a layer are made of: ±α with one α for each
// filter, small whole multiples of α, two values, or sums of a few binary bases.
package weights

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Rows are the real weights of a layer, [filter][…][row]: of Out filters, in rows of RowLen
// values of which each is packed on its own.
type Rows struct {
	Values      []float32
	Out, RowLen int
}

// Size is how many weights a filter has.
func (r Rows) Size() int { return len(r.Values) / r.Out }

// Filter returns the weights of a filter.
func (r Rows) Filter(o int) []float32 {
	size := r.Size()
	return r.Values[o*size:][:size]
}

// Tolerance is how far weights may be from what they are taken for.
type Tolerance struct {
	// Relative is a fraction of α.
	Relative float64
	// Rounding is what a number may be off by as a fraction of it, because it was rounded, and
	// what it was computed from: OfFloat32, or more where weights were FLOAT16.
	Rounding float64
}

// binary is Tolerance for ±α.
func (t Tolerance) binary() float64 { return max(t.Relative, 2*t.Rounding) }

// Form is a decomposition of the weights of a layer: those of a filter are its α times Bits or
// Int8.
type Form struct {
	Bits  []uint64 // ±1 in packed rows
	Int8  []int8
	Alpha []float32 // of each filter, all above 0
}

// One reports whether all α are 1.
func (f *Form) One() bool {
	for _, a := range f.Alpha {
		if a != 1 {
			return false
		}
	}
	return true
}

// Products returns how many products of bits stand for one with a weight: each weight is the
// sum of so many ±1, or of so many ±½.
func (f *Form) Products() int {
	if f.Bits != nil {
		return 1
	}
	n, odd, even := 0, false, false
	for _, w := range f.Int8 {
		n = max(n, int(w), -int(w))
		odd, even = odd || w%2 != 0, even || w%2 == 0
	}
	if n == 0 || odd && even || !odd && even && n%2 != 0 {
		return max(2*n, 2)
	}
	return n
}

// String says what the weights are.
func (f *Form) String() string {
	switch {
	case f.Bits != nil && f.One():
		return "±1"
	case f.Bits != nil:
		return "±α"
	case f.One():
		return "integers"
	}
	return "multiples of α"
}

// nearlyBinary is the largest deviation, relative to α, of weights that are said to be
// almost ±α.
const nearlyBinary = 0.01

// Binary returns weights that are ±α, nil for others. deviation is the largest distance from
// ±α, relative to α, of weights that are at least almost so.
func Binary(b *budget.Budget, rows Rows, within Tolerance) (f *Form, deviation float64, err error) {
	if err := b.Charge(4 * int64(rows.Out)); err != nil {
		return nil, 0, err
	}
	f = &Form{Alpha: make([]float32, rows.Out)}
	for o := range f.Alpha {
		filter := rows.Filter(o)
		// Values without their signs are ordered as their bits are, and NaN is above all.
		first, last := uint32(math.MaxUint32), uint32(0)
		err := b.Loop(len(filter), func(lo, hi int) {
			for _, w := range filter[lo:hi] {
				u := math.Float32bits(w) << 1 >> 1
				first, last = min(first, u), max(last, u)
			}
		})
		if err != nil {
			return nil, 0, err
		}
		least, most := math.Float32frombits(first), math.Float32frombits(last)
		if !(least > 0) || !(most <= math.MaxFloat32) {
			return nil, 0, nil
		}
		middle := (float64(least) + float64(most)) / 2
		off := (float64(most) - float64(least)) / 2 / middle
		if !(off <= max(nearlyBinary, within.binary())) {
			return nil, 0, nil
		}
		if math.Abs(middle-1) <= off {
			middle = 1
		}
		f.Alpha[o] = float32(middle)
		a := float64(f.Alpha[o])
		deviation = max(deviation, (a-float64(least))/a, (float64(most)-a)/a)
	}
	if deviation > within.binary() {
		return nil, deviation, nil
	}
	f.Bits, err = Pack(b, rows)
	return f, deviation, err
}

// Pack packs the signs of weights: a bit is 1 where the weight is above 0.
func Pack(b *budget.Budget, rows Rows) ([]uint64, error) {
	words, n := bits.Words(rows.RowLen), len(rows.Values)/rows.RowLen
	if err := b.Charge(8 * int64(n) * int64(words)); err != nil {
		return nil, err
	}
	packed := make([]uint64, n*words)
	for r := range n {
		to, from := packed[r*words:][:words], rows.Values[r*rows.RowLen:][:rows.RowLen]
		err := b.Loop(rows.RowLen, func(lo, hi int) { // lo is a multiple of a word
			bits.Pack(to[lo/bits.WordBits:][:bits.Words(hi-lo)], from[lo:hi], hi-lo)
		})
		if err != nil {
			return nil, err
		}
	}
	return packed, nil
}

// Integers returns weights that are integers times α, nil for others. deviation is the largest
// distance from them, relative to α, of weights that are at least almost so. Of an input of
// signs only integers are of use that few of them add up to.
func Integers(b *budget.Budget, rows Rows, signs bool, within Tolerance) (f *Form, deviation float64, err error) {
	integers, alpha, deviation, err := multiples(b, rows.Values, rows.Out, signs, within.Relative, within.Rounding)
	if integers == nil || err != nil {
		return nil, deviation, err
	}
	return &Form{Int8: integers, Alpha: alpha}, deviation, nil
}

// Find returns weights as Binary does, or where coded says that products with integers are
// exact, too, as Integers does.
func Find(b *budget.Budget, rows Rows, coded, signs bool, within Tolerance) (f *Form, deviation float64, err error) {
	f, deviation, err = Binary(b, rows, within)
	if f != nil || err != nil || !coded {
		return f, deviation, err
	}
	f, off, err := Integers(b, rows, signs, within)
	if f != nil || deviation == 0 {
		deviation = off
	}
	return f, deviation, err
}

// fewestTaps is how many weights a filter must have at least for two values of them to be
// no coincidence.
const fewestTaps = 5

// Two are weights of two values in each filter, Alpha·Signs + Middle.
type Two struct {
	Signs         []float32 // ±1, in the order of the weights
	Alpha, Middle []float32 // of each filter
	Deviation     float64   // of the weights, relative to Alpha
}

// TwoValues returns weights that have at most two values in each filter, and two in some, as
// AdaBin has them (Tu et al., ECCV 2022), nil for others.
func TwoValues(b *budget.Budget, rows Rows, within Tolerance) (*Two, error) {
	size := rows.Size()
	if size < fewestTaps {
		return nil, nil
	}
	if err := b.Charge(8 * int64(rows.Out)); err != nil {
		return nil, err
	}
	t := &Two{Alpha: make([]float32, rows.Out), Middle: make([]float32, rows.Out)}
	for o := range rows.Out {
		filter := rows.Filter(o)
		if err := b.Charge(3 * int64(size)); err != nil {
			return nil, err
		}
		least, most := filter[0], filter[0]
		for _, w := range filter {
			least, most = min(least, w), max(most, w)
		}
		half := (float64(most) - float64(least)) / 2
		t.Alpha[o], t.Middle[o] = float32(half), float32((float64(most)+float64(least))/2)
		if half-half != 0 {
			return nil, nil
		}
		for _, w := range filter {
			off := min(float64(most)-float64(w), float64(w)-float64(least))
			if off > within.Relative*half {
				return nil, nil
			}
			if off > 0 {
				t.Deviation = max(t.Deviation, off/half)
			}
		}
		if o == 0 {
			if err := b.Charge(4 * int64(len(rows.Values))); err != nil {
				return nil, err
			}
			t.Signs = make([]float32, len(rows.Values))
		}
		for i, w := range filter {
			t.Signs[o*size+i] = 1
			if float64(w)-float64(least) < float64(most)-float64(w) {
				t.Signs[o*size+i] = -1
			}
		}
	}
	if slices.Max(t.Alpha) == 0 {
		return nil, nil
	}
	return t, nil
}
