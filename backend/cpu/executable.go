package cpu

import (
	"context"
	"time"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/weights"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/clock"
)

// executable is a compiled plan.
type executable struct {
	plan    *plan.Plan
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
	full      []bcnn.Tensor // the same for all images that there is memory for
	container []int         // see joined
	outputs   []int         // of the plan
}

// allocate makes the tensors.
func (e *executable) allocate(placed placement) {
	arena := alignedBytes(int(placed.Bytes))
	e.full = make([]bcnn.Tensor, len(e.plan.Tensors))
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
