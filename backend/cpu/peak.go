package cpu

import (
	"sync"
	"time"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/internal/clock"
)

var _ driver.PeakMeter = device{}

// Peak measures on registers and the L1 cache alone: the greatest rate of several
// rounds, of the fastest loop.
func (device) Peak(c driver.Config) (float64, error) {
	set, err := sets.Lookup(c.ISA)
	if err != nil {
		return 0, err
	}
	return bestOf(set.Peaks, c.Threads), nil
}

// bestOf returns the rate of the fastest loop.
func bestOf(peaks []kern.Peak, threads int) float64 {
	rate := 0.0
	for _, p := range peaks {
		rate = max(rate, best(threads, func(int) float64 { return peakRound(p, roundTime) }))
	}
	return rate
}

// Bandwidth measures how fast memory of the given size is read: each thread
// reads its share of it, from whichever cache holds that, or from memory. The
// greatest rate of several rounds, from end to end or in turn from several places.
func (device) Bandwidth(c driver.Config, size int64) (float64, error) {
	set, err := sets.Lookup(c.ISA)
	if err != nil {
		return 0, err
	}
	// The first cache holds anything up to the smallest, none the largest.
	const smallest, largest = 2 * kern.ReadBytes, 256 << 20
	shares := make([][]byte, c.Threads)
	for t := range shares {
		share := max(min(size, largest)/int64(c.Threads), smallest)
		shares[t] = make([]byte, share/kern.ReadBytes*kern.ReadBytes)
		for i := range shares[t] {
			shares[t][i] = 1 // so that each page is there
		}
	}
	rate := 0.0
	for _, read := range []func([]byte){set.Read, inTurn(set.Read)} {
		rate = max(rate, best(c.Threads, func(t int) float64 { return readRound(read, shares[t], roundTime) }))
	}
	return rate, nil
}

// inTurn reads from four places in turn, for which some processors fetch more ahead.
func inTurn(read func([]byte)) func([]byte) {
	const places, piece = 4, kern.ReadBytes
	return func(b []byte) {
		part := len(b) / (places * piece) * piece
		for at := 0; at < part; at += piece {
			for place := range places {
				read(b[place*part+at:][:piece])
			}
		}
		if rest := b[places*part:]; len(rest) > 0 {
			read(rest)
		}
	}
}

// roundTime is shorter than the time slices of most schedulers, so that on a
// busy machine some rounds pass undisturbed.
const roundTime = time.Millisecond

// best returns the greatest sum of the rates of the threads over some rounds.
func best(threads int, round func(thread int) float64) float64 {
	const rounds = 8 // callers measure more than once
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

// readRound returns the bytes per second that one thread reads over a duration.
func readRound(read func([]byte), b []byte, d time.Duration) float64 {
	times := 1 + 1<<18/len(b) // so that reading the clock costs nothing
	n := 0
	start := clock.Now()
	for clock.Since(start) < d {
		for range times {
			read(b)
		}
		n += times
	}
	return float64(n) * float64(len(b)) / clock.Since(start).Seconds()
}

// peakRound returns the rate of one thread over a duration.
func peakRound(p kern.Peak, d time.Duration) float64 {
	// Long enough that reading the clock costs nothing.
	rounds := 1 + 1<<23/p.Products
	n := 0
	start := clock.Now()
	for clock.Since(start) < d {
		p.Run(rounds)
		n += rounds
	}
	return float64(n) * float64(p.Products) / clock.Since(start).Seconds()
}
