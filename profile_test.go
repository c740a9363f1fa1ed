package bitcnn

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A session says what its steps are, and measures each.
func TestProfile(t *testing.T) {
	s := open(t, bundled(t, "digits"), Options{Device: "cpu", MaxBatch: 2})
	steps, choices := s.Steps(), s.Explain()
	require.Len(t, steps, len(s.engines.plan.Steps))
	for i, step := range steps {
		require.Equal(t, choices[i], step.Choice)
		require.Equal(t, s.engines.plan.Steps[i].Name, step.Name)
		require.Equal(t, s.engines.plan.Steps[i].Kind(), step.Kind)
	}
	in := tensors(s.inputs, 2)
	for _, runs := range []int{1, 4} {
		times, err := s.Profile(t.Context(), runs, in...)
		require.NoError(t, err)
		require.Len(t, times, len(steps))
		for i, took := range times {
			require.Equal(t, steps[i].Name, took.Name)
			require.Positive(t, took.Min)
			require.GreaterOrEqual(t, took.Median, took.Min)
		}
	}
	for _, runs := range []int{-1, 0, maxProfile + 1} {
		_, err := s.Profile(t.Context(), runs, in...)
		require.ErrorContains(t, err, "runs, want 1 to 1000000")
	}
	_, err := s.Profile(t.Context(), 1)
	require.ErrorIs(t, err, ErrShape)
	_, err = s.Profile(t.Context(), 1, tensors(s.inputs, 3)...)
	require.ErrorIs(t, err, ErrShape)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Profile(ended, 1, in...)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	require.Empty(t, s.Steps())
	_, err = s.Profile(t.Context(), 1, in...)
	require.ErrorIs(t, err, ErrClosed)
}

// One image is measured with the memory of one, whatever the session may run at once.
func TestProfileTakesTheMemoryOfItsBatch(t *testing.T) {
	allocated := func(maxBatch int) uint64 {
		s := open(t, bundled(t, "vehiclenet"), Options{Device: "cpu", Threads: 1, MaxBatch: maxBatch})
		in := tensors(s.inputs, 1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := s.Profile(t.Context(), 1, in...)
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, allocated(256), 2*allocated(1))
}
