package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/conv"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/pixelwise"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/weights"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/internal/num"
)

// executable is a compiled plan.
type executable struct {
	plan    *plan.Plan
	graph   *plan.Graph // of the plan
	config  driver.Config
	workers *tiles.Workers
	steps   []tiles.Step // of the plan, or fewer, where some are fused
	weights *weights.Plan
	// choices says what was picked for the steps.
	choices   []driver.Choice
	stretches []stretch
	// tensors are those of the plan, as many images as are in hand.
	// The steps point to them. Inputs and outputs are empty between runs.
	tensors   []bcnn.Tensor
	full      []bcnn.Tensor  // the same for all images that there is memory for
	container []int          // see joined
	unmade    []bool         // tensors that have no memory, since a windowed step makes rows of them
	levels    []*kern.Levels // of the steps that are bytes of them
	outputs   []int          // of the plan
}

func newExecutable(ctx context.Context, plan *plan.Plan, set *kern.Set, config driver.Config) (*executable, error) {
	return compileDivided(ctx, plan, set, config, cached(num.Product(schedule.L2(), config.Threads)))
}

// compileDivided is newExecutable with another division than that for the cache.
func compileDivided(ctx context.Context, p *plan.Plan, set *kern.Set, config driver.Config, divide division) (*executable, error) {
	e := &executable{config: config, outputs: p.Outputs, weights: weights.Of(p, set.ISA)}
	graph, least := narrow(plan.NewGraph(p), config.Stepwise)
	plan := graph.Plan
	e.plan, e.graph = plan, graph
	e.tensors = make([]bcnn.Tensor, len(plan.Tensors))
	e.full = make([]bcnn.Tensor, len(plan.Tensors))
	e.unmade = make([]bool, len(plan.Tensors))
	fusable := groups(plan, config.Stepwise)
	e.container = separate(plan)
	if !config.Stepwise {
		e.container = joined(graph)
	}
	placed, err := e.divide(fusable, divide)
	if err != nil && !config.Stepwise { // groups may need more than their steps one by one
		fusable, e.container = groups(plan, true), separate(plan)
		placed, err = e.divide(fusable, divide)
	}
	if err != nil {
		return nil, err
	}
	most, rare := largest(plan), rareZeros(plan)
	var size tiles.Size
	needs := make([]tiles.Size, len(plan.Steps))
	memory := int(placed.Bytes)
	for i, s := range plan.Steps {
		c := schedule.Context{
			Ctx: ctx, Weights: e.weights, Step: i, Room: int(config.ArenaBytes) - memory,
			Set: set, Batch: e.stretches[stretchAt(e.stretches, i)].images, Threads: config.Threads, L1: schedule.L1(),
			In: &e.tensors[s.In[0]], Out: &e.tensors[s.Out],
			Most: most[s.In[0]], Least: least[s.In[0]], RareZeros: rare[s.In[0]],
			InPitch: plan.Tensors[e.container[s.In[0]]].Shape.C, OutPitch: plan.Tensors[e.container[s.Out]].Shape.C,
		}
		for _, t := range s.In[1:] {
			c.Others = append(c.Others, &e.tensors[t])
		}
		compiled, need := compile(&c, s.Op, plan.Tensors[s.In[0]], plan.Tensors[s.Out])
		if err := ctx.Err(); err != nil { // the step may be incomplete
			return nil, err
		}
		size.Grow(need)
		needs[i] = need
		memory = num.Sum(memory, c.Tables)
		if err := config.CheckMemory(int64(num.Sum(memory, num.Product(size.Total(), config.Threads)))); err != nil {
			return nil, fmt.Errorf("step %d (%s): %w", i, s.Name, err)
		}
		e.steps = append(e.steps, compiled)
		e.choices = append(e.choices, c.Choice)
		e.levels = append(e.levels, c.Levels)
	}
	if config.Stepwise {
		e.stretches[0].steps = len(e.steps)
	} else {
		tables := memory - int(placed.Bytes)
		fits := func(tensors int64, workers tiles.Size) bool {
			return config.CheckMemory(int64(num.Sum(tables, int(tensors), num.Product(workers.Total(), config.Threads)))) == nil
		}
		var fused []group
		fused, placed = e.fuseWindows(fusable, placed, &size, fits)
		fused, placed = e.fuseByteSums(fused, placed, size, fits)
		over := e.fuse(fusable, needs)
		if less, err := e.layout(fused, over); err == nil && less.Bytes <= placed.Bytes {
			placed = less
		}
	}
	e.allocate(placed)
	e.workers = tiles.Start(config.Threads, size)
	return e, nil
}

// largest returns the largest byte that each tensor of bytes can have.
func largest(p *plan.Plan) []uint8 {
	most := slices.Repeat([]uint8{math.MaxUint8}, len(p.Tensors))
	for _, s := range p.Steps {
		switch op := s.Op.(type) {
		case *plan.Quantize:
			most[s.Out] = uint8(min(op.Levels-1, math.MaxUint8))
		case *plan.MaxPool:
			most[s.Out] = most[s.In[0]]
		}
	}
	return most
}

// rareZeros returns which tensors of two planes are −1, +1 and, for a single float32 of each channel, 0, as
// torch.sign makes them.
func rareZeros(p *plan.Plan) []bool {
	rare := make([]bool, len(p.Tensors))
	for _, s := range p.Steps {
		switch op := s.Op.(type) {
		case *plan.Sign:
			rare[s.Out] = op.Planes == 2 && meetsOneValue(op.Threshold.F32, p.Tensors[s.Out].Shape.C)
		case *plan.MaxPool, *plan.Channels, *plan.Pixels:
			rare[s.Out] = rare[s.In[0]]
		}
	}
	return rare
}

// meetsOneValue reports whether a single float32 of each channel reaches the middle one of three levels. Of
// three thresholds of a channel, one is met by all values or by none.
func meetsOneValue(thresholds []float32, channels int) bool {
	next := func(x float32) float32 { return math.Nextafter32(x, float32(math.Inf(1))) }
	for c := range len(thresholds) / 3 {
		low, middle, high := thresholds[c], thresholds[channels+c], thresholds[2*channels+c]
		allMeetLow := math.IsInf(float64(low), -1) && high == next(middle)
		noneMeetsHigh := math.IsNaN(float64(high)) && middle == next(low)
		if !allMeetLow && !noneMeetsHigh {
			return false
		}
	}
	return len(thresholds) > 0
}

// compile compiles an operation that has passed the check of the plan.
func compile(c *schedule.Context, op plan.Op, in, out plan.Tensor) (tiles.Step, tiles.Size) {
	if op, ok := op.(*plan.Conv); ok {
		return conv.Compile(c, op, in, out)
	}
	return pixelwise.Compile(c, op, in, out)
}

// placement is where the tensors lie, each with room for so many images.
type placement struct {
	plan.Placement
	images []int
}

// divide divides the groups into stretches and places the tensors. Where that takes more memory than
// the batch as a whole, it is one stretch.
func (e *executable) divide(groups []group, divide division) (placement, error) {
	one := whole(e.plan, e.config.MaxBatch)
	e.stretches = one
	placed, err := e.layout(groups, nil)
	if e.config.Stepwise || e.config.MaxBatch == 1 {
		return placed, err
	}
	e.stretches = divide(e.plan, groups, e.config.MaxBatch)
	if divided, than := e.layout(groups, nil); than == nil && (err != nil || divided.Bytes <= placed.Bytes) {
		return divided, nil
	}
	e.stretches = one
	return placed, err
}

// layout places the tensors in one block of memory, but for the inputs and the outputs,
// which are the caller's. over is that of uses.
func (e *executable) layout(groups []group, over []pair) (placement, error) {
	p, batch := e.plan, e.config.MaxBatch
	uses, at, images := uses(e.graph, batch, groups, e.stretches, e.container, over)
	uses = slices.DeleteFunc(uses, func(u plan.Use) bool { return e.unmade[u.Tensor] })
	for _, u := range uses {
		t := p.Tensors[u.Tensor]
		if err := e.config.CheckMemory(t.Bytes(u.Images)); err != nil { // together, they might overflow
			return placement{}, fmt.Errorf("tensor %d (%s): %w", u.Tensor, t.Name, err)
		}
	}
	placed := placement{p.Place(batch, uses), images}
	for t, same := range at {
		placed.Offsets[t] = placed.Offsets[same]
	}
	spread(&placed.Placement)
	return placed, e.config.CheckMemory(placed.Bytes)
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

// allocate makes the tensors.
func (e *executable) allocate(placed placement) {
	arena := alignedBytes(int(placed.Bytes))
	for i, t := range e.plan.Tensors {
		e.full[i] = bcnn.Tensor{DType: t.DType, N: placed.images[i], Shape: t.Shape}
		if placed.Offsets[i] < 0 {
			continue
		}
		place := unsafe.Pointer(&arena[placed.Offsets[i]])
		n := placed.images[i] * t.Shape.Elements(t.DType)
		switch t.DType {
		case bcnn.Bits:
			e.full[i].Words = unsafe.Slice((*uint64)(place), n)
		case bcnn.Uint8:
			e.full[i].U8 = unsafe.Slice((*uint8)(place), n)
		case bcnn.Float32:
			e.full[i].F32 = unsafe.Slice((*float32)(place), n)
		}
	}
}

// alignedBytes returns n bytes that start at a multiple of 64.
func alignedBytes(n int) []byte {
	const align = 64
	b := make([]byte, n+align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % align
	return b[skip:][:n:n]
}

// bind gives the tensors n images of the batch, from one on, and the caller's slices to inputs and
// outputs.
func (e *executable) bind(out, in []bcnn.Tensor, from, n int) {
	for i, w := range e.container {
		if t := e.full[w]; t.N >= n && (t.U8 != nil || t.Words != nil || t.F32 != nil) { // fewer are those of other stretches
			at := 0
			if t.N == e.config.MaxBatch {
				at = from
			}
			e.tensors[i] = t.Images(at, n)
			e.tensors[i].Shape = e.full[i].Shape
		}
	}
	for i, t := range in {
		e.tensors[i] = t.Images(from, n)
	}
	for i, t := range e.outputs {
		e.tensors[t] = out[i].Images(from, n)
	}
}

func (e *executable) unbind(inputs int) {
	clear(e.tensors[:inputs])
	for _, t := range e.outputs {
		e.tensors[t] = bcnn.Tensor{}
	}
}

func (e *executable) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	return e.RunSteps(ctx, out, in, nil)
}

// RunSteps is Run if after is nil.
func (e *executable) RunSteps(ctx context.Context, out, in []bcnn.Tensor, after func(step int, took time.Duration) error) error {
	batch := in[0].N
	defer e.unbind(len(in))
	e.workers.Begin(ctx)
	defer e.workers.End()
	steps := 0
	for _, stretch := range e.stretches {
		for from := 0; from < batch; from += stretch.images {
			n := min(stretch.images, batch-from)
			e.bind(out, in, from, n)
			if err := e.runSteps(steps, stretch.steps, n, after); err != nil {
				return err
			}
		}
		steps = stretch.steps
	}
	e.workers.Done(batch)
	return nil
}

// runSteps runs the steps of a stretch for the n images in hand.
func (e *executable) runSteps(from, to, n int, after func(step int, took time.Duration) error) error {
	for i, s := range e.steps[from:to] {
		var before clock.Instant
		if after != nil {
			before = clock.Now()
		}
		if err := e.workers.Do(s, s.Tiles(n)); err != nil {
			return err
		}
		if after != nil {
			if err := after(from+i, clock.Since(before)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *executable) Read(step int, t bcnn.Tensor) error {
	from := e.tensors[e.plan.Steps[step].Out]
	copy(t.U8, from.U8)
	copy(t.Words, from.Words)
	copy(t.F32, from.F32)
	return nil
}

// Explain says what the scheduler has picked for every step.
func (e *executable) Explain() []driver.Choice { return e.choices }

func (e *executable) Close() error {
	e.workers.Stop()
	e.workers, e.steps, e.weights, e.tensors, e.full = nil, nil, nil, nil, nil
	return nil
}
