package pixelwise

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ladder counts as comparisons one after the other do, wherever thresholds stand.
func TestLadder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	inf := float32(math.Inf(1))
	even := make([]float32, 255)
	flat := make([]float32, 255)
	for i := range even {
		even[i] = float32(7*i - 900)
		flat[i] = min(max(even[i], -300), 400)
	}
	uneven := make([]float32, 255)
	for i := range uneven {
		uneven[i] = float32(math.Exp(r.Float64()*40 - 20))
	}
	slices.Sort(uneven)
	for name, list := range map[string][]float32{
		"even": even, "flat ends": flat, "uneven": uneven, "one value": slices.Repeat([]float32{3}, 255),
		"two values": append(slices.Repeat([]float32{3}, 100), slices.Repeat([]float32{4}, 155)...),
		"infinite":   append(append([]float32{-inf, -inf, -math.MaxFloat32}, even...), math.MaxFloat32, inf),
		"far end":    append(slices.Clone(even), 1e9),
	} {
		l := newLadder(list)
		values := []float32{float32(math.NaN()), inf, -inf, 0, math.MaxFloat32, -math.MaxFloat32}
		for _, x := range list {
			values = append(values, x, math.Nextafter32(x, inf), math.Nextafter32(x, -inf), x+3.5*r.Float32())
		}
		for _, v := range values {
			want := 0
			for _, x := range list {
				if v >= x {
					want++
				}
			}
			require.Equal(t, want, l.reached(v), "%s: %v", name, v)
		}
	}
}

// TestDistinct compares the numbers that two lists give, with and without the thresholds that
// are the same.
func TestDistinct(t *testing.T) {
	for name, c := range map[string]struct {
		list    []float32
		n, want int // thresholds of a list, and of those without repeats
	}{
		"none":      {[]float32{1, 2, 3}, 3, 0},
		"one":       {[]float32{1}, 1, 0},
		"at ends":   {[]float32{1, 1, 2, 3, 3, 3}, 6, 3},
		"all":       {[]float32{4, 4, 4}, 3, 1},
		"in each":   {[]float32{1, 2, 2, 3, 5, 5}, 3, 2},
		"elsewhere": {[]float32{1, 2, 2, 3, 3, 5}, 3, 0},
		"in one":    {[]float32{1, 2, 2, 3, 4, 5}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			lists, reached := distinct(c.list, c.n)
			if c.want == 0 {
				require.Nil(t, reached)
				return
			}
			require.Len(t, lists, c.want*len(c.list)/c.n)
			count := func(list []float32, v float32) (n int) {
				for _, t := range list {
					if v >= t {
						n++
					}
				}
				return n
			}
			for i := range len(c.list) / c.n {
				for _, v := range []float32{0, 1, 1.5, 2, 2.5, 3, 4, 5, 6} {
					require.Equal(t, count(c.list[i*c.n:][:c.n], v), int(reached[count(lists[i*c.want:][:c.want], v)]), "list %d, %v", i, v)
				}
			}
		})
	}
}

// TestBetween compares the numbers that a list gives with those of the thresholds between.
func TestBetween(t *testing.T) {
	// Of the levels 0, 1, 2, 4, 5, 8, … of APoT, thresholds are in the middle, and repeated.
	apot := func(unit float32, levels ...int) (list []float32) {
		for i, b := range levels[1:] {
			a := levels[i]
			list = append(list, slices.Repeat([]float32{float32(a+b) / 2 * unit}, b-a)...)
		}
		return list
	}
	for name, c := range map[string]struct {
		list []float32
		want int // thresholds; 0 for none
	}{
		"even":           {[]float32{1, 2, 3}, 3},
		"two":            {[]float32{1, 7}, 2},
		"APoT, 2 bits":   {apot(0.25, 0, 1, 2, 4), 6},
		"APoT, 4 bits":   {apot(1/48., 0, 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 33, 36, 48), 84},
		"rounded":        {apot(0.1, 0, 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 33, 36, 48), 84},
		"far apart":      {[]float32{0, 1, 300}, 0},
		"on no line":     {[]float32{0, 1, 2.5, 3.7}, 0},
		"one":            {[]float32{2, 2}, 0},
		"infinite":       {[]float32{0, 1, float32(math.Inf(1))}, 0},
		"minus infinity": {[]float32{float32(math.Inf(-1)), 0, 1}, 0},
	} {
		even, reached := between(c.list)
		require.Len(t, even, c.want, name)
		if c.want == 0 {
			require.Nil(t, reached, name)
			continue
		}
		require.True(t, slices.IsSorted(even), name)
		count := func(list []float32, x float32) (n int) {
			for _, t := range list {
				if x >= t {
					n++
				}
			}
			return n
		}
		for _, t0 := range append(slices.Clone(even), c.list...) {
			for _, x := range []float32{t0, math.Nextafter32(t0, -1e9), math.Nextafter32(t0, 1e9)} {
				require.EqualValues(t, count(c.list, x), reached[count(even, x)], "%s: %v", name, x)
			}
		}
		require.EqualValues(t, len(c.list), reached[255], name)
	}
}
