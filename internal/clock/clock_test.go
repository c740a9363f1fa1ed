package clock

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestResolution: among many readings that follow each other some are not much apart, and
// time passes.
func TestResolution(t *testing.T) {
	readings := make([]Instant, 100_000)
	for i := range readings {
		readings[i] = Now()
	}
	require.True(t, slices.IsSorted(readings))
	least := time.Hour
	for i, r := range readings[1:] {
		if d := time.Duration(r - readings[i]); d > 0 {
			least = min(least, d)
		}
	}
	t.Logf("the least difference is %v", least)
	// The clock of package time moves by 500 µs on Windows; nothing is promised of how fast
	// this machine is.
	require.Less(t, least, 100*time.Microsecond)
}

func TestSinceIsNotZero(t *testing.T) {
	require.Equal(t, time.Duration(1), Since(Now()+Instant(time.Hour)))
	for range 1000 {
		require.Positive(t, Since(Now()))
	}
	start := Now()
	time.Sleep(20 * time.Millisecond)
	require.GreaterOrEqual(t, Since(start), 10*time.Millisecond)
}

func TestNoAllocation(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { Since(Now()) }))
}

// TestNanoseconds compares with integers of any size, for the frequencies that Windows has:
// 10 MHz, that of ACPI's timer, of the time stamp counter, of arm64.
func TestNanoseconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, frequency := range []int64{10_000_000, 3_579_545, 3_000_000_000, 19_200_000, 24_000_000, 1} {
		for _, seconds := range []int64{0, 1, 3600, 30 * 365 * 86400} {
			ticks := seconds*frequency + rng.Int64N(frequency)
			want := new(big.Int).Mul(big.NewInt(ticks), big.NewInt(1_000_000_000))
			want.Div(want, big.NewInt(frequency))
			require.Equal(t, want.Int64(), nanoseconds(ticks, frequency), "%d ticks of %d Hz", ticks, frequency)
		}
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
