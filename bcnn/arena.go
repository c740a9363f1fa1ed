package bcnn

import (
	"cmp"
	"slices"
)

// Lifetime is a buffer that must exist from step First to step Last, both
// included.
type Lifetime struct {
	First, Last int
	Bytes       int64
}

func (l Lifetime) size() int64 { return (l.Bytes + arenaAlign - 1) / arenaAlign * arenaAlign }

// arenaAlign is the alignment of every buffer in an arena: a cache line, and
// the width of the widest vector registers.
const arenaAlign = 64

// How many pairs of buffers that exist at the same time are placed with regard
// to each other: a number for each buffer and one that any 360 buffers stay
// below. Real networks have a few pairs for each buffer.
const (
	pairsPerBuffer = 64
	pairsAlways    = 1 << 16
)

// Arena places buffers in one block of memory so that those whose lifetimes
// meet do not overlap. It returns the offset of each, a multiple of 64, and
// the size of the block. The largest are placed first, each as low as possible
// (greedy by size; Pisarchyk and Lee, "Efficient Memory Management for Deep
// Neural Net Inference", 2020, section 5.2). Where so many lifetimes meet that
// this would take quadratic time, a buffer takes the place of one of the same
// size that exists no more, or a new one.
func Arena(items []Lifetime) (offsets []int64, total int64) {
	offsets, total, _ = arena(items)
	return offsets, total
}

// arena also returns the number of pairs that it looked at.
func arena(items []Lifetime) (offsets []int64, total, pairs int64) {
	limit := int64(pairsPerBuffer*len(items) + pairsAlways)
	meeting, pairs := meetings(items, limit)
	if pairs > limit {
		offsets, total = placeInTurn(items)
	} else {
		offsets, total = placeBySize(items, meeting)
	}
	return offsets, total, pairs
}

// byFirst returns the indices of the items that take memory at any step, those
// that begin first in front.
func byFirst(items []Lifetime) []int {
	order := make([]int, 0, len(items))
	for i, l := range items {
		if l.Bytes > 0 && l.First <= l.Last {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(items[a].First, items[b].First) })
	return order
}

// meetings returns, for every item, the others that exist at the same time, and
// the number of such pairs. It ends where there are more than limit.
func meetings(items []Lifetime, limit int64) (meeting [][]int32, pairs int64) {
	meeting = make([][]int32, len(items))
	var alive []int
	for _, i := range byFirst(items) {
		alive = slices.DeleteFunc(alive, func(j int) bool { return items[j].Last < items[i].First })
		if pairs += int64(len(alive)); pairs > limit {
			return nil, pairs
		}
		for _, j := range alive {
			meeting[i] = append(meeting[i], int32(j))
			meeting[j] = append(meeting[j], int32(i))
		}
		alive = append(alive, i)
	}
	return meeting, pairs
}

// placeBySize places the largest first, each as low as those allow that exist at
// the same time.
func placeBySize(items []Lifetime, meeting [][]int32) (offsets []int64, total int64) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(items[b].Bytes, items[a].Bytes) })
	offsets = make([]int64, len(items))
	placed := make([]bool, len(items))
	for _, i := range order {
		others := slices.DeleteFunc(meeting[i], func(j int32) bool { return !placed[j] })
		slices.SortFunc(others, func(a, b int32) int { return cmp.Compare(offsets[a], offsets[b]) })
		at, size := int64(0), items[i].size()
		for _, j := range others {
			if offsets[j] >= at+size {
				break // the gap before j is large enough
			}
			at = max(at, offsets[j]+items[j].size())
		}
		offsets[i], placed[i] = at, true
		total = max(total, at+size)
	}
	return offsets, total
}

// placeInTurn places the items in the order in which they begin.
func placeInTurn(items []Lifetime) (offsets []int64, total int64) {
	offsets = make([]int64, len(items))
	begin := byFirst(items)
	end := slices.Clone(begin)
	slices.SortStableFunc(end, func(a, b int) int { return cmp.Compare(items[a].Last, items[b].Last) })
	free := map[int64][]int64{} // by size
	for _, i := range begin {
		for ; items[end[0]].Last < items[i].First; end = end[1:] {
			size := items[end[0]].size()
			free[size] = append(free[size], offsets[end[0]])
		}
		size := items[i].size()
		if places := free[size]; len(places) > 0 {
			offsets[i], free[size] = places[len(places)-1], places[:len(places)-1]
			continue
		}
		offsets[i] = total
		total += size
	}
	return offsets, total
}
