package cpu

import (
	"bytes"
	"sync"
	"time"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/internal/clock"
)

var _ driver.PeakMeter = device{}

// Peak measures on registers and the L1 cache alone: the greatest rate of several
// rounds.
func (device) Peak(c driver.Config) (float64, error) {
	set, err := sets.Lookup(c.ISA)
	if err != nil {
		return 0, err
	}
	return best(c.Threads, func(int) float64 { return peakRound(set.Peak, set.PeakProducts, roundTime) }), nil
}

// Bandwidth measures how fast memory of the given size is read: each thread
// reads its share of it, from whichever cache holds that, or from memory. The
// greatest rate of several rounds.
func (device) Bandwidth(c driver.Config, size int64) (float64, error) {
	// The first cache holds anything up to the smallest, none the largest.
	const smallest, largest = 4096, 256 << 20
	shares := make([][]byte, c.Threads)
	for t := range shares {
		shares[t] = make([]byte, max(min(size, largest)/int64(c.Threads), smallest))
		for i := range shares[t] {
			shares[t][i] = 1 // so that each page is there
		}
	}
	return best(c.Threads, func(t int) float64 { return readRound(shares[t], roundTime) }), nil
}

// roundTime is shorter than the time slices of most schedulers, so that on a
// busy machine some rounds pass undisturbed.
const roundTime = time.Millisecond

// best returns the greatest sum of the rates of the threads over some rounds.
func best(threads int, round func(thread int) float64) float64 {
	const rounds = 20
	best := 0.0
	for range rounds {
		rates := make([]float64, threads)
		var done sync.WaitGroup
		for t := range rates {
			done.Add(1)
			go func() {
				defer done.Done()
				rates[t] = round(t)
			}()
		}
		done.Wait()
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		best = max(best, sum)
	}
	return best
}

// readRound returns the bytes per second that one thread reads over a duration:
// it compares the halves of b, which are equal. That is the fastest loop over
// memory in Go's library, assembly on all processors that matter.
func readRound(b []byte, d time.Duration) float64 {
	half := len(b) / 2
	times := 1 + 1<<18/len(b) // so that reading the clock costs nothing
	n := 0
	start := clock.Now()
	for clock.Since(start) < d {
		for range times {
			if !bytes.Equal(b[:half], b[half:2*half]) {
				return 0
			}
		}
		n += times
	}
	return float64(n) * float64(2*half) / clock.Since(start).Seconds()
}

// peakRound returns the rate of one thread over a duration, in which it runs a
// loop of so many products.
func peakRound(loop func(rounds int), products int, d time.Duration) float64 {
	// Long enough that reading the clock costs nothing.
	rounds := 1 + 1<<23/products
	n := 0
	start := clock.Now()
	for clock.Since(start) < d {
		loop(rounds)
		n += rounds
	}
	return float64(n) * float64(products) / clock.Since(start).Seconds()
}
