package generic

import (
	"bytes"
	"math/bits"
	"runtime"
)

// peakWords is the number of words that the peak loop reads: 4 KiB, within the
// L1 cache of any processor.
const peakWords = 512

// peakProducts is how many products peak computes in a round.
const peakProducts = peakWords * 64 * 4

// peak is xor, popcount and add on 64-bit words, in Go.
func peak(rounds int) {
	var w [peakWords]uint64
	for i := range w {
		w[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	total := 0
	for range rounds {
		total += differences(&w, [4]uint64{1, 2, 3, 5})
	}
	runtime.KeepAlive(total)
}

// differences returns the number of bits in which the words differ from each x.
// Every word that is loaded is used four times, so that the popcounts are the
// bottleneck and not the loads.
func differences(w *[peakWords]uint64, x [4]uint64) int {
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

// read compares the halves of memory, which goes to their end where they are equal: the fastest
// loop over memory in Go's library, assembly on all processors that matter.
func read(b []byte) {
	runtime.KeepAlive(bytes.Equal(b[:len(b)/2], b[len(b)/2:]))
}
