package cpu

import (
	"os"
	"sync"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// Peak measures the products of ±1 values per second that the instruction set
// of opts reaches on registers and the L1 cache alone, on as many threads as
// opts says: the greatest of several rounds.
func (device) Peak(opts backend.Options) (float64, error) {
	set, err := kern.Lookup(opts.ISA)
	if err != nil {
		return 0, &backend.Error{Device: deviceID, Op: "peak", Err: err}
	}
	threads := opts.Threads
	if threads <= 0 {
		threads = availableThreads(os.DirFS("/"))
	}
	const rounds, duration = 8, 5 * time.Millisecond
	best := 0.0
	for range rounds {
		rates := make([]float64, min(threads, maxThreads))
		var done sync.WaitGroup
		for t := range rates {
			done.Add(1)
			go func() {
				defer done.Done()
				rates[t] = peakRound(set, duration)
			}()
		}
		done.Wait()
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		best = max(best, sum)
	}
	return best, nil
}

// peakRound returns the rate of one thread over a duration.
func peakRound(set *kern.Set, d time.Duration) float64 {
	// Long enough that reading the clock costs nothing.
	rounds := 1 + 1<<23/set.PeakProducts
	n := 0
	start := time.Now()
	for time.Since(start) < d {
		set.Peak(rounds)
		n += rounds
	}
	return float64(n) * float64(set.PeakProducts) / time.Since(start).Seconds()
}
