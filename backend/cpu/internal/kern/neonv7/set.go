//go:build arm && !purego

// Package neonv7 has the kernels for 32-bit Arm processors with NEON: sums of bits and
// their thresholds. Vectors of float32 values flush subnormal ones to 0 there, so what
// computes with these is plain Go.
package neonv7

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// block is the number of outputs that are summed at a time.
const block = 8

// Set returns the kernels, "neonv7".
func Set() kern.Set {
	s := generic.Set()
	s.ISA = "neonv7"
	s.Block = block
	s.PackBits = func(w []uint64, outputs, k int) *kern.DotBitsWeights { return kern.PackLanes(w, outputs, k, block) }
	s.DotBits = dotBits
	s.Threshold = threshold
	s.Cost.Bits = 0.03
	return s
}

// bitsOfBytes has bit i%8 in byte i.
var bitsOfBytes = [2]uint64{0x8040201008040201, 0x8040201008040201}

// mostWords is the number of words that the sums of bytes can take.
const mostWords = 255 / 8

func dotBits(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	var start, spare [block]int32
	for i := range start {
		start[i] = int32(w.K)
	}
	run := min(at.RowLen, mostWords)
	rows := max(1, mostWords/at.RowLen)
	for o := 0; o < n; o += block {
		weights := w.Data[(first+o)/block*w.Words*block:][:w.Words*block]
		for p := 0; p < at.Pixels; p += 2 {
			// The second pixel may be one that nobody asked for.
			q, dst0, dst1 := p, &dst[p*stride+o:][:block][0], &spare[0]
			if p+1 < at.Pixels {
				q, dst1 = p+1, &dst[(p+1)*stride+o:][:block][0]
			}
			from0, from1 := &start[0], &start[0]
			done := 0
			for r := 0; r < at.Rows; r += rows {
				take := min(rows, at.Rows-r)
				for i := 0; i < at.RowLen; i += run {
					words := min(run, at.RowLen-i)
					x := r*at.RowStep + i
					dotBits2x8(dst0, dst1, from0, from1, &src[p*at.Step+x], &src[q*at.Step+x], &weights[done*block], take, words, 8*(at.RowStep-words))
					from0, from1 = dst0, dst1
					done += take * words
				}
			}
		}
	}
}

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			threshold64(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.Threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}
