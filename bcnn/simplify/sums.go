package simplify

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// addedToParts is the layer at hand if it adds channels, some of which are zeros, to a concatenation
// whose parts meet either zeros alone or none, as the improvement blocks of a MeliusNet do. Parts that meet zeros
// keep a −0. ok is false for others.
func (p *pass) addedToParts(whole, channels int) (out value, ok bool, err error) {
	if whole <= bcnn.NetworkInput || channels <= bcnn.NetworkInput || !p.on(Sums) {
		return out, false, nil
	}
	picked, picks := p.to.Layers[channels].Op.(bcnn.Channels)
	_, joins := p.to.Layers[whole].Op.(bcnn.Concat)
	if !picks || !joins {
		return out, false, nil
	}
	parts := slices.Clone(p.to.Layers[whole].Inputs)
	if len(parts) > mostParts {
		return out, false, nil
	}
	if err := p.budget.Charge(4*int64(len(picked.Index)) + 1024*int64(len(parts))); err != nil {
		return out, false, err
	}
	met := make([][]int32, len(parts)) // the channels that are added to each part, nil for zeros
	from, kept := 0, 0
	for k, part := range parts {
		index := picked.Index[from:][:p.shape(part).C]
		from += len(index)
		switch zeros := count(index, -1); zeros {
		case 0:
			met[k] = index
		case len(index):
			kept += zeros
		default:
			return out, false, nil
		}
	}
	if p.room -= 2*len(parts) + 1; kept == 0 || kept == from || p.room < 0 {
		return out, false, nil
	}
	source := p.to.Layers[channels].Inputs[0]
	for k, index := range met {
		if index == nil {
			continue
		}
		shape, added := p.shape(parts[k]), source
		if !isIdentity(index, p.shape(source).C) {
			added = p.emit("/channels", bcnn.Channels{Index: index}, shape, source)
		}
		parts[k] = p.emit("/sum", bcnn.Add{}, shape, parts[k], added)
	}
	p.found(Sums, "%d of its %d channels are added to zeros", kept, from)
	return p.same(p.emit("", bcnn.Concat{}, p.shapes[p.at], parts...)), true, nil
}

// count returns how many elements of a list are x.
func count(list []int32, x int32) int {
	n := 0
	for _, y := range list {
		if y == x {
			n++
		}
	}
	return n
}

// isIdentity reports whether an index picks all n channels in their order.
func isIdentity(index []int32, n int) bool {
	for k, c := range index {
		if int(c) != k {
			return false
		}
	}
	return len(index) == n
}
