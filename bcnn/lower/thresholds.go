package lower

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Thresholds of levels: which functions become a part of them.

// before moves thresholds in front of functions that are the same for all channels and
// never fall, and returns the layers of those. Functions that a convolution does at its end stay
// there where that gives the same levels.
func (lo *lowering) before(v value, op bcnn.Quantize) (value, bcnn.Quantize, []int, error) {
	n, k := op.Levels-1, len(v.chain)
	for k > 0 && len(v.chain)-k < maxMixed && v.chain[k-1].rises() {
		k--
	}
	behind := v.chain[k:]
	if len(behind) == 0 || len(op.Thresholds) != n {
		return v, op, nil, nil
	}
	if err := lo.Charge(searchSteps * int64(n) * int64(1+len(behind))); err != nil {
		return v, op, nil, err
	}
	if err := lo.hold(4 * int64(n)); err != nil {
		return v, op, nil, err
	}
	thresholds := make([]float32, n)
	for j, t := range op.Thresholds {
		thresholds[j] = decide(behind, func(y float64) bool { return y >= float64(t) }, 0, domain{float: true}, false).f32
	}
	if v.conv != nil && k == 0 {
		if same, err := lo.endDecides(v, op.Thresholds, thresholds); same || err != nil {
			return v, op, nil, err
		}
	}
	op.Thresholds = thresholds
	v.chain = v.chain[:k:k]
	return v, op, layersOf(behind), nil
}

// endDecides reports whether the results of a convolution, which scales its sums and rounds once,
// reach thresholds where the sums reach those of before, at which each function has been rounded.
// The functions of v are the same for all channels and never fall.
func (lo *lowering) endDecides(v value, thresholds, before []float32) (bool, error) {
	affine, a, rest, err := lo.prefix(v.chain, 1, lo.sums(v), false)
	if len(rest) > 0 || err != nil {
		return false, err
	}
	scale, shift := compose(affine, 0)
	end := func(x float32) float32 {
		if len(affine) > 0 {
			x = f32.FMA(x, scale, shift)
		}
		return a.Of(x, 0)
	}
	const exact = 1 << 24 // of integers in float32
	d := lo.domain(v)
	lowest, highest := float32(-math.MaxFloat32), float32(math.MaxFloat32)
	integers := !d.float && d.hi <= exact
	if integers {
		lowest, highest = float32(d.lo), float32(d.hi)
	}
	for j, x := range before {
		below := math.Nextafter32(x, float32(math.Inf(-1)))
		if integers {
			x = float32(math.Ceil(float64(x)))
			below = x - 1
		}
		if x <= highest && !(end(max(x, lowest)) >= thresholds[j]) || below >= lowest && end(min(below, highest)) >= thresholds[j] {
			return false, nil
		}
	}
	return true, nil
}

// rises reports whether the function is the same for all channels and never falls.
func (l *link) rises() bool {
	switch l.kind {
	case linkAffine:
		return l.uniform() && l.scale[0] > 0
	case linkReLU, linkClip:
		return true
	}
	return false
}

// decideLevels turns a pending chain and thresholds into the decisions for every channel,
// for numbers of so many planes. What is missing to 2^planes − 1 thresholds is never
// reached. Where the chain falls, numbers are counted from above and flipped: those in
// ascending order are those of the levels from the highest on, and what is missing is
// always reached.
func (lo *lowering) decideLevels(v value, op bcnn.Quantize, planes int) (decisions, error) {
	n, channels := op.Levels-1, lo.shape(v).C
	all := 1<<planes - 1
	if err := lo.hold(4*int64(all)*int64(channels) + 16*int64(bits.Words(channels))); err != nil {
		return decisions{}, err
	}
	out := decisions{planes: planes, before: newFlips(channels), after: newFlips(channels)}
	d := lo.domain(v)
	// An infinite value would reach +∞.
	lowest, highest := cut{i32: math.MinInt32, f32: float32(math.Inf(-1))}, cut{i32: math.MaxInt32, f32: float32(math.NaN())}
	set := func(k, c int, to cut) {
		if d.float {
			out.threshold.F32[k*channels+c] = to.f32
		} else {
			out.threshold.I32[k*channels+c] = to.i32
		}
	}
	if d.float {
		out.threshold.F32 = make([]float32, all*channels)
	} else {
		out.threshold.I32 = make([]int32, all*channels)
	}
	shared := len(op.Thresholds) == n
	once := shared && uniform(v.chain)
	decided := make([]decision, n)
	for c := range channels {
		if c == 0 || !once {
			if err := lo.Charge(searchSteps * int64(n) * int64(1+len(v.chain))); err != nil {
				return out, err
			}
			thresholds := op.Thresholds
			if !shared {
				thresholds = thresholds[c*n:][:n]
			}
			for k, t := range thresholds {
				decided[k] = decide(v.chain, func(y float64) bool { return y >= float64(t) }, c, d, v.conv != nil)
			}
			if decided[0].before != decided[0].after {
				slices.Reverse(decided)
			}
		}
		// All decisions of a channel have the same direction.
		first := decided[0]
		if first.before != first.after {
			for k := range all - n {
				set(k, c, lowest)
			}
			for k, dec := range decided {
				set(all-n+k, c, dec.cut)
			}
		} else {
			for k := range all {
				if k < n {
					set(k, c, decided[k].cut)
				} else {
					set(k, c, highest)
				}
			}
		}
		out.before.set(c, first.before)
		out.after.set(c, first.after)
		if first.negate {
			out.negate = append(out.negate, c)
		}
	}
	return out, nil
}

// bytesPerChannel is what the layers of a chain hold for each channel.
func bytesPerChannel(chain []link) int {
	n := 0
	for _, l := range chain {
		for _, list := range [][]float64{l.mean, l.scale, l.shift} {
			if len(list) > 1 {
				n += 4
			}
		}
	}
	return n
}
