//go:build amd64 && !purego

package sets

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// avx512 sums in 32-bit lanes.
var avx512 = func() kern.Set {
	s := generic.Set()
	s.ISA = "avx512vpopcnt"
	s.Wide = &kern.Wide{
		MaxTaps: math.MaxInt32,
		PackBits: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return packBits32(w, outputs, rows, n, []kern.WideKernels{
				{Outputs: 16, Conv: convBits16AVX512, Sums: convBitsSums16AVX512, Pooled: convBitsPooled16AVX512, PooledAlike: convBitsPooledAlike16AVX512},
				{Outputs: 32, Conv: convBits32AVX512, Sums: convBitsSums32AVX512, Pooled: convBitsPooled32AVX512, PooledAlike: convBitsPooledAlike32AVX512},
				{Outputs: 48, Conv: convBits48AVX512, Sums: convBitsSums48AVX512, Pooled: convBitsPooled48AVX512, PooledAlike: convBitsPooledAlike48AVX512},
				{Outputs: 64, Conv: convBits64AVX512, Sums: convBitsSums64AVX512, Pooled: convBitsPooled64AVX512, PooledAlike: convBitsPooledAlike64AVX512},
			})
		},
		PackBytes: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return kern.PackSigns(w, outputs, rows, n, 4, []kern.WideKernels{
				{Outputs: 16, Conv: convBytes16AVX512, Sums: convBytesSums16AVX512, Pooled: convBytesPooled16AVX512},
				{Outputs: 32, Conv: convBytes32AVX512, Sums: convBytesSums32AVX512, Pooled: convBytesPooled32AVX512},
				{Outputs: 48, Conv: convBytes48AVX512, Sums: convBytesSums48AVX512, Pooled: convBytesPooled48AVX512},
				{Outputs: 64, Conv: convBytes64AVX512, Sums: convBytesSums64AVX512, Pooled: convBytesPooled64AVX512},
			})
		},
	}
	s.Block = 8
	s.PackBits = func(w []uint64, outputs, k int) *kern.DotBitsWeights { return kern.PackLanes(w, outputs, k, 8) }
	s.DotBits = dotBitsWide
	s.FMA = fmaWide
	s.FMAPixels = fmaPixelsWide
	s.Threshold = thresholdWide
	s.ThresholdFloat = thresholdFloatWide
	s.Scale = scaleWide
	s.ScaleFloat = scaleFloatWide
	s.Peak, s.PeakProducts = peakAVX512, 8*16*512
	s.Cost = kern.Cost{Bits: 0.001, Bytes: 0.005, Floats: 0.02, Value: 0.1}
	withRows(&s)
	return s
}()

// packBits32 lays out pieces of 32 bits.
func packBits32(w []uint64, outputs, rows, n int, kernels []kern.WideKernels) *kern.WideFilter {
	words, pieces := bits.Words(n), (n+31)/32
	out := kern.NewWideFilter(outputs, rows, pieces, 4, kernels)
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				v := uint32(w[(o*rows+r)*words+i/2] >> (i % 2 * 32))
				d := out.Piece(o, r, i)
				d[0], d[1], d[2], d[3] = uint8(v), uint8(v>>8), uint8(v>>16), uint8(v>>24)
			}
		}
	}
	return out
}

func dotBitsWide(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	const lanes = 8
	for o := 0; o < n; {
		job := kern.NewDotJob(dst[o:], stride, src, at, w, first+o, lanes)
		if n-o > 3*lanes {
			dotBits4x32AVX512(job.Address())
			dotBits1x32AVX512(job.Address())
			o += 4 * lanes
		} else {
			dotBits4x8AVX512(job.Address())
			dotBits1x8AVX512(job.Address())
			o += lanes
		}
	}
}

func fmaWide(acc, x, w []float32, stride int) {
	if len(x) == 0 {
		return
	}
	o := 0
	for ; o+64 <= len(acc); o += 64 {
		fma64AVX512(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o < len(acc); o += 16 {
		mask := uint16(1)<<min(len(acc)-o, 16) - 1
		fma16AVX512(&acc[o], &x[0], len(x), &w[o], 4*stride, mask)
	}
}

func fmaPixelsWide(dst []float32, stride int, src []float32, at *kern.Patches, w []float32, step int, bias []float32) {
	for o := 0; o < len(bias); {
		var n, done int
		if len(bias)-o >= 64 {
			n, done = 64, at.Pixels/4*4
			job := kern.NewFMAJob(dst[o:], stride, src, at, w[o:], step, bias[o:o+n])
			fmaPixels4x64AVX512(job.Address())
		} else {
			n, done = min(len(bias)-o, 16), at.Pixels/6*6
			job := kern.NewFMAJob(dst[o:], stride, src, at, w[o:], step, bias[o:o+n])
			fmaPixels6x16AVX512(job.Address())
		}
		generic.FMAPixelsFrom(dst[o:], stride, src, at, w[o:], step, bias[o:o+n], done, fmaWide)
		o += n
	}
}

func thresholdWide(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	if len(t) == 0 {
		return
	}
	for p := range pixels {
		thresholdAVX512(&dst[p*step], &sums[p*stride], &t[0], len(t))
	}
}

func thresholdFloatWide(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	if len(t) == 0 {
		return
	}
	for p := range pixels {
		thresholdFloatAVX512(&dst[p*step], &sums[p*stride], &t[0], len(t))
	}
}

// always returns the lanes that stay as they are if they are negative.
func always(relu bool) uint16 {
	if relu {
		return 0
	}
	return 0xffff
}

func scaleWide(dst []float32, sums []int32, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.Scale(dst, sums, scale, shift, relu)
		return
	}
	scaleAVX512(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), always(relu))
}

func scaleFloatWide(dst, sums, scale, shift []float32, relu bool) {
	if scale == nil || len(dst) == 0 {
		generic.ScaleFloat(dst, sums, scale, shift, relu)
		return
	}
	scaleFloatAVX512(&dst[0], &sums[0], &scale[0], &shift[0], len(dst), always(relu))
}
