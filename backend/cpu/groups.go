package cpu

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// A group is a step, its lead, and those behind it that treat each pixel of its output separately, such
// as a convolution, the sum with a shortcut and the sign that the next convolution reads. What the
// kernels of the lead can do besides, they do while its outputs are in registers: see end. The other
// steps follow the lead tile by tile, while its pixels are in the cache, with their usual kernels.
//
// The tensors of a group are needed from its first step to its last. A result that only the next
// step reads lies where that step writes, so it never leaves the cache.
type group struct{ first, last int }

// maxFollowers bounds the steps of a group, whose tensors are all needed at once.
const maxFollowers = 4

// groupsOf divides a plan into groups. If alone is set, each step is a group of its own.
func groupsOf(plan *plan.Plan, alone bool) []group {
	var all []group
	for i := 0; i < len(plan.Steps); {
		g := group{i, i}
		for !alone && g.last+1 < len(plan.Steps) && g.last-i < maxFollowers && follows(plan, i, g.last+1) {
			g.last++
		}
		all = append(all, g)
		i = g.last + 1
	}
	return all
}

// follows reports whether step i can be in a group with the steps from first on.
func follows(p *plan.Plan, first, i int) bool {
	s := p.Steps[i]
	out := p.Tensors[s.Out]
	switch s.Op.(type) {
	case *plan.Add, *plan.Pair, *plan.Concat, *plan.Quantize, *plan.Channels, *plan.Sign, *plan.Affine:
	default:
		return false
	}
	led := p.Tensors[p.Steps[first].Out].Shape
	if out.Shape.H != led.H || out.Shape.W != led.W {
		return false
	}
	for _, t := range s.In {
		for _, before := range p.Steps[first:i] {
			if t == before.Out {
				return true
			}
		}
	}
	return false
}

// An end is what kernels of a convolution may do with its outputs before they write them: the work of the
// steps behind it, up to one.
type end struct {
	last int
	// fake is the step that makes levels of the outputs, of which the next one makes values again before they
	// are added; −1 for none.
	fake int
	// scaled is the step that scales the outputs, or the bytes that are added to them; −1 for none.
	scaled int
	sum    int // the step that adds another tensor; −1 for none
	other  int // that tensor, of float32 values or of bytes
	levels int // the step that makes bytes of levels; −1 for none
	// unwritten are tensors that nobody writes then.
	unwritten []int
}

// ends lists how kernels of a convolution, step i, may end, the most thorough end first. The steps up to
// last are in its group, those up to joint in the next one.
func (c *compiler) ends(i, last, joint int) []end {
	if _, ok := c.graph.Steps[i].Op.(*plan.Conv); !ok {
		return nil
	}
	var all []end
	if i == last || c.fakeQuantizes(i, last) {
		if e, ok := c.byteSum(i, last, joint); ok {
			all = append(all, e)
		}
	}
	if i == last {
		return all
	}
	if e, ok := c.shortcut(i, last); ok {
		all = append(all, e)
	}
	if e, ok := c.levelsOf(i); ok {
		all = append(all, e)
	}
	return all
}

// shortcut is the sum of what convolution i makes, perhaps scaled, and another tensor. The outputs, the
// scaled ones and the sum must share memory.
func (c *compiler) shortcut(i, last int) (end, bool) {
	steps := c.graph.Steps[:last+1]
	e := end{fake: -1, scaled: -1, sum: i + 1, levels: -1}
	out := steps[i].Out
	op, scaled := steps[e.sum].Op.(*plan.Affine)
	if scaled && e.sum < last && op.Scale != nil && op.Activation.Kind == plan.ActivationNone && c.at[out] == c.at[steps[e.sum].Out] {
		e.scaled, e.sum, out = e.sum, e.sum+1, steps[e.sum].Out
	}
	s := steps[e.sum]
	sum, ok := s.Op.(*plan.Add)
	if !ok || sum.Activation.Kind == plan.ActivationFunction || c.at[out] != c.at[s.Out] {
		return end{}, false
	}
	e.last, e.other = e.sum, s.In[0]
	if e.other == out {
		e.other = s.In[1]
	}
	return e, true
}

// levelsOf is the step behind convolution i that makes levels of what nothing else reads.
func (c *compiler) levelsOf(i int) (end, bool) {
	s, out := c.graph.Steps[i+1], c.graph.Steps[i].Out
	if _, ok := s.Op.(*plan.Quantize); !ok || s.In[0] != out || c.graph.Tensors[s.Out].DType != bcnn.Uint8 || !c.graph.ReadOnlyBy(out, i+1, i+1) {
		return end{}, false
	}
	return end{last: i + 1, fake: -1, scaled: -1, sum: -1, levels: i + 1}, true
}

// fakeQuantizes reports whether the steps behind convolution i, up to last, make levels of its outputs and
// values of these, which nothing reads in between.
func (c *compiler) fakeQuantizes(i, last int) bool {
	if last != i+2 {
		return false
	}
	first, second := c.graph.Steps[i+1], c.graph.Steps[last]
	_, levels := first.Op.(*plan.Quantize)
	values, scales := second.Op.(*plan.Affine)
	return levels && scales && values.Scale != nil && values.Activation.Kind == plan.ActivationNone &&
		first.In[0] == c.graph.Steps[i].Out && second.In[0] == first.Out && c.graph.Tensors[first.Out].DType == bcnn.Float32 &&
		c.graph.ReadOnlyBy(first.In[0], i+1, i+1) && c.graph.ReadOnlyBy(first.Out, last, last)
}

// byteSum is the end that residual networks of few bits need: the output of step made, which is convolution i or
// the values of its levels, plus the values of bytes, as bytes of levels. Float32 values in between need no
// memory.
func (c *compiler) byteSum(i, made, last int) (end, bool) {
	g := c.graph
	e := end{fake: -1, scaled: made + 1, sum: made + 2, levels: made + 3, last: made + 3}
	if e.last > last {
		return end{}, false
	}
	added, values, sum, levels := g.Steps[made].Out, g.Steps[e.scaled], g.Steps[e.sum], g.Steps[e.levels]
	scale, ok := values.Op.(*plan.Affine)
	add, adds := sum.Op.(*plan.Add)
	_, counts := levels.Op.(*plan.Quantize)
	e.other, e.unwritten = values.In[0], []int{added, values.Out, sum.Out}
	if made > i {
		e.fake = i + 1
		e.unwritten = append(e.unwritten, g.Steps[i].Out, g.Steps[e.fake].Out)
	}
	switch {
	case !ok || !adds || !counts || scale.Activation.Kind != plan.ActivationNone || add.Activation.Kind == plan.ActivationFunction:
		return end{}, false
	case g.Tensors[e.other].DType != bcnn.Uint8 || g.Tensors[levels.Out].DType != bcnn.Uint8:
		return end{}, false
	case !slices.Contains(sum.In, added) || !slices.Contains(sum.In, values.Out) || added == values.Out || levels.In[0] != sum.Out:
		return end{}, false
	case !g.ReadOnlyBy(added, e.sum, e.sum) || !g.ReadOnlyBy(values.Out, e.sum, e.sum) || !g.ReadOnlyBy(sum.Out, e.levels, e.levels):
		return end{}, false
	}
	for _, t := range append(slices.Clone(e.unwritten), levels.Out, e.other) {
		if !c.standalone(t) {
			return end{}, false
		}
	}
	return e, true
}

// readsWindows reports whether step next may read rows of what convolution i makes in the memory of a
// worker: nothing else needs them.
func (c *compiler) readsWindows(i, next int) bool {
	from, to := c.graph.Steps[i], c.graph.Steps[next]
	_, conv := from.Op.(*plan.Conv)
	return conv && c.graph.Tensors[from.Out].DType == bcnn.Float32 && to.In[0] == from.Out &&
		c.graph.LastUse(from.Out) <= next && c.standalone(from.Out)
}

// standalone reports whether a tensor is neither an input nor an output, and is not joined with others.
func (c *compiler) standalone(t int) bool {
	if c.graph.IsEnd(t) {
		return false
	}
	for i, w := range c.container {
		if (i == t) != (w == t) {
			return false
		}
	}
	return true
}
