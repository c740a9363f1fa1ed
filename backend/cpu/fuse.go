package cpu

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/pixelwise"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// A group is a step and those behind it that treat each pixel of its output separately, such as a
// convolution, the sum with a shortcut and the sign that the next convolution reads. The later
// steps follow the first one tile by tile, while its pixels are in the cache, with their usual
// kernels.
//
// The tensors of a group are needed from its first step to its last. A result that only the next
// step reads lies where that step writes, so it never leaves the cache.
type group struct{ first, last int }

// maxFollowers bounds the steps of a group, whose tensors are all needed at once.
const maxFollowers = 4

// groups divides a plan into groups. If stepwise is set, each step is a group of its own.
func groups(plan *plan.Plan, stepwise bool) []group {
	var all []group
	for i := 0; i < len(plan.Steps); {
		g := group{i, i}
		for !stepwise && g.last+1 < len(plan.Steps) && g.last-i < maxFollowers && follows(plan, i, g.last+1) {
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

// uses returns which groups need which tensors, without inputs and outputs. at[t] is the tensor in whose
// memory tensor t lies, and images[t] for how many it has some: those that the stretch has at a time
// that alone needs it, or a batch, which several stretches need, each to its end. containers has, for
// every tensor, the one that it is concatenated into, and over are pairs that may share memory.
func uses(p *plan.Graph, batch int, groups []group, stretches []stretch, containers []int, over []pair) (uses []plan.Use, at, images []int) {
	at = inPlace(p, groups, containers)
	for t, w := range containers {
		at[t] = at[w]
	}
	for _, o := range over {
		from, to := at[o.read], at[o.written]
		if p.Tensors[from].Bytes(1) > p.Tensors[to].Bytes(1) {
			from, to = to, from
		}
		for i := range at {
			if at[i] == from {
				at[i] = to
			}
		}
	}
	inner := p.InnerUses()
	only := stretchOf(p, stretches, inner, at)
	ofStep := make([]group, len(p.Steps))
	for _, g := range groups {
		for i := g.first; i <= g.last; i++ {
			ofStep[i] = g
		}
	}
	images = make([]int, len(p.Tensors))
	for _, u := range inner {
		use := plan.Use{Tensor: at[u.Tensor], First: ofStep[u.First].first, Last: ofStep[u.First].last, Images: batch}
		if s := only[use.Tensor]; s != nil {
			use.Images = s.images
		} else {
			s := stretches[stretchAt(stretches, u.First)]
			use.First, use.Last = s.first, s.last
		}
		images[u.Tensor] = use.Images
		uses = append(uses, use)
	}
	return uses, at, images
}

// stretchOf returns for each tensor the stretch that alone needs its memory, nil if there are several.
func stretchOf(p *plan.Graph, stretches []stretch, uses []plan.Use, at []int) []*stretch {
	only, several := make([]*stretch, len(p.Tensors)), make([]bool, len(p.Tensors))
	for _, u := range uses {
		k := stretchAt(stretches, u.First)
		if t := at[u.Tensor]; only[t] == nil && !several[t] {
			only[t] = &stretches[k]
		} else if only[t] != &stretches[k] {
			only[t], several[t] = nil, true
		}
	}
	return only
}

// inPlace returns, for every tensor, the one in whose memory it lies: the output of the next step
// of its group, if that works in place and no other step reads the tensor or, later, one that is
// concatenated with it. containers has, for every tensor, the one that it is concatenated into.
func inPlace(p *plan.Graph, groups []group, containers []int) []int {
	last := make([]int, len(p.Tensors)) // the last step to read it, or one joined with it
	for t, container := range containers {
		last[container] = max(last[container], p.LastUse(t))
	}
	at := make([]int, len(p.Tensors))
	for t := range at {
		at[t] = t
	}
	for _, g := range groups {
		for i := g.last; i > g.first; i-- {
			s, t := p.Steps[i], p.Steps[i-1].Out
			switch s.Op.(type) {
			case *plan.Add, *plan.Pair, *plan.Affine:
			default:
				continue
			}
			from, to := p.Tensors[t], p.Tensors[s.Out]
			if s.In[0] != t && (len(s.In) < 2 || s.In[1] != t) || len(p.Readers[t]) > 1 || last[t] > i || p.IsEnd(t) || p.IsEnd(s.Out) {
				continue
			}
			if from.DType == to.DType && from.Shape == to.Shape {
				at[t] = at[s.Out]
			}
		}
	}
	return at
}

// A pair is two tensors that may share memory: a step reads each value of one before it writes that
// place of the other. What is written is no larger, so the first images of a batch leave the next ones as
// they are.
type pair struct{ read, written int }

// fuse makes one step of the first step of each group and those behind it that it can lead. They must
// not need the memory of the worker, which the first one does. It returns the pairs of tensors that
// may share memory.
func (e *executable) fuse(groups []group, needs []tiles.Size) (over []pair) {
	plan, steps, at := e.plan, e.steps, inPlace(e.graph, groups, e.container)
	e.steps = nil
	k := 0
	for _, g := range groups {
		if g.first > e.stretches[k].last {
			e.stretches[k].steps = len(e.steps)
			k++
		}
		led := plan.Tensors[plan.Steps[g.first].Out]
		if steps[g.first] == nil { // another step does its work
			e.steps = append(e.steps, slices.DeleteFunc(slices.Clone(steps[g.first:g.last+1]), func(s tiles.Step) bool { return s == nil })...)
			continue
		}
		follow := g.first + 1
		if e.poolsInPlace(g.first) {
			over = append(over, pair{plan.Steps[g.first].In[0], plan.Steps[g.first].Out})
		}
		done := e.add(steps[g.first], follow, g.last, at, &over)
		if done == 0 && follow <= g.last && e.fuseLevels(steps[g.first], follow) {
			done = 1
		}
		for end := follow + done; follow < end; follow++ {
			e.choices[follow] = driver.Choice{Kernel: "in that of " + plan.Steps[g.first].Name, Why: "its values are in registers"}
		}
		followers := make([]tiles.Next, 0, g.last-g.first)
		for i, s := range steps[follow : g.last+1] {
			r, ok := s.(*tiles.Range)
			if !ok || r.Size != led.Shape.Pixels() || needs[follow+i] != (tiles.Size{}) {
				break
			}
			followers = append(followers, r.Do)
		}
		leader, ok := steps[g.first].(tiles.Leader)
		if ok && len(followers) > 0 && leader.Lead(led.Shape.Pixels(), led.Shape.C, next(followers)) {
			for i := range followers {
				c := &e.choices[follow+i]
				c.Tile, c.Why = "those of "+plan.Steps[g.first].Name, "pixels that are in the cache"
			}
			follow += len(followers)
		}
		e.steps = append(append(e.steps, steps[g.first]), steps[follow:g.last+1]...)
	}
	e.stretches[k].steps = len(e.steps)
	return over
}

// add folds an Add, step i or the one behind an affine step i, into the kernel of the step before.
// Their tensors must share memory, no step may be behind last, and the kernel must be able to. It
// returns how many steps it has folded, and appends to over if the other summand may lie where the
// sum does.
func (e *executable) add(before tiles.Step, i, last int, at []int, over *[]pair) int {
	conv, can := before.(interface {
		Add(*bcnn.Tensor, kern.End) (can, overlaid bool)
	})
	if !can || i > last {
		return 0
	}
	var then kern.End
	steps := e.plan.Steps[i : last+1]
	out, end := e.plan.Steps[i-1].Out, 0
	op, scale := steps[0].Op.(*plan.Affine)
	if scale && len(steps) > 1 && op.Scale != nil && op.Activation.Kind == plan.ActivationNone && at[out] == at[steps[0].Out] {
		then.Scale, then.Shift, out, end = op.Scale, op.Shift, steps[0].Out, 1
	}
	s := steps[end]
	sum, ok := s.Op.(*plan.Add)
	if !ok || sum.Activation.Kind == plan.ActivationFunction || at[out] != at[s.Out] {
		return 0
	}
	then.Activation = activation.Of(sum.Activation)
	other := s.In[0]
	if other == out {
		other = s.In[1]
	}
	added, overlaid := conv.Add(&e.tensors[other], then)
	if !added {
		return 0
	}
	if overlaid && e.graph.LastUse(other) <= i+end && e.standalone(other) && e.standalone(s.Out) {
		*over = append(*over, pair{other, s.Out})
	}
	return end + 1
}

// poolsInPlace reports whether step i is a pool that may write its outputs over its inputs. It may
// only with one thread, which computes the outputs in order.
func (e *executable) poolsInPlace(i int) bool {
	s := e.plan.Steps[i]
	op, ok := s.Op.(*plan.MaxPool)
	if !ok || e.unmade[s.In[0]] || e.config.Threads > 1 || e.graph.LastUse(s.In[0]) > i || !e.standalone(s.In[0]) || !e.standalone(s.Out) {
		return false
	}
	return pixelwise.InPlace(op, e.plan.Tensors[s.In[0]], e.plan.Tensors[s.Out])
}

// standalone reports whether a tensor is neither an input nor an output, and is not joined with others.
func (e *executable) standalone(t int) bool {
	if e.graph.IsEnd(t) {
		return false
	}
	for i, w := range e.container {
		if (i == t) != (w == t) {
			return false
		}
	}
	return true
}

// fuseLevels folds step i, which makes levels, into the kernel of the step before, if nothing else
// reads the tensor between them and the kernel can. It reports whether it has.
func (e *executable) fuseLevels(before tiles.Step, i int) bool {
	out := e.plan.Steps[i-1].Out
	conv, can := before.(interface {
		Levels(*kern.Levels, *bcnn.Tensor) bool
	})
	if !can || e.levels[i] == nil || e.plan.Steps[i].In[0] != out || !e.graph.ReadOnlyBy(out, i, i) {
		return false
	}
	return conv.Levels(e.levels[i], &e.tensors[e.plan.Steps[i].Out])
}

// next returns a function that calls all followers for some pixels.
func next(followers []tiles.Next) tiles.Next {
	return func(s *tiles.Scratch, image, from, to int) {
		for _, follow := range followers {
			follow(s, image, from, to)
		}
	}
}
