package parallel

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func processors(t *testing.T, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

func TestForCallsEachOnce(t *testing.T) {
	for _, p := range []int{1, 4} {
		processors(t, p)
		for _, n := range []int{0, 1, 3, 1000} {
			calls := make([]atomic.Int32, n)
			For(n, func(i int) { calls[i].Add(1) })
			for i := range calls {
				require.EqualValues(t, 1, calls[i].Load())
			}
		}
	}
}

// As many calls as there are processors are in progress at once: each waits for
// the others.
func TestForUsesAllProcessors(t *testing.T) {
	processors(t, 4)
	var met sync.WaitGroup
	met.Add(4)
	For(4, func(int) {
		met.Done()
		met.Wait()
	})
}

// A panic of any of the calls is one of the caller, who may recover.
func TestForPanics(t *testing.T) {
	processors(t, 3)
	for which := range 20 {
		require.PanicsWithValue(t, "of the call", func() {
			For(20, func(i int) {
				if i == which {
					panic("of the call")
				}
			})
		})
	}
}

func TestInOrder(t *testing.T) {
	for _, p := range []int{0, 1, 4} {
		for _, n := range []int{0, 1, 2, 100} {
			var inProgress, most atomic.Int32
			var got []int
			err := InOrder(t.Context(), n, p, func(i int) int {
				now := inProgress.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				if i%3 == 0 {
					runtime.Gosched()
				}
				inProgress.Add(-1)
				return i * i
			}, func(i, square int) error {
				got = append(got, i)
				require.Equal(t, i*i, square)
				return nil
			})
			require.NoError(t, err)
			require.Len(t, got, n)
			for i, v := range got {
				require.Equal(t, i, v)
			}
			require.LessOrEqual(t, int(most.Load()), max(p, 1))
		}
	}
}

func TestInOrderProducesAtTheSameTime(t *testing.T) {
	var met sync.WaitGroup
	met.Add(4)
	require.NoError(t, InOrder(t.Context(), 4, 4, func(int) int {
		met.Done()
		met.Wait()
		return 0
	}, func(int, int) error { return nil }))
}

// After an error nothing new begins, and nothing is left running.
func TestInOrderEnds(t *testing.T) {
	failed := errors.New("failed")
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		want    error
		consume func(i, _ int) error
	}{
		{failed, func(i, _ int) error {
			if i == 3 {
				return failed
			}
			return nil
		}},
		{context.Canceled, func(i, _ int) error {
			if i == 3 {
				cancel()
			}
			return nil
		}},
		{context.Canceled, func(int, int) error { return errors.New("not called: the context has ended before") }},
	} {
		var begun, ended, consumed atomic.Int32
		err := InOrder(ctx, 1000, 2, func(int) int {
			begun.Add(1)
			defer ended.Add(1)
			return 0
		}, func(i, v int) error {
			consumed.Add(1)
			return c.consume(i, v)
		})
		require.ErrorIs(t, err, c.want)
		require.Equal(t, begun.Load(), ended.Load())
		require.LessOrEqual(t, consumed.Load(), int32(4))
		require.LessOrEqual(t, begun.Load(), consumed.Load()+4)
	}
}
