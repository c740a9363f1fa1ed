//go:build amd64 && !purego

package sets

import (
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// ssse3 looks up the popcounts of nibbles and sums them in bytes. Sums of real
// weights, which need a fused product and sum, are left to generic.
var ssse3 = func() kern.Set {
	s := generic.Set()
	s.ISA = "ssse3"
	s.Wide = &kern.Wide{
		Nibbles: true,
		Expand:  expandX86,
		MaxTaps: math.MaxInt16,
		PackBits: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return kern.PackNibbles(w, outputs, rows, n, []kern.WideKernels{
				{Outputs: 16, Conv: convBits16SSSE3, Sums: convBitsSums16SSSE3},
				{Outputs: 32, Conv: convBits32SSSE3, Sums: convBitsSums32SSSE3},
				{Outputs: 64, Conv: convBits64SSSE3, Sums: convBitsSums64SSSE3},
			})
		},
		PackBytes: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return kern.PackSigns(w, outputs, rows, n, 2, []kern.WideKernels{
				{Outputs: 16, Conv: convBytes16SSSE3, Sums: convBytesSums16SSSE3},
				{Outputs: 32, Conv: convBytes32SSSE3, Sums: convBytesSums32SSSE3},
				{Outputs: 64, Conv: convBytes64SSSE3, Sums: convBytesSums64SSSE3},
			})
		},
	}
	s.DotBits = dotBitsX86
	s.Threshold = thresholdX86
	s.ThresholdFloat = thresholdFloatX86
	s.Or = orX86
	s.OrPool = orPoolX86
	s.MaxPool = maxPoolX86
	s.Narrow = narrowX86
	s.Join = joinX86
	s.ThresholdBytes = thresholdBytesX86
	s.MinMax = minMaxX86
	s.Peak, s.PeakProducts = peakSSSE3, 12*16*4
	s.Cost = kern.Cost{Bits: 0.003, Bytes: 0.02, Floats: 2.5, Value: 1}
	return s
}()

func thresholdX86(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdSSSE3(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.Threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloatX86(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdFloatSSSE3(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.ThresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func orX86(dst, src []uint64) {
	blocks := len(src) / 8
	if blocks > 0 {
		orSSSE3(&dst[:len(src)][0], &src[0], blocks)
	}
	generic.Or(dst[8*blocks:], src[8*blocks:])
}

func dotBitsX86(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	for o := 0; o < n; o += generic.Block {
		job := kern.NewDotJob(dst[o:], stride, src, at, w, first+o, generic.Block)
		dotBits4SSSE3(job.Address())
	}
}

func expandX86(dst []uint8, src []uint32) {
	groups := len(src) / 4
	if groups > 0 {
		expandSSSE3(&dst[0], &src[0], groups)
	}
	generic.Expand(dst[32*groups:], src[4*groups:])
}

func orPoolX86(dst, src []uint64, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	four := len(p.Taps) == 4 && p.Values == 1
	if p.Flip != 0 && !four {
		generic.OrPool(dst, src, p)
		return
	}
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	switch address := (*uint8)(unsafe.Pointer(&job)); {
	case !ok:
		generic.OrPool(dst, src, p)
	case four:
		orPool4SSSE3(address, p.Flip)
	default:
		orPoolSSSE3(address)
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func maxPoolX86(dst, src []float32, p *kern.Pool) {
	var taps [kern.MaxPoolTaps]int
	job, ok := kern.NewPoolJob(dst, src, p, &taps)
	if !ok {
		generic.MaxPool(dst, src, p)
		return
	}
	maxPoolSSSE3((*uint8)(unsafe.Pointer(&job)))
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func narrowX86(dst []uint32, src []uint64) {
	whole := len(dst) &^ 3
	if whole > 0 {
		narrowSSSE3(&dst[0], &src[0], whole/4)
	}
	generic.Narrow(dst[whole:], src[whole:])
}

func joinX86(dst, src []uint32, taps, step, shift int) {
	whole := len(dst) &^ 7
	if whole > 0 {
		joinSSSE3(&dst[0], &src[0], whole/8, taps, 4*step, shift)
	}
	if whole < len(dst) {
		generic.Join(dst[whole:], src[whole:], taps, step, shift)
	}
}

func thresholdBytesX86(dst []uint64, src, t []uint8) {
	words := len(src) / 64
	if words > 0 {
		thresholdBytesSSSE3(&dst[0], &src[0], &t[0], words, len(t)/64)
	}
	if whole := words * 64; whole < len(src) {
		generic.ThresholdBytes(dst[words:], src[whole:], t[whole%len(t):])
	}
}

func minMaxX86(src []uint8) (lowest, highest uint8) {
	whole := len(src) &^ 15
	if whole == 0 {
		return generic.MinMax(src)
	}
	var low, high [16]uint8
	minMaxSSSE3(&src[0], whole/16, &low[0], &high[0])
	lowest, highest = slices.Min(low[:]), slices.Max(high[:])
	for _, v := range src[whole:] {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest
}
