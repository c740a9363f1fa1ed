package budget

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoop(t *testing.T) {
	for _, n := range []int{-1, 0, 1, block - 1, block, block + 1, 3*block + 7} {
		b := New(t.Context(), math.MaxInt64)
		next := 0
		require.NoError(t, b.Loop(n, func(lo, hi int) {
			require.Equal(t, next, lo)
			require.Greater(t, hi, lo)
			require.LessOrEqual(t, hi-lo, block)
			next = hi
		}))
		require.Equal(t, max(n, 0), next)
		require.EqualValues(t, max(n, 0), b.Used())
	}
}

func TestLoopEnds(t *testing.T) {
	b := New(t.Context(), 2*block)
	done := 0
	require.ErrorIs(t, b.Loop(3*block, func(_, hi int) { done = hi }), ErrExceeded)
	require.Equal(t, 2*block, done)

	ctx, cancel := context.WithCancel(t.Context())
	b = New(ctx, math.MaxInt64)
	err := b.Loop(math.MaxInt, func(lo, hi int) {
		cancel()
		done = hi
	})
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, done, lookEvery+block)
}

func TestList(t *testing.T) {
	for _, n := range []int{0, 1, block + 1} {
		b := New(t.Context(), math.MaxInt64)
		list, err := List(b, n, func(i int) int32 { return int32(2 * i) })
		require.NoError(t, err)
		require.Len(t, list, n)
		require.Equal(t, 9*int64(n), b.Used())
		if n > 0 {
			require.Equal(t, int32(2*(n-1)), list[n-1])
		}
		_, err = List(New(t.Context(), 9*int64(n)-1), n, func(i int) int { return i })
		require.Equal(t, n > 0, err != nil)
	}
}
