package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// Report tells what became of the nodes of a model.
type Report struct {
	Producer string // the program that wrote the file
	Opset    int    // of the default domain
	Nodes    int    // in the file
	// Folded are the nodes that did not become layers of their own.
	Folded []Folded
	// Cancelled are the nodes that complete a sum of which two parts cancel, such as the
	// straight-through form x + (f(x) − x). They count as f(x), which the sum is but for rounding.
	Cancelled []string
	// Zeros are the signs whose value at 0 Options.SignOfZero has changed.
	Zeros []Zero
	// Ternary are the signs that keep a third value for 0, since it may occur. Layers behind them
	// need two products of bits instead of one. Options.SignOfZero makes them binary.
	Ternary []Zero
	// NearlyBinary are the layers whose weights deviate slightly from ±α for one α per filter, from
	// small multiples of it, or from sums of a few binary bases.
	NearlyBinary []NearlyBinary
	// Findings are what package simplify has found in the network.
	Findings []simplify.Finding
	// Deviations say what the network computes differently from the file, and by how much at most:
	// what was FLOAT16, BFLOAT16 or DOUBLE is computed in float32, and operators of a set that is not
	// known here as those of the newest one that is.
	Deviations []string
}

// NearlyBinary is a layer whose weights are nearly binary, small multiples of α, or sums of binary
// bases.
type NearlyBinary struct {
	Layer string
	// Deviation is the largest distance of a weight from that, as a fraction of α, or for sums of
	// bases of the largest weight of the filter.
	Deviation float64
	// Taken says that Options.WeightTolerance covers the deviation, so that the layer is binary.
	Taken bool
}

// Zero is a sign whose value at 0 is neither of its others.
type Zero struct {
	Node string
	// Frequent says that its input is often 0; see Options.OverrideZeros.
	Frequent bool
}

// Folded is a node that has no layer of its own.
type Folded struct {
	Node, Op string
	// Into is the layer that the node became a part of, "" for a node that was evaluated on import
	// and for one that no output depends on.
	Into string
}

// report returns what became of every node. A node without a layer counts as a part of the layer of
// the first node that reads it.
func (im *importer) report(net *bcnn.Network, findings []simplify.Finding) (*Report, error) {
	g := im.model.Graph
	layers := map[string]bool{}
	for _, l := range net.Layers {
		layers[l.Name] = true
	}
	made := im.build.Made
	for node, name := range made {
		if !layers[name] {
			delete(made, node)
		}
	}
	r := &Report{Producer: im.model.Producer, Opset: int(im.model.Opset), Nodes: len(g.Nodes), Cancelled: im.cancelled, Deviations: im.deviations(), Findings: findings}
	for _, z := range im.build.Zeros {
		r.Zeros = append(r.Zeros, Zero{z.Node.Label(), z.Frequent})
	}
	for _, z := range im.build.Ternary {
		r.Ternary = append(r.Ternary, Zero{z.Node.Label(), z.Frequent})
	}
	for _, f := range findings {
		if f.Deviation > 0 {
			r.NearlyBinary = append(r.NearlyBinary, NearlyBinary{f.Layer, f.Deviation, !f.Nearly})
		}
	}
	into := make([]string, len(g.Nodes))
	reader := map[string]int{} // the first node that reads a tensor
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if err := im.budget.Charge(nameUnits * int64(2+len(n.Inputs))); err != nil {
			return nil, err
		}
		switch {
		case !im.needed[i] || im.folded[i]:
		case made[i] != "":
			into[i] = made[i]
		case len(net.Layers) > 0:
			into[i] = net.Layers[len(net.Layers)-1].Name
			if k, ok := reader[n.Outputs[0]]; ok {
				into[i] = into[k]
			}
		}
		if im.needed[i] {
			for _, name := range n.Inputs {
				reader[name] = i
			}
		}
	}
	for i, n := range g.Nodes {
		if made[i] == "" {
			r.Folded = append(r.Folded, Folded{n.Label(), n.OpType, into[i]})
		}
	}
	return r, nil
}
