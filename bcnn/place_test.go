package bcnn_test

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// lifetime is a tensor of so many bytes that is needed from step First to step Last.
type lifetime struct {
	First, Last int
	Bytes       int64
}

// planOf is a plan of such tensors, and when they are used.
func planOf(items []lifetime) (*bcnn.Plan, []bcnn.Use) {
	p, uses := &bcnn.Plan{}, []bcnn.Use{}
	for i, l := range items {
		p.Tensors = append(p.Tensors, bcnn.PlanTensor{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 1, W: 1, C: int(l.Bytes)}})
		if l.First <= l.Last { // in two parts, the later one first
			uses = append(uses, bcnn.Use{Tensor: i, First: l.Last, Last: l.Last}, bcnn.Use{Tensor: i, First: l.First, Last: l.Last - 1})
		}
	}
	return p, uses
}

func placed(items []lifetime) (offsets []int64, total int64) {
	plan, uses := planOf(items)
	p := plan.Place(1, uses)
	return p.Offsets, p.Bytes
}

// greedy is Place by its definition: the largest first, each as low as all
// that are placed allow.
func greedy(items []lifetime) (offsets []int64, total int64) {
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
func requireApart(t *testing.T, items []lifetime, offsets []int64, total int64) {
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

func TestPlaceTheLargestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		items := make([]lifetime, rng.IntN(20))
		for i := range items {
			first := rng.IntN(20)
			items[i] = lifetime{First: first, Last: first + rng.IntN(6), Bytes: int64(rng.IntN(1000))}
		}
		offsets, total := placed(items)
		requireApart(t, items, offsets, total)
		wantOffsets, wantTotal := greedy(items)
		require.Equal(t, wantOffsets, offsets, "%v", items)
		require.Equal(t, wantTotal, total)
	}
	// A chain of equal buffers needs just two.
	var chain []lifetime
	for i := range 10 {
		chain = append(chain, lifetime{First: i, Last: i + 1, Bytes: 640})
	}
	_, total := placed(chain)
	require.EqualValues(t, 1280, total)
}

// A buffer that is never there takes no place and ends nothing.
func TestPlaceNothing(t *testing.T) {
	offsets, total := placed(nil)
	require.Empty(t, offsets)
	require.Zero(t, total)
	offsets, total = placed([]lifetime{{First: 5, Last: 3, Bytes: 0}, {First: 0, Last: 9, Bytes: 64}, {First: 1, Last: 2, Bytes: 0}})
	require.Equal(t, []int64{-1, 0, 0}, offsets)
	require.EqualValues(t, 64, total)
	require.Zero(t, pairs([]lifetime{{First: 0, Last: 9}, {First: 0, Last: 9, Bytes: 64}, {First: 5, Last: 3, Bytes: 64}, {First: 1, Last: 2}}))
}

// pairs is the number of pairs of tensors that Place looks at.
func pairs(items []lifetime) int64 {
	plan, uses := planOf(items)
	return plan.PlaceCounted(1, uses)
}

// sliding are n buffers of which alive + 1 exist at each step.
func sliding(n, alive int, bytes func(i int) int64) []lifetime {
	items := make([]lifetime, n)
	for i := range items {
		items[i] = lifetime{First: i, Last: i + alive, Bytes: bytes(i)}
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
	items = append(items, lifetime{First: 1000, Last: 1450, Bytes: 1000})
	require.EqualValues(t, 64*2001+1<<16, pairs(items))
	offsets, _ := placed(items)
	require.Zero(t, offsets[2000])
	items[2000].Last++
	require.Greater(t, pairs(items), int64(64*2001+1<<16))
	offsets, _ = placed(items)
	require.NotZero(t, offsets[2000])

	// A buffer that stays for ever does not keep the places of others.
	items = append([]lifetime{{First: 0, Last: 5000, Bytes: 100}}, sliding(2000, 200, same)...)
	_, total := placed(items)
	require.EqualValues(t, 128*(201+1), total)

	rng := rand.New(rand.NewPCG(10, 9))
	items = sliding(1500, 700, func(int) int64 { return int64(1 + rng.IntN(2000)) })
	for i := range items {
		items[i].Last -= rng.IntN(300)
	}
	rng.Shuffle(len(items), func(a, b int) { items[a], items[b] = items[b], items[a] })
	offsets, total = placed(items)
	requireApart(t, items, offsets, total)
	all := int64(0)
	for _, l := range items {
		all += (l.Bytes + 63) / 64 * 64
	}
	require.Less(t, total, all*9/10, "places are used again")
}

// requirePlaced checks what the steps of a plan use, and where that lies.
func requirePlaced(t *testing.T, p *bcnn.Plan) {
	t.Helper()
	require.Equal(t, "input", p.Tensors[0].Name)
	items := make([]lifetime, len(p.Tensors)) // as the steps say, read on their own
	for i, tensor := range p.Tensors {
		at := max(i-len(p.InputTensors()), -1)
		items[i] = lifetime{First: at, Last: at, Bytes: tensor.Shape.Bytes(tensor.DType)}
	}
	for i, s := range p.Steps {
		require.Equal(t, i+len(p.InputTensors()), s.Out, "each step writes the next tensor")
		for _, in := range s.In {
			items[in].Last = i
		}
	}
	for _, output := range p.Outputs {
		items[output].Last = len(p.Steps)
	}
	for _, n := range []int{1, 3} {
		batch := slices.Clone(items)
		for i := range batch {
			batch[i].Bytes *= int64(n)
			require.Equal(t, batch[i].Bytes, p.Tensors[i].Bytes(n))
		}
		placed := p.Place(n, p.Uses())
		requireApart(t, batch, placed.Offsets, placed.Bytes)
		wantOffsets, want := greedy(batch)
		require.Equal(t, wantOffsets, placed.Offsets)
		require.Equal(t, want, placed.Bytes)
		requireShared(t, p, n, p.Uses(), batch)
	}
	// Without the caller's tensors there is no place for them.
	for i, offset := range p.Place(1, p.InnerUses()).Offsets {
		require.Equal(t, i < len(p.InputTensors()) || slices.Contains(p.Outputs, i), offset == -1, p.Tensors[i].Name)
	}
}

// requireShared checks that tensors that are needed at the same time have buffers of
// their own, and that there are no more buffers than are needed at once.
func requireShared(t *testing.T, p *bcnn.Plan, n int, uses []bcnn.Use, items []lifetime) {
	t.Helper()
	buffer, bytes := p.Share(n, uses)
	used, most := make([]int64, len(bytes)), 0
	for i, a := range items {
		if a.First > a.Last || a.Bytes == 0 {
			require.Equal(t, -1, buffer[i])
			continue
		}
		used[buffer[i]] = max(used[buffer[i]], a.Bytes)
		together := 0
		for j, b := range items {
			if b.Bytes == 0 || a.First < b.First || a.First > b.Last {
				continue // not needed when a begins
			}
			together++
			require.True(t, i == j || buffer[i] != buffer[j], "%v and %v in buffer %d", a, b, buffer[i])
		}
		most = max(most, together)
	}
	require.True(t, slices.Equal(used, bytes), "%d and %d", used, bytes)
	require.Equal(t, most, len(bytes))
}

func TestShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 9))
	for range 300 {
		items := make([]lifetime, rng.IntN(30))
		for i := range items {
			first := rng.IntN(20)
			items[i] = lifetime{First: first, Last: first + rng.IntN(6), Bytes: int64(rng.IntN(1000))}
		}
		p, uses := planOf(items)
		requireShared(t, p, 1, uses, items)
	}
	// The smallest that is large enough is taken, and of too small ones the largest.
	p, uses := planOf([]lifetime{{0, 0, 100}, {0, 0, 10}, {0, 0, 50}, {1, 1, 40}, {2, 2, 200}})
	buffer, bytes := p.Share(1, uses)
	require.Equal(t, []int{0, 1, 2, 2, 0}, buffer)
	require.Equal(t, []int64{200, 10, 50}, bytes)
	// An unused tensor has none.
	buffer, _ = p.Share(1, uses[2:])
	require.Equal(t, -1, buffer[0])
}
