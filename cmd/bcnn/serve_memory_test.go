//go:build !wasm

package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is in use and what is taken are of different moments: their difference is no baseline, and
// does not become one by chance, however long the server is busy. A model that is loaded meanwhile
// does.
func TestBaseline(t *testing.T) {
	const mib = 1 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	var b baseline
	require.EqualValues(t, 10*mib, b.next(10*mib, 0))
	require.EqualValues(t, 8*mib, b.next(8*mib, mib-1), "quiet, it is what there is")
	busy := func(models int64) int64 {
		taken := int64(250+rng.IntN(130)) * mib
		return b.next(models+taken+int64(rng.IntN(161)-80)*mib, taken)
	}
	for range 3600 {
		base := busy(8 * mib)
		require.GreaterOrEqual(t, base, int64(8*mib))
		require.Less(t, base, int64(80*mib))
	}
	sum := int64(0)
	for i := range 120 {
		if base := busy(208 * mib); i >= 20 {
			sum += base
		}
	}
	require.InDelta(t, 208*mib, sum/100, 15*mib)
	require.EqualValues(t, 9*mib, b.next(9*mib, 0), "and quiet again at once")
}
