package cpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/conv"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/pixelwise"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/weights"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// compiler makes an executable of a plan, in this order: groups of steps and where tensors lie at worst
// (place), the steps that run (compile), where the tensors lie that these write (settle).
type compiler struct {
	ctx       context.Context
	set       *kern.Set
	config    driver.Config
	weights   *weights.Plan
	graph     *plan.Graph
	tensors   []bcnn.Tensor // of the executable, which steps point to
	least     []int         // see narrow
	most      []uint8       // see largest
	rare      []bool        // see rareZeros
	container []int         // see joined
	stretches []stretch
	at        []int // see inPlace
}

func newExecutable(ctx context.Context, plan *plan.Plan, set *kern.Set, config driver.Config) (*executable, error) {
	return compileDivided(ctx, plan, set, config, cached(num.Product(schedule.L2(), config.Threads)))
}

// compileDivided is newExecutable with another division than that for the cache.
func compileDivided(ctx context.Context, p *plan.Plan, set *kern.Set, config driver.Config, divide division) (*executable, error) {
	c := &compiler{ctx: ctx, set: set, config: config, weights: weights.Of(p, set.ISA)}
	c.graph, c.least = narrow(plan.NewGraph(p), config.Stepwise)
	c.most, c.rare = largest(c.graph.Plan), rareZeros(c.graph.Plan)
	c.tensors = make([]bcnn.Tensor, len(p.Tensors))
	groups, placed, err := c.place(divide)
	if err != nil {
		return nil, err
	}
	c.at = inPlace(c.graph, groups, c.container)
	prog, where, err := c.build(groups, placed, !config.Stepwise)
	if err != nil && !config.Stepwise && ctx.Err() == nil { // groups that became one may take more memory
		prog, where, err = c.build(groups, placed, false)
	}
	if err != nil {
		return nil, err
	}
	e := &executable{
		plan: c.graph.Plan, config: config, outputs: p.Outputs, weights: c.weights, container: c.container,
		steps: prog.steps, stretches: prog.stretches, choices: prog.choices, tensors: c.tensors,
	}
	e.allocate(where)
	e.workers = tiles.Start(config.Threads, prog.size)
	return e, nil
}

// build compiles the groups, and places what they write; placed is where the tensors lie at worst.
func (c *compiler) build(groups []group, placed placement, join bool) (*program, placement, error) {
	prog, err := c.compile(groups, placed, join)
	if err == nil && !c.config.Stepwise {
		placed, err = c.settle(prog, placed)
	}
	return prog, placed, err
}

// program is the steps that run, and what became of the plan.
type program struct {
	steps     []tiles.Step
	choices   []driver.Choice // for the steps of the plan
	stretches []stretch
	groups    []group
	unwritten []bool // tensors that no step writes
	saves     bool   // there are such
	over      []pair // tensors that may share memory
	memory    int    // bytes of tensors and tables
	size      tiles.Size
	leads     map[int]*lead // the compiled first steps of groups, by step
}

// A lead is a compiled step, and how its kernels end.
type lead struct {
	step     tiles.Step
	need     tiles.Size
	end      *end   // nil if with its outputs
	overlaid bool   // what the kernels add may lie where the sum does
	refused  string // why the kernels do not do what the next step does, if another could
}

// compile compiles the groups. If join is set, two become one if that needs no tensor between them.
func (c *compiler) compile(groups []group, placed placement, join bool) (*program, error) {
	to := &program{
		choices: make([]driver.Choice, len(c.graph.Steps)), unwritten: make([]bool, len(c.graph.Tensors)),
		memory: int(placed.Bytes), stretches: slices.Clone(c.stretches), leads: map[int]*lead{},
	}
	for k := range to.stretches {
		s := &to.stretches[k]
		for len(groups) > 0 && groups[0].first <= s.last {
			const most = 3 // two, and the one that the second may be one with
			n := 1
			for join && n < min(most, len(groups)) && groups[n].first <= s.last {
				n++
			}
			taken, err := c.group(to, groups[:n])
			if err != nil {
				return nil, err
			}
			groups = groups[taken:]
		}
		s.steps = len(to.steps)
	}
	for i, l := range to.leads {
		if l.refused != "" && i+1 < len(to.choices) {
			to.choices[i+1].Why += "; not in that of " + c.graph.Steps[i].Name + ": " + l.refused
		}
	}
	return to, nil
}

// group compiles the first of some groups of a stretch, or the first two as one, and returns how many.
func (c *compiler) group(to *program, groups []group) (taken int, err error) {
	g := groups[0]
	first, err := c.lead(to, groups)
	if err != nil {
		return 0, err
	}
	leader, led, follow := first.step, g.first, g.first+1
	taken = 1
	switch p := c.graph.Plan; {
	case first.end != nil:
		follow = first.end.last + 1
		if follow > g.last+1 {
			taken, g.last = 2, groups[1].last
		}
		c.ended(to, g.first, first)
	case g.first == g.last && len(groups) > 1 && c.readsWindows(g.first, groups[1].first):
		next := groups[1]
		second, err := c.lead(to, groups[1:])
		if err != nil {
			return 0, err
		}
		made, out := p.Tensors[p.Steps[g.first].Out], p.Tensors[p.Steps[next.first].Out]
		w := newWindowed(first.step, second.step, made.Shape, out.Shape, c.config.Threads)
		if w == nil || c.grow(to, next.first, w.memory()) != nil {
			break
		}
		w.choose(&to.choices[g.first], &to.choices[next.first], p.Steps[next.first].Name)
		to.unwritten[p.Steps[g.first].Out], to.saves = true, true
		taken, leader, led, follow, g.last = 2, w, next.first, next.first+1, next.last
	case c.poolsInPlace(g.first):
		to.over = append(to.over, pair{p.Steps[g.first].In[0], p.Steps[g.first].Out})
	}
	to.groups = append(to.groups, g)
	to.steps = append(to.steps, leader)
	return taken, c.followers(to, leader, led, follow, g.last)
}

// ended notes what kernels of convolution i do besides.
func (c *compiler) ended(to *program, i int, l *lead) {
	for k := i + 1; k <= l.end.last; k++ {
		to.choices[k] = driver.Choice{Kernel: "in that of " + c.graph.Steps[i].Name, Why: "its values are in registers", With: c.graph.Steps[i].Name}
	}
	for _, t := range l.end.unwritten {
		to.unwritten[t], to.saves = true, true
	}
	if other := l.end.other; l.overlaid && l.end.sum >= 0 && l.end.levels < 0 {
		sum := c.graph.Steps[l.end.sum].Out
		if c.graph.LastUse(other) <= l.end.sum && c.standalone(other) && c.standalone(sum) {
			to.over = append(to.over, pair{other, sum})
		}
	}
}

// followers compiles the steps from follow to last. Those that treat the pixels of step led, and need no memory of
// a worker, which that one uses, follow it if it can lead.
func (c *compiler) followers(to *program, leader tiles.Step, led, follow, last int) error {
	var steps []tiles.Step
	var followers []tiles.Next
	shape := c.graph.Tensors[c.graph.Steps[led].Out].Shape
	for i := follow; i <= last; i++ {
		f, err := c.step(to, i, nil)
		if err != nil {
			return err
		}
		r, ok := f.step.(*tiles.Range)
		if ok && len(followers) == len(steps) && r.Size == shape.Pixels() && f.need == (tiles.Size{}) {
			followers = append(followers, r.Do)
		}
		steps = append(steps, f.step)
	}
	l, ok := leader.(tiles.Leader)
	if ok && len(followers) > 0 && l.Lead(shape.Pixels(), shape.C, next(followers)) {
		for i := range followers {
			choice := &to.choices[follow+i]
			choice.With = c.graph.Steps[led].Name
			choice.Tile, choice.Why = "those of "+choice.With, "pixels that are in the cache"
		}
		steps = steps[len(followers):]
	}
	to.steps = append(to.steps, steps...)
	return nil
}

// next returns a function that calls all followers for some pixels.
func next(followers []tiles.Next) tiles.Next {
	return func(s *tiles.Scratch, image, from, to int) {
		for _, follow := range followers {
			follow(s, image, from, to)
		}
	}
}

// lead compiles the first step of some groups, once.
func (c *compiler) lead(to *program, groups []group) (*lead, error) {
	i, last := groups[0].first, groups[0].last
	if l := to.leads[i]; l != nil {
		return l, nil
	}
	joint := last
	if len(groups) > 1 {
		joint = groups[1].last
	}
	var ends []end
	if !c.config.Stepwise {
		ends = c.ends(i, last, joint)
	}
	l, err := c.step(to, i, ends)
	to.leads[i] = l
	return l, err
}

// step compiles step i, which has passed the check of the plan, with the first of the ends that its kernels can.
func (c *compiler) step(to *program, i int, ends []end) (*lead, error) {
	s, p := c.graph.Steps[i], c.graph.Plan
	context := c.context(to, i)
	var offered []*end
	tables := make([]int, 0, len(ends)) // of what the kernels would do
	for k := range ends {
		if e, bytes, ok := c.offer(to, &ends[k]); ok {
			context.Ends, offered, tables = append(context.Ends, e), append(offered, &ends[k]), append(tables, bytes)
		}
	}
	l := &lead{}
	in, out := p.Tensors[s.In[0]], p.Tensors[s.Out]
	if op, ok := s.Op.(*plan.Conv); ok {
		l.step, l.need = conv.Compile(context, op, in, out)
	} else {
		l.step, l.need = pixelwise.Compile(context, s.Op, in, out)
	}
	if err := c.ctx.Err(); err != nil { // the step may be incomplete
		return nil, err
	}
	to.memory = num.Sum(to.memory, context.Tables)
	if k := context.Took; k >= 0 {
		l.end, l.overlaid, to.memory = offered[k], context.Overlaid, num.Sum(to.memory, tables[k])
	} else if len(context.Refused) > 0 {
		l.refused = context.Refused[0]
	} else if len(ends) > 0 {
		l.refused = "its levels do not rise evenly"
	}
	to.choices[i] = context.Choice
	return l, c.grow(to, i, l.need)
}

// context is what is known of step i.
func (c *compiler) context(to *program, i int) *schedule.Context {
	s, p := c.graph.Steps[i], c.graph.Plan
	context := &schedule.Context{
		Ctx: c.ctx, Weights: c.weights, Step: i, Room: int(c.config.ArenaBytes) - to.memory,
		Set: c.set, Batch: c.stretches[stretchAt(c.stretches, i)].images, Threads: c.config.Threads, L1: schedule.L1(),
		In: &c.tensors[s.In[0]], Out: &c.tensors[s.Out],
		Most: c.most[s.In[0]], Least: c.least[s.In[0]], RareZeros: c.rare[s.In[0]], Took: -1,
		InPitch: p.Tensors[c.container[s.In[0]]].Shape.C, OutPitch: p.Tensors[c.container[s.Out]].Shape.C,
	}
	for _, t := range s.In[1:] {
		context.Others = append(context.Others, &c.tensors[t])
	}
	return context
}

// offer is an end as kernels see it, with the bytes of tables for it. It reports whether there are such.
func (c *compiler) offer(to *program, e *end) (offer schedule.End, tables int, ok bool) {
	if e.fake >= 0 {
		op, values := c.graph.Steps[e.fake].Op.(*plan.Quantize), c.graph.Steps[e.fake+1].Op.(*plan.Affine)
		context := c.context(to, e.fake)
		by := pixelwise.Levels(context, op, c.graph.Tensors[c.graph.Steps[e.fake].Out].Shape.C)
		if by == nil {
			return offer, 0, false
		}
		offer.Fake, tables = &kern.FakeQuantize{Levels: by, Low: float32(op.Low), Scale: values.Scale, Shift: values.Shift}, context.Tables
	}
	if e.scaled >= 0 {
		op := c.graph.Steps[e.scaled].Op.(*plan.Affine)
		offer.Then.Scale, offer.Then.Shift = op.Scale, op.Shift
	}
	if e.sum >= 0 {
		offer.Then.Activation = activation.Of(c.graph.Steps[e.sum].Op.(*plan.Add).Activation)
		offer.Floats = &c.tensors[e.other]
		if c.graph.Tensors[e.other].DType == bcnn.Uint8 {
			offer.Floats, offer.Bytes = nil, offer.Floats
		}
	}
	if e.levels >= 0 {
		s, context := c.graph.Steps[e.levels], c.context(to, e.levels)
		offer.Levels = pixelwise.Levels(context, s.Op.(*plan.Quantize), c.graph.Tensors[s.Out].Shape.C)
		offer.Out, tables = &c.tensors[s.Out], num.Sum(tables, context.Tables)
	}
	return offer, tables, (e.levels < 0 || offer.Levels != nil)
}

// grow makes the memory of workers, who get as much as the step that needs the most, enough for step i too.
func (c *compiler) grow(to *program, i int, need tiles.Size) error {
	size := to.size
	size.Grow(need)
	if err := c.config.CheckMemory(int64(num.Sum(to.memory, num.Product(size.Total(), c.config.Threads)))); err != nil {
		return fmt.Errorf("step %d (%s): %w", i, c.graph.Steps[i].Name, err)
	}
	to.size = size
	return nil
}

// poolsInPlace reports whether step i is a pool that may write its outputs over its inputs. It may
// only with one thread, which computes the outputs in order.
func (c *compiler) poolsInPlace(i int) bool {
	s := c.graph.Steps[i]
	op, ok := s.Op.(*plan.MaxPool)
	if !ok || c.config.Stepwise || c.config.Threads > 1 || c.graph.LastUse(s.In[0]) > i || !c.standalone(s.In[0]) || !c.standalone(s.Out) {
		return false
	}
	return pixelwise.InPlace(op, c.graph.Tensors[s.In[0]], c.graph.Tensors[s.Out])
}
