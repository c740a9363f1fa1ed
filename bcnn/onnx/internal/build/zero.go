package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// What a step makes of its threshold matters as often as its input is there. Real
// numbers behind real weights hardly ever are. Integer sums are, and what a ReLU
// has cut off.

// frequency is how often values are at a threshold.
type frequency uint8

const (
	never  frequency = iota // as far as it can be shown
	seldom                  // a coincidence of real numbers
	often
)

// The functions below walk back from a layer over at most so many others.
const (
	intervalDepth = 6
	chainDepth    = 16
)

// made returns a layer; ok is false for the input and for holes.
func (b *Builder) made(layer int) (l bcnn.Layer, ok bool) {
	if _, hole := b.holes[layer]; hole || layer < 0 || layer >= len(b.Net.Layers) {
		return l, false
	}
	return b.Net.Layers[layer], true
}

// interval returns bounds of the values of a layer.
func (b *Builder) interval(layer, depth int) (lo, hi float64) {
	lo, hi = math.Inf(-1), math.Inf(1)
	if layer == bcnn.NetworkInput {
		if b.Net.Input.DType == bcnn.Uint8 {
			return 0, math.MaxUint8
		}
		return lo, hi
	}
	l, ok := b.made(layer)
	if !ok || depth == 0 {
		return lo, hi
	}
	switch op := l.Op.(type) {
	case bcnn.Sign, bcnn.Binarize:
		return -1, 1
	case bcnn.ReLU:
		lo, hi = b.interval(l.Inputs[0], depth-1)
		return max(lo, 0), max(hi, 0)
	case bcnn.MaxPool, bcnn.Flatten:
		return b.interval(l.Inputs[0], depth-1)
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

// sums are the values that a layer gives where they are integers times a unit: at
// most so large, odd or even multiples of the unit, or both.
type sums struct {
	unit, most float64
	odd, even  bool
}

// finest is the smallest unit that counts as one: 2^-finest.
const finest = 8

// integers returns the sums that a layer gives; ok is false for other values.
func (b *Builder) integers(layer, depth int) (s sums, ok bool, err error) {
	if layer == bcnn.NetworkInput {
		return sums{1, math.MaxUint8, true, true}, b.Net.Input.DType == bcnn.Uint8, nil
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
		return sums{1, 1, true, false}, true, nil
	case bcnn.MaxPool, bcnn.Flatten:
		return b.integers(l.Inputs[0], depth-1)
	case bcnn.ReLU:
		s, ok, err = b.integers(l.Inputs[0], depth-1)
		s.even = true
		return s, ok, err
	case bcnn.Add:
		if len(l.Inputs) != 2 {
			return s, false, nil
		}
		x, ok, err := b.integers(l.Inputs[0], depth-1)
		if !ok || err != nil {
			return s, false, err
		}
		y, ok, err := b.integers(l.Inputs[1], depth-1)
		s = sums{x.unit, x.most + y.most, x.odd && y.even || x.even && y.odd, x.odd && y.odd || x.even && y.even}
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
	return sums{unit, s.most*factor + shift, true, true}, unit >= least, err
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

// link is a function of one value per channel: a ReLU, or (x − mean)·scale + shift,
// each with one number per channel, one for all or none.
type link struct {
	relu               bool
	mean, scale, shift []float32
	norm               *bcnn.BatchNorm // whose gain is the scale
}

// number returns that of a channel. Channels of a flattened image repeat.
func number(list []float32, c int, empty float64) float64 {
	if len(list) == 0 {
		return empty
	}
	return float64(list[c%len(list)])
}

// parts returns the numbers of a channel.
func (l *link) parts(c int) (mean, scale, shift float64) {
	mean, scale, shift = number(l.mean, c, 0), number(l.scale, c, 1), number(l.shift, c, 0)
	if n := l.norm; n != nil {
		scale /= math.Sqrt(number(n.Var, c, 1) + float64(n.Epsilon))
	}
	return mean, scale, shift
}

// evaluate applies links as a plan does: nothing is composed, so that ties stay.
func evaluate(links []link, c int, x float64) float64 {
	for i := range links {
		if links[i].relu {
			x = max(x, 0)
			continue
		}
		mean, scale, shift := links[i].parts(c)
		x = float64((x-mean)*scale) + shift
	}
	return x
}

// zeroUnits is what zeros costs, apart from channels.
const zeroUnits = 8192

// zeros returns how often a value is at its thresholds, one for all channels or one
// each.
func (b *Builder) zeros(in *Value, thresholds []float32) (frequency, error) {
	if err := b.budget.Charge(zeroUnits); err != nil {
		return often, err
	}
	links := make([]link, 0, chainDepth) // the last one first
	layer, channels := in.Layer, len(thresholds)
	add := func(l link) {
		links = append(links, l)
		channels = max(channels, len(l.mean), len(l.scale), len(l.shift))
	}
walk:
	for range chainDepth {
		l, ok := b.made(layer)
		if !ok {
			break
		}
		switch op := l.Op.(type) {
		case bcnn.Affine:
			add(link{scale: op.Scale, shift: op.Bias})
		case bcnn.BatchNorm:
			add(link{mean: op.Mean, scale: op.Gamma, shift: op.Beta, norm: &op})
		case bcnn.ReLU:
			add(link{relu: true})
		case bcnn.MaxPool, bcnn.Flatten:
		case bcnn.Conv2D:
			add(link{shift: op.Bias})
			break walk
		case bcnn.Dense:
			add(link{shift: op.Bias})
			break walk
		default:
			break walk
		}
		layer = l.Inputs[0]
	}
	slices.Reverse(links)
	s, known := b.sums[layer]
	if !known {
		var err error
		if s, known, err = b.integers(layer, intervalDepth); err != nil {
			return often, err
		}
	}
	found := never
	if !known {
		found = seldom
	}
	if err := b.budget.Charge(8 * int64(channels) * int64(1+len(links))); err != nil {
		return often, err
	}
	for c := range channels {
		t := number(thresholds, c, 0)
		for i := range links { // what a ReLU cuts off is 0
			if links[i].relu && evaluate(links[i+1:], c, 0) == t {
				return often, nil
			}
		}
		if known {
			found = max(found, s.meet(links, c, t))
		}
	}
	return found, nil
}

// meet returns how often the value of a channel is at t.
func (s sums) meet(links []link, c int, t float64) frequency {
	slope, shift, size := 1.0, 0.0, s.most // size bounds what is added up
	for i := range links {
		if !links[i].relu {
			m, k, h := links[i].parts(c)
			slope, shift = slope*k, (shift-m)*k+h
			size = (size+math.Abs(m))*math.Abs(k) + math.Abs(h)
		}
	}
	if slope == 0 {
		if evaluate(links, c, 0) == t {
			return often
		}
		return never
	}
	found := never
	near := math.Round((t - shift) / slope / s.unit)
	for k := near - 2; k <= near+2; k++ {
		odd := math.Mod(k, 2) != 0
		if math.Abs(k*s.unit) > s.most || odd && !s.odd || !odd && !s.even {
			continue
		}
		switch off := math.Abs(evaluate(links, c, k*s.unit) - t); {
		case off == 0:
			return often
		case off <= size*1e-6: // float32 may take it for 0
			found = seldom
		}
	}
	return found
}
