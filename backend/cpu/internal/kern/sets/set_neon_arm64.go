//go:build arm64 && !purego

package sets

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// neon counts bits in bytes, 16 outputs side by side.
var neon = func() kern.Set {
	s := generic.Set()
	s.ISA = "neon"
	s.DotBits = dotBitsNEON
	s.Wide = &kern.Wide{
		MaxTaps: math.MaxInt16,
		PackBits: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return packBytesOfBits(w, outputs, rows, n, []kern.WideKernels{
				{Outputs: 16, Conv: convBits16NEON, Sums: convBitsSums16NEON},
				{Outputs: 32, Conv: convBits32NEON, Sums: convBitsSums32NEON},
				{Outputs: 64, Conv: convBits64NEON, Sums: convBitsSums64NEON},
			})
		},
		PackBytes: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return packOnes(w, outputs, rows, n, 2, 0xff, []kern.WideKernels{
				{Outputs: 16, Conv: convBytes16NEON, Sums: convBytesSums16NEON},
				{Outputs: 32, Conv: convBytes32NEON, Sums: convBytesSums32NEON},
				{Outputs: 64, Conv: convBytes64NEON, Sums: convBytesSums64NEON},
			})
		},
	}
	s.FMA = fma128
	s.Threshold = threshold128
	s.ThresholdFloat = thresholdFloat128
	s.Or = or128
	s.Scale = scale128
	s.ScaleFloat = scaleFloat128
	s.FMAEach = fmaEach128
	s.Add = add128
	s.Choose = choose128
	s.OrPool = orPool128
	s.MaxPool = maxPool128
	s.Narrow = narrow128
	s.Join = join128
	s.ThresholdBytes = thresholdBytes128
	s.Spread = spread128
	s.Luma = luma128
	s.LBP = lbp128
	s.MinMax = minMax128
	s.Peak, s.PeakProducts = peakNEON, 16*128
	s.Cost = kern.Cost{Bits: 0.008, Bytes: 0.03, Floats: 0.1, Value: 0.3}
	return s
}()

// neonDot has the dot product of bytes.
var neonDot = func() kern.Set {
	s, wide := neon, *neon.Wide
	s.ISA = "neondot"
	wide.PackBytes = func(w []uint64, outputs, rows, n int) *kern.WideFilter {
		return packOnes(w, outputs, rows, n, 4, 2, []kern.WideKernels{
			{Outputs: 16, Conv: convBytes16NEONDot, Sums: convBytesSums16NEONDot},
			{Outputs: 32, Conv: convBytes32NEONDot, Sums: convBytesSums32NEONDot},
			{Outputs: 64, Conv: convBytes64NEONDot, Sums: convBytesSums64NEONDot},
		})
	}
	s.Wide = &wide
	return s
}()

// packBytesOfBits lays out bytes of 8 bits.
func packBytesOfBits(w []uint64, outputs, rows, n int, kernels []kern.WideKernels) *kern.WideFilter {
	words, pieces := bits.Words(n), (n+7)/8
	out := kern.NewWideFilter(outputs, rows, pieces, 1, kernels)
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				out.Piece(o, r, i)[0] = uint8(w[(o*rows+r)*words+i/8] >> (i % 8 * 8))
			}
		}
	}
	return out
}

// packOnes lays out pieces of perPiece taps as bytes, which are one where the
// weight is +1, else 0.
func packOnes(w []uint64, outputs, rows, n, perPiece int, one uint8, kernels []kern.WideKernels) *kern.WideFilter {
	words, pieces := bits.Words(n), (n+perPiece-1)/perPiece
	out := kern.NewWideFilter(outputs, rows, pieces, perPiece, kernels)
	out.Tail = ^uint64(0) >> (64 - 8*(n-(pieces-1)*perPiece))
	for o := range outputs {
		for r := range rows {
			run := w[(o*rows+r)*words:][:words]
			for i := range n {
				if bits.At(run, i) > 0 {
					out.Piece(o, r, i/perPiece)[i%perPiece] = one
				}
			}
		}
	}
	return out
}

func dotBitsNEON(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	if at.Pixels == 0 || n == 0 || w.Words == 0 {
		generic.DotBits(dst, stride, src, at, w, first, n)
		return
	}
	block := w.Words * generic.Block
	skip := 8 * (at.RowStep - at.RowLen)
	_ = src[(at.Pixels-1)*at.Step+(at.Rows-1)*at.RowStep+at.RowLen-1]
	_ = dst[(at.Pixels-1)*stride+kern.RoundUp(n, generic.Block)-1]
	for o := 0; o < n; o += generic.Block {
		weights := &w.Data[(first+o)/generic.Block*block:][:block][0]
		p := 0
		for ; p+1 < at.Pixels; p += 2 {
			dotBits2NEON(&dst[p*stride+o], &dst[(p+1)*stride+o], &src[p*at.Step], &src[(p+1)*at.Step], at.Rows, at.RowLen, skip, weights, w.K)
		}
		if p < at.Pixels {
			dotBits1NEON(&dst[p*stride+o], &src[p*at.Step], at.Rows, at.RowLen, skip, weights, w.K)
		}
	}
}
