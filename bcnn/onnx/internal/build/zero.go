package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
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

// chainDepth is how many layers zeros walks back.
const chainDepth = 16

// made returns a layer; ok is false for the input and for holes.
func (b *Builder) made(layer int) (l bcnn.Layer, ok bool) {
	if _, hole := b.holes[layer]; hole || layer < 0 || layer >= len(b.Net.Layers) {
		return l, false
	}
	return b.Net.Layers[layer], true
}

// link is a function of one value per channel: a ReLU, a clip, a PReLU, or
// (x − mean)·scale + shift, each with one number per channel, one for all or none.
type link struct {
	cut                *bcnn.Clip // a ReLU has limits of 0 and infinity
	slope              []float32  // of a PReLU
	mean, scale, shift []float32
	norm               *bcnn.BatchNorm // whose gain is the scale
}

// bounds returns the values of a channel that a link gives for a range of others.
func (l *link) bounds(c int) []float64 {
	switch {
	case l.cut != nil:
		return []float64{float64(l.cut.Min), float64(l.cut.Max)}
	case len(l.slope) > 0 && number(l.slope, c, 1) == 0:
		return []float64{0}
	}
	return nil
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
		if cut := links[i].cut; cut != nil {
			x = max(float64(cut.Min), min(x, float64(cut.Max)))
			continue
		}
		if len(links[i].slope) > 0 {
			if x < 0 {
				x = float64(x * number(links[i].slope, c, 1))
			}
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
		channels = max(channels, len(l.mean), len(l.scale), len(l.shift), len(l.slope))
	}
	mean, behind := bcnn.NetworkInput, 0 // the last average pool, and how many links are behind it
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
			add(link{cut: &bcnn.Clip{Max: float32(math.Inf(1))}})
		case bcnn.Clip:
			add(link{cut: &op})
		case bcnn.PReLU:
			add(link{slope: op.Slope})
		case bcnn.AvgPool: // of equal values gives the same
			if mean == bcnn.NetworkInput {
				mean, behind = layer, len(links)
			}
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
	last := links
	if mean != bcnn.NetworkInput {
		layer, last = mean, links[len(links)-behind:]
	}
	of, alpha, err := b.values.Sums(layer) // whose bias is one of the links
	if err != nil {
		return often, err
	}
	if alpha != nil {
		factors := link{scale: alpha}
		links = slices.Insert(links, len(links)-len(last), factors)
		last = links[len(links)-len(last)-1:]
		channels = max(channels, len(alpha))
	}
	found := never
	if !of.Only {
		found = seldom
	}
	leaky := 0
	for i := range last {
		if len(last[i].slope) > 0 {
			leaky++
		}
	}
	if leaky > mostLeaky {
		return often, nil
	}
	for c := range channels {
		if err := b.budget.Charge(8 * int64(1+len(links)) << leaky); err != nil {
			return often, err
		}
		t := number(thresholds, c, 0)
		for i := range links { // what a ReLU cuts off is 0
			for _, x := range links[i].bounds(c) {
				if evaluate(links[i+1:], c, x) == t {
					return often, nil
				}
			}
		}
		if of.Often.Unit != 0 {
			for branch := range 1 << leaky {
				found = max(found, meet(of.Often, last, c, t, branch))
			}
		}
	}
	return found, nil
}

// mostLeaky is how many PReLUs in a row are looked at.
const mostLeaky = 3

// meet returns how often the value of a channel, of multiples, is at t. The bits of branch tell which
// PReLUs get a value below 0.
func meet(s values.Multiples, links []link, c int, t float64, branch int) frequency {
	slope, shift, size := 1.0, 0.0, s.Most // size bounds what is added up
	for i := range links {
		switch l := &links[i]; {
		case l.cut != nil:
		case len(l.slope) > 0:
			if branch&1 != 0 {
				k := number(l.slope, c, 1)
				slope, shift = slope*k, shift*k
			}
			branch >>= 1
		default:
			m, k, h := l.parts(c)
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
	near := math.Round((t - shift) / slope / s.Unit)
	for i := -2.0; i <= 2; i++ { // near may be so large that it plus 1 is near
		k := near + i
		odd := math.Mod(k, 2) != 0
		if math.Abs(k*s.Unit) > s.Most || odd && !s.Odd || !odd && !s.Even {
			continue
		}
		switch off := math.Abs(evaluate(links, c, k*s.Unit) - t); {
		case off == 0, s.Rounded && off <= size*1e-6:
			return often
		case off <= size*1e-6: // float32 may take it for 0
			found = seldom
		}
	}
	return found
}
