package bitcnn

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests of batches run in a bubble: its time passes when all of its goroutines
// wait, and for nobody else.

var (
	byteIn   = IO{DType: Uint8, Shape: Shape{H: 1, W: 1, C: 2}}
	floatOut = IO{DType: Float32, Shape: Shape{H: 1, W: 1, C: 1}}
)

const testDelay = 100 * time.Microsecond

// device is what batches run on here: an output is the sum of the two inputs.
type device struct {
	mu      sync.Mutex
	batches []int // sizes
	hold    chan struct{}
	err     error
}

func (d *device) run(ctx context.Context, out, in []Tensor) (deviceRun, error) {
	d.mu.Lock()
	d.batches = append(d.batches, in[0].N)
	d.mu.Unlock()
	if d.hold != nil {
		<-d.hold
	}
	for i := range in[0].N {
		out[0].F32[i] = float32(in[0].U8[2*i]) + float32(in[0].U8[2*i+1])
	}
	return deviceRun{batch: in[0].N, first: true}, d.err
}

// sizes returns those of the batches so far.
func (d *device) sizes() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.batches)
}

func (d *device) start(most, workers int) *batcher {
	return newBatcher(batchConfig{
		execute: d.run, max: most, delay: testDelay, workers: workers, alarm: timerAlarm,
		tensors: func() (out, in []Tensor) { return tensors([]IO{floatOut}, most), tensors([]IO{byteIn}, most) },
	})
}

// expect has a batcher expect as many callers as if they had been there since the last batch.
func (b *batcher) expect(callers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = callers
}

// call is a call of batcher.run with n images, numbered from first on.
type call struct {
	out, in []Tensor
	result  chan error
	cancel  func()
	seen    deviceRun // once there is a result
}

func begin(t *testing.T, b *batcher, first, n int) *call {
	ctx, cancel := context.WithCancel(t.Context())
	c := &call{out: tensors([]IO{floatOut}, n), in: tensors([]IO{byteIn}, n), result: make(chan error, 1), cancel: cancel}
	for i := range n {
		c.in[0].U8[2*i], c.in[0].U8[2*i+1] = uint8(first+i), 100
		c.out[0].F32[i] = -1
	}
	go func() {
		var err error
		c.seen, err = b.run(ctx, c.out, c.in)
		c.result <- err
	}()
	synctest.Wait()
	return c
}

func (c *call) ended() bool { return len(c.result) > 0 }

// succeed requires that the caller has its own outputs.
func (c *call) succeed(t *testing.T) {
	t.Helper()
	require.NoError(t, <-c.result)
	c.cancel()
	for i, v := range c.out[0].F32 {
		require.Equal(t, float32(c.in[0].U8[2*i])+100, v)
	}
}

func TestLoneCallersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{}
		b := d.start(4, 1)
		start := time.Now()
		for i := range 3 {
			begin(t, b, i, 1).succeed(t)
		}
		require.Zero(t, time.Since(start))
		require.Equal(t, []int{1, 1, 1}, d.sizes())
		b.close()
	})
}

func TestBatchAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{}
		b := d.start(4, 1)
		start := time.Now()
		b.expect(3)
		first := begin(t, b, 1, 1)
		time.Sleep(testDelay / 2)
		second := begin(t, b, 2, 2)
		require.Empty(t, d.sizes())
		first.succeed(t)
		second.succeed(t)
		require.Equal(t, testDelay, time.Since(start)) // of the first one
		require.Equal(t, []int{3}, d.sizes())
		// More are expected for two batches: one caller waits as long, and then for nobody.
		for _, waited := range []time.Duration{2, 3, 3, 3} {
			begin(t, b, 7, 1).succeed(t)
			require.Equal(t, waited*testDelay, time.Since(start))
		}
		require.Equal(t, []int{3, 1, 1, 1, 1}, d.sizes())
		b.close()
	})
}

// Callers who come again and again are one batch each time, without a delay, whichever of them was
// first.
func TestCallersWhoComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{hold: make(chan struct{})}
		b := d.start(8, 1)
		start := time.Now()
		calls := []*call{begin(t, b, 1, 1), begin(t, b, 2, 1), begin(t, b, 3, 1)}
		d.hold <- struct{}{} // the first one, alone
		calls[0].succeed(t)
		synctest.Wait()
		require.Equal(t, []int{1}, d.sizes()) // the others wait for it
		calls[0] = begin(t, b, 4, 1)
		for range 3 {
			d.hold <- struct{}{}
			for i, c := range calls {
				c.succeed(t)
				calls[i] = begin(t, b, i, 1)
			}
		}
		require.Equal(t, []int{1, 3, 3, 3, 3}, d.sizes())
		require.Zero(t, time.Since(start))
		close(d.hold)
		for _, c := range calls {
			c.succeed(t)
		}
		b.close()
	})
}

func TestFullBatchDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{}
		b := d.start(4, 1)
		start := time.Now()
		b.expect(9)
		a, c := begin(t, b, 1, 3), begin(t, b, 10, 1)
		a.succeed(t)
		c.succeed(t)
		require.Zero(t, time.Since(start))
		require.Equal(t, []int{4}, d.sizes())
		// What does not fit stays for the next one.
		b.expect(9)
		a, c = begin(t, b, 1, 3), begin(t, b, 10, 2)
		a.succeed(t)
		require.Zero(t, time.Since(start))
		require.False(t, c.ended()) // it waits for the other one
		c.succeed(t)
		require.Equal(t, testDelay, time.Since(start))
		require.Equal(t, []int{4, 3, 2}, d.sizes())
		b.close()
	})
}

// Those who come while all workers are busy are one batch, as soon as the delay is over in which those
// whom the workers have answered may come again.
func TestQueueBehindBusyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{hold: make(chan struct{})}
		b := d.start(2, 2)
		var running []*call
		for i := range 4 {
			b.expect(9)
			running = append(running, begin(t, b, i, 1))
		}
		require.Equal(t, []int{2, 2}, d.sizes()) // at the same time
		waiting := begin(t, b, 9, 1)
		time.Sleep(10 * testDelay)
		synctest.Wait()
		require.Equal(t, []int{2, 2}, d.sizes())
		before := time.Now()
		close(d.hold)
		for _, c := range running {
			c.succeed(t)
		}
		waiting.succeed(t)
		require.Equal(t, testDelay, time.Since(before))
		require.Equal(t, []int{2, 2, 1}, d.sizes())
		b.close()
	})
}

func TestCallerLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{}
		b := d.start(4, 1)
		b.expect(3)
		leaving, staying := begin(t, b, 1, 2), begin(t, b, 5, 1)
		leaving.cancel()
		synctest.Wait()
		require.ErrorIs(t, <-leaving.result, context.Canceled)
		staying.succeed(t)
		require.Equal(t, []int{1}, d.sizes())
		require.Equal(t, []float32{-1, -1}, leaving.out[0].F32)
		// Nobody left is no batch.
		b.expect(2)
		leaving = begin(t, b, 1, 2)
		leaving.cancel()
		time.Sleep(2 * testDelay)
		synctest.Wait()
		require.True(t, leaving.ended())
		require.Equal(t, []int{1}, d.sizes())
		require.Zero(t, b.images)
		b.close()
	})
}

// A caller leaves a batch in progress at once, and finds its memory untouched.
func TestCallerLeavesABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{hold: make(chan struct{})}
		b := d.start(4, 1)
		b.expect(3)
		leaving, staying := begin(t, b, 1, 3), begin(t, b, 5, 1)
		require.Equal(t, []int{4}, d.sizes())
		leaving.cancel()
		synctest.Wait()
		require.ErrorIs(t, <-leaving.result, context.Canceled)
		leaving.out[0].F32[0] = 7 // the race detector would see somebody else write
		clear(leaving.in[0].U8)
		close(d.hold)
		staying.succeed(t)
		require.Equal(t, []float32{7, -1, -1}, leaving.out[0].F32)
		begin(t, b, 8, 4).succeed(t) // the request may be taken again
		b.close()
	})
}

func TestErrorGoesToEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{err: errors.New("burnt")}
		b := d.start(2, 1)
		b.expect(2)
		for _, c := range []*call{begin(t, b, 1, 1), begin(t, b, 5, 1)} {
			require.Equal(t, d.err, <-c.result)
			require.Equal(t, []float32{-1}, c.out[0].F32)
			c.cancel()
		}
		b.close()
	})
}

func TestCloseWithCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{hold: make(chan struct{})}
		b := d.start(2, 3)
		running := begin(t, b, 1, 2)
		b.expect(3)
		waiting := begin(t, b, 5, 1)
		closed := make(chan struct{})
		go func() {
			b.close()
			b.close()
			close(closed)
		}()
		synctest.Wait()
		require.ErrorIs(t, <-waiting.result, ErrClosed)
		require.False(t, running.ended())
		select {
		case <-closed:
			t.Error("closed before the batch has ended")
		default:
		}
		close(d.hold)
		running.succeed(t)
		<-closed
		_, err := b.run(t.Context(), waiting.out, waiting.in)
		require.ErrorIs(t, err, ErrClosed)
		require.Equal(t, []int{2}, d.sizes())
		waiting.cancel()
	})
}

// Many callers of all sizes, some of whom leave: who stays gets its outputs.
func TestCallersAtRandom(t *testing.T) {
	const most, callers, calls = 8, 16, 200
	d := &device{}
	b := d.start(most, 3)
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 0))
			for range calls {
				n := 1 + rng.IntN(most-1)
				out, in := tensors([]IO{floatOut}, n), tensors([]IO{byteIn}, n)
				for i := range in[0].U8 {
					in[0].U8[i] = uint8(rng.Uint32())
				}
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(4) == 0 {
					go cancel()
				}
				_, err := b.run(ctx, out, in)
				cancel()
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					clear(out[0].F32)
					clear(in[0].U8)
					continue
				}
				for i, v := range out[0].F32 {
					if want := float32(in[0].U8[2*i]) + float32(in[0].U8[2*i+1]); v != want {
						t.Errorf("%v, want %v", v, want)
					}
				}
			}
		})
	}
	wg.Wait()
	b.close()
	for _, n := range d.sizes() {
		require.LessOrEqual(t, n, most)
		require.Positive(t, n)
	}
}
