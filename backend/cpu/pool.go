package cpu

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// task is work that falls into independent tiles.
type task interface {
	// run does tile number tile with the memory of one worker.
	run(tile int, s *scratch)
}

// pool is a group of workers that share the tiles of one task after another
// with the goroutine that submits them. Submitting allocates nothing.
type pool struct {
	// state is the number of tiles of the current task (high half) and the
	// number of the next tile to be taken (low half). A worker takes a tile by
	// a compare-and-swap of the whole word. A task ends when all its tiles are
	// done, so one who has taken a tile of it may read task safely, and one who
	// comes late finds nothing to take, or takes a tile of whatever is current.
	state atomic.Uint64
	done  atomic.Uint32 // tiles done
	task  task
	seq   uint64          // number of the task
	ctx   context.Context // of the run

	// waiting is the number of the task whose last tile the submitter sleeps
	// for, else 0.
	waiting atomic.Uint64
	finish  chan struct{}

	mu       sync.Mutex
	wake     *sync.Cond
	sleepers atomic.Int32 // changed under mu
	stopped  bool         // under mu
	workers  sync.WaitGroup

	scratch []scratch // scratch[0] is the submitter's

	governor governor
}

// Waking a sleeping worker takes many times as long as the gap between two
// steps, so that a worker looks for work for a while before it sleeps, and the
// submitter for the end of the last tiles. The bounds keep them from taking a
// CPU away from those who need it: above all from each other, where they have to
// share one.
const (
	spinTime  = 30 * time.Microsecond // for the next task
	spinLoads = 1000                  // between two offers of the CPU to other goroutines
	// The last tile may take as long as one of the submitter's took, and half as
	// long again. Who is not done then waits for a CPU.
	leastWait, mostWait = 5 * time.Microsecond, 100 * time.Microsecond
)

// newPool starts workers, one fewer than threads: the submitter is one too.
func newPool(threads int, size scratchSize) *pool {
	p := &pool{ctx: context.Background(), finish: make(chan struct{}, 1), scratch: make([]scratch, threads), governor: newGovernor()}
	p.wake = sync.NewCond(&p.mu)
	for i := range p.scratch {
		p.scratch[i] = newScratch(p, size)
	}
	p.workers.Add(threads - 1)
	for i := 1; i < threads; i++ {
		go p.work(&p.scratch[i])
	}
	return p
}

// do runs all tiles of a task and returns when they are done. When the context
// ends, it begins no more of them and returns the context's error.
func (p *pool) do(t task, tiles int) error {
	if tiles == 1 || len(p.scratch) == 1 || p.governor.way == alone {
		for i := range tiles {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			t.run(i, &p.scratch[0])
		}
		return p.ctx.Err()
	}
	p.task = t
	p.seq++
	p.done.Store(0)
	p.state.Store(uint64(tiles) << 32)
	if p.sleepers.Load() > 0 {
		p.mu.Lock() // a worker that is about to sleep does so first
		//lint:ignore SA2001 nothing else is to be done then
		p.mu.Unlock()
		p.wake.Broadcast()
	}
	start, own := time.Now(), 0
	for p.ctx.Err() == nil && p.tile(&p.scratch[0]) {
		own++
	}
	if p.ctx.Err() != nil {
		p.drop(uint32(tiles))
	}
	p.wait(uint32(tiles), time.Since(start)*3/time.Duration(2*max(own, 1)))
	p.task = nil
	return p.ctx.Err()
}

// drop takes the tiles that nobody has taken yet, of so many, without doing them.
func (p *pool) drop(tiles uint32) {
	v := p.state.Swap(uint64(tiles)<<32 | uint64(tiles))
	if next := uint32(v); next < tiles {
		p.done.Add(tiles - next)
	}
}

// tile takes one tile and does it, if there is one.
func (p *pool) tile(s *scratch) bool {
	for {
		v := p.state.Load()
		tiles, next := uint32(v>>32), uint32(v)
		if next >= tiles {
			return false
		}
		if !p.state.CompareAndSwap(v, v+1) {
			continue
		}
		p.task.run(int(next), s)
		seq := p.seq // the submitter may go on to the next task after Add
		if p.done.Add(1) == tiles && p.waiting.CompareAndSwap(seq, 0) {
			p.finish <- struct{}{}
		}
		return true
	}
}

// wait returns when all tiles are done. It spins for the given time at most.
func (p *pool) wait(tiles uint32, spin time.Duration) {
	spin = min(max(spin, leastWait), mostWait)
	for start := time.Now(); time.Since(start) < spin; {
		for range spinLoads {
			if p.done.Load() == tiles {
				return
			}
		}
		runtime.Gosched()
	}
	// Swap, not Store: QEMU lets a load overtake an arm64 store-release, and then
	// neither side would see the other.
	p.waiting.Swap(p.seq)
	if p.done.Load() == tiles && p.waiting.CompareAndSwap(p.seq, 0) {
		return
	}
	<-p.finish
}

func (p *pool) work(s *scratch) {
	defer p.workers.Done()
	for {
		if p.spin(s) {
			continue
		}
		if !p.sleep() {
			return
		}
	}
}

// spin does the tiles that come up within a short time and reports whether
// there were any.
func (p *pool) spin(s *scratch) bool {
	for start := time.Now(); time.Since(start) < spinTime; {
		for range spinLoads {
			if p.tile(s) {
				return true
			}
		}
		runtime.Gosched()
	}
	return false
}

// sleep waits until there is a tile to take, or was: waking takes so long that
// the task may be done by then, but where tasks follow each other the next one is
// near. It returns false when the pool stops.
func (p *pool) sleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Counted before looking: a submitter either sees the sleeper or has
	// published the tiles that it now finds.
	p.sleepers.Add(1)
	defer p.sleepers.Add(-1)
	if v := p.state.Load(); !p.stopped && uint32(v) >= uint32(v>>32) {
		p.wake.Wait()
	}
	return !p.stopped
}

// stop ends the workers, between tasks, and waits for them.
func (p *pool) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.wake.Broadcast()
	p.workers.Wait()
}
