package bitcnn

import (
	"context"
	"math/bits"
	"sync"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all" // a Session runs on any of them
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/internal/host"
)

// Devices describes the devices of this machine that Options.Device may name.
func Devices() []Device {
	var list []Device
	for _, d := range backend.Devices() {
		list = append(list, d.Info())
	}
	return list
}

// engine is a plan that is compiled for a number of threads.
type engine struct {
	*backend.Executable
	level int
}

// engines are what a session runs on. A caller who is alone gets an engine with all
// threads; of several, each gets its share of the threads, rounded to halves, quarters
// and so on, down to an engine with one thread for each. That is faster than to let
// them wait for one engine with all threads: a thread that works alone waits for
// nobody. Engines are compiled when they are needed first, and kept.
//
// A device that is no processor has engines of one kind.
type engines struct {
	device   *backend.Device
	plan     *plan.Plan
	opts     backend.Options
	levels   []int // threads of the engines of a level; 0 where the device has none
	observed bool  // run says how long it took
	first    *engine

	slots chan struct{} // holds an element for each caller who runs
	done  chan struct{} // closed when the session is

	mu      sync.Mutex
	active  int // callers who run
	idle    sync.Cond
	free    [][]*engine // by level
	closed  bool
	engines []*engine // all
}

// newEngines opens a device and compiles the engine for one caller.
func newEngines(ctx context.Context, plan *plan.Plan, opts Options) (*engines, error) {
	device, err := backend.Open(opts.Device)
	if err != nil {
		return nil, err
	}
	p := &engines{
		device: device, plan: plan,
		opts: backend.Options{
			MaxBatch: opts.MaxBatch, Threads: opts.Threads, ISA: opts.ISA, Kernels: opts.Kernels, Limits: opts.Limits,
		},
		observed: opts.Observe != nil,
		done:     make(chan struct{}),
	}
	p.idle.L = &p.mu
	parallel := max(1, opts.Parallel)
	p.levels = []int{opts.Threads}
	if most := device.Info().MaxThreads; most > 0 {
		threads := opts.Threads
		if threads == 0 {
			threads = min(host.Threads(), most)
		}
		if opts.Parallel == 0 {
			parallel = max(1, threads)
		}
		p.levels = levels(threads, parallel)
	}
	e, err := p.compile(ctx, 0)
	if err != nil {
		return nil, err
	}
	p.slots = make(chan struct{}, parallel)
	p.free = make([][]*engine, len(p.levels))
	p.first = e
	p.free[0] = append(p.free[0], e)
	return p, nil
}

// levels returns the threads of each of up to parallel callers: all for one, half for
// two, and so on.
func levels(threads, parallel int) []int {
	list := []int{threads}
	for most := 1; most < parallel && list[len(list)-1] > 1; most *= 2 {
		list = append(list, list[len(list)-1]/2)
	}
	return list
}

func (p *engines) compile(ctx context.Context, level int) (*engine, error) {
	opts := p.opts
	opts.Threads = p.levels[level]
	exe, err := p.device.Compile(ctx, p.plan, opts)
	if err != nil {
		return nil, err
	}
	e := &engine{exe, level}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engines = append(p.engines, e)
	return e, nil
}

// checkAndRun is run for tensors that are the session's own: of no caller, or of several.
func (p *engines) checkAndRun(ctx context.Context, out, in []Tensor) (deviceRun, error) {
	batch, err := p.first.Check(out, in)
	if err != nil {
		return deviceRun{}, err
	}
	return p.run(ctx, batch)
}

// run waits until an engine is free and runs on it.
func (p *engines) run(ctx context.Context, batch backend.Batch) (deviceRun, error) {
	e, err := p.begin(ctx)
	if err != nil {
		return deviceRun{}, err
	}
	defer p.end(e)
	seen := deviceRun{batch: batch.Images(), first: true}
	if p.observed {
		seen.began = clock.Now()
	}
	err = e.RunBatch(ctx, batch)
	if p.observed {
		seen.running = clock.Since(seen.began)
	}
	return seen, err
}

// begin waits until an engine is free; end gives it back.
func (p *engines) begin(ctx context.Context) (*engine, error) {
	select {
	case p.slots <- struct{}{}:
	default:
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.done:
			return nil, ErrClosed
		}
	}
	e, err := p.acquire(ctx)
	if err != nil {
		<-p.slots
	}
	return e, err
}

func (p *engines) end(e *engine) {
	p.release(e)
	<-p.slots
}

// acquire takes an engine. There are never more callers than slots, so that one is
// free or may be made.
func (p *engines) acquire(ctx context.Context) (*engine, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	p.active++
	level := min(bits.Len(uint(p.active-1)), len(p.levels)-1)
	if free := p.free[level]; len(free) > 0 {
		e := free[len(free)-1]
		p.free[level] = free[:len(free)-1]
		p.mu.Unlock()
		return e, nil
	}
	p.mu.Unlock()
	e, err := p.compile(ctx, level)
	if err != nil {
		p.release(nil)
	}
	return e, err
}

func (p *engines) release(e *engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	if e != nil {
		p.free[e.level] = append(p.free[e.level], e)
	}
	if p.active == 0 {
		p.idle.Broadcast()
	}
}

// explain says how the engine for one caller executes the steps.
func (p *engines) explain() []Choice {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	return p.engines[0].Explain()
}

// close waits for those who run, and sends those away who wait.
func (p *engines) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.done)
	}
	for p.active > 0 {
		p.idle.Wait()
	}
	var first error
	for _, e := range p.engines {
		if err := e.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.engines = p.engines[:0]
	return first
}
