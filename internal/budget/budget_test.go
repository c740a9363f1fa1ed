package budget

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCharge(t *testing.T) {
	b := New(t.Context(), 10)
	require.NoError(t, b.Charge(4))
	require.NoError(t, b.Charge(6))
	require.NoError(t, b.Charge(0))
	require.Equal(t, int64(10), b.Used())
	require.ErrorIs(t, b.Charge(1), ErrExceeded)
	require.ErrorIs(t, b.Charge(0), ErrExceeded, "an error is final")
	b.Grow(100)
	require.ErrorIs(t, b.Charge(0), ErrExceeded, "an error is final")
}

func TestChargeOutOfRange(t *testing.T) {
	for _, units := range []int64{-1, math.MinInt64, 11, math.MaxInt64} {
		b := New(t.Context(), 10)
		require.ErrorIs(t, b.Charge(units), ErrExceeded, "%d", units)
	}
}

func TestGrow(t *testing.T) {
	b := New(t.Context(), math.MaxInt64-1)
	b.Grow(math.MaxInt64)
	b.Grow(-5)
	require.NoError(t, b.Charge(math.MaxInt64))
	require.ErrorIs(t, b.Charge(1), ErrExceeded)
}

func TestContextEndsTheBudget(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := New(ctx, math.MaxInt64)
	require.NoError(t, b.Charge(1))
	cancel()
	charges := 0
	var err error
	for err == nil {
		err = b.Charge(1)
		charges++
	}
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, charges, lookEvery+1)
	require.ErrorIs(t, b.Charge(0), context.Canceled, "the first error is final")
}
