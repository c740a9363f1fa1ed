package cpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// placement is where the tensors lie, each with room for so many images.
type placement struct {
	plan.Placement
	images []int
}

// place divides the plan into groups and stretches, and places the tensors as if each step wrote the one
// that it makes. Where there is not enough memory for that, each step is a group of its own.
func (c *compiler) place(divide division) (groups []group, placed placement, err error) {
	for _, alone := range []bool{c.config.Stepwise, true} {
		groups, c.container = groupsOf(c.graph.Plan, alone), separate(c.graph.Plan)
		if !c.config.Stepwise && !alone {
			c.container = joined(c.graph, groups)
		}
		if placed, err = c.divide(groups, divide); err == nil || alone {
			break
		}
	}
	return groups, placed, err
}

// divide divides the groups into stretches and places the tensors. Where that takes more memory than
// the batch as a whole, it is one stretch.
func (c *compiler) divide(groups []group, divide division) (placement, error) {
	one := whole(c.graph.Plan, c.config.MaxBatch)
	c.stretches = one
	placed, err := c.layout(groups, nil, nil)
	if c.config.Stepwise || c.config.MaxBatch == 1 {
		return placed, err
	}
	c.stretches = divide(c.graph.Plan, groups, c.config.MaxBatch)
	if divided, than := c.layout(groups, nil, nil); than == nil && (err != nil || divided.Bytes <= placed.Bytes) {
		return divided, nil
	}
	c.stretches = one
	return placed, err
}

// layout places the tensors in one block of memory, but for the inputs and the outputs, which are the
// caller's, and for those that no step writes. over is that of uses.
func (c *compiler) layout(groups []group, unwritten []bool, over []pair) (placement, error) {
	p, batch := c.graph.Plan, c.config.MaxBatch
	uses, at, images := uses(c.graph, batch, groups, c.stretches, c.container, over)
	uses = slices.DeleteFunc(uses, func(u plan.Use) bool { return unwritten != nil && unwritten[u.Tensor] })
	for _, u := range uses {
		t := p.Tensors[u.Tensor]
		if err := c.config.CheckMemory(t.Bytes(u.Images)); err != nil { // together, they might overflow
			return placement{}, fmt.Errorf("tensor %d (%s): %w", u.Tensor, t.Name, err)
		}
	}
	placed := placement{p.Place(batch, uses), images}
	for t, same := range at {
		placed.Offsets[t] = placed.Offsets[same]
	}
	spread(&placed.Placement)
	return placed, c.config.CheckMemory(placed.Bytes)
}

// pages is what a placement may take more than another, since tensors start at different offsets within
// pages: see spread.
const pages = 64 << 10

var errTakesMore = errors.New("steps in one take more memory than one by one")

// settle places the tensors that the steps write. It fails where that takes more memory than if each step of
// the plan wrote its own, which lie as placed says.
func (c *compiler) settle(prog *program, placed placement) (placement, error) {
	most := placed.Bytes
	if prog.saves {
		most += pages
	}
	for _, over := range [][]pair{prog.over, nil} {
		less, err := c.layout(prog.groups, prog.unwritten, over)
		if err != nil || less.Bytes > most {
			continue
		}
		tables := num.Sum(prog.memory, num.Product(prog.size.Total(), c.config.Threads)) - int(placed.Bytes)
		if c.config.CheckMemory(int64(num.Sum(tables, int(less.Bytes)))) == nil {
			return less, nil
		}
	}
	if prog.saves {
		return placement{}, errTakesMore
	}
	return placed, nil
}

// pageOffset is how far tensors start from each other within a page: 17 lines of the cache, so
// that the multiples of it differ for long.
const pageOffset = 1088

// spread moves the tensors of a placement up, so that no two of them, but for those at the
// same place, start at the same offset within a page. Steps that go down the columns of
// images of 128 channels and more reach few sets of lines of the first-level cache, and where
// input and output start alike, the same ones.
func spread(p *plan.Placement) {
	const page = 4096
	starts := slices.Clone(p.Offsets)
	slices.Sort(starts)
	starts = slices.Compact(starts)
	moved := map[int64]int64{}
	by, at := int64(0), int64(0)
	for _, start := range starts {
		if start < 0 {
			moved[start] = start
			continue
		}
		by += (at - start - by) & (page - 1)
		moved[start] = start + by
		at += pageOffset
	}
	for i, start := range p.Offsets {
		p.Offsets[i] = moved[start]
	}
	p.Bytes += by
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
