package values

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
)

// What a step makes of its threshold matters as often as its input is there. Real
// numbers behind real weights hardly ever are. Integer sums are, and what a ReLU
// has cut off.

// Frequency is how often values are at a threshold.
type Frequency uint8

const (
	Never  Frequency = iota // as far as it can be shown
	Seldom                  // a coincidence of real numbers
	Often
)

// chainDepth is how many layers Meets walks back.
const chainDepth = 16

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

// coefficients returns the numbers of a channel.
func (l *link) coefficients(c int) (mean, scale, shift float64) {
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
		mean, scale, shift := links[i].coefficients(c)
		x = float64((x-mean)*scale) + shift
	}
	return x
}

// meetUnits is what Meets costs, apart from channels.
const meetUnits = 8192

// Meets returns how often the values of a layer, or of an input, are at thresholds, one for
// all channels or one each.
func (a *Analysis) Meets(layer int, thresholds []float32) (Frequency, error) {
	if err := a.budget.Charge(meetUnits); err != nil {
		return Often, err
	}
	links, last, of, err := a.linksOf(layer)
	if err != nil {
		return Often, err
	}
	channels, leaky := len(thresholds), 0
	for i := range links {
		l := &links[i]
		channels = max(channels, len(l.mean), len(l.scale), len(l.shift), len(l.slope))
	}
	for i := range last {
		if len(last[i].slope) > 0 {
			leaky++
		}
	}
	if leaky > mostLeaky {
		return Often, nil
	}
	found := Never
	if !of.Only {
		found = Seldom
	}
	for c := range channels {
		if err := a.budget.Charge(8 * int64(1+len(links)) << leaky); err != nil {
			return Often, err
		}
		t := number(thresholds, c, 0)
		for i := range links { // what a ReLU cuts off is 0
			for _, x := range links[i].bounds(c) {
				if evaluate(links[i+1:], c, x) == t {
					return Often, nil
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

// linksOf returns the functions of single values that end in a layer, and of these the last
// ones, of values that are those of a set: sums of a layer with weights, means, or whatever
// stands in front of the functions.
func (a *Analysis) linksOf(layer int) (links, last []link, of sets.Set, err error) {
	links = make([]link, 0, chainDepth)  // the last one first
	mean, behind := bcnn.NetworkInput, 0 // the last average pool, and how many links are behind it
walk:
	for range chainDepth {
		if layer <= bcnn.NetworkInput {
			break
		}
		l := a.net.Layers[layer]
		switch op := l.Op.(type) {
		case bcnn.Affine:
			links = append(links, link{scale: op.Scale, shift: op.Bias})
		case bcnn.BatchNorm:
			links = append(links, link{mean: op.Mean, scale: op.Gamma, shift: op.Beta, norm: &op})
		case bcnn.ReLU:
			links = append(links, link{cut: &bcnn.Clip{Max: float32(math.Inf(1))}})
		case bcnn.Clip:
			links = append(links, link{cut: &op})
		case bcnn.PReLU:
			links = append(links, link{slope: op.Slope})
		case bcnn.AvgPool: // of equal values gives the same
			if mean == bcnn.NetworkInput {
				mean, behind = layer, len(links)
			}
		case bcnn.MaxPool, bcnn.Flatten:
		case bcnn.Weighted:
			_, _, bias := op.Filters()
			links = append(links, link{shift: bias})
			break walk
		default:
			break walk
		}
		layer = l.Inputs[0]
	}
	slices.Reverse(links)
	last = links
	if mean != bcnn.NetworkInput {
		layer, last = mean, links[len(links)-behind:]
	}
	of, alpha, err := a.Sums(layer) // whose bias is one of the links
	if alpha != nil {
		links = slices.Insert(links, len(links)-len(last), link{scale: alpha})
		last = links[len(links)-len(last)-1:]
	}
	return links, last, of, err
}

// mostLeaky is how many PReLUs in a row are looked at.
const mostLeaky = 3

// meet returns how often the value of a channel, of multiples, is at t. The bits of branch tell which
// PReLUs get a value below 0.
func meet(s sets.Multiples, links []link, c int, t float64, branch int) Frequency {
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
			m, k, h := l.coefficients(c)
			slope, shift = slope*k, (shift-m)*k+h
			size = (size+math.Abs(m))*math.Abs(k) + math.Abs(h)
		}
	}
	if slope == 0 {
		if evaluate(links, c, 0) == t {
			return Often
		}
		return Never
	}
	found := Never
	near := math.Round((t - shift) / slope / s.Unit)
	for i := -2.0; i <= 2; i++ { // near may be so large that it plus 1 is near
		k := near + i
		odd := math.Mod(k, 2) != 0
		if math.Abs(k*s.Unit) > s.Most || odd && !s.Odd || !odd && !s.Even {
			continue
		}
		switch off := math.Abs(evaluate(links, c, k*s.Unit) - t); {
		case off == 0, s.Rounded && off <= size*1e-6:
			return Often
		case off <= size*1e-6: // float32 may take it for 0
			found = Seldom
		}
	}
	return found
}
