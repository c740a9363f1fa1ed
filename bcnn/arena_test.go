package bcnn_test

import (
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// greedyArena is Arena by its definition: the largest first, each as low as all
// that are placed allow.
func greedyArena(items []bcnn.Lifetime) (offsets []int64, total int64) {
	size := func(i int) int64 { return (items[i].Bytes + 63) / 64 * 64 }
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return items[order[a]].Bytes > items[order[b]].Bytes })
	offsets = make([]int64, len(items))
	for k, i := range order {
		for at := int64(0); ; at += 64 {
			free := true
			for _, j := range order[:k] {
				apart := items[j].First > items[i].Last || items[i].First > items[j].Last ||
					offsets[j]+size(j) <= at || at+size(i) <= offsets[j]
				free = free && apart
			}
			if free {
				offsets[i] = at
				break
			}
		}
		total = max(total, offsets[i]+size(i))
	}
	return offsets, total
}

// requireApart checks that buffers that exist at the same time do not overlap.
func requireApart(t *testing.T, items []bcnn.Lifetime, offsets []int64, total int64) {
	t.Helper()
	for i, a := range items {
		require.Zero(t, offsets[i]%64)
		require.LessOrEqual(t, offsets[i]+a.Bytes, total)
		for j, b := range items[:i] {
			if a.First <= b.Last && b.First <= a.Last && offsets[i] < offsets[j]+b.Bytes && offsets[j] < offsets[i]+a.Bytes {
				require.Fail(t, "overlap", "%v at %d and %v at %d", a, offsets[i], b, offsets[j])
			}
		}
	}
}

func TestArenaPlacesTheLargestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		items := make([]bcnn.Lifetime, rng.IntN(20))
		for i := range items {
			first := rng.IntN(20)
			items[i] = bcnn.Lifetime{First: first, Last: first + rng.IntN(6), Bytes: int64(rng.IntN(1000))}
		}
		offsets, total := bcnn.Arena(items)
		requireApart(t, items, offsets, total)
		wantOffsets, wantTotal := greedyArena(items)
		require.Equal(t, wantOffsets, offsets, "%v", items)
		require.Equal(t, wantTotal, total)
	}
	// A chain of equal buffers needs just two.
	var chain []bcnn.Lifetime
	for i := range 10 {
		chain = append(chain, bcnn.Lifetime{First: i, Last: i + 1, Bytes: 640})
	}
	_, total := bcnn.Arena(chain)
	require.EqualValues(t, 1280, total)
}

// A buffer that is never there takes no place and ends nothing.
func TestArenaOfNothing(t *testing.T) {
	offsets, total := bcnn.Arena(nil)
	require.Empty(t, offsets)
	require.Zero(t, total)
	offsets, total = bcnn.Arena([]bcnn.Lifetime{{First: 5, Last: 3, Bytes: 0}, {First: 0, Last: 9, Bytes: 64}, {First: 1, Last: 2, Bytes: 0}})
	require.Equal(t, []int64{0, 0, 0}, offsets)
	require.EqualValues(t, 64, total)
	_, _, pairs := bcnn.ArenaCounted([]bcnn.Lifetime{{First: 0, Last: 9}, {First: 0, Last: 9, Bytes: 64}, {First: 5, Last: 3, Bytes: 64}, {First: 1, Last: 2}})
	require.Zero(t, pairs)
}

// sliding are n buffers of which alive + 1 exist at each step.
func sliding(n, alive int, bytes func(i int) int64) []bcnn.Lifetime {
	items := make([]bcnn.Lifetime, n)
	for i := range items {
		items[i] = bcnn.Lifetime{First: i, Last: i + alive, Bytes: bytes(i)}
	}
	return items
}

// Where very many buffers exist at once, they take each other's places.
func TestArenaOfManyAtOnce(t *testing.T) {
	same := func(int) int64 { return 100 }
	for _, c := range []struct {
		n, alive int
		many     bool // more pairs than Arena places by size
	}{
		{362, 361, false}, // 65341 pairs
		{2000, 98, false},
		{2000, 200, true},
		{5000, 4999, true},
	} {
		items := sliding(c.n, c.alive, same)
		offsets, total, pairs := bcnn.ArenaCounted(items)
		requireApart(t, items, offsets, total)
		require.EqualValues(t, 128*(min(c.alive+1, c.n)), total, "no more than exist at once")
		limit := int64(64*c.n + 1<<16)
		require.Equal(t, c.many, pairs > limit)
		if c.many {
			require.LessOrEqual(t, pairs, limit+int64(c.n), "it stops counting")
		}
	}
	// At the very limit the largest, which begins last, still comes first.
	items := sliding(2000, 99, same)
	items = append(items, bcnn.Lifetime{First: 1000, Last: 1450, Bytes: 1000})
	offsets, _, pairs := bcnn.ArenaCounted(items)
	require.EqualValues(t, 64*2001+1<<16, pairs)
	require.Zero(t, offsets[2000])
	items[2000].Last++
	offsets, _, pairs = bcnn.ArenaCounted(items)
	require.Greater(t, pairs, int64(64*2001+1<<16))
	require.NotZero(t, offsets[2000])

	// A buffer that stays for ever does not keep the places of others.
	items = append([]bcnn.Lifetime{{First: 0, Last: 5000, Bytes: 100}}, sliding(2000, 200, same)...)
	_, total := bcnn.Arena(items)
	require.EqualValues(t, 128*(201+1), total)

	rng := rand.New(rand.NewPCG(10, 9))
	items = sliding(1500, 700, func(int) int64 { return int64(1 + rng.IntN(2000)) })
	for i := range items {
		items[i].Last -= rng.IntN(300)
	}
	rng.Shuffle(len(items), func(a, b int) { items[a], items[b] = items[b], items[a] })
	offsets, total = bcnn.Arena(items)
	requireApart(t, items, offsets, total)
	all := int64(0)
	for _, l := range items {
		all += (l.Bytes + 63) / 64 * 64
	}
	require.Less(t, total, all*9/10, "places are used again")
}
