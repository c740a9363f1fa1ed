package gpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// What wins is the fastest of those that write what most do.
func TestContest(t *testing.T) {
	type candidate struct {
		name   string
		plain  bool
		output uint64
		took   float64
	}
	for name, c := range map[string]struct {
		all   []candidate
		best  string
		wrong []string
	}{
		"one":                    {[]candidate{{"a", false, 1, 5}}, "a", nil},
		"the same":               {[]candidate{{"a", false, 1, 5}, {"b", true, 1, 3}, {"c", false, 1, 4}}, "b", nil},
		"the fastest is wrong":   {[]candidate{{"a", false, 1, 5}, {"b", false, 2, 3}, {"c", true, 1, 4}}, "c", []string{"b"}},
		"the first is wrong":     {[]candidate{{"a", false, 1, 1}, {"b", false, 2, 3}, {"c", true, 2, 4}}, "b", []string{"a"}},
		"the plainest is wrong":  {[]candidate{{"a", false, 1, 3}, {"b", false, 1, 2}, {"c", true, 2, 1}}, "b", []string{"c"}},
		"two, the second plain":  {[]candidate{{"a", false, 1, 1}, {"b", true, 2, 3}}, "b", []string{"a"}},
		"two, the first plain":   {[]candidate{{"a", true, 1, 3}, {"b", false, 2, 1}}, "a", []string{"b"}},
		"two, none plain":        {[]candidate{{"a", false, 1, 3}, {"b", false, 2, 1}}, "a", []string{"b"}},
		"two and two":            {[]candidate{{"a", false, 1, 1}, {"b", false, 1, 2}, {"c", false, 2, 4}, {"d", true, 2, 3}}, "d", []string{"a", "b"}},
		"each something else":    {[]candidate{{"a", false, 1, 1}, {"b", false, 2, 2}, {"c", true, 3, 4}}, "c", []string{"a", "b"}},
		"the fastest comes last": {[]candidate{{"a", false, 1, 4}, {"b", false, 2, 1}, {"c", false, 1, 2}}, "c", []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var contest Contest[string]
			var left []string // what is no longer needed
			for _, c := range c.all {
				left = append(left, contest.Enter(c.name, c.plain, c.output, Times{Shortest: c.took}, c.name)...)
			}
			best, race, wrong, rest, ok := contest.End()
			require.True(t, ok)
			require.Equal(t, c.best, best)
			require.Equal(t, c.wrong, wrong)
			var all []string
			for _, c := range c.all {
				all = append(all, c.name)
				if c.name == best {
					require.Equal(t, c.took, race.Best().Shortest)
				}
			}
			require.ElementsMatch(t, all, append(append(left, rest...), best))
		})
	}
	_, _, _, _, ok := new(Contest[string]).End()
	require.False(t, ok)
	require.Equal(t, "measured", Why(WhyMeasured, nil))
	require.Equal(t, "measured; not used, as it computes wrong bits: a, b", Why(WhyMeasured, []string{"a", "b"}))
}

// Random tensors have no channels that there are not, no two images of them are the same, and
// what stands for something else are numbers that do.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, channels := range []int{1, 63, 64, 65, 100, 128} {
		x := Random(plan.Tensor{DType: bcnn.Bits, Shape: bcnn.Shape{H: 3, W: 5, C: channels}}, 2, r)
		words, ones := bits.Words(channels), 0
		for i, w := range x.Words {
			for b := range 64 {
				if w>>b&1 == 1 {
					ones++
					require.Less(t, i%words*64+b, channels)
				}
			}
		}
		require.InDelta(t, 15*channels, ones, 4*float64(channels)+10)
	}
	shape := bcnn.Shape{H: 8, W: 8, C: 3}
	x := Random(plan.Tensor{DType: bcnn.Uint8, Shape: shape}, 2, r)
	require.NotEqual(t, x.U8[:192], x.U8[192:])
	require.Greater(t, slices.Max(x.U8), uint8(200))
	require.Equal(t, uint8(1), slices.Max(Random(plan.Tensor{DType: bcnn.Uint8, Shape: shape, Coded: true}, 2, r).U8))
	x = Random(plan.Tensor{DType: bcnn.Float32, Shape: shape}, 2, r)
	require.NotEqual(t, x.F32[:192], x.F32[192:])
	x = Random(plan.Tensor{DType: bcnn.Float32, Shape: shape, Coded: true}, 2, r)
	for _, v := range x.F32 {
		require.Equal(t, float32(int(v)), v)
	}
	require.Greater(t, slices.Max(x.F32), float32(8))
}
