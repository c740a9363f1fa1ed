package weights

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

func never() bool { return false }

// value returns a function that makes a slice of n and counts how often.
func value(calls *atomic.Int32, n int) func() []int {
	return func() []int { calls.Add(1); return []int{n} }
}

func TestShare(t *testing.T) {
	plan, other := &plan.Plan{}, &plan.Plan{}
	var calls atomic.Int32
	p := Of(plan, "avx2")
	require.Same(t, p, Of(plan, "avx2"))
	first := Share(p, 3, never, value(&calls, 1))
	second := Share(p, 3, never, value(&calls, 2))
	require.Same(t, &first[0], &second[0])
	require.Equal(t, int32(1), calls.Load())
	// What has another step, type, instruction set or plan is something else.
	require.Equal(t, []int{3}, Share(p, 4, never, value(&calls, 3)))
	require.Equal(t, "text", Share(p, 3, never, func() string { return "text" }))
	require.Equal(t, []int{4}, Share(Of(plan, "neon"), 3, never, value(&calls, 4)))
	require.Equal(t, []int{5}, Share(Of(other, "avx2"), 3, never, value(&calls, 5)))
	runtime.KeepAlive(p)
}

func TestIncompleteValuesAreNotKept(t *testing.T) {
	p := Of(&plan.Plan{}, "")
	var calls atomic.Int32
	require.Equal(t, []int{1}, Share(p, 0, func() bool { return true }, value(&calls, 1)))
	require.Equal(t, []int{2}, Share(p, 0, never, value(&calls, 2)))
	require.Equal(t, []int{2}, Share(p, 0, func() bool { return true }, value(&calls, 3)))
}

func TestOneMakesWhatManyAskFor(t *testing.T) {
	plan := &plan.Plan{}
	var calls atomic.Int32
	var wg sync.WaitGroup
	p := Of(plan, "")
	for range 16 {
		wg.Go(func() {
			for step := range 100 {
				if got := Share(Of(plan, ""), step, never, value(&calls, step)); got[0] != step {
					t.Errorf("step %d has the value of step %d", step, got[0])
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(100), calls.Load())
	runtime.KeepAlive(p)
}

// TestNothingStays makes weights that nobody holds, and makes sure that neither they nor
// their names stay.
func TestNothingStays(t *testing.T) {
	for i := range 100 {
		plan := &plan.Plan{}
		for range 3 {
			Share(Of(plan, "avx2"), i, never, func() []byte { return make([]byte, 1<<20) })
		}
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		plans.Lock()
		defer plans.Unlock()
		return len(plans.of) == 0
	}, time.Minute, time.Millisecond)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	require.Less(t, m.HeapAlloc, uint64(50<<20))
}
