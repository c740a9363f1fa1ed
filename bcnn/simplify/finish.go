package simplify

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// finish returns the new network without the layers that nothing reads, with names and
// sources.
func (p *pass) finish() (*bcnn.Network, error) {
	outputs := p.from.OutputLayers()
	used := make([]bool, len(p.to.Layers))
	for _, l := range outputs {
		used[p.values[l].layer] = true
	}
	for i := len(used) - 1; i >= 0; i-- {
		for _, in := range p.to.Layers[i].Inputs {
			if used[i] && in > bcnn.NetworkInput {
				used[in] = true
			}
		}
	}
	out := *p.from
	out.Layers, out.Outputs = make([]bcnn.Layer, 0, len(p.to.Layers)), make([]int, len(outputs))
	to := make([]int, len(used))
	taken := make(map[string]bool, len(p.from.Layers))
	for _, l := range p.from.Layers {
		taken[l.Name] = true
	}
	kept := make([]bool, len(p.from.Layers)) // whose outputs are still computed
	for i, l := range p.to.Layers {
		if !used[i] {
			continue
		}
		m := p.made[i]
		switch {
		case m.same:
			l.Name, l.Source = p.from.Layers[m.of].Name, p.from.Layers[m.of].Source
			kept[m.of] = true
		default:
			name, err := p.unique(p.from.Layers[m.of].Name+m.suffix, taken)
			if err != nil {
				return nil, err
			}
			l.Name = name
		}
		for k, in := range l.Inputs {
			if in > bcnn.NetworkInput {
				l.Inputs[k] = to[in]
			}
		}
		to[i] = len(out.Layers)
		out.Layers = append(out.Layers, l)
	}
	for k, l := range outputs {
		out.Outputs[k] = to[p.values[l].layer]
	}
	if len(outputs) == 1 && out.Outputs[0] == len(out.Layers)-1 {
		out.Outputs = nil
	}
	if out.Absorbed != nil {
		names := slices.Clone(out.Absorbed)
		for i, l := range p.from.Layers {
			if !kept[i] && l.Source != nil {
				names = append(names, l.Source.Name)
			}
		}
		out.Absorb(names)
	}
	return &out, nil
}

// maxName is the longest name of a layer, in bytes.
const maxName = 256

// unique makes a name that no layer has.
func (p *pass) unique(name string, taken map[string]bool) (string, error) {
	for k := 1; ; k++ {
		unique := name
		if k > 1 {
			unique = fmt.Sprintf("%s_%d", name, k)
		}
		if len(unique) > maxName { // which only many names of the network itself can bring about
			unique = fmt.Sprintf("simplified_%d", len(taken))
		}
		if err := p.budget.Charge(int64(len(unique))); err != nil {
			return "", err
		}
		if !taken[unique] {
			taken[unique] = true
			return unique, nil
		}
	}
}
