package tiles

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// countTask counts how often each tile runs.
type countTask []atomic.Int32

func (c countTask) Run(tile int, _ *Scratch) { c[tile].Add(1) }

func (c countTask) requireOnce(t *testing.T) {
	t.Helper()
	for i := range c {
		require.Equal(t, int32(1), c[i].Load(), "tile %d of %d", i, len(c))
	}
}

func TestEveryTileRunsOnce(t *testing.T) {
	w := Start(4, Size{})
	defer w.Stop()
	for round := range 3000 {
		c := make(countTask, 1+round%17)
		require.NoError(t, w.Do(c, len(c)))
		c.requireOnce(t)
	}
}

// TestWorkersSleepAndWake leaves time between tasks for the workers to sleep.
func TestWorkersSleepAndWake(t *testing.T) {
	w := Start(4, Size{})
	defer w.Stop()
	for range 20 {
		require.Eventually(t, func() bool { return w.sleepers.Load() == 3 }, time.Minute, time.Millisecond)
		c := make(countTask, 7)
		require.NoError(t, w.Do(c, len(c)))
		c.requireOnce(t)
	}
}

// slowTask makes the submitter sleep until the last tile is done.
type slowTask struct{ done atomic.Int32 }

func (s *slowTask) Run(tile int, _ *Scratch) {
	if tile > 0 {
		time.Sleep(3 * time.Millisecond)
	}
	s.done.Add(1)
}

func TestSubmitterSleepsUntilTheLastTile(t *testing.T) {
	w := Start(3, Size{})
	defer w.Stop()
	for range 20 {
		var s slowTask
		require.NoError(t, w.Do(&s, 3))
		require.Equal(t, int32(3), s.done.Load())
	}
}
