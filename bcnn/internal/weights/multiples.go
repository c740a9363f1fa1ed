package weights

import (
	"math"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// The largest magnitude of weights that are taken for integers: Largest, and of those of ±1
// values LargestOfSigns, for which more are of no use.
const (
	Largest        = 128
	LargestOfSigns = 15
)

// OfFloat32 is what roundings to float32 leave of the largest weight, as a fraction of it:
// weights are made by a few operations that round, as by 2·(k/15) − 1 and a factor.
const OfFloat32 = 0x1p-22

// nearly is the largest distance from a multiple, relative to α, of weights that are said
// to be almost so.
const nearly = 1e-4

// mostWalks bounds the search for α: how often all weights of a filter are looked at. Those
// that are multiples of one α end the search, and others show after a few weights.
const mostWalks = 64

// multiples returns weights, so many of each of out filters, as integers times one α > 0 per
// filter: integers of magnitudes up to Largest, from −128 to 127, or up to LargestOfSigns
// for an input of signs. A weight may differ from its multiple by tolerance·α, or by what
// roundings leave of it, which move the largest weight by a fraction of rounding.
// integers is nil where there are others. deviation is the largest distance from the
// multiples, relative to α, of weights that are at least almost such.
func multiples(b *budget.Budget, rows []float32, out int, signs bool, tolerance, rounding float64) (integers []int8, alpha []float32, deviation float64, err error) {
	if err := b.Charge(int64(len(rows) + 8*out)); err != nil {
		return nil, nil, 0, err
	}
	most := Largest
	if signs {
		most = LargestOfSigns
	}
	size := len(rows) / out
	integers, alpha = make([]int8, len(rows)), make([]float32, out)
	taken := true
	for o := range out {
		filter := rows[o*size:][:size]
		a, off, walked := unitOf(filter, most, max(nearly, tolerance), rounding)
		if err := b.Charge(walked); err != nil {
			return nil, nil, 0, err
		}
		if a == 0 {
			return nil, nil, 0, nil
		}
		alpha[o], deviation = a, max(deviation, off)
		largest := 0
		for i, w := range filter {
			k := multiple(w, a)
			integers[o*size+i] = int8(k)
			largest = max(largest, int(math.Abs(k)))
		}
		taken = taken && off <= max(tolerance, roundingOf(largest, rounding))
	}
	if !taken {
		return nil, nil, deviation, nil
	}
	return integers, alpha, deviation, nil
}

// unitOf returns the largest α of which all weights are a multiple, of at most largest,
// and how far they are from it, relative to α; 0 if that is more than tolerance, and than
// rounding makes of the largest. walked is how many weights it has looked at.
func unitOf(filter []float32, largest int, tolerance, rounding float64) (alpha float32, off float64, walked int64) {
	high, low, least := float32(0), float32(0), float32(math.MaxFloat32)
	for _, w := range filter {
		high, low = max(high, w), max(low, -w)
		if w != 0 {
			least = min(least, max(w, -w))
		}
	}
	most := max(high, low)
	if most == 0 {
		return 1, 0, 0
	}
	if !(most <= math.MaxFloat32) {
		return 0, 0, 0
	}
	if most == high {
		largest = min(largest, math.MaxInt8)
	}
	for k := 1; k <= largest && walked <= mostWalks*int64(len(filter)+mostWalks); k++ {
		// Rounding k·α has moved it by less than one place.
		middle := most / float32(k)
		best, found := max(tolerance, roundingOf(k, rounding)), float32(0)
		for _, a := range []float32{middle, math.Nextafter32(middle, 0), math.Nextafter32(middle, math.MaxFloat32)} {
			if walked++; offUnit(least, a) > best || multiple(high, a) > math.MaxInt8 { // which most α fail
				continue
			}
			off, n, ok := distance(filter, a, best)
			if walked += n; ok && (found == 0 || off < best) {
				best, found = off, a
			}
		}
		if found > 0 {
			return found, best, walked
		}
	}
	return 0, 0, walked
}

// mostRounding is the largest distance from a multiple of α that is taken for a rounding:
// real weights hardly are that near to multiples of one.
const mostRounding = 0.02

// roundingOf is how far weights of up to k times α may be from multiples of it, relative to
// α, where a rounding moves a number by a fraction.
func roundingOf(k int, rounding float64) float64 { return min(float64(k)*rounding, mostRounding) }

// distance returns the largest distance of weights from multiples of α, relative to it,
// as long as that is at most limit, and how many of them it has looked at.
func distance(filter []float32, alpha float32, limit float64) (off float64, walked int64, ok bool) {
	if alpha < 0x1p-100 {
		return 0, 0, false
	}
	for i, w := range filter {
		if off = max(off, offUnit(w, alpha)); off > limit {
			return off, int64(i + 1), false
		}
	}
	return off, int64(len(filter)), true
}

// multiple returns which multiple of α is the nearest to a weight.
func multiple(w, alpha float32) float64 { return math.Round(float64(w) / float64(alpha)) }

// offUnit returns the distance of a weight from multiples of α, relative to it.
func offUnit(w, alpha float32) float64 {
	m := float32(multiple(w, alpha))
	return math.Abs(float64(w)-float64(m*alpha)) / float64(alpha)
}
