package vision

import (
	"cmp"
	"context"
	"slices"
)

// What bounds a detector whose model does not: candidates of a class, candidates of all classes, and
// boxes of an image. A candidate is compared with the boxes of its class that have been kept, so that
// time is in proportion to the product of the last two.
const (
	mostTopK       = 4096
	mostCandidates = 16384
	mostKeep       = 1024
)

// pace looks at a context once in so many steps, as Err takes a lock.
type pace struct {
	ctx  context.Context
	done int
}

const stepsBetweenLooks = 4096

func (p *pace) step(n int) error {
	if p.done += n; p.done < stepsBetweenLooks {
		return nil
	}
	p.done = 0
	return p.ctx.Err()
}

// candidate is a box for a class.
type candidate struct {
	score     float32
	class, at int32 // at is that of the box
}

// better orders candidates: no two are equal.
func better(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.class, b.class), cmp.Compare(a.at, b.at))
}

// best keeps the best candidates, most of them, in a list that is sorted and cut when it is twice as long.
type best struct {
	most  int
	list  []candidate
	full  bool
	worst candidate // of those that were left, if full
}

// newBest returns a list for n candidates, which never grows.
func newBest(most, n int) best { return best{most: most, list: make([]candidate, 0, min(2*most, n))} }

func (b *best) reset() { b.list, b.full = b.list[:0], false }

func (b *best) add(c candidate) {
	if b.full && better(c, b.worst) > 0 {
		return
	}
	if b.list = append(b.list, c); len(b.list) == 2*b.most {
		b.sorted()
	}
}

// sorted returns the best candidates in their order.
func (b *best) sorted() []candidate {
	slices.SortFunc(b.list, better)
	if len(b.list) >= b.most {
		b.list = b.list[:b.most]
		b.full, b.worst = true, b.list[b.most-1]
	}
	return b.list
}

// candidates returns those with the best scores: topK of each class, and mostCandidates of all classes.
func (d *decoder) candidates(p *pace, boxes []scored) ([]candidate, error) {
	class := newBest(d.topK, len(boxes))
	all := newBest(mostCandidates, d.Classes*min(d.topK, len(boxes)))
	for c := range d.Classes {
		if c == d.Background {
			continue
		}
		class.reset()
		for at, b := range boxes {
			if err := p.step(1); err != nil {
				return nil, err
			}
			if score := b.scores[c]; score > d.threshold {
				class.add(candidate{score, int32(c), int32(at)})
			}
		}
		for _, k := range class.sorted() {
			all.add(k)
		}
	}
	return all.sorted(), nil
}

// winner is a box that no better one of its class overlaps.
type winner struct {
	corners
	before int32 // the winner before it of its class, from 1; 0 for none
	number int32 // which of its class it is, from 1
}

// selected goes through candidates from the best to the worst, drops those that a winner of their class
// overlaps, and returns the first keep that are on the photo. More than keep of one class are never needed.
func (d *decoder) selected(p *pace, boxes []scored, list []candidate, frame Frame) ([]Box, error) {
	found := make([]Box, 0, min(len(list), d.keep))
	winners, last := make([]winner, 0, len(list)), make([]int32, d.Classes)
next:
	for _, c := range list {
		if len(found) == d.keep {
			break
		}
		w := winner{corners: boxes[c.at].corners, before: last[c.class], number: 1}
		if w.before > 0 {
			w.number += winners[w.before-1].number
		}
		if int(w.number) > d.keep {
			continue
		}
		for k := w.before; k > 0; k = winners[k-1].before {
			if err := p.step(1); err != nil {
				return nil, err
			}
			if intersectionOverUnion(winners[k-1].corners, w.corners) > d.overlap {
				continue next
			}
		}
		winners = append(winners, w)
		last[c.class] = int32(len(winners))
		b := frame.onPhoto(w.corners)
		if b.Index, b.Label, b.Score = int(c.class), d.labels[c.class], c.score; b.X0 < b.X1 && b.Y0 < b.Y1 {
			found = append(found, b)
		}
	}
	return found, nil
}
