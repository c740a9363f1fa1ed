package cpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestFloatDepthwise has depthwise layers on float32 values, with as many channels as
// vectors have and more, whose windows move by a pixel or two, and reach over some sides of
// the image or none.
func TestFloatDepthwise(t *testing.T) {
	forEach(t, func(t *testing.T, opts backend.Options) {
		rng := rand.New(rand.NewPCG(17, uint64(opts.Threads)))
		for i := range 32 {
			taps := 3 + 2*rng.IntN(2)
			side := func() int { return rng.IntN(taps/2 + 1) }
			w := bcnn.Window{KH: taps, KW: taps, StrideH: 1 + rng.IntN(2), StrideW: 1 + rng.IntN(2), Pad: bcnn.Padding{Top: side(), Left: side(), Bottom: side(), Right: side()}}
			if i%4 == 0 {
				w.StrideH, w.StrideW, w.Pad = 1, 1, pad(taps/2)
			}
			channels := []int{16, 40, 64, 70, 512}[rng.IntN(5)]
			p := newPlanner(uint64(i), input(bcnn.Float32, max(1, taps-w.Pad.Top-w.Pad.Bottom)+rng.IntN(12), max(1, taps-w.Pad.Left-w.Pad.Right)+rng.IntN(12), channels))
			p.conv(convOptions{window: w, out: channels, groups: channels, float: true, raw: rng.IntN(2) == 0, end: p.anyActivation()})
			if rng.IntN(2) == 0 {
				p.numbers(1)
			}
			requireReference(t, p, opts)
		}
	})
}

func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var sizes, starts []int64 // of places one after the other
		end := int64(0)
		for range 1 + rng.IntN(20) {
			sizes = append(sizes, 64*(1+rng.Int64N(200)))
			starts = append(starts, end)
			end += sizes[len(sizes)-1]
		}
		at := rng.Perm(len(starts))
		p := plan.Placement{Offsets: []int64{-1}, Bytes: end}
		for _, i := range append(at, at[0]) { // two tensors at the same place
			p.Offsets = append(p.Offsets, starts[i])
		}
		spread(&p)
		require.Equal(t, int64(-1), p.Offsets[0])
		require.Equal(t, p.Offsets[1], p.Offsets[len(p.Offsets)-1])
		within := map[int64]bool{}
		moved := p.Offsets[1 : len(p.Offsets)-1]
		for i, k := range at {
			require.Zero(t, moved[i]%64)
			within[moved[i]%4096] = true
			next := p.Bytes
			if k+1 < len(starts) {
				next = moved[slices.Index(at, k+1)]
			}
			require.LessOrEqual(t, moved[i]+sizes[k], next)
		}
		require.Len(t, within, len(starts))
	}
}
