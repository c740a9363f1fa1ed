package cpu

import (
	"slices"
	"sort"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// joined returns for every tensor the one whose first channels it is, or itself. Where
// tensors are joined to the one before again and again, as in a DenseNet, each of them lies
// in the last, whose pixels are farther apart: only what is new is copied. Those who read
// it are signs, which can read such pixels, and the steps that join more to it. Of these, all but the
// last make a tensor that only signs read, before the next one writes over its new channels, as in a
// MeliusNet.
func joined(g *plan.Graph, groups []group) []int {
	container := separate(g.Plan)
	for i := len(g.Steps) - 1; i >= 0; i-- { // what is joined later lies where it will first
		t := g.Steps[i].Out
		if !isConcat(g.Steps[i]) {
			continue
		}
		joins := joinsTo(g, groups, t)
		if len(joins) == 0 {
			continue
		}
		whole := container[g.Steps[joins[len(joins)-1]].Out]
		container[t] = whole
		for _, k := range joins[:len(joins)-1] {
			container[g.Steps[k].Out] = whole
		}
	}
	return container
}

// joinsTo returns the steps that join more to tensor t, in whose results it can lie: signs are all else that reads
// it and, in time, the results but the last. It returns none if there is something else.
func joinsTo(g *plan.Graph, groups []group, t int) (joins []int) {
	if g.IsEnd(t) || g.Tensors[t].DType != bcnn.Float32 {
		return nil
	}
	for _, i := range g.Readers[t] {
		s := g.Steps[i]
		switch {
		case isSign(s):
		case isConcat(s) && s.In[0] == t && !slices.Contains(joins[max(len(joins)-1, 0):], i): // a step that joins it to itself is listed twice
			joins = append(joins, i)
		default:
			return nil
		}
	}
	for k, i := range joins {
		out := g.Steps[i].Out
		if g.IsEnd(out) || k < len(joins)-1 && !onlySigns(g, out, func(reader int) bool {
			return groupAt(groups, reader) < groupAt(groups, joins[k+1])
		}) {
			return nil
		}
	}
	return joins
}

// onlySigns reports whether signs alone read a tensor, all of them in time.
func onlySigns(g *plan.Graph, t int, inTime func(reader int) bool) bool {
	return !slices.ContainsFunc(g.Readers[t], func(i int) bool { return !isSign(g.Steps[i]) || !inTime(i) })
}

// groupAt returns which group step i is of.
func groupAt(groups []group, i int) int {
	return sort.Search(len(groups), func(k int) bool { return groups[k].last >= i })
}

// isSign reports whether a step makes bits of one plane.
func isSign(s plan.Step) bool {
	op, ok := s.Op.(*plan.Sign)
	return ok && op.Planes <= 1
}

func isConcat(s plan.Step) bool {
	_, ok := s.Op.(*plan.Concat)
	return ok
}

// separate is joined where every tensor lies for itself.
func separate(plan *plan.Plan) []int {
	container := make([]int, len(plan.Tensors))
	for t := range container {
		container[t] = t
	}
	return container
}
