package plan_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Of plans of random steps, what a graph says is what one finds by looking for it.
func TestGraph(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := &plan.Plan{Inputs: make([]bcnn.Input, 1+rng.IntN(2))}
		p.Tensors = make([]plan.Tensor, len(p.Inputs))
		for range 1 + rng.IntN(9) {
			var in []int
			for range 1 + rng.IntN(3) {
				in = append(in, rng.IntN(len(p.Tensors)))
			}
			p.Steps = append(p.Steps, plan.Step{In: in, Out: len(p.Tensors), Op: &plan.Add{}})
			p.Tensors = append(p.Tensors, plan.Tensor{})
		}
		p.Outputs = append(p.Outputs, len(p.Tensors)-1)
		if other := len(p.Inputs) + rng.IntN(len(p.Steps)); other != p.Outputs[0] {
			p.Outputs = append(p.Outputs, other)
		}
		g := plan.NewGraph(p)
		require.Same(t, p, g.Plan)
		for tensor := range p.Tensors {
			isOutput := slices.Contains(p.Outputs, tensor)
			var readers []int
			for i, s := range p.Steps {
				for _, in := range s.In {
					if in == tensor {
						readers = append(readers, i)
					}
				}
			}
			require.Equal(t, append([]int{}, readers...), append([]int{}, g.Readers[tensor]...))
			require.Equal(t, tensor < len(p.Inputs), g.IsInput[tensor])
			require.Equal(t, isOutput, g.IsOutput[tensor])
			require.Equal(t, isOutput || tensor < len(p.Inputs), g.IsEnd(tensor))
			require.Equal(t, slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Out == tensor }), g.Writer[tensor])
			last := -1
			if len(readers) > 0 {
				last = slices.Max(readers)
			}
			if isOutput {
				last = len(p.Steps)
			}
			require.Equal(t, last, g.LastUse(tensor))
			for first := range p.Steps {
				for last := first; last < len(p.Steps); last++ {
					outside := slices.ContainsFunc(readers, func(i int) bool { return i < first || i > last })
					require.Equal(t, !isOutput && !outside, g.ReadOnlyBy(tensor, first, last))
				}
			}
		}
	}
}
