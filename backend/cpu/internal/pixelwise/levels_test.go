package pixelwise

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
)

// rising returns n thresholds, each the least float32 for which reached says so.
func rising(n int, least, most float32, reached func(x float32, k int) bool) []float32 {
	key := func(x float32) int64 { // in the order of floats
		b := int64(int32(math.Float32bits(x)))
		if b < 0 {
			b = math.MinInt32 - b
		}
		return b
	}
	value := func(k int64) float32 {
		if k < 0 {
			k = math.MinInt32 - k
		}
		return math.Float32frombits(uint32(int32(k)))
	}
	list := make([]float32, n)
	for k := range list {
		low, high := key(least), key(most)
		for low < high {
			middle := low + (high-low)>>1
			if reached(value(middle), k+1) {
				high = middle
			} else {
				low = middle + 1
			}
		}
		list[k] = value(low)
	}
	return list
}

// quantisers are lists of thresholds as they are met, and the form that is expected of each.
func quantisers(r *rand.Rand) map[string]struct {
	list []float32
	form levelForm
} {
	type quantiser = struct {
		list []float32
		form levelForm
	}
	all := map[string]quantiser{}
	for i, name := range []string{"4 bits", "8 bits"} {
		n := []int{15, 255}[i]
		scale := 0.01 + 0.1*r.Float32()
		factor := 1 / scale
		all["dyadic "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return math.RoundToEven(float64(x/0.125)) >= float64(k)
		}), levelForm{}}
		all["times a factor, "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return math.RoundToEven(float64(x*factor)) >= float64(k)
		}), levelForm{}}
		all["half up, "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return float32(x*factor)+0.5 >= float32(k)
		}), levelForm{truncate: true}}
		all["signed, "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return math.RoundToEven(float64(x*factor)) >= float64(k-n/2)
		}), levelForm{after: true}}
		all["divided and signed, "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return math.RoundToEven(float64(x/scale)) >= float64(k-n/2)
		}), levelForm{rest: true, after: true}}
		all["uneven, "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return float64(x) >= 0.3*float64(k)+0.1*math.Sin(float64(k))
		}), levelForm{late: true}}
		all["divided, "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return math.RoundToEven(float64(x/scale)) >= float64(k)
		}), levelForm{rest: true}}
		// Of sums, which are whole.
		all["sums "+name] = quantiser{rising(n, -1e6, 1e6, func(x float32, k int) bool {
			return math.Round(math.Floor(float64(x))*0.0371+3.2) >= float64(k)
		}), levelForm{down: true}}
		all["huge "+name] = quantiser{rising(n, -math.MaxFloat32, math.MaxFloat32, func(x float32, k int) bool {
			return float64(x) >= 1e36*(float64(k)-100.3)
		}), levelForm{late: true}}
		all["denormal "+name] = quantiser{rising(n, -1, 1, func(x float32, k int) bool {
			return float64(x) >= 4e-39*(float64(k)-9.7)
		}), levelForm{late: true}}
	}
	return all
}

// requireCounts compares levels with comparisons, at all thresholds, at their neighbours
// and elsewhere.
func requireCounts(t *testing.T, r *rand.Rand, l *kern.Levels, place int, list []float32, what any) {
	inf := float32(math.Inf(1))
	values := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32}
	for _, x := range list {
		values = append(values, x, math.Nextafter32(x, inf), math.Nextafter32(x, -inf), x*r.Float32(), x+3.5*r.Float32())
	}
	for _, x := range values {
		want := 0
		for _, t := range list {
			if x >= t {
				want++
			}
		}
		require.Equal(t, want, l.Number(x, place), "%v: %v", what, x)
	}
}

func roomy(room int) *schedule.Context {
	return &schedule.Context{Ctx: context.Background(), Room: room}
}

func TestLevelsOfLists(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for name, q := range quantisers(r) {
		l, wrong := newLevels(roomy(1<<20), q.list, len(q.list), 3)
		require.NotNil(t, l, name)
		require.Empty(t, wrong, name)
		require.Equal(t, q.form, levelForm{l.Down, l.Rest != nil, l.Truncate, l.Offset != 0, l.Table != nil}, name)
		require.Zero(t, len(l.Scale)%3, name)
		for i := range 3 {
			requireCounts(t, r, l, i, q.list, name)
		}
		l, _ = newLevels(roomy(100), q.list, len(q.list), 3)
		require.Nil(t, l, "%s without memory", name)
	}
}

// Lists that rise in any way are counted right, or refused.
func TestLevelsOfAnyLists(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	accepted := 0
	for range 2000 {
		list := make([]float32, 1+r.IntN(20))
		size := math.Exp(r.NormFloat64() * 20)
		for k := range list {
			list[k] = float32(size * (float64(k) + r.Float64()*float64(r.IntN(3)) + 10*r.NormFloat64()*float64(r.IntN(2))))
			if r.IntN(3) == 0 {
				list[k] = float32(math.Round(float64(list[k])))
			}
		}
		slices.Sort(list)
		l, wrong := newLevels(roomy(1<<20), list, len(list), 1)
		if l == nil {
			continue
		}
		require.Empty(t, wrong)
		accepted++
		requireCounts(t, r, l, 0, list, list)
	}
	require.Greater(t, accepted, 200)
	require.Less(t, accepted, 1800)
}

// A few channels whose thresholds do not rise evenly are told apart.
func TestLevelsOfChannels(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	const n, channels = 15, 8
	inf := float32(math.Inf(1))
	for _, bad := range [][]float32{
		slices.Repeat([]float32{3}, n), slices.Repeat([]float32{inf}, n), slices.Repeat([]float32{-inf}, n),
		append(slices.Repeat([]float32{1}, n-1), 1000),
	} {
		var all []float32
		for c := range channels {
			if c == 5 || c == 2 {
				all = append(all, bad...)
				continue
			}
			for k := range n {
				all = append(all, float32(c-4)+float32(k)*float32(c+1)*0.0731)
			}
		}
		l, wrong := newLevels(roomy(1<<20), all, n, channels)
		require.NotNil(t, l)
		require.Equal(t, []int{2, 5}, wrong)
		for i := range l.Scale {
			if c := i % channels; c != 2 && c != 5 {
				requireCounts(t, r, l, i, all[c*n:][:n], c)
			}
		}
		copy(all, bad)
		l, _ = newLevels(roomy(1<<20), all, n, channels)
		require.Nil(t, l, "too many of them")
	}
}

// A scale that is off by one place of the last digit is refused.
func TestLevelsOfWrongScale(t *testing.T) {
	list := make([]float32, 255)
	for k := range list {
		list[k] = (float32(k) + 0.5) * 0.125
	}
	for k := range list {
		if k%2 == 0 { // the even one of two
			list[k] = math.Nextafter32(list[k], 1000)
		}
	}
	require.False(t, levelForm{rest: true}.holds(levelForm{}.levels(255, evenly{}), list, 8, float32(math.Inf(1)), 0), "0 times an infinite rest")
	require.False(t, levelForm{rest: true}.holds(levelForm{}.levels(255, evenly{}), list, 8, 0, 0), "an infinite value times no rest")
	holds := func(scale, shift float32, form levelForm) bool {
		return form.holds(form.levels(255, evenly{}), list, scale, 0, shift)
	}
	require.True(t, holds(8, 0, levelForm{}))
	for _, scale := range []float32{math.Nextafter32(8, 9), math.Nextafter32(8, 7)} {
		require.False(t, holds(scale, 0, levelForm{}))
		require.True(t, holds(scale, -0.5, levelForm{late: true}))
	}
	require.False(t, holds(8, -1, levelForm{late: true}))
	require.False(t, holds(8, 0.01, levelForm{}))
	require.False(t, holds(float32(math.Inf(1)), 0, levelForm{late: true}))
	require.False(t, holds(float32(math.NaN()), 0, levelForm{late: true}))
	require.False(t, holds(8, float32(math.NaN()), levelForm{late: true}))
}
