package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// Executable is a plan that is ready to run on a device. It is safe for concurrent
// use: runs of one executable wait for each other, those of several may take place
// at the same time.
type Executable struct {
	device          string
	engine          driver.Engine
	plan            *plan.Plan
	inputs, outputs []plan.Tensor
	choices         []Choice
	maxBatch        int
	timed           func(step int, name string, d time.Duration)
	tap             func(step int, name string, t bcnn.Tensor)

	turn   chan struct{} // holds an element while somebody uses what follows
	closed bool
	// What the engine gets of a Run. The caller's slices stay on their stack.
	out, in []bcnn.Tensor
	// For Timed and Tap.
	ctx    context.Context
	after  func(step int, took time.Duration) error
	bytes  []uint8 // the memory of what Tap gets
	words  []uint64
	floats []float32
}

func newExecutable(device string, plan *plan.Plan, maxBatch int, opts Options) *Executable {
	e := &Executable{
		device: device, plan: plan, maxBatch: maxBatch, timed: opts.Timed, tap: opts.Tap,
		inputs: plan.InputTensors(), turn: make(chan struct{}, 1),
	}
	for _, t := range plan.Outputs {
		e.outputs = append(e.outputs, plan.Tensors[t])
	}
	e.in, e.out = make([]bcnn.Tensor, len(e.inputs)), make([]bcnn.Tensor, len(e.outputs))
	if e.timed != nil || e.tap != nil {
		e.after = e.afterStep
	}
	return e
}

// makeTaps makes the memory of what Tap gets and returns its bytes.
func (e *Executable) makeTaps(c driver.Config) (int64, error) {
	if e.tap == nil {
		return 0, nil
	}
	var size, words, floats int64 // in bytes
	for _, s := range e.plan.Steps {
		switch t := e.plan.Tensors[s.Out]; t.DType {
		case bcnn.Bits:
			words = max(words, t.Bytes(e.maxBatch))
		case bcnn.Uint8:
			size = max(size, t.Bytes(e.maxBatch))
		case bcnn.Float32:
			floats = max(floats, t.Bytes(e.maxBatch))
		}
	}
	if err := c.CheckMemory(max(size, words, floats)); err != nil { // their sum might overflow
		return 0, err
	}
	all := size + words + floats
	if err := c.CheckMemory(all); err != nil {
		return 0, err
	}
	e.bytes, e.words, e.floats = make([]uint8, size), make([]uint64, words/8), make([]float32, floats/4)
	return all, nil
}

// Inputs returns the names, types and shapes of the tensors that Run takes, in their
// order; N is up to MaxBatch.
func (e *Executable) Inputs() []plan.Tensor { return slices.Clone(e.inputs) }

// Outputs returns the names, types and shapes of the tensors that Run fills.
func (e *Executable) Outputs() []plan.Tensor { return slices.Clone(e.outputs) }

// MaxBatch is the largest number of images that Run takes.
func (e *Executable) MaxBatch() int { return e.maxBatch }

// Explain returns what was chosen for each step of the plan, and why.
func (e *Executable) Explain() []Choice { return slices.Clone(e.choices) }

// Run computes the outputs of a batch: in are tensors of the types and shapes of
// Inputs, out those of Outputs, all with the same N, 1 ≤ N ≤ MaxBatch, else the
// error wraps ErrShape. All stay the caller's and are not kept. Run does not
// allocate, nor does a call like
//
//	err := e.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in})
//
// When ctx ends, Run returns its error as soon as what is in hand is done: a tile on
// the CPU, the kernels that have been launched on a GPU. What out holds then is
// unspecified. All errors are *Error.
func (e *Executable) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	b, err := e.Check(out, in)
	if err != nil {
		return e.fail("run", err)
	}
	return e.RunBatch(ctx, b)
}

// RunBatch is Run of a batch, which Check has made.
func (e *Executable) RunBatch(ctx context.Context, b Batch) error {
	if err := e.run(ctx, b); err != nil {
		return e.fail("run", err)
	}
	return nil
}

func (e *Executable) run(ctx context.Context, b Batch) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	defer e.done()
	defer fpmode.Enter().Leave()
	switch {
	case b.plan != e.plan:
		return fmt.Errorf("%w: the batch has not been checked for this plan", ErrShape)
	case b.Images() > e.maxBatch:
		return e.tooLarge(b.Images())
	}
	copy(e.out, b.out)
	copy(e.in, b.in)
	if e.after == nil {
		return e.engine.Run(ctx, e.out, e.in)
	}
	e.ctx = ctx
	return e.engine.RunSteps(ctx, e.out, e.in, e.after)
}

// Enqueue is Run for tensors that lie in memory of the device: it puts a run of images
// on a stream and returns, without waiting for what is there before it, or for the run.
// Of a CUDA device, stream is a CUstream of the device's primary context, 0 for the
// default stream, and in and out are addresses in memory of that device, of tensors
// without gaps, in the order of Inputs and Outputs. Memory and stream must be there until
// the run has been done, and outputs must overlap no other tensor. Runs of one executable
// take place one after the other, whichever streams they are on.
//
// ctx bounds the time until it is the caller's turn. The error matches
// errors.ErrUnsupported on devices without streams, and where Options.Timed or Tap is
// set. All errors are *Error.
func (e *Executable) Enqueue(ctx context.Context, stream uintptr, images int, out, in []uintptr) error {
	if err := e.enqueue(ctx, stream, images, out, in); err != nil {
		return e.fail("enqueue", err)
	}
	return nil
}

func (e *Executable) enqueue(ctx context.Context, stream uintptr, images int, out, in []uintptr) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	defer e.done()
	defer fpmode.Enter().Leave()
	engine, ok := e.engine.(driver.Enqueuer)
	switch {
	case !ok:
		return fmt.Errorf("the device does not take tensors in its own memory: %w", errors.ErrUnsupported)
	case e.after != nil:
		return fmt.Errorf("Timed and Tap wait for each step: %w", errors.ErrUnsupported)
	case len(in) != len(e.inputs) || len(out) != len(e.outputs):
		return fmt.Errorf("%w: %d in and %d out, want %d and %d", ErrShape, len(in), len(out), len(e.inputs), len(e.outputs))
	case images < 1 || images > e.maxBatch:
		return fmt.Errorf("%w: a batch of %d images, want 1 to %d", ErrShape, images, e.maxBatch)
	}
	return engine.Enqueue(stream, images, out, in)
}

// begin waits for the caller's turn, which done ends if there was no error.
func (e *Executable) begin(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if e == nil || e.engine == nil {
		return ErrClosed
	}
	select {
	case e.turn <- struct{}{}:
	default:
		select {
		case e.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := ctx.Err()
	if e.closed {
		err = ErrClosed
	}
	if err != nil {
		e.done()
	}
	return err
}

// done ends what began with an element sent to e.turn.
func (e *Executable) done() {
	clear(e.out)
	clear(e.in)
	e.ctx = nil
	<-e.turn
}

// afterStep tells Timed and Tap about a step.
func (e *Executable) afterStep(step int, took time.Duration) error {
	name := e.plan.Steps[step].Name
	if e.timed != nil {
		e.timed(step, name, took)
	}
	if e.tap != nil {
		t := e.tapOf(e.plan.Tensors[e.plan.Steps[step].Out], e.in[0].N)
		if err := e.engine.Read(step, t); err != nil {
			return fmt.Errorf("step %d (%s): %w", step, name, err)
		}
		e.tap(step, name, t)
	}
	return e.ctx.Err()
}

// tapOf is what Tap gets of a tensor, its values yet to be read.
func (e *Executable) tapOf(of plan.Tensor, n int) bcnn.Tensor {
	t := bcnn.Tensor{DType: of.DType, N: n, Shape: of.Shape}
	switch size := n * of.Shape.Elements(of.DType); of.DType {
	case bcnn.Uint8:
		t.U8 = e.bytes[:size:size]
	case bcnn.Bits:
		t.Words = e.words[:size:size]
	case bcnn.Float32:
		t.F32 = e.floats[:size:size]
	}
	return t
}

// Close waits for a Run in progress, so it must not be called by Timed or Tap, and
// frees everything. Later calls of Run return ErrClosed; a second Close does
// nothing.
func (e *Executable) Close() error {
	if e == nil || e.engine == nil {
		return nil
	}
	e.turn <- struct{}{}
	defer e.done()
	if e.closed {
		return nil
	}
	e.closed = true
	e.bytes, e.words, e.floats = nil, nil, nil
	if err := e.engine.Close(); err != nil {
		return e.fail("close", err)
	}
	return nil
}

func (e *Executable) fail(op string, err error) error {
	device := "no device"
	if e != nil {
		device = e.device
	}
	return &Error{Device: device, Op: op, Err: err}
}
