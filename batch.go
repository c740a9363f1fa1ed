package bitcnn

import (
	"context"
	"slices"
	"sync"
	"time"
)

// batchConfig is what a batcher makes batches for.
type batchConfig struct {
	execute func(ctx context.Context, out, in []Tensor) (deviceRun, error)
	max     int           // images of a batch
	delay   time.Duration // that a batch waits for others
	workers int           // batches at the same time
	alarm   func() alarm
	tensors func() (out, in []Tensor)
}

// batcher puts the images of callers at the same time into one batch. Callers queue; workers take
// turns in waiting until the queue has a full batch, or all callers who are expected, or has waited
// long enough; copy what is in it, run, and copy the results back.
//
// Expected are as many as were there at the same time while each worker took its last two batches:
// callers who come one after the other wait for nobody, and those who come again and again wait until
// the others have come again, too.
type batcher struct {
	batchConfig
	running sync.WaitGroup // workers
	// collecting has an element while a worker waits for callers, and with the clock.
	collecting chan struct{}
	clock      alarm
	set        time.Time     // when the clock rings; zero when it has
	arrived    chan struct{} // has an element when the queue has grown, or is closed

	mu     sync.Mutex
	queue  []*request
	images int // in the queue
	taken  int // requests in batches that run
	// The most requests in the queue and in batches at the same time, while the workers took as many
	// batches as they are, and as many before; and how many they have taken since.
	most, before, takes int
	closed              bool

	requests sync.Pool
}

// request is a call of run. Whoever holds a request that is not in the queue any more
// may touch the caller's tensors under mu only, and only while the caller is there.
type request struct {
	out, in []Tensor
	since   time.Time
	result  chan error

	mu   sync.Mutex
	gone bool // the caller has left; the worker puts the request away
	n    int  // images in the batch in hand
	seen deviceRun
}

func newBatcher(config batchConfig) *batcher {
	b := &batcher{
		batchConfig: config, clock: config.alarm(),
		collecting: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
	}
	b.requests.New = func() any { return &request{result: make(chan error, 1)} }
	for range config.workers {
		out, in := config.tensors()
		w := &batchWorker{batcher: b, out: out, in: in, outPart: make([]Tensor, len(out)), inPart: make([]Tensor, len(in))}
		b.running.Add(1)
		go w.work()
	}
	return b
}

// run waits until the images of in have been a part of a batch.
func (b *batcher) run(ctx context.Context, out, in []Tensor) (deviceRun, error) {
	r := b.requests.Get().(*request)
	r.out, r.in, r.since, r.gone, r.seen = out, in, time.Now(), false, deviceRun{}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		b.put(r)
		return deviceRun{}, ErrClosed
	}
	b.queue = append(b.queue, r)
	b.images += in[0].N
	b.most = max(b.most, b.taken+len(b.queue))
	b.mu.Unlock()
	b.notify()
	select {
	case err := <-r.result:
		return b.put(r), err
	case <-ctx.Done():
	}
	if b.remove(r) {
		return b.put(r), ctx.Err()
	}
	r.mu.Lock() // it is in a batch: nothing is copied any more
	defer r.mu.Unlock()
	select {
	case err := <-r.result:
		return b.put(r), err
	default:
	}
	r.gone = true
	return deviceRun{}, ctx.Err()
}

// put puts a request away, and returns what has been seen of it.
func (b *batcher) put(r *request) deviceRun {
	seen := r.seen
	r.out, r.in = nil, nil
	b.requests.Put(r)
	return seen
}

func (b *batcher) notify() {
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// remove takes a request out of the queue, if it still is there.
func (b *batcher) remove(r *request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, q := range b.queue {
		if q == r {
			b.images -= r.in[0].N
			b.queue = slices.Delete(b.queue, i, i+1)
			return true
		}
	}
	return false
}

// close sends those away who wait, and waits for the workers.
func (b *batcher) close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		for _, r := range b.queue {
			r.result <- ErrClosed
		}
		b.queue, b.images = nil, 0
	}
	b.mu.Unlock()
	b.notify()
	b.running.Wait()
	b.clock.close()
}

// batchWorker runs one batch after the other.
type batchWorker struct {
	batcher         *batcher
	out, in         []Tensor // of a full batch
	outPart, inPart []Tensor // of the batch in hand
	batch           []*request
}

func (w *batchWorker) work() {
	defer w.batcher.running.Done()
	for w.collect() {
		w.run()
	}
	w.batcher.notify() // the next one ends too
}

// collect waits for a batch. It returns false when the batcher is closed.
func (w *batchWorker) collect() bool {
	b := w.batcher
	b.collecting <- struct{}{}
	defer func() { <-b.collecting }()
	free := time.Now() // whom the last batch has answered could not come before
	for {
		until, closed := w.take(free)
		switch {
		case closed:
			return false
		case len(w.batch) > 0:
			return true
		case until.IsZero():
			<-b.arrived
			continue
		}
		if !until.Equal(b.set) { // once for a batch, not for each who comes: it is a call of the system
			b.set = until
			b.clock.set(max(time.Until(until), 1))
		}
		select {
		case <-b.arrived:
		case <-b.clock.rings:
			b.set = time.Time{}
		}
	}
}

// take takes a batch off the queue if it is time, or says how long it may still wait for others, not at
// all if nobody is there. It waits from a time on at the earliest, or since somebody is there.
func (w *batchWorker) take(from time.Time) (until time.Time, closed bool) {
	b := w.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	w.batch = w.batch[:0]
	if b.closed || len(b.queue) == 0 {
		return time.Time{}, b.closed
	}
	if b.images < b.max && b.taken+len(b.queue) < max(b.most, b.before) {
		if b.queue[0].since.After(from) {
			from = b.queue[0].since
		}
		if until := from.Add(b.delay); time.Now().Before(until) {
			return until, false
		}
	}
	images := 0
	for _, r := range b.queue {
		n := r.in[0].N
		if images+n > b.max {
			break
		}
		images += n
		w.batch = append(w.batch, r)
	}
	b.queue = slices.Delete(b.queue, 0, len(w.batch))
	b.images -= images
	b.taken += len(w.batch)
	if b.takes++; b.takes >= b.workers {
		b.before, b.most, b.takes = b.most, b.taken+len(b.queue), 0
	}
	return time.Time{}, false
}

// run runs the batch in hand and tells everyone in it.
func (w *batchWorker) run() {
	b, n := w.batcher, 0
	for _, r := range w.batch {
		n += r.fill(w.in, n)
	}
	var seen deviceRun
	var err error
	if n > 0 { // somebody is still there
		part(w.inPart, w.in, n)
		part(w.outPart, w.out, n)
		// Callers come and go: a batch that has begun is not given up.
		seen, err = b.execute(context.Background(), w.outPart, w.inPart)
	}
	b.mu.Lock()
	b.taken -= len(w.batch)
	b.mu.Unlock()
	at := 0
	for _, r := range w.batch {
		k := r.n
		if r.finish(w.out, at, seen, err) {
			b.put(r)
		} else {
			seen.first = false
		}
		at += k
	}
	clear(w.batch)
}

// fill copies the images of the caller into a batch, from image at on, and returns
// their number.
func (r *request) fill(batch []Tensor, at int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n = 0
	if !r.gone {
		r.n = r.in[0].N
		for i, t := range r.in {
			copyTensor(batch[i].Images(at, r.n), t)
		}
	}
	return r.n
}

// finish gives the caller the outputs of its images in a batch, or the error of the
// batch. It reports whether the caller has gone.
func (r *request) finish(batch []Tensor, at int, seen deviceRun, err error) (gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return true
	}
	if err == nil {
		for i, t := range r.out {
			copyTensor(t, batch[i].Images(at, r.n))
		}
	}
	r.seen = seen
	r.result <- err
	return false
}

// part makes dst the first n images of each tensor.
func part(dst, tensors []Tensor, n int) {
	for i, t := range tensors {
		dst[i] = t.Images(0, n)
	}
}

// copyTensor copies the elements of a tensor of the same type and size.
func copyTensor(dst, src Tensor) {
	copy(dst.U8, src.U8)
	copy(dst.Words, src.Words)
	copy(dst.F32, src.F32)
}
