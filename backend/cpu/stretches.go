package cpu

import (
	"math"
	"sort"

	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// A stretch is consecutive groups that a batch passes a few images at a time: all its steps for the
// first images, then all for the next. Few images keep what lies between the steps in the cache,
// many read the weights of dense layers once for all of them.
type stretch struct {
	first, last int // steps of the plan
	images      int // at a time
	steps       int // of the executable, from the end of the stretch before on
}

// maxStretch bounds the groups of a stretch, and so the divisions to choose from.
const maxStretch = 1024

// stretchAt returns which stretch has a step.
func stretchAt(stretches []stretch, step int) int {
	return sort.Search(len(stretches), func(k int) bool { return stretches[k].last >= step })
}

// whole is the stretch that takes a batch as one.
func whole(p *plan.Plan, batch int) []stretch {
	return []stretch{{first: 0, last: len(p.Steps) - 1, images: batch}}
}

// division divides the groups of a plan into stretches for a batch of so many images.
type division func(p *plan.Plan, groups []group, batch int) []stretch

// cached is the division for a cache of so many bytes; see stretches.
func cached(bytes int) division {
	return func(p *plan.Plan, groups []group, batch int) []stretch { return stretches(p, groups, batch, bytes) }
}

// stretches divides the groups of a plan such that a batch moves the fewest bytes in and out of a
// cache of so many bytes for each image: weights once for the images at a time of their stretch,
// and what one stretch leaves to another twice. A stretch takes as many images at a time as half of
// the cache holds, at the widest of its groups.
func stretches(p *plan.Plan, groups []group, batch, cache int) []stretch {
	live, across := liveBytes(p, groups)
	weights := make([]int, len(groups)+1) // of the groups before
	for g, of := range groups {
		sum := 0
		for _, s := range p.Steps[of.first : of.last+1] {
			sum = num.Sum(sum, weightBytes(s.Op))
		}
		weights[g+1] = num.Sum(weights[g], sum)
	}
	type end struct {
		from, images int
		cost         float64 // of the groups up to here
	}
	best := make([]end, len(groups)+1)
	for to := 1; to <= len(groups); to++ {
		best[to].cost = math.Inf(1)
		widest := 0
		for from := to - 1; from >= max(0, to-maxStretch); from-- {
			widest = max(widest, live[from])
			images := min(max(cache/2/max(widest, 1), 1), batch)
			cost := best[from].cost
			if from > 0 {
				cost += 2 * float64(across[from])
			}
			if w := weights[to] - weights[from]; num.Sum(w, widest) > cache {
				cost += float64(w) / float64(images)
			}
			if cost <= best[to].cost { // the longest of several
				best[to] = end{from, images, cost}
			}
		}
	}
	var divided []stretch
	for to := len(groups); to > 0; to = best[to].from {
		images := num.CeilDiv(batch, num.CeilDiv(batch, best[to].images)) // as many each time
		divided = append([]stretch{{first: groups[best[to].from].first, last: groups[to-1].last, images: images}}, divided...)
	}
	return divided
}

// liveBytes returns what an image takes while each group works, and how much of that was written
// before the group and is read by it or later.
func liveBytes(p *plan.Plan, groups []group) (live, across []int) {
	first, last := make([]int, len(p.Tensors)), make([]int, len(p.Tensors))
	for t := range first {
		first[t] = -1
	}
	for g, of := range groups {
		for _, s := range p.Steps[of.first : of.last+1] {
			for _, t := range append([]int{s.Out}, s.In...) {
				if first[t] < 0 {
					first[t] = g
				}
				last[t] = g
			}
		}
	}
	live, across = make([]int, len(groups)+1), make([]int, len(groups)+1)
	for t := range first {
		if first[t] < 0 {
			continue
		}
		bytes := int(p.Tensors[t].Bytes(1))
		live[first[t]] += bytes
		live[last[t]+1] -= bytes
		if first[t] < last[t] {
			across[first[t]+1] += bytes
			across[last[t]+1] -= bytes
		}
	}
	for g := range groups {
		live[g+1] += live[g]
		across[g+1] += across[g]
	}
	return live, across
}

// weightBytes returns about how many bytes of weights a step reads.
func weightBytes(op plan.Op) int {
	conv, ok := op.(*plan.Conv)
	if !ok {
		return 0
	}
	return 8*len(conv.Bits) + len(conv.Int8) + 2*len(conv.Int16) + 4*len(conv.F32)
}
