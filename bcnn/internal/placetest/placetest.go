// Package placetest judges how the tensors of a plan share memory, for tests.
package placetest

import (
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Lifetime is a tensor of so many bytes that is needed from step First to step Last.
type Lifetime struct {
	First, Last int
	Bytes       int64
}

// Greedy is Place by its definition: the largest first, each as low as all
// that are placed allow.
func Greedy(items []Lifetime) (offsets []int64, total int64) {
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
				disjoint := items[j].First > items[i].Last || items[i].First > items[j].Last ||
					offsets[j]+size(j) <= at || at+size(i) <= offsets[j]
				free = free && disjoint
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

// RequireDisjoint checks that buffers that exist at the same time do not overlap.
func RequireDisjoint(t *testing.T, items []Lifetime, offsets []int64, total int64) {
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

// RequirePlaced checks what the steps of a plan use, and where that lies.
func RequirePlaced(t *testing.T, p *plan.Plan) {
	t.Helper()
	require.Equal(t, "input", p.Tensors[0].Name)
	items := make([]Lifetime, len(p.Tensors)) // as the steps say, read on their own
	for i, tensor := range p.Tensors {
		at := max(i-len(p.InputTensors()), -1)
		items[i] = Lifetime{First: at, Last: at, Bytes: tensor.Shape.Bytes(tensor.DType)}
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
		RequireDisjoint(t, batch, placed.Offsets, placed.Bytes)
		wantOffsets, want := Greedy(batch)
		require.Equal(t, wantOffsets, placed.Offsets)
		require.Equal(t, want, placed.Bytes)
		RequireShared(t, p, n, p.Uses(), batch)
	}
	// Without the caller's tensors there is no place for them.
	for i, offset := range p.Place(1, p.InnerUses()).Offsets {
		require.Equal(t, i < len(p.InputTensors()) || slices.Contains(p.Outputs, i), offset == -1, p.Tensors[i].Name)
	}
}

// RequireShared checks that tensors that are needed at the same time have buffers of
// their own, and that there are no more buffers than are needed at once.
func RequireShared(t *testing.T, p *plan.Plan, n int, uses []plan.Use, items []Lifetime) {
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
