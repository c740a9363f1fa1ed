package plan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/placetest"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// planOf is a plan of such tensors, and when they are used.
func planOf(items []placetest.Lifetime) (*plan.Plan, []plan.Use) {
	p, uses := &plan.Plan{}, []plan.Use{}
	for i, l := range items {
		p.Tensors = append(p.Tensors, plan.Tensor{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 1, W: 1, C: int(l.Bytes)}})
		if l.First <= l.Last { // in two parts, the later one first
			uses = append(uses, plan.Use{Tensor: i, First: l.Last, Last: l.Last}, plan.Use{Tensor: i, First: l.First, Last: l.Last - 1})
		}
	}
	return p, uses
}

func placed(items []placetest.Lifetime) (offsets []int64, total int64) {
	p, uses := planOf(items)
	block := p.Place(1, uses)
	return block.Offsets, block.Bytes
}

func TestPlaceTheLargestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		items := make([]placetest.Lifetime, rng.IntN(20))
		for i := range items {
			first := rng.IntN(20)
			items[i] = placetest.Lifetime{First: first, Last: first + rng.IntN(6), Bytes: int64(rng.IntN(1000))}
		}
		offsets, total := placed(items)
		placetest.RequireDisjoint(t, items, offsets, total)
		wantOffsets, wantTotal := placetest.Greedy(items)
		require.Equal(t, wantOffsets, offsets, "%v", items)
		require.Equal(t, wantTotal, total)
	}
	// A chain of equal buffers needs just two.
	var chain []placetest.Lifetime
	for i := range 10 {
		chain = append(chain, placetest.Lifetime{First: i, Last: i + 1, Bytes: 640})
	}
	_, total := placed(chain)
	require.EqualValues(t, 1280, total)
}

// A buffer that is never there takes no place and ends nothing.
func TestPlaceNothing(t *testing.T) {
	offsets, total := placed(nil)
	require.Empty(t, offsets)
	require.Zero(t, total)
	offsets, total = placed([]placetest.Lifetime{{First: 5, Last: 3, Bytes: 0}, {First: 0, Last: 9, Bytes: 64}, {First: 1, Last: 2, Bytes: 0}})
	require.Equal(t, []int64{-1, 0, 0}, offsets)
	require.EqualValues(t, 64, total)
	require.Zero(t, pairs([]placetest.Lifetime{{First: 0, Last: 9}, {First: 0, Last: 9, Bytes: 64}, {First: 5, Last: 3, Bytes: 64}, {First: 1, Last: 2}}))
}

// pairs is the number of pairs of tensors that Place looks at.
func pairs(items []placetest.Lifetime) int64 {
	p, uses := planOf(items)
	return p.PlaceCounted(1, uses)
}

// sliding are n buffers of which alive + 1 exist at each step.
func sliding(n, alive int, bytes func(i int) int64) []placetest.Lifetime {
	items := make([]placetest.Lifetime, n)
	for i := range items {
		items[i] = placetest.Lifetime{First: i, Last: i + alive, Bytes: bytes(i)}
	}
	return items
}

// Where very many buffers exist at once, they take each other's places.
func TestPlaceManyAtOnce(t *testing.T) {
	same := func(int) int64 { return 100 }
	for _, c := range []struct {
		n, alive int
		many     bool // more pairs than Place places by size
	}{
		{362, 361, false}, // 65341 pairs
		{2000, 98, false},
		{2000, 200, true},
		{5000, 4999, true},
	} {
		items := sliding(c.n, c.alive, same)
		offsets, total := placed(items)
		pairs := pairs(items)
		placetest.RequireDisjoint(t, items, offsets, total)
		require.EqualValues(t, 128*(min(c.alive+1, c.n)), total, "no more than exist at once")
		limit := int64(64*c.n + 1<<16)
		require.Equal(t, c.many, pairs > limit)
		if c.many {
			require.LessOrEqual(t, pairs, limit+int64(c.n), "it stops counting")
		}
	}
	// At the very limit the largest, which begins last, still comes first.
	items := sliding(2000, 99, same)
	items = append(items, placetest.Lifetime{First: 1000, Last: 1450, Bytes: 1000})
	require.EqualValues(t, 64*2001+1<<16, pairs(items))
	offsets, _ := placed(items)
	require.Zero(t, offsets[2000])
	items[2000].Last++
	require.Greater(t, pairs(items), int64(64*2001+1<<16))
	offsets, _ = placed(items)
	require.NotZero(t, offsets[2000])

	// A buffer that stays for ever does not keep the places of others.
	items = append([]placetest.Lifetime{{First: 0, Last: 5000, Bytes: 100}}, sliding(2000, 200, same)...)
	_, total := placed(items)
	require.EqualValues(t, 128*(201+1), total)

	rng := rand.New(rand.NewPCG(10, 9))
	items = sliding(1500, 700, func(int) int64 { return int64(1 + rng.IntN(2000)) })
	for i := range items {
		items[i].Last -= rng.IntN(300)
	}
	rng.Shuffle(len(items), func(a, b int) { items[a], items[b] = items[b], items[a] })
	offsets, total = placed(items)
	placetest.RequireDisjoint(t, items, offsets, total)
	all := int64(0)
	for _, l := range items {
		all += (l.Bytes + 63) / 64 * 64
	}
	require.Less(t, total, all*9/10, "places are used again")
}

func TestShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 9))
	for range 300 {
		items := make([]placetest.Lifetime, rng.IntN(30))
		for i := range items {
			first := rng.IntN(20)
			items[i] = placetest.Lifetime{First: first, Last: first + rng.IntN(6), Bytes: int64(rng.IntN(1000))}
		}
		p, uses := planOf(items)
		placetest.RequireShared(t, p, 1, uses, items)
	}
	// The smallest that is large enough is taken, and of too small ones the largest.
	p, uses := planOf([]placetest.Lifetime{{First: 0, Last: 0, Bytes: 100}, {First: 0, Last: 0, Bytes: 10}, {First: 0, Last: 0, Bytes: 50}, {First: 1, Last: 1, Bytes: 40}, {First: 2, Last: 2, Bytes: 200}})
	buffer, bytes := p.Share(1, uses)
	require.Equal(t, []int{0, 1, 2, 2, 0}, buffer)
	require.Equal(t, []int64{200, 10, 50}, bytes)
	// An unused tensor has none.
	buffer, _ = p.Share(1, uses[2:])
	require.Equal(t, -1, buffer[0])
}
