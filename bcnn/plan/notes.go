package plan

// Note is what people are told of a step. It changes nothing in what is computed, and backends do not
// read it.
type Note struct {
	// WhyFloat says why a layer with weights is computed in float32; empty otherwise.
	WhyFloat string
	// Parts is how many channels of the input of a convolution stand for one of the layer's, whose
	// weights are sums of so many ±1; 0 means 1.
	Parts int
	// Groups is how many groups of the layer a convolution computes as one, with weights of 0 for the
	// inputs of the others; 0 means 1.
	Groups int
}

// Note returns that of a step, of which a plan that was made by hand need not have any.
func (p *Plan) Note(step int) Note {
	if step >= len(p.Notes) {
		return Note{}
	}
	return p.Notes[step]
}

// products is how many products of bits of a convolution stand for one of the layer's.
func (n Note) products(c *Conv) int { return max(c.InPlanes, 1) * n.channels() }

// channels is how many channels of the input of a convolution stand for one that a filter of the layer
// reads.
func (n Note) channels() int { return max(n.Parts, 1) * max(n.Groups, 1) }
