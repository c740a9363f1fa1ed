package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// smallNet has the shape of VehicleNet, smaller, and work for several threads.
func smallNet(seed uint64) *planner {
	p := newPlanner(seed, input(bcnn.Uint8, 32, 32, 3))
	pool := &bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
	five := bcnn.Window{KH: 5, KW: 5, Pad: bcnn.Padding{Top: 2, Left: 2, Bottom: 2, Right: 2}}
	p.conv(convOptions{window: five, out: 32, pool: pool})
	p.conv(convOptions{window: five, out: 32, pool: pool})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 8, KW: 8}, out: 100})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 1, KW: 1}, out: 6, float: true})
	return p
}

// floatNet has every kind of step that smallNet lacks.
func floatNet(seed uint64) *planner {
	p := newPlanner(seed, input(bcnn.Float32, 12, 12, 5))
	s := bcnn.Shape{H: 12, W: 12, C: 5}
	p.step("affine", &bcnn.AffineStep{Scale: p.floats(5), Shift: p.floats(5)}, bcnn.Float32, s)
	p.step("add", &bcnn.AddStep{ReLU: true}, bcnn.Float32, s, 0)
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3}, out: 20, float: true})
	p.sign()
	p.step("pool", &bcnn.MaxPoolStep{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}, bcnn.Bits, bcnn.Shape{H: 5, W: 5, C: 20})
	p.step("flatten", &bcnn.FlattenStep{}, bcnn.Bits, bcnn.Shape{H: 1, W: 1, C: 500})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 1, KW: 1}, out: 9, float: true})
	return p
}

func binarizedNet(seed uint64) *planner {
	p := newPlanner(seed, input(bcnn.Uint8, 20, 20, 3))
	p.step("lbp", &bcnn.BinarizeStep{Scheme: bcnn.SchemeLBP}, bcnn.Bits, bcnn.Shape{H: 20, W: 20, C: 3})
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1}}, out: 70, padValue: 1})
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3}, out: 70, groups: 7, float: true})
	return p
}

var nets = map[string]func(uint64) *planner{"small": smallNet, "float": floatNet, "binarized": binarizedNet}

// compiled is an executable with a batch for it.
type compiled struct {
	backend.Executable
	in, out, want bcnn.Tensor
}

func compileFor(t testing.TB, p *planner, opts backend.Options, n int) compiled {
	plan := p.done()
	opts.MaxBatch = max(opts.MaxBatch, n)
	exe, err := Device().Compile(t.Context(), plan, opts)
	require.NoError(t, err)
	t.Cleanup(func() { exe.Close() })
	c := compiled{Executable: exe, in: p.input(n), out: bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape())}
	c.want, err = ref.Run(t.Context(), plan, c.in, nil)
	require.NoError(t, err)
	return c
}

func (c compiled) run() error { return c.Run(context.Background(), c.out, c.in) }

func TestRunDoesNotAllocate(t *testing.T) {
	for name, net := range nets {
		for _, threads := range []int{1, 2, 3} {
			for _, n := range []int{1, 4} {
				t.Run(fmt.Sprintf("%s/threads=%d/batch=%d", name, threads, n), func(t *testing.T) {
					c := compileFor(t, net(1), backend.Options{Threads: threads}, n)
					ctx := context.Background()
					require.Zero(t, testing.AllocsPerRun(20, func() {
						if err := c.Run(ctx, c.out, c.in); err != nil {
							t.Error(err)
						}
					}))
					requireSame(t, c.want, c.out, "output")
				})
			}
		}
	}
}

func TestExecutablesRunAtTheSameTime(t *testing.T) {
	var group sync.WaitGroup
	for seed := range uint64(4) {
		for _, net := range nets {
			c := compileFor(t, net(seed), backend.Options{Threads: 1 + int(seed)%3}, 2)
			group.Add(1)
			go func() {
				defer group.Done()
				for range 10 {
					if err := c.run(); err != nil {
						t.Error(err)
					}
				}
			}()
			t.Cleanup(func() { requireSame(t, c.want, c.out, "output") })
		}
	}
	group.Wait()
}

// TestWorkersSleepAndWake leaves time between runs for the workers to sleep.
func TestWorkersSleepAndWake(t *testing.T) {
	c := compileFor(t, smallNet(1), backend.Options{Threads: 4}, 1)
	workers := c.Executable.(*executable).pool
	for range 5 {
		clear(c.out.F32)
		require.NoError(t, c.run())
		requireSame(t, c.want, c.out, "output")
		require.Eventually(t, func() bool { return workers.sleepers.Load() == 3 }, time.Minute, time.Millisecond)
	}
}

// countTask counts how often each tile runs.
type countTask []atomic.Int32

func (c countTask) run(tile int, _ *scratch) { c[tile].Add(1) }

func TestPoolRunsEveryTileOnce(t *testing.T) {
	p := newPool(4, scratchSize{})
	defer p.stop()
	for round := range 3000 {
		tiles := 1 + round%17
		c := make(countTask, tiles)
		p.do(c, tiles)
		for i := range c {
			require.Equal(t, int32(1), c[i].Load(), "tile %d of %d in round %d", i, tiles, round)
		}
	}
}

// slowTask makes the submitter sleep until the last tile is done.
type slowTask struct{ done atomic.Int32 }

func (s *slowTask) run(tile int, _ *scratch) {
	if tile > 0 {
		time.Sleep(3 * time.Millisecond)
	}
	s.done.Add(1)
}

func TestSubmitterSleepsUntilTheLastTile(t *testing.T) {
	p := newPool(3, scratchSize{})
	defer p.stop()
	for range 20 {
		var s slowTask
		p.do(&s, 3)
		require.Equal(t, int32(3), s.done.Load())
	}
}

func TestClose(t *testing.T) {
	for _, threads := range []int{1, 3} {
		c := compileFor(t, smallNet(1), backend.Options{Threads: threads}, 1)
		require.NoError(t, c.run())
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.run(), backend.ErrClosed)
		require.NoError(t, c.Close())
	}
}

func TestCloseWaitsForRun(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	c := compileFor(t, smallNet(1), backend.Options{Threads: 2, Tap: func(step int, _ string, _ bcnn.Tensor) {
		if step == 0 {
			close(started)
			<-release
		}
	}}, 1)
	ran, closed := make(chan error, 1), make(chan error, 1)
	go func() { ran <- c.run() }()
	<-started
	go func() { closed <- c.Close() }()
	select {
	case <-closed:
		t.Fatal("Close returned while a step was running")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	require.NoError(t, <-ran)
	require.NoError(t, <-closed)
	requireSame(t, c.want, c.out, "output")
	require.ErrorIs(t, c.run(), backend.ErrClosed)
}

func TestCloseDuringRuns(t *testing.T) {
	for range 20 {
		c := compileFor(t, smallNet(1), backend.Options{Threads: 3}, 1)
		var group sync.WaitGroup
		group.Add(3)
		for range 2 {
			go func() {
				defer group.Done()
				c.Close()
			}()
		}
		go func() {
			defer group.Done()
			for {
				if err := c.run(); err != nil {
					if !errors.Is(err, backend.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		}()
		group.Wait()
	}
}

func TestCloseLeavesNoGoroutines(t *testing.T) {
	// Other tests' executables must be gone first: Cleanup closes them.
	before := runtime.NumGoroutine()
	for range 50 {
		p := smallNet(1)
		exe, err := Device().Compile(t.Context(), p.done(), backend.Options{Threads: 5})
		require.NoError(t, err)
		require.NoError(t, exe.Run(context.Background(), bcnn.NewTensor(bcnn.Float32, 1, p.plan.OutputShape()), p.input(1)))
		require.NoError(t, exe.Close())
	}
	// A goroutine is counted until a moment after it has said that it is done.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

func TestFailedCompileLeavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	_, err := Device().Compile(t.Context(), &bcnn.Plan{}, backend.Options{Threads: 8})
	require.Error(t, err)
	require.Equal(t, before, runtime.NumGoroutine())
}

func TestContextEndsRunBetweenSteps(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	last := -1
	c := compileFor(t, smallNet(1), backend.Options{Tap: func(step int, _ string, _ bcnn.Tensor) {
		if last = step; step == 1 {
			cancel()
		}
	}}, 1)
	require.ErrorIs(t, c.Run(ctx, c.out, c.in), context.Canceled)
	require.Equal(t, 1, last)
	require.NoError(t, c.run()) // it stays usable
	requireSame(t, c.want, c.out, "output")
}

func TestTimedNamesEveryStep(t *testing.T) {
	p := smallNet(1)
	var names []string
	c := compileFor(t, p, backend.Options{Threads: 2, Timed: func(step int, name string, d time.Duration) {
		require.Equal(t, len(names), step)
		require.Positive(t, d)
		names = append(names, name)
	}}, 1)
	require.NoError(t, c.run())
	require.Len(t, names, len(p.plan.Steps))
	require.Equal(t, p.plan.Steps[0].Name, names[0])
}

func TestRunChecksTensors(t *testing.T) {
	p := smallNet(1)
	c := compileFor(t, p, backend.Options{MaxBatch: 2}, 2)
	shape, in, out := p.plan.OutputShape(), p.plan.Input.Shape, c.out
	other := in
	other.H++
	short := c.in
	short.U8 = short.U8[:len(short.U8)-1]
	for name, tensors := range map[string][2]bcnn.Tensor{
		"batch too large":   {bcnn.NewTensor(bcnn.Float32, 3, shape), bcnn.NewTensor(bcnn.Uint8, 3, in)},
		"batch of none":     {bcnn.NewTensor(bcnn.Float32, 0, shape), bcnn.NewTensor(bcnn.Uint8, 0, in)},
		"negative batch":    {{DType: bcnn.Float32, N: -1, Shape: shape}, {DType: bcnn.Uint8, N: -1, Shape: in}},
		"different batches": {out, bcnn.NewTensor(bcnn.Uint8, 1, in)},
		"input type":        {out, bcnn.NewTensor(bcnn.Float32, 2, in)},
		"input shape":       {out, bcnn.NewTensor(bcnn.Uint8, 2, other)},
		"input too short":   {out, short},
		"output type":       {bcnn.NewTensor(bcnn.Uint8, 2, shape), c.in},
		"output shape":      {bcnn.NewTensor(bcnn.Float32, 2, other), c.in},
		"nothing":           {{}, {}},
	} {
		err := c.Run(context.Background(), tensors[0], tensors[1])
		require.ErrorIs(t, err, backend.ErrShape, name)
		require.ErrorContains(t, err, "cpu: run: ", name)
	}
	require.NoError(t, c.run())
	requireSame(t, c.want, c.out, "output")
}
