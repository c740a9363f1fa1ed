package cpu

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/clock"
)

func TestMeters(t *testing.T) {
	for _, isa := range sets.Names() {
		rate, err := Device().Peak(backend.Options{ISA: isa, Threads: 2})
		require.NoError(t, err)
		require.Greater(t, rate, 1e6, isa) // the slowest kernels make billions
		require.Less(t, rate, 1e15, isa)
	}
	_, err := Device().Peak(backend.Options{ISA: "8080"})
	require.ErrorContains(t, err, "8080")

	for _, size := range []int64{1, 4097, 1 << 20} {
		rate, err := Device().Bandwidth(backend.Options{Threads: 2}, size)
		require.NoError(t, err)
		require.Greater(t, rate, 1e7, size)
		require.Less(t, rate, 1e14, size)
	}
	_, err = Device().Bandwidth(backend.Options{}, -1)
	require.ErrorContains(t, err, "-1 bytes")
}

// The loops read whole shares, over and over. A round that has no time reads nothing.
func TestReadRound(t *testing.T) {
	b := make([]byte, 8192)
	times := 0
	read := func(got []byte) {
		require.Equal(t, len(b), len(got))
		times++
	}
	require.Zero(t, readRound(read, b, 0))
	require.Zero(t, times)
	require.Positive(t, readRound(read, b, time.Millisecond))
	require.GreaterOrEqual(t, times, 1+1<<18/len(b))
}

// All is read once, whatever the order.
func TestInTurn(t *testing.T) {
	for n := 1; n <= 11; n++ {
		b := make([]byte, n*kern.ReadBytes)
		inTurn(func(b []byte) {
			for i := range b {
				b[i]++
			}
		})(b)
		require.Equal(t, bytes.Repeat([]byte{1}, len(b)), b, n)
	}
}

// The times of steps are between their begins and their ends.
func TestStepTimes(t *testing.T) {
	plan := residual(8, 8, 64).done()
	start, sum, steps := clock.Now(), time.Duration(0), 0
	exe, err := Device().Compile(t.Context(), plan, backend.Options{Timed: func(_ int, _ string, took time.Duration) {
		require.GreaterOrEqual(t, took, time.Duration(0))
		sum, steps = sum+took, steps+1
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, exe.Close()) }()
	require.NoError(t, exe.Run(t.Context(), []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())}, []bcnn.Tensor{backendtest.RandomImages(1, 1, plan.Inputs[0])}))
	require.Equal(t, len(plan.Steps), steps)
	require.Less(t, sum, clock.Since(start))
}

// The best round counts, as the sum of what its threads reach.
func TestBest(t *testing.T) {
	var mutex sync.Mutex
	rounds := [3]int{} // of each thread
	got := best(3, func(thread int) float64 {
		mutex.Lock()
		defer mutex.Unlock()
		rounds[thread]++
		if rounds[thread] == 4 {
			return []float64{100, 20, 3}[thread]
		}
		return float64(thread)
	})
	require.Equal(t, 123.0, got)
	require.Equal(t, rounds[0], rounds[1])
	require.Equal(t, rounds[0], rounds[2])
	require.GreaterOrEqual(t, rounds[0], 4)
	require.Zero(t, best(2, func(int) float64 { return 0 }))
}

// A rate is what was done by the time that it took, which is no less than was asked for.
func TestRounds(t *testing.T) {
	const least = 20 * time.Millisecond
	for _, products := range []int{1 << 20, 3 << 21, 1 << 24} {
		done, calls := 0, 0
		start := clock.Now()
		rate := peakRound(kern.Peak{Products: products, Run: func(rounds int) {
			require.Positive(t, rounds)
			done, calls = done+rounds, calls+1
			time.Sleep(time.Millisecond)
		}}, least)
		took := clock.Since(start)
		require.GreaterOrEqual(t, took, least)
		require.Positive(t, calls)
		all := float64(done) * float64(products)
		require.LessOrEqual(t, rate, all/least.Seconds())
		require.GreaterOrEqual(t, rate, all/took.Seconds())
		require.GreaterOrEqual(t, done/calls*products, 1<<23, "a call is long enough")
	}
	for _, size := range []int{2, 3, 4096, 4097, 1 << 20} {
		done := 0
		start := clock.Now()
		rate := readRound(func(b []byte) { done += len(b) }, make([]byte, size), least)
		took := clock.Since(start)
		require.GreaterOrEqual(t, took, least)
		require.LessOrEqual(t, rate, float64(done)/least.Seconds())
		require.GreaterOrEqual(t, rate, float64(done)/took.Seconds())
	}
}
