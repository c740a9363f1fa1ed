//go:build amd64 && !purego

package sets

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// avx2 looks up the popcounts of nibbles and sums them in bytes.
var avx2 = func() kern.Set {
	s := generic.Set()
	s.ISA = "avx2"
	s.Wide = &kern.Wide{
		Nibbles: true,
		Expand:  expand256,
		MaxTaps: math.MaxInt16,
		PackBits: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			kernels := []kern.WideKernels{
				{Outputs: 32, Conv: convBits32AVX2, Sums: convBitsSums32AVX2, Pooled: convBitsPooled32AVX2},
				{Outputs: 64, Conv: convBits64AVX2, Sums: convBitsSums64AVX2, Pooled: convBitsPooled64AVX2},
			}
			if (n+3)/4*rows <= 63 { // counts fit into bytes
				kernels[0].PooledAlike, kernels[1].PooledAlike = convBitsPooledShort32AVX2, convBitsPooledShort64AVX2
			}
			return kern.PackNibbles(w, outputs, rows, n, kernels)
		},
		PackBytes: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return kern.PackSigns(w, outputs, rows, n, 2, []kern.WideKernels{
				{Outputs: 16, Conv: convBytes16AVX2, Sums: convBytesSums16AVX2, Pooled: convBytesPooled16AVX2},
				{Outputs: 32, Conv: convBytes32AVX2, Sums: convBytesSums32AVX2, Pooled: convBytesPooled32AVX2},
				// The sums of four pixels do not fit into the registers.
				{Outputs: 64, Conv: convBytes64AVX2, Sums: convBytesSums64AVX2},
			})
		},
	}
	s.DotBits = dotBits256
	s.FMA = fma256
	s.FMAPixels = fmaPixels256
	s.Threshold = threshold256
	s.ThresholdFloat = thresholdFloat256
	s.Scale = scale256
	s.ScaleFloat = scaleFloat256
	s.Peak, s.PeakProducts = peakAVX2, 12*32*4
	s.Cost = kern.Cost{Bits: 0.002, Bytes: 0.008, Floats: 0.03, Value: 0.1}
	withRows(&s)
	return s
}()

func expand256(dst []uint8, src []uint32) {
	if len(src) < 4 {
		generic.Expand(dst, src)
		return
	}
	expandAVX2(&dst[0], &src[0], len(src))
}

func dotBits256(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	const lanes = 4
	for o := 0; o < n; {
		job := kern.NewDotJob(dst[o:], stride, src, at, w, first+o, lanes)
		if n-o > 3*lanes {
			dotBits1x16AVX2(job.Address())
			o += 4 * lanes
		} else {
			dotBits4x4AVX2(job.Address())
			dotBits1x4AVX2(job.Address())
			o += lanes
		}
	}
}

// allLanes is always for 32-bit lanes.
func allLanes(relu bool) uint32 {
	if relu {
		return 0
	}
	return math.MaxUint32
}

func scale256(dst []float32, sums []int32, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.Scale(dst, sums, scale, shift, relu)
		return
	}
	scaleAVX2(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), allLanes(relu))
}

func scaleFloat256(dst, sums []float32, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.ScaleFloat(dst, sums, scale, shift, relu)
		return
	}
	scaleFloatAVX2(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), allLanes(relu))
}

func fma256(acc, x, w []float32, stride int) {
	if len(x) == 0 {
		return
	}
	o := 0
	for ; o+64 <= len(acc); o += 64 {
		fma64AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o+8 <= len(acc); o += 8 {
		fma8AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o < len(acc); o++ {
		fma1AVX2(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
}

func fmaPixels256(dst []float32, stride int, src []float32, at *kern.Patches, w []float32, step int, bias []float32) {
	done := at.Pixels / 6 * 6
	for o := 0; o < len(bias); {
		n := 16
		if len(bias)-o < n {
			n = min(len(bias)-o, 8)
		}
		job := kern.NewFMAJob(dst[o:], stride, src, at, w[o:], step, bias[o:o+n])
		if n == 16 {
			fmaPixels6x16AVX2(job.Address())
		} else {
			fmaPixels6x8AVX2(job.Address())
		}
		o += n
	}
	generic.FMAPixelsFrom(dst, stride, src, at, w, step, bias, done, fma256)
}

func threshold256(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdAVX2(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.Threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloat256(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		for p := range pixels {
			thresholdFloatAVX2(&dst[p*step], &sums[p*stride], &t[0], words)
		}
	}
	if pixels > 0 && whole < len(t) {
		generic.ThresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}
