package cpu

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// joined returns for every tensor the one whose first channels it is, or itself. Where
// tensors are joined to the one before again and again, as in a DenseNet, each of them lies
// in the last, whose pixels are farther apart: only what is new is copied. Those who read
// it are signs, which can read such pixels, and the step that joins the next to it.
func joined(g *plan.Graph) []int {
	container := separate(g.Plan)
	for i := len(g.Steps) - 1; i >= 0; i-- {
		s := g.Steps[i]
		if t := s.In[0]; isConcat(s) && !g.IsEnd(s.Out) && joinedOnce(g, t) {
			container[t] = container[s.Out]
		}
	}
	return container
}

// joinedOnce reports whether a tensor of float32 is made by joining, and more is joined to it once,
// while signs are all else that reads it.
func joinedOnce(g *plan.Graph, t int) bool {
	if g.IsEnd(t) || g.Tensors[t].DType != bcnn.Float32 || !isConcat(g.Steps[g.Writer[t]]) {
		return false
	}
	joins := 0
	for _, i := range g.Readers[t] {
		s := g.Steps[i]
		op, sign := s.Op.(*plan.Sign)
		switch {
		case sign && op.Planes <= 1:
		case isConcat(s) && s.In[0] == t: // where it is joined to itself, there are two
			joins++
		default:
			return false
		}
	}
	return joins == 1
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
