package candidates

import (
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/kernels"
)

// Steps is variant gpu.Fused of plans that are none for Fused: a table of the kernels of
// their steps, which the kernel steps walks in one cooperative launch.
type Steps struct {
	Table  []kernels.Step // without addresses
	Args   [][]any        // of the kernels
	Blocks int            // of the grid
	Uses   []plan.Use     // of the tensors, between barriers of the grid
}

// NewSteps makes the table for a batch of so many images at the most, of the candidates of
// each step; nil if the kernel has none of those of a step.
func NewSteps(p *plan.Plan, all [][]Candidate, limits Limits, batch int) *Steps {
	chosen := make([]*Candidate, len(all))
	for i := range all {
		if chosen[i] = stepCandidate(all[i], limits, batch); chosen[i] == nil {
			return nil
		}
	}
	s, graph := &Steps{Blocks: 1}, plan.NewGraph(p)
	for first := 0; first < len(p.Steps); {
		tail := tailOf(p, chosen, first)
		end := first + 1 + len(tail)
		for i := first; i < end; i++ {
			for _, spec := range chosen[i].Specs {
				t := kernels.Step{G: spec.G.Geometry, Kind: stepKind(spec.Name), Blocks: int32(spec.Grid[0]), Stored: 1}
				if len(tail) > 0 && graph.ReadOnlyBy(p.Steps[i].Out, first, end-1) {
					t.Stored = 0
				}
				if i == first {
					t.Tail = int32(len(tail))
					s.Blocks = max(s.Blocks, spec.Grid[0]*batch)
				} else if tail[i-first-1] {
					t.Second = 1
				}
				s.Table, s.Args = append(s.Table, t), append(s.Args, spec.Args)
				for _, a := range spec.Args {
					if tensor, ok := a.(gpu.Tensor); ok {
						s.Uses = append(s.Uses, plan.Use{Tensor: int(tensor), First: first, Last: end - 1})
					}
				}
			}
		}
		first = end
	}
	s.Blocks = min(s.Blocks, limits.Processors)
	return s
}

// stepKind is the number of a kernel, −1 for those that a table does not have.
func stepKind(kernel string) int32 { return int32(slices.Index(kernels.StepKinds, kernel)) }

// stepCandidate chooses among the candidates that a table may have: those of several pixels
// for each warp only where there are more than two rounds of blocks without. nil if there
// is none.
func stepCandidate(all []Candidate, limits Limits, batch int) *Candidate {
	var chosen *Candidate
	for i := range all {
		c := &all[i]
		if c.Variant != gpu.Direct || slices.ContainsFunc(c.Specs, func(s Spec) bool { return stepKind(s.Name) < 0 }) {
			continue
		}
		if chosen == nil || c.Specs[0].Grid[0]*batch <= 2*limits.Processors {
			chosen = c
		}
	}
	return chosen
}

// tailOf tells which of the steps after one are made of its values in registers: for each
// whether the value is the second operand of a sum. It takes sums with tensors that were
// made before, affine functions and signs.
func tailOf(p *plan.Plan, chosen []*Candidate, first int) (tail []bool) {
	value := p.Steps[first].Out
	if name := chosen[first].Specs[0].Name; p.Tensors[value].DType != bcnn.Float32 ||
		!strings.HasPrefix(name, "conv_bits_") && !strings.HasPrefix(name, "conv_values_") {
		return nil
	}
	for i := first + 1; i < len(p.Steps) && len(tail) < kernels.StepsGroup-1; i++ {
		s, second := p.Steps[i], false
		if p.Tensors[s.Out].Shape != p.Tensors[value].Shape {
			break // planes of a sign, say
		}
		switch s.Op.(type) {
		case *plan.Add:
			other := s.In[1]
			if second = other == value; second {
				other = s.In[0]
			}
			made := func(s plan.Step) bool { return s.Out == other }
			if !slices.Contains(s.In, value) || slices.ContainsFunc(p.Steps[first:i], made) {
				return tail
			}
			value = s.Out
		case *plan.Affine:
			if s.In[0] != value {
				return tail
			}
			value = s.Out
		case *plan.Sign:
			if s.In[0] != value {
				return tail
			}
		default:
			return tail
		}
		tail = append(tail, second)
	}
	return tail
}
