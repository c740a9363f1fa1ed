// Package peak measures what a processor can do at best, so that a benchmark
// can say which fraction of it a kernel reaches. It has to run in the same
// process, shortly before or after what it is compared with: clock rates and
// the load of a machine change.
package peak

import (
	"math/bits"
	"runtime"
	"sync"
	"time"
)

// words is the number of words that a loop reads: 4 KiB, within the L1 cache
// of any processor.
const words = 512

// XorPopcount returns the multiply-accumulates of ±1 values per second that a
// loop of xor, popcount and add on 64-bit words reaches in Go, with all
// operands in registers and the L1 cache, on the given number of threads
// together: the maximum over rounds of a few milliseconds. One 64-bit word
// counts as 64.
func XorPopcount(threads int) float64 {
	const rounds, duration = 8, 5 * time.Millisecond
	best := 0.0
	for range rounds {
		rates := make([]float64, threads)
		var done sync.WaitGroup
		for t := range rates {
			done.Add(1)
			go func() {
				defer done.Done()
				rates[t] = round(duration)
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

// round returns the rate of one thread over a duration.
func round(d time.Duration) float64 {
	var w [words]uint64
	for i := range w {
		w[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	x := [4]uint64{1, 2, 3, 5}
	const passes = 64
	total, n := 0, 0
	start := time.Now()
	for time.Since(start) < d {
		for range passes {
			total += differences(&w, x)
		}
		n++
	}
	seconds := time.Since(start).Seconds()
	runtime.KeepAlive(total)
	return float64(n) * passes * words * 64 * float64(len(x)) / seconds
}

// differences returns the number of bits in which the words differ from each x.
// Every word that is loaded is used four times, so that the popcounts are the
// bottleneck and not the loads.
func differences(w *[words]uint64, x [4]uint64) int {
	x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
	var s0, s1, s2, s3 int
	for _, v := range w {
		s0 += bits.OnesCount64(v ^ x0)
		s1 += bits.OnesCount64(v ^ x1)
		s2 += bits.OnesCount64(v ^ x2)
		s3 += bits.OnesCount64(v ^ x3)
	}
	return s0 + s1 + s2 + s3
}
