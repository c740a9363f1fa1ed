package generic

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w [peakWords]uint64
	var x [4]uint64
	for i := range w {
		w[i] = rng.Uint64()
	}
	for i := range x {
		x[i] = rng.Uint64()
	}
	want := 0
	for _, v := range w {
		for _, y := range x {
			for bit := range 64 {
				if v>>bit&1 != y>>bit&1 {
					want++
				}
			}
		}
	}
	require.Equal(t, want, differences(&w, x))
}
