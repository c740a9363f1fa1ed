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
	config  driver.Config
	workers *tiles.Workers
	steps   []tiles.Step // of the plan, or fewer, where some are fused
	weights *weights.Plan
	// choices says what was picked for the steps.
	choices []driver.Choice
	// tensors are those of the plan, as many images as the batch in hand has.
	// The steps point to them. Inputs and outputs are empty between runs.
	tensors   []bcnn.Tensor
	full      []bcnn.Tensor  // the same for MaxBatch images
	container []int          // see joined
	unmade    []bool         // tensors that have no memory, since a pooled step makes rows of them
	levels    []*kern.Levels // of the steps that are bytes of them
	outputs   []int          // of the plan
}

func newExecutable(ctx context.Context, plan *plan.Plan, set *kern.Set, config driver.Config) (*executable, error) {
	e := &executable{plan: plan, config: config, outputs: plan.Outputs, weights: weights.Of(plan, set.ISA)}
	e.tensors = make([]bcnn.Tensor, len(plan.Tensors))
	e.full = make([]bcnn.Tensor, len(plan.Tensors))
	e.unmade = make([]bool, len(plan.Tensors))
	fusable := groups(plan, config.Stepwise)
	e.container = separate(plan)
	if !config.Stepwise {
		e.container = joined(plan)
	}
	placed, err := e.layout(fusable, nil)
	if err != nil && !config.Stepwise { // groups may need more than their steps one by one
		fusable, e.container = groups(plan, true), separate(plan)
		placed, err = e.layout(fusable, nil)
	}
	if err != nil {
		return nil, err
	}
	most := largest(plan)
	var size tiles.Size
	needs := make([]tiles.Size, len(plan.Steps))
	memory := int(placed.Bytes)
	for i, s := range plan.Steps {
		c := schedule.Context{
			Ctx: ctx, Weights: e.weights, Step: i, Room: int(config.ArenaBytes) - memory,
			Set: set, Batch: config.MaxBatch, Threads: config.Threads, L1: schedule.L1(),
			In: &e.tensors[s.In[0]], Out: &e.tensors[s.Out],
			Most:    most[s.In[0]],
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
	if !config.Stepwise {
		tables := memory - int(placed.Bytes)
		fits := func(tensors int64, workers tiles.Size) bool {
			return config.CheckMemory(int64(num.Sum(tables, int(tensors), num.Product(workers.Total(), config.Threads)))) == nil
		}
		var fused []group
		fused, placed = e.fusePools(fusable, placed, &size, fits)
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

// compile compiles an operation that has passed the check of the plan.
func compile(c *schedule.Context, op plan.Op, in, out plan.Tensor) (tiles.Step, tiles.Size) {
	if op, ok := op.(*plan.Conv); ok {
		return conv.Compile(c, op, in, out)
	}
	return pixelwise.Compile(c, op, in, out)
}

// layout places the tensors in one block of memory, but for the inputs and the outputs,
// which are the caller's. over is that of uses.
func (e *executable) layout(groups []group, over []pair) (plan.Placement, error) {
	p, batch := e.plan, e.config.MaxBatch
	uses, at := uses(p, groups, e.container, over)
	uses = slices.DeleteFunc(uses, func(u plan.Use) bool { return e.unmade[u.Tensor] })
	for _, u := range uses {
		if t := p.Tensors[u.Tensor]; e.config.CheckMemory(t.Bytes(batch)) != nil { // together, they might overflow
			return plan.Placement{}, fmt.Errorf("tensor %d (%s): %w", u.Tensor, t.Name, e.config.CheckMemory(t.Bytes(batch)))
		}
	}
	placed := p.Place(batch, uses)
	for t, same := range at {
		placed.Offsets[t] = placed.Offsets[same]
	}
	spread(&placed)
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
func (e *executable) allocate(placed plan.Placement) {
	arena := alignedBytes(int(placed.Bytes))
	for i, t := range e.plan.Tensors {
		e.full[i] = bcnn.Tensor{DType: t.DType, N: e.config.MaxBatch, Shape: t.Shape}
		if placed.Offsets[i] < 0 {
			continue
		}
		place := unsafe.Pointer(&arena[placed.Offsets[i]])
		n := e.config.MaxBatch * t.Shape.Elements(t.DType)
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

// bind gives the tensors the size of the batch, and the caller's slices to inputs and
// outputs.
func (e *executable) bind(out, in []bcnn.Tensor) {
	for i, w := range e.container {
		if t := e.full[w]; t.U8 != nil || t.Words != nil || t.F32 != nil {
			e.tensors[i] = t.Images(0, in[0].N)
			e.tensors[i].Shape = e.full[i].Shape
		}
	}
	copy(e.tensors, in)
	for i, t := range e.outputs {
		e.tensors[t] = out[i]
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
	n := in[0].N
	e.bind(out, in)
	defer e.unbind(len(in))
	e.workers.Begin(ctx)
	defer e.workers.End()
	for i, s := range e.steps {
		var before clock.Instant
		if after != nil {
			before = clock.Now()
		}
		if err := e.workers.Do(s, s.Tiles(n)); err != nil {
			return err
		}
		if after != nil {
			if err := after(i, clock.Since(before)); err != nil {
				return err
			}
		}
	}
	e.workers.Done(n)
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
