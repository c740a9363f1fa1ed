package peak

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w [words]uint64
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

func TestXorPopcount(t *testing.T) {
	for _, threads := range []int{1, 2} {
		require.Positive(t, XorPopcount(threads))
	}
}

func BenchmarkDifferences(b *testing.B) {
	var w [words]uint64
	sum := 0
	for b.Loop() {
		sum += differences(&w, [4]uint64{1, 2, 3, 4})
	}
	b.ReportMetric(float64(words*4*64)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
	_ = sum
}
