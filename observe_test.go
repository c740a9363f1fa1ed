package bitcnn

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/clock"
)

// observations collects what a session says of its Runs.
type observations struct {
	mu   sync.Mutex
	list []Observation
}

func (o *observations) add(seen Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, seen)
}

// observedSession is a session on what batches run on in tests, a run of which takes runTime.
func observedSession(t *testing.T, d *device, o *observations, most int) *Session {
	cpu, err := backend.Open("cpu")
	require.NoError(t, err)
	net := &Model{Name: "sum", Inputs: []bcnn.Input{{Shape: byteIn.Shape, DType: byteIn.DType}}}
	net.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: []float32{1, 1}}})
	program, err := lower.Compile(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	checker, err := cpu.Compile(t.Context(), program.Plan, backend.Options{MaxBatch: most, Threads: 1})
	require.NoError(t, err)
	require.NoError(t, checker.Close())
	s := &Session{
		inputs: []IO{byteIn}, outputs: []IO{floatOut}, maxBatch: most, observe: o.add,
		engines: &engines{first: &engine{Executable: checker}},
	}
	s.batcher = newBatcher(batchConfig{
		max: most, delay: testDelay, workers: 1, alarm: timerAlarm,
		tensors: func() (out, in []Tensor) { return tensors([]IO{floatOut}, most), tensors([]IO{byteIn}, most) },
		execute: func(ctx context.Context, out, in []Tensor) (deviceRun, error) {
			began := clock.Now()
			time.Sleep(runTime)
			seen, err := d.run(ctx, out, in)
			seen.began, seen.running = began, clock.Since(began)
			return seen, err
		},
	})
	return s
}

const runTime = 3 * testDelay

// Two Runs that share a batch are observed as one run of the device, each with the time that
// it has waited itself.
func TestObservationsOfABatch(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the clock of package clock is the system's there, not that of package synctest")
	}
	synctest.Test(t, func(t *testing.T) {
		var o observations
		s := observedSession(t, &device{}, &o, 8)
		run := func(ctx context.Context, n int) error {
			return s.Run(ctx, tensors(s.outputs, n), tensors(s.inputs, n))
		}
		var wg sync.WaitGroup
		s.batcher.expect(3)
		wg.Go(func() { require.NoError(t, run(t.Context(), 3)) })
		time.Sleep(testDelay / 4)
		wg.Go(func() { require.NoError(t, run(t.Context(), 2)) })
		wg.Wait()
		require.ElementsMatch(t, []Observation{
			{Images: 3, Batch: 5, First: true, Waiting: testDelay, Running: runTime},
			{Images: 2, Batch: 5, Waiting: 3 * testDelay / 4, Running: runTime},
		}, o.list)

		o.list = nil
		ctx, cancel := context.WithTimeout(t.Context(), testDelay/2)
		defer cancel()
		s.batcher.expect(3)
		require.ErrorIs(t, run(ctx, 1), context.DeadlineExceeded)
		require.ErrorIs(t, run(t.Context(), 9), ErrShape)
		require.Equal(t, []Observation{{Images: 1, Waiting: testDelay / 2, Err: context.DeadlineExceeded}}, o.list,
			"a Run that never reached the device, and none for arguments that do not fit")
		s.batcher.close()
	})
}

// Runs without BatchDelay are runs of the device, one for one.
func TestObservations(t *testing.T) {
	var o observations
	s := open(t, binaryNet(), Options{Device: "cpu", MaxBatch: 4, Observe: o.add})
	require.Empty(t, o.list, "the first run of Open is nobody's")
	for _, n := range []int{1, 4, 2} {
		_, err := s.Predict(t.Context(), NewTensor(Uint8, n, s.inputs[0].Shape))
		require.NoError(t, err)
		last := o.list[len(o.list)-1]
		require.Positive(t, last.Running)
		require.GreaterOrEqual(t, last.Waiting, time.Duration(0))
		last.Running, last.Waiting = 0, 0
		require.Equal(t, Observation{Images: n, Batch: n, First: true}, last)
	}
	require.NoError(t, s.Close())
	_, err := s.Predict(t.Context(), NewTensor(Uint8, 1, s.inputs[0].Shape))
	require.ErrorIs(t, err, ErrClosed)
	require.Equal(t, 0, o.list[3].Batch)
	require.ErrorIs(t, o.list[3].Err, ErrClosed)
}
