package plan

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Results returns for every step of a plan the layer of its network whose output the
// step's tensor holds, as it is or flattened; −1 where that is none, as in front of a
// max-pool that has moved behind a sign, or it is coded.
func Results(n *bcnn.Network, p *Plan) []int {
	results := make([]int, len(p.Steps))
	// The steps to come that have a part in a layer. The bias of a sum may be a step of
	// its own.
	steps := make([]int, len(n.Layers))
	for _, step := range p.Steps {
		for _, l := range step.Layers {
			steps[l]++
		}
	}
	// The last layer that had a part in a tensor, and those up to it that have not been
	// executed.
	type state struct {
		last    int
		missing []int
	}
	states := make([]state, len(p.Tensors))
	for t := range p.InputTensors() {
		states[t].last = bcnn.NetworkInput
	}
	for i, step := range p.Steps {
		s := state{last: bcnn.NetworkInput}
		for _, l := range step.Layers {
			steps[l]--
			s.last = max(s.last, l)
		}
		for _, l := range step.Layers {
			s.missing = append(s.missing, l)
			for _, in := range n.Layers[l].Inputs {
				for in > bcnn.NetworkInput && n.Layers[in].Op.Kind() == (bcnn.Flatten{}).Kind() { // no part of any step
					in = n.Layers[in].Inputs[0]
				}
				if in > bcnn.NetworkInput {
					s.missing = append(s.missing, in)
				}
			}
		}
		for _, t := range step.In {
			s.last = max(s.last, states[t].last)
			s.missing = append(s.missing, states[t].missing...)
		}
		s.missing = slices.DeleteFunc(s.missing, func(l int) bool { return steps[l] == 0 })
		states[step.Out] = s
		results[i] = s.last
		if len(s.missing) > 0 || p.Tensors[step.Out].Coded {
			results[i] = -1
		}
	}
	return results
}
