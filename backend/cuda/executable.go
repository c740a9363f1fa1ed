//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/internal/tuning"
)

// executable is a compiled plan.
type executable struct {
	device *device
	thread *thread
	plan   *plan.Plan
	config driver.Config
	bag    bag // tensors, scratch memory, staging memory, stream, events, graphs
	stream cu.Stream
	steps  []*built
	// network executes all steps at once, if the plan is one for it.
	network *built
	// bits makes the output of the first step for Read, where the kernels of the step make
	// patches in its place.
	bits   *built
	memory memory

	inputs, outputs []end
	start, stop     cu.Event // around what is timed
	caller          caller
	reserved        int64 // bytes that have been asked for, of Config.ArenaBytes

	// scratchBytes are those of memory.scratch.
	scratchBytes [gpu.Scratches]int

	// What Compile and Run ask of the thread.
	ctx    context.Context
	images int
	// Of RunSteps and Read.
	step int
	took time.Duration
	read bcnn.Tensor
	runAll, runStep, readStep, copyIn, copyOut,
	wait *request
	graphs map[int]shim.Graph // by images
	// The same for Enqueue, without the copies from and to the host.
	deviceGraphs map[int]shim.Graph
	// direct says that the driver does not record the launches in a graph, so kernels are
	// launched one by one.
	direct bool
	// settled says that Compile has chosen: what is refused then is replaced.
	settled bool
	// recording says that what is enqueued is recorded, so that nothing else can be done.
	recording bool
	// early says that the device may begin kernels before those ahead of them have ended.
	early bool
	// wrong names what was left out of whole runs as it computes wrong bits.
	wrong []string
	// perImage is the time of an image in the last Run, at first something long: steps
	// that take long are waited for one by one, so that they can be interrupted.
	perImage time.Duration
}

// end is an input or an output.
type end struct {
	tensor  int            // of the plan
	staging unsafe.Pointer // page-locked
	mapped  bool           // kernels access it, so nothing is copied
	// pageable says that it is plain memory of the host.
	pageable bool
}

// slowRun is how long a Run takes that waits for each step. That costs far less.
const slowRun = 100 * time.Millisecond

// memory is where the tensors of a plan and scratch memory are.
type memory struct {
	tensors []cu.DevicePtr
	scratch [gpu.Scratches]cu.DevicePtr
}

func newExecutable(ctx context.Context, d *device, plan *plan.Plan, config driver.Config) (*executable, error) {
	e := &executable{device: d, thread: d.thread, plan: plan, config: config, ctx: ctx, perImage: slowRun,
		bag: bag{thread: d.thread}, graphs: make(map[int]shim.Graph), deviceGraphs: make(map[int]shim.Graph)}
	for t := range plan.InputTensors() {
		e.inputs = append(e.inputs, end{tensor: t})
	}
	for _, t := range plan.Outputs {
		e.outputs = append(e.outputs, end{tensor: t})
	}
	// Laying out weights takes long, and needs no driver.
	all, err := e.candidates()
	if err != nil {
		return nil, err
	}
	var bits *candidates.Candidate
	if config.Kernels == gpu.Patches {
		bits = candidates.Join(plan, all)
	}
	network := e.considerNetwork(all)
	e.runAll, e.runStep, e.readStep = newRequest(e.executeAll), newRequest(e.executeStep), newRequest(e.fetchStep)
	e.copyIn, e.copyOut, e.wait = newRequest(e.enqueueCopyIn), newRequest(e.fetchOutput), newRequest(e.synchronize)
	e.caller.enqueue, e.caller.wait = newRequest(e.enqueueForCaller), newRequest(e.waitForCaller)
	if err := e.thread.do(newRequest(func() error { return e.construct(all, network, bits) })); err != nil {
		_ = e.release()
		return nil, err
	}
	e.ctx, e.settled = nil, true
	return e, nil
}

// candidates lists the kernels that can execute each step.
func (e *executable) candidates() ([][]candidates.Candidate, error) {
	all := make([][]candidates.Candidate, len(e.plan.Steps))
	var unsupported plan.UnsupportedError
	for i := range e.plan.Steps {
		if err := e.ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if all[i], err = e.candidatesOf(i); err != nil {
			if err := unsupported.Add(e.plan, i, err); err != nil {
				return nil, err
			}
		}
		all[i] = candidates.OfVariant(all[i], e.config.Kernels)
	}
	return all, unsupported.Err()
}

// candidatesOf lists the kernels that can execute a step, of all variants.
func (e *executable) candidatesOf(i int) ([]candidates.Candidate, error) {
	step, err := gpu.NewStep(e.plan, i, e.config.MaxBatch)
	if err != nil {
		return nil, err
	}
	all, err := candidates.Of(step, e.plan.Steps[i].Op, e.device.limits, e.device.arch)
	all = slices.DeleteFunc(all, func(c candidates.Candidate) bool { return slices.Contains(e.device.without, c.Variant) })
	if err == nil && len(all) == 0 {
		err = plan.Unsupported("no kernel")
	}
	return all, err
}

// construct makes everything on the device; it runs on its thread. all are the kernels
// that may come to execute each step, network the launch that may execute all of them, and
// bits what makes the output of the first step, if its kernels do not.
func (e *executable) construct(all [][]candidates.Candidate, network networkLaunch, bits *candidates.Candidate) error {
	err := e.ctx.Err() // while others had the thread
	if err != nil {
		return err
	}
	if e.stream, err = e.bag.stream(); err != nil {
		return err
	}
	uses := e.uses(all, network)
	if bits != nil {
		uses = append(uses, plan.Use{Tensor: e.plan.Steps[0].Out})
	}
	complete, err := e.allocate(all, uses)
	if err != nil {
		return err
	}
	if !complete { // it may need what was refused
		network = networkLaunch{}
	}
	if bits != nil {
		if e.bits, err = e.build(*bits); err != nil {
			return err
		}
	}
	for event, flags := range map[*cu.Event]cu.EventFlags{
		&e.start: cu.DefaultEvent, &e.stop: cu.DefaultEvent, &e.caller.done: cu.DisableTiming,
	} {
		if *event, err = e.bag.event(flags); err != nil {
			return err
		}
	}
	for i, s := range e.plan.Steps {
		chosen, err := e.choose(i, all[i])
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i, s.Name, err)
		}
		e.steps = append(e.steps, chosen)
	}
	if err := e.chooseEarly(); err != nil {
		return err
	}
	if err := e.chooseNetwork(network); err != nil {
		return err
	}
	if len(e.wrong) > 0 {
		key := gpu.Key(e.config.MaxBatch, slices.Concat(all...))
		e.device.tuning.Put(key, tuning.Entry{Step: fmt.Sprintf("the whole network, batch of %d", e.config.MaxBatch), Variant: "steps", Wrong: e.wrong})
	}
	if !e.config.Stepwise {
		if _, err = e.graph(e.config.MaxBatch); err == nil {
			_, err = e.graph(1)
		}
	}
	return err
}

func (e *executable) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	return e.run(ctx, out, in, nil)
}

func (e *executable) RunSteps(ctx context.Context, out, in []bcnn.Tensor, after func(step int, took time.Duration) error) error {
	return e.run(ctx, out, in, after)
}

// run executes the steps one by one if after is not nil.
func (e *executable) run(ctx context.Context, out, in []bcnn.Tensor, after func(step int, took time.Duration) error) error {
	if err := e.thread.gone(); err != nil {
		return err
	}
	if err := e.finishCaller(); err != nil {
		return err
	}
	n := in[0].N
	e.ctx, e.images = ctx, n
	defer func() { e.ctx = nil }()
	for i, to := range e.inputs {
		bytes := e.bytes(to.tensor, n)
		copy(unsafe.Slice((*byte)(to.staging), bytes), unsafe.Slice((*byte)(data(&in[i])), bytes))
	}
	var err error
	start := clock.Now()
	if after != nil {
		err = e.executeSteps(after)
	} else {
		err = e.thread.do(e.runAll)
	}
	if err != nil {
		// Staging memory may be in use until the stream is empty.
		if e.thread.lost.Load() == nil {
			err = errors.Join(err, e.thread.do(e.wait))
		}
		return err
	}
	e.perImage = clock.Since(start) / time.Duration(n)
	for i, from := range e.outputs {
		bytes := e.bytes(from.tensor, n)
		copy(unsafe.Slice((*byte)(data(&out[i])), bytes), unsafe.Slice((*byte)(from.staging), bytes))
	}
	return nil
}

// executeAll is a Run; it runs on the device's thread.
func (e *executable) executeAll() error {
	if err := e.ctx.Err(); err != nil { // while others had the thread
		return err
	}
	slow := e.perImage*time.Duration(e.images) >= slowRun
	if !e.direct && !slow {
		g, err := e.graph(e.images)
		if err != nil {
			return err
		}
		if !e.direct {
			err = g.Run(e.stream)
		}
		if !e.direct && !shim.Refused(err) {
			return err
		}
		if !e.direct { // and so are kernels launched one by one
			e.device.refuse("a graph", err)
			e.direct = true
		}
	}
	if err := e.enqueueAll(slow); err != nil {
		return err
	}
	return e.synchronize()
}

func (e *executable) synchronize() error {
	return shim.Check("cuStreamSynchronize", e.stream.Synchronize())
}

// enqueueAll puts everything on the stream, copies included. If wait is set it waits
// for each step, and looks at the context in between.
func (e *executable) enqueueAll(wait bool) error {
	if err := e.enqueueCopyIn(); err != nil {
		return err
	}
	if err := e.enqueueSteps(e.stream, wait); err != nil {
		return err
	}
	return e.enqueueCopyOut()
}

func (e *executable) enqueueSteps(stream cu.Stream, wait bool) error {
	if e.network != nil {
		return e.network.enqueue(stream, e.images)
	}
	for i, s := range e.steps {
		err := s.enqueueAfter(stream, e.images, e.early && !wait, i > 0)
		if e.settled && !e.recording && shim.Refused(err) {
			err = e.replace(stream, i, err)
		}
		if err == nil && wait {
			err = e.synchronize()
		}
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i, e.plan.Steps[i].Name, err)
		}
		if wait {
			if err := e.ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *executable) enqueueCopyIn() error {
	for _, to := range e.inputs {
		if to.mapped {
			continue
		}
		if err := shim.CopyIn(e.memory.tensors[to.tensor], to.staging, e.bytes(to.tensor, e.images), e.stream); err != nil {
			return err
		}
	}
	return nil
}

func (e *executable) enqueueCopyOut() error {
	for _, from := range e.outputs {
		if from.mapped {
			continue
		}
		if err := shim.CopyOut(from.staging, e.memory.tensors[from.tensor], e.bytes(from.tensor, e.images), e.stream); err != nil {
			return err
		}
	}
	return nil
}

func (e *executable) fetchOutput() error {
	if err := e.enqueueCopyOut(); err != nil {
		return err
	}
	return e.synchronize()
}

// executeSteps executes the steps one by one. after is not called on the device's
// thread, so that it may use the device.
func (e *executable) executeSteps(after func(step int, took time.Duration) error) error {
	if err := e.thread.do(e.copyIn); err != nil {
		return err
	}
	for i, s := range e.plan.Steps {
		e.step = i
		if err := e.thread.do(e.runStep); err != nil {
			return fmt.Errorf("step %d (%s): %w", i, s.Name, err)
		}
		if err := after(i, e.took); err != nil {
			return err
		}
	}
	return e.thread.do(e.copyOut)
}

// executeStep executes a step and waits for it; it runs on the device's thread.
func (e *executable) executeStep() error {
	var err error
	enqueue := func() error { return e.steps[e.step].enqueue(e.stream, e.images) }
	if e.took, err = timeOn(e.stream, e.start, e.stop, enqueue); err != nil && shim.Refused(err) {
		if err = e.replace(e.stream, e.step, err); err == nil {
			e.took, err = timeOn(e.stream, e.start, e.stop, enqueue)
		}
	}
	return err
}

func (e *executable) Read(step int, t bcnn.Tensor) error {
	e.step, e.read = step, t
	defer func() { e.read = bcnn.Tensor{} }()
	return e.thread.do(e.readStep)
}

// fetchStep is Read; it runs on the device's thread.
func (e *executable) fetchStep() error {
	if e.step == 0 && e.bits != nil {
		if err := e.bits.enqueue(e.stream, e.images); err != nil {
			return err
		}
		if err := e.synchronize(); err != nil {
			return err
		}
	}
	i := e.plan.Steps[e.step].Out
	return shim.Check("cuMemcpyDtoH", cu.MemcpyDtoH(data(&e.read), e.memory.tensors[i], int64(e.bytes(i, e.images))))
}

// data is where the values of a tensor start. Packed words have the same bytes on
// the device, since both are little-endian.
func data(t *bcnn.Tensor) unsafe.Pointer {
	switch t.DType {
	case bcnn.Uint8:
		return unsafe.Pointer(unsafe.SliceData(t.U8))
	case bcnn.Bits:
		return unsafe.Pointer(unsafe.SliceData(t.Words))
	}
	return unsafe.Pointer(unsafe.SliceData(t.F32))
}

// release frees everything, on the device's thread.
func (e *executable) release() error {
	r := newRequest(func() error {
		var err error
		if e.thread.lost.Load() == nil {
			if err = e.waitForCaller(); err != nil {
				e.thread.note(err)
			}
		}
		if e.thread.lost.Load() == nil {
			err = errors.Join(err, e.dropGraphs())
		}
		for _, s := range e.steps {
			err = errors.Join(err, s.bag.release())
		}
		for _, b := range []**built{&e.network, &e.bits} {
			if *b != nil {
				err = errors.Join(err, (*b).bag.release())
				*b = nil
			}
		}
		err = errors.Join(err, e.bag.release())
		e.steps, e.graphs, e.deviceGraphs = nil, nil, nil
		return err
	})
	r.always = true
	return e.thread.do(r)
}

func (e *executable) Close() error { return e.release() }
