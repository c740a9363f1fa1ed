package plan

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Use says that what does the work of the steps First to Last, in whatever order,
// has a tensor as an argument, so that its memory is needed from First to Last. It is
// memory for so many images; 0 stands for those of the batch.
type Use struct{ Tensor, First, Last, Images int }

// Uses lists what the steps read and write, step by step, and EndUses.
func (p *Plan) Uses() []Use {
	uses := p.EndUses()
	for i, s := range p.Steps {
		uses = append(uses, Use{Tensor: s.Out, First: i, Last: i})
		for _, in := range s.In {
			uses = append(uses, Use{Tensor: in, First: i, Last: i})
		}
	}
	return uses
}

// EndUses lists the inputs, which step −1 brings, and the outputs, which the one behind
// the last fetches.
func (p *Plan) EndUses() []Use {
	var uses []Use
	for t := range p.InputTensors() {
		uses = append(uses, Use{Tensor: t, First: -1, Last: -1})
	}
	for _, t := range p.Outputs {
		uses = append(uses, Use{Tensor: t, First: len(p.Steps), Last: len(p.Steps)})
	}
	return uses
}

// InnerUses is Uses without the inputs and the outputs, for devices that work on them
// where the caller has them.
func (p *Plan) InnerUses() []Use {
	g := NewGraph(p)
	return slices.DeleteFunc(p.Uses(), func(u Use) bool { return g.IsEnd(u.Tensor) })
}

// Placement says where the tensors of a plan lie in one block of memory.
type Placement struct {
	Offsets []int64 // of the tensors, multiples of 64 bytes; −1 for those without a use
	Bytes   int64   // of the block
}

// Place puts all tensors that have a use into one block of memory, for n images.
// Those that are needed at the same time do not overlap. The largest are placed
// first, each as low as possible (greedy by size; Pisarchyk and Lee, "Efficient
// Memory Management for Deep Neural Net Inference", 2020, section 5.2). Where so
// many are needed at once that this would take quadratic time, a tensor takes the
// place of one of the same size that is needed no more, or a new one.
func (p *Plan) Place(n int, uses []Use) Placement {
	items := p.lifetimes(n, uses)
	offsets, bytes, _ := place(items)
	for i, l := range items {
		if l.first > l.last {
			offsets[i] = -1
		}
	}
	return Placement{offsets, bytes}
}

// Share divides all tensors that have a use among buffers, for n images, for devices
// whose kernels take whole buffers: every tensor lies at the start of one. Those that
// are needed at the same time have buffers of their own. It returns the buffer of each
// tensor, −1 for those without a use, and the bytes of the buffers.
func (p *Plan) Share(n int, uses []Use) (buffer []int, bytes []int64) {
	items := p.lifetimes(n, uses)
	buffer = make([]int, len(items))
	for i := range buffer {
		buffer[i] = -1
	}
	begin, end := inTurn(items)
	var free []int // buffers, the smallest first
	at := func(size int64) int {
		return sort.Search(len(free), func(k int) bool { return bytes[free[k]] >= size })
	}
	for _, i := range begin {
		for ; items[end[0]].last < items[i].first; end = end[1:] {
			b := buffer[end[0]]
			free = slices.Insert(free, at(bytes[b]), b)
		}
		// The smallest that is large enough, or else the largest, which grows.
		if k := min(at(items[i].bytes), len(free)-1); k >= 0 {
			buffer[i] = free[k]
			free = slices.Delete(free, k, k+1)
		} else {
			buffer[i] = len(bytes)
			bytes = append(bytes, 0)
		}
		bytes[buffer[i]] = max(bytes[buffer[i]], items[i].bytes)
	}
	return buffer, bytes
}

// lifetimes returns from when to when the tensors are needed.
func (p *Plan) lifetimes(n int, uses []Use) []lifetime {
	items := make([]lifetime, len(p.Tensors))
	for i := range items {
		items[i] = lifetime{first: math.MaxInt, last: math.MinInt}
	}
	for _, u := range uses {
		l := &items[u.Tensor]
		l.first, l.last, l.bytes = min(l.first, u.First), max(l.last, u.Last), p.Tensors[u.Tensor].Bytes(cmp.Or(u.Images, n))
	}
	return items
}

// lifetime is a buffer that must exist from step first to step last, both included;
// never if last is before first.
type lifetime struct {
	first, last int
	bytes       int64
}

func (l lifetime) size() int64 { return (l.bytes + arenaAlign - 1) / arenaAlign * arenaAlign }

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

// place returns the offset of every buffer, the size of the block, and the number of
// pairs of them that it looked at.
func place(items []lifetime) (offsets []int64, total, pairs int64) {
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
func byFirst(items []lifetime) []int {
	order := make([]int, 0, len(items))
	for i, l := range items {
		if l.bytes > 0 && l.first <= l.last {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(items[a].first, items[b].first) })
	return order
}

// meetings returns, for every item, the others that exist at the same time, and
// the number of such pairs. It ends where there are more than limit.
func meetings(items []lifetime, limit int64) (meeting [][]int32, pairs int64) {
	meeting = make([][]int32, len(items))
	var alive []int
	for _, i := range byFirst(items) {
		alive = slices.DeleteFunc(alive, func(j int) bool { return items[j].last < items[i].first })
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
func placeBySize(items []lifetime, meeting [][]int32) (offsets []int64, total int64) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(items[b].bytes, items[a].bytes) })
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

// inTurn returns the items that take memory, in the order in which they begin, and in
// that in which they end.
func inTurn(items []lifetime) (begin, end []int) {
	begin = byFirst(items)
	end = slices.Clone(begin)
	slices.SortStableFunc(end, func(a, b int) int { return cmp.Compare(items[a].last, items[b].last) })
	return begin, end
}

// placeInTurn places the items in the order in which they begin.
func placeInTurn(items []lifetime) (offsets []int64, total int64) {
	offsets = make([]int64, len(items))
	begin, end := inTurn(items)
	free := map[int64][]int64{} // by size
	for _, i := range begin {
		for ; items[end[0]].last < items[i].first; end = end[1:] {
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
