package tiles

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// Workers share the tiles of one task after another with the goroutine that submits
// them. Submitting allocates nothing.
type Workers struct {
	// state is the number of tiles of the current task (high half) and the
	// number of the next tile to be taken (low half), or more. A worker takes a tile by
	// adding one, which many do at once more cheaply than they compare and swap. A task
	// ends when all its tiles are done, so one who has taken a tile of it may read task
	// safely, and one who comes late finds nothing to take, or takes a tile of whatever
	// is current.
	state atomic.Uint64
	_     [cacheLine]byte // those who look for work do not read what changes with each tile that is done
	done  atomic.Uint32   // tiles done
	_     [cacheLine]byte
	task  Task
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

	scratch []Scratch // scratch[0] is the submitter's

	governor governor
	start    clock.Instant // of the run
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

	cacheLine = 64
)

// Start starts workers, one fewer than threads: the submitter is one too.
func Start(threads int, size Size) *Workers {
	w := &Workers{ctx: context.Background(), finish: make(chan struct{}, 1), scratch: make([]Scratch, threads), governor: newGovernor()}
	w.wake = sync.NewCond(&w.mu)
	for i := range w.scratch {
		w.scratch[i] = newScratch(w, size)
	}
	w.workers.Add(threads - 1)
	for i := 1; i < threads; i++ {
		go w.work(&w.scratch[i])
	}
	return w
}

// Begin begins a run of several tasks, until ctx ends.
func (w *Workers) Begin(ctx context.Context) {
	w.ctx = ctx
	if len(w.scratch) > 1 {
		w.start = clock.Now()
	}
}

// Done says that the run was one of n images and is complete.
func (w *Workers) Done(n int) {
	if len(w.scratch) > 1 {
		w.governor.done(clock.Since(w.start), n)
	}
}

// End ends the run, complete or not.
func (w *Workers) End() { w.ctx = context.Background() }

// Do runs all tiles of a task and returns when they are done. When the context
// ends, it begins no more of them and returns the context's error.
func (w *Workers) Do(t Task, tiles int) error {
	if tiles == 1 || len(w.scratch) == 1 || w.governor.way == alone {
		for i := range tiles {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			t.Run(i, &w.scratch[0])
		}
		return w.ctx.Err()
	}
	w.task = t
	w.seq++
	w.done.Store(0)
	w.state.Store(uint64(tiles) << 32)
	if w.sleepers.Load() > 0 {
		w.mu.Lock() // a worker that is about to sleep does so first
		//lint:ignore SA2001 nothing else is to be done then
		w.mu.Unlock()
		w.wake.Broadcast()
	}
	start, own := clock.Now(), 0
	for w.ctx.Err() == nil && w.tile(&w.scratch[0]) {
		own++
	}
	if w.ctx.Err() != nil {
		w.drop(uint32(tiles))
	}
	w.wait(uint32(tiles), clock.Since(start)*3/time.Duration(2*max(own, 1)))
	w.task = nil
	return w.ctx.Err()
}

// drop takes the tiles that nobody has taken yet, of so many, without doing them.
func (w *Workers) drop(tiles uint32) {
	v := w.state.Swap(uint64(tiles)<<32 | uint64(tiles))
	if next := uint32(v); next < tiles {
		w.done.Add(tiles - next)
	}
}

// tile takes one tile and does it, if there is one.
func (w *Workers) tile(s *Scratch) bool {
	if v := w.state.Load(); uint32(v) >= uint32(v>>32) {
		return false
	}
	v := w.state.Add(1) - 1
	tiles, next := uint32(v>>32), uint32(v)
	if next >= tiles { // others were faster
		return false
	}
	mode := fpmode.Enter() // the submitter's is that of another thread
	w.task.Run(int(next), s)
	mode.Leave()
	seq := w.seq // the submitter may go on to the next task after Add
	if w.done.Add(1) == tiles && w.waiting.CompareAndSwap(seq, 0) {
		w.finish <- struct{}{}
	}
	return true
}

// wait returns when all tiles are done. It spins for the given time at most.
func (w *Workers) wait(tiles uint32, spin time.Duration) {
	spin = min(max(spin, leastWait), mostWait)
	for start := clock.Now(); clock.Since(start) < spin; {
		for range spinLoads {
			if w.done.Load() == tiles {
				return
			}
		}
		runtime.Gosched()
	}
	// Swap, not Store: QEMU lets a load overtake an arm64 store-release, and then
	// neither side would see the other.
	w.waiting.Swap(w.seq)
	if w.done.Load() == tiles && w.waiting.CompareAndSwap(w.seq, 0) {
		return
	}
	<-w.finish
}

func (w *Workers) work(s *Scratch) {
	defer w.workers.Done()
	for {
		if w.spin(s) {
			continue
		}
		if !w.sleep() {
			return
		}
	}
}

// spin does the tiles that come up within a short time and reports whether
// there were any.
func (w *Workers) spin(s *Scratch) bool {
	for start := clock.Now(); clock.Since(start) < spinTime; {
		for range spinLoads {
			if w.tile(s) {
				return true
			}
		}
		runtime.Gosched()
	}
	return false
}

// sleep waits until there is a tile to take, or was: waking takes so long that
// the task may be done by then, but where tasks follow each other the next one is
// near. It returns false when the workers stop.
func (w *Workers) sleep() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Counted before looking: a submitter either sees the sleeper or has
	// published the tiles that it now finds.
	w.sleepers.Add(1)
	defer w.sleepers.Add(-1)
	if v := w.state.Load(); !w.stopped && uint32(v) >= uint32(v>>32) {
		w.wake.Wait()
	}
	return !w.stopped
}

// Stop ends the workers, between tasks, and waits for them.
func (w *Workers) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.wake.Broadcast()
	w.workers.Wait()
}
