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

// relay adds to what tiles of the task before it wrote, each with plain loads and
// stores: every tile reads what another one, mostly by another worker, has left.
type relay struct {
	from, to []uint64
	wrong    atomic.Int32
	round    uint64
}

const relayWords = 64

func (r *relay) Run(tile int, _ *Scratch) {
	tiles := len(r.to) / relayWords
	from := r.from[(tile+1)%tiles*relayWords:][:relayWords]
	to := r.to[tile*relayWords:][:relayWords]
	for i, v := range from {
		if v != r.round*relayWords+uint64(i) {
			r.wrong.Add(1)
		}
		to[i] = (r.round+1)*relayWords + uint64(i)
	}
}

// TestTilesSeeTheTaskBefore hands memory from task to task, without pauses, so that
// workers spin, and with some, so that they sleep: on processors that reorder loads and
// stores only the hand-over itself orders them.
func TestTilesSeeTheTaskBefore(t *testing.T) {
	const tiles = 13
	w := Start(4, Size{})
	defer w.Stop()
	from, to := make([]uint64, tiles*relayWords), make([]uint64, tiles*relayWords)
	for i := range from {
		from[i] = uint64(i % relayWords)
	}
	for round := range uint64(3000) {
		r := relay{from: from, to: to, round: round}
		require.NoError(t, w.Do(&r, tiles))
		require.Zero(t, r.wrong.Load(), "round %d", round)
		for i, v := range to { // and so does the submitter
			if want := (round+1)*relayWords + uint64(i%relayWords); v != want {
				t.Fatalf("round %d, word %d: %d, want %d", round, i, v, want)
			}
		}
		from, to = to, from
		if round%500 == 0 {
			require.Eventually(t, func() bool { return w.sleepers.Load() == 3 }, time.Minute, time.Millisecond)
		}
	}
}

// heldTask has one tile that takes until all others are done.
type heldTask struct {
	left atomic.Int32
	held atomic.Int32
	rest chan struct{}
}

func (h *heldTask) Run(int, *Scratch) {
	if h.held.CompareAndSwap(0, 1) {
		<-h.rest
		return
	}
	if h.left.Add(-1) == 0 {
		close(h.rest)
	}
}

// TestSlowWorkersTakeFewTiles holds one worker on a tile: the others do all that is left,
// as fast cores do beside slow ones.
func TestSlowWorkersTakeFewTiles(t *testing.T) {
	w := Start(3, Size{})
	defer w.Stop()
	for range 100 {
		h := heldTask{rest: make(chan struct{})}
		h.left.Store(15)
		require.NoError(t, w.Do(&h, 16))
	}
}
