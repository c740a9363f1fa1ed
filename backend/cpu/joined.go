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
	for i := len(g.Steps) - 1; i >= 0; i-- {
		s := g.Steps[i]
		t := s.In[0]
		if !isConcat(s) || g.IsEnd(s.Out) {
			continue
		}
		joins, ok := joinsTo(g, groups, t)
		if !ok || joins[len(joins)-1] != i {
			continue
		}
		for _, k := range joins[:len(joins)-1] {
			container[g.Steps[k].Out] = container[s.Out]
		}
		container[t] = container[s.Out]
	}
	return container
}

// joinsTo returns the steps that join more to tensor t, in whose results it can lie: it is made by joining, and
// signs are all else that reads it and, in time, the results but the last.
func joinsTo(g *plan.Graph, groups []group, t int) (joins []int, ok bool) {
	if g.IsEnd(t) || g.Tensors[t].DType != bcnn.Float32 || !isConcat(g.Steps[g.Writer[t]]) {
		return nil, false
	}
	for _, i := range g.Readers[t] {
		s := g.Steps[i]
		switch {
		case isSign(s):
		case isConcat(s) && s.In[0] == t && !slices.Contains(joins, i): // where it is joined to itself, it is twice
			joins = append(joins, i)
		default:
			return nil, false
		}
	}
	for k := range max(len(joins)-1, 0) {
		out := g.Steps[joins[k]].Out
		readers := g.Readers[out]
		if g.IsEnd(out) || groupAt(groups, g.LastUse(out)) >= groupAt(groups, joins[k+1]) ||
			slices.ContainsFunc(readers, func(i int) bool { return !isSign(g.Steps[i]) }) {
			return nil, false
		}
	}
	return joins, len(joins) > 0
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
