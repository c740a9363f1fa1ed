package plan

// Graph is a plan with what its steps did with its tensors when it was made, for whoever asks that more
// than once. It must not be changed.
type Graph struct {
	*Plan
	// Readers are, of every tensor, the steps that read it, in order. One that reads it twice, as the
	// square of a value does, is there twice.
	Readers [][]int
	// Writer is, of every tensor, the step that writes it; −1 of an input.
	Writer []int
	// IsInput and IsOutput tell which tensors are the caller's.
	IsInput, IsOutput []bool
}

// NewGraph looks through the steps of a plan, whose tensors there must be, in time and memory linear in
// its size.
func NewGraph(p *Plan) *Graph {
	g := &Graph{
		Plan: p, Readers: make([][]int, len(p.Tensors)), Writer: make([]int, len(p.Tensors)),
		IsInput: make([]bool, len(p.Tensors)), IsOutput: make([]bool, len(p.Tensors)),
	}
	for t := range p.InputTensors() {
		g.IsInput[t], g.Writer[t] = true, -1
	}
	for _, t := range p.Outputs {
		g.IsOutput[t] = true
	}
	count := make([]int, len(p.Tensors))
	all := 0
	for _, s := range p.Steps {
		for _, t := range s.In {
			count[t]++
		}
		all += len(s.In)
	}
	memory := make([]int, all)
	for t, n := range count {
		g.Readers[t], memory = memory[:0:n], memory[n:]
	}
	for i, s := range p.Steps {
		g.Writer[s.Out] = i
		for _, t := range s.In {
			g.Readers[t] = append(g.Readers[t], i)
		}
	}
	return g
}

// IsEnd reports whether a tensor is an input or an output.
func (g *Graph) IsEnd(t int) bool { return g.IsInput[t] || g.IsOutput[t] }

// LastUse returns the last step that reads a tensor: len(Steps) for an output, which is fetched behind
// all steps, −1 where there is none.
func (g *Graph) LastUse(t int) int {
	readers := g.Readers[t]
	switch {
	case g.IsOutput[t]:
		return len(g.Steps)
	case len(readers) == 0:
		return -1
	}
	return readers[len(readers)-1]
}

// ReadOnlyBy reports whether nothing but the steps from first to last needs what is in a tensor: no
// other step reads it, and it is no output.
func (g *Graph) ReadOnlyBy(t, first, last int) bool {
	readers := g.Readers[t]
	return !g.IsOutput[t] && (len(readers) == 0 || readers[0] >= first && readers[len(readers)-1] <= last)
}
