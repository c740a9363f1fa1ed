//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/clock"
)

var errGroup = errors.New("work-group too large")

// executable is a compiled plan: its kernels are enqueued one after the other in
// one in-order queue, without waiting in between.
type executable struct {
	device *device
	plan   *plan.Plan
	config driver.Config
	bag    bag // tensors, scratch memory, staging memory, queue
	queue  shim.Queue
	steps  []*built
	// bits makes the output of the first step for Read, where the kernels of the step make
	// patches in its place.
	bits *built
	// onDevice says which steps have kernels, host which have a part for the
	// host; the device's part comes first.
	onDevice        []bool
	host            []*hostStep
	copies          []*bcnn.Tensor // tensors of the plan in the host's memory, where it needs them
	memory          memory
	inputs, outputs []end
	// reserved are the bytes that have been asked for, of Config.ArenaBytes;
	// refused is the error of whoever asked for too many.
	reserved int64
	refused  error
	// took is the time of an image in the last Run, at first something long: steps
	// that take long are waited for one by one, so that they can be interrupted.
	took time.Duration
}

// slowRun is how long a Run takes that waits for each step. That costs far less.
const slowRun = 100 * time.Millisecond

func newExecutable(ctx context.Context, d *device, plan *plan.Plan, config driver.Config) (_ *executable, err error) {
	e := &executable{
		device: d, plan: plan, config: config, took: slowRun, bag: bag{context: d.context},
		onDevice: make([]bool, len(plan.Steps)), host: make([]*hostStep, len(plan.Steps)), copies: make([]*bcnn.Tensor, len(plan.Tensors)),
	}
	for t := range plan.InputTensors() {
		e.inputs = append(e.inputs, end{tensor: t})
	}
	for _, t := range plan.Outputs {
		e.outputs = append(e.outputs, end{tensor: t})
	}
	e.memory.reserve = e.reserve
	defer func() {
		if err != nil {
			e.free()
		}
	}()
	queue, err := e.bag.queue(d, config.Stepwise) // which times are taken from
	if err != nil {
		return nil, err
	}
	e.queue = shim.QueueOf(queue)
	if err := e.allocate(queue); err != nil {
		return nil, err
	}
	if err := e.compile(ctx); err != nil {
		return nil, err
	}
	e.connect()
	return e, nil
}

// bytes is the size of the buffer of tensor i.
func (e *executable) bytes(i, n int) int {
	return int(e.plan.Tensors[i].Bytes(n))
}

// reserve asks for memory of the device or the host, before it is allocated.
func (e *executable) reserve(bytes int64) error {
	e.reserved += bytes
	return e.config.CheckMemory(e.reserved)
}

// allocate makes the buffers of all tensors. Those that are not needed at the same time
// share one: kernels take whole buffers, and parts of one block would have to lie at
// multiples of what the device asks for, in a block that may be no larger than a
// fraction of its memory.
func (e *executable) allocate(queue *cl.CommandQueue) error {
	p := e.plan
	for _, t := range p.Tensors {
		if size := t.Shape.Bytes(t.DType); size > math.MaxInt32 || size > e.device.limits.Buffer/int64(e.config.MaxBatch) {
			return fmt.Errorf("%w: tensor %s of %v, %d images", driver.ErrTooLarge, t.Name, t.Shape, e.config.MaxBatch)
		}
	}
	// What the host writes and reads, no kernel writes for another tensor: with that,
	// Oclgrind takes what the host wrote for uninitialised.
	uses := p.Uses()
	all := int64(0)
	for _, at := range append(e.inputs, e.outputs...) {
		uses = append(uses, plan.Use{Tensor: at.tensor, First: -1, Last: len(p.Steps)})
		if !e.device.unified {
			all += int64(e.bytes(at.tensor, e.config.MaxBatch)) // staging
		}
	}
	shares, sizes := p.Share(e.config.MaxBatch, uses)
	for _, size := range sizes {
		all += size
	}
	if err := e.reserve(all); err != nil {
		return err
	}
	maker := make([]func(cl.MemFlag, int) (*cl.MemObject, error), len(sizes))
	for i := range maker {
		maker[i] = e.bag.buffer
	}
	if e.device.unified {
		for _, at := range append(e.inputs, e.outputs...) {
			maker[shares[at.tensor]] = e.bag.hostBuffer
		}
	}
	buffers := make([]*cl.MemObject, len(sizes))
	for i, size := range sizes {
		var err error
		if buffers[i], err = maker[i](cl.MemReadWrite, int(size)); err != nil {
			return fmt.Errorf("tensor %s: %w", p.Tensors[slices.Index(shares, i)].Name, err)
		}
	}
	e.memory.tensors = make([]*cl.MemObject, len(p.Tensors))
	for t, b := range shares {
		if b >= 0 {
			e.memory.tensors[t] = buffers[b]
		}
	}
	if e.device.unified {
		return nil
	}
	for _, list := range [][]end{e.inputs, e.outputs} {
		for i := range list {
			var err error
			list[i].staging, err = e.bag.pinned(queue, e.bytes(list[i].tensor, e.config.MaxBatch))
			if refused(err) {
				e.device.refuse("pinned memory, without which the caller's is read and written", err)
				list[i].unmapped, err = true, nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// compile makes the steps, of several variants the fastest.
func (e *executable) compile(ctx context.Context) error {
	p := e.plan
	all := make([][]candidates.Candidate, len(p.Steps))
	var unsupported plan.UnsupportedError
	for i := range p.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if all[i], err = e.candidates(i); err != nil {
			if err := unsupported.Add(p, i, err); err != nil {
				return err
			}
		}
	}
	if err := unsupported.Err(); err != nil {
		return err
	}
	var bits *candidates.Candidate
	if e.config.Kernels == gpu.Patches {
		bits = candidates.Join(p, all)
	}
	if bits != nil {
		var err error
		if e.bits, err = e.device.buildStep(ctx, *bits, false, &e.memory); err != nil {
			return err
		}
	}
	for i := range p.Steps {
		chosen := &built{bag: &bag{context: e.device.context}}
		if e.onDevice[i] {
			var err error
			chosen, err = e.choose(ctx, i, all[i])
			if refused(err) && e.config.Kernels == "" || refused(err) && e.config.Kernels == gpu.Direct && !errors.Is(err, errBuild) {
				// No other kernels are left.
				chosen = &built{bag: &bag{context: e.device.context}}
				err = e.moveToHost(i, err)
			}
			if err != nil {
				return fmt.Errorf("step %d (%s): %w", i, p.Steps[i].Name, err)
			}
		}
		e.steps = append(e.steps, chosen)
	}
	chosen := e.steps
	if e.bits != nil {
		chosen = append(slices.Clip(chosen), e.bits)
	}
	return e.memory.settle(chosen)
}

// candidates divides step i between device and host and returns the kernels that can
// execute the device's part.
func (e *executable) candidates(i int) ([]candidates.Candidate, error) {
	s := e.plan.Steps[i]
	step, err := gpu.NewStep(e.plan, i, e.config.MaxBatch)
	if err != nil {
		return nil, err
	}
	op, compute, err := e.divide(s)
	if err == nil {
		err = e.refused
	}
	if err != nil {
		return nil, err
	}
	if compute != nil {
		e.host[i] = &hostStep{compute: always(compute), out: s.Out, why: e.device.floatsLack}
	}
	if op == nil {
		return nil, nil
	}
	e.onDevice[i] = true
	return candidates.Of(step, op, e.device.limits, e.config.Kernels)
}

func (e *executable) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	return e.RunSteps(ctx, out, in, nil)
}

// RunSteps is Run if after is nil.
func (e *executable) RunSteps(ctx context.Context, out, in []bcnn.Tensor, after func(step int, took time.Duration) error) error {
	n := in[0].N
	e.setBatch(n)
	start, slow := clock.Now(), e.took*time.Duration(n) >= slowRun
	if err := e.runSteps(ctx, slow, out, in, after); err != nil {
		_ = e.queue.Finish() // staging memory may be in use until then; the first error says more
		return err
	}
	e.took = clock.Since(start) / time.Duration(n)
	return nil
}

// runSteps runs all steps. If slow is set, or after is not nil, it waits for each.
func (e *executable) runSteps(ctx context.Context, slow bool, out, in []bcnn.Tensor, after func(step int, took time.Duration) error) error {
	n := in[0].N
	for i, to := range e.inputs {
		if err := e.send(to, &in[i], n); err != nil {
			return err
		}
	}
	for i := range e.steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		start, timed := clock.Now(), after != nil && !e.device.untimed.Load()
		err := e.steps[i].enqueue(e.queue, n, timed)
		if refused(err) {
			err = e.replace(ctx, i, n, timed, err)
		}
		s := e.steps[i]
		if err != nil {
			s.dropEvents()
			return fmt.Errorf("step %d (%s): %w", i, e.plan.Steps[i].Name, err)
		}
		var onHost time.Duration
		if e.host[i] != nil {
			var err error
			if onHost, err = e.runHost(ctx, i, n); err != nil {
				s.dropEvents()
				return fmt.Errorf("step %d (%s): on the host: %w", i, e.plan.Steps[i].Name, err)
			}
		}
		if after == nil && !slow && !s.divided(n) {
			continue
		}
		took, err := e.finish(s, timed, start, onHost)
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i, e.plan.Steps[i].Name, err)
		}
		s.price(e.device, took, n)
		if after != nil {
			if err := after(i, took); err != nil {
				return err
			}
		}
	}
	waited := false // for all that the queue holds
	for i, from := range e.outputs {
		if from.result != nil {
			copy(out[i].F32, from.result.F32)
			continue
		}
		if err := e.receive(&out[i], from, n); err != nil {
			return err
		}
		waited = true
	}
	if waited {
		return nil
	}
	return e.queue.Finish() // the memory of the inputs is free again
}

// finish waits for a step that began at start, and returns how long it took: on the host and the device,
// if the device tells times, or by the clock.
func (e *executable) finish(s *built, timed bool, start clock.Instant, onHost time.Duration) (time.Duration, error) {
	err := e.queue.Finish()
	took := clock.Since(start)
	if !timed {
		return took, err
	}
	onDevice, timeErr := s.nanoseconds() // frees the events, too
	if timeErr != nil {
		e.device.withoutTimes(timeErr)
		return took, err
	}
	return onHost + time.Duration(onDevice), err
}

func (e *executable) Read(step int, t bcnn.Tensor) error {
	of := e.plan.Steps[step].Out
	if step == 0 && e.bits != nil {
		if err := e.runBits(t.N); err != nil {
			return err
		}
	}
	if e.host[step] != nil {
		copy(t.U8, e.copies[of].U8)
		copy(t.Words, e.copies[of].Words)
		copy(t.F32, e.copies[of].F32)
		return nil
	}
	return e.queue.Read(shim.BufferOf(e.memory.tensors[of]), e.bytes(of, t.N), data(&t), true)
}

// free releases everything; kernels first, since they use the buffers.
func (e *executable) free() {
	for _, s := range e.steps {
		s.release(e.device)
	}
	if e.bits != nil {
		e.bits.release(e.device)
	}
	e.memory.release()
	e.bag.release()
	e.steps, e.bits, e.memory.tensors, e.host, e.copies, e.outputs = nil, nil, nil, nil, nil, nil
}

func (e *executable) Close() error {
	err := e.queue.Finish()
	e.free()
	return err
}
