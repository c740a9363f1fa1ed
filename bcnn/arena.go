package bcnn

import "sort"

// Lifetime is a buffer that must exist from step First to step Last, both
// included.
type Lifetime struct {
	First, Last int
	Bytes       int64
}

// arenaAlign is the alignment of every buffer in an arena: a cache line, and
// the width of the widest vector registers.
const arenaAlign = 64

// Arena places buffers in one block of memory so that those whose lifetimes
// meet do not overlap. It returns the offset of each, a multiple of 64, and
// the size of the block. The largest are placed first, each as low as possible
// (greedy by size; Pisarchyk and Lee, "Efficient Memory Management for Deep
// Neural Net Inference", 2020, section 5.2).
func Arena(items []Lifetime) (offsets []int64, total int64) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return items[order[a]].Bytes > items[order[b]].Bytes })
	offsets = make([]int64, len(items))
	placed := make([]int, 0, len(items)) // in order of offset
	for _, i := range order {
		size := (items[i].Bytes + arenaAlign - 1) / arenaAlign * arenaAlign
		at := int64(0)
		for _, j := range placed {
			if items[j].First > items[i].Last || items[i].First > items[j].Last {
				continue
			}
			if offsets[j] >= at+size {
				break // the gap before j is large enough
			}
			end := offsets[j] + (items[j].Bytes+arenaAlign-1)/arenaAlign*arenaAlign
			at = max(at, end)
		}
		offsets[i] = at
		total = max(total, at+size)
		k := sort.Search(len(placed), func(k int) bool { return offsets[placed[k]] > at })
		placed = append(placed, 0)
		copy(placed[k+1:], placed[k:])
		placed[k] = i
	}
	return offsets, total
}
