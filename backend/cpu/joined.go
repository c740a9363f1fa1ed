package cpu

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// joined returns for every tensor the one whose first channels it is, or itself. Where
// tensors are joined to the one before again and again, as in a DenseNet, each of them lies
// in the last, whose pixels are farther apart: only what is new is copied. Those who read
// it are signs, which can read such pixels, and the step that joins the next to it.
func joined(p *plan.Plan) []int {
	container := separate(p)
	ends, first := p.Ends(), make([]int, len(p.Tensors))
	for t := range first {
		first[t] = -1
	}
	for _, s := range p.Steps { // how often they are what more is joined to, or −1
		if _, ok := s.Op.(*plan.Concat); ok && p.Tensors[s.Out].DType == bcnn.Float32 && !ends[s.Out] {
			first[s.Out] = 0
		}
		for k, t := range s.In {
			op, sign := s.Op.(*plan.Sign)
			_, concat := s.Op.(*plan.Concat)
			switch {
			case first[t] < 0 || sign && op.Planes <= 1:
			case concat && k == 0 && first[t] == 0: // where it is joined to itself, k = 1 comes to −1
				first[t] = 1
			default:
				first[t] = -1
			}
		}
	}
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := p.Steps[i]
		if t := s.In[0]; first[t] == 1 && !ends[s.Out] {
			if _, ok := s.Op.(*plan.Concat); ok {
				container[t] = container[s.Out]
			}
		}
	}
	return container
}

// separate is joined where every tensor lies for itself.
func separate(plan *plan.Plan) []int {
	container := make([]int, len(plan.Tensors))
	for t := range container {
		container[t] = t
	}
	return container
}
