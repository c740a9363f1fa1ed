//go:build amd64 && !purego

// Package ssse3 has the kernels for amd64 processors with SSSE3 and POPCNT. They
// look up the popcounts of nibbles and sum them in bytes. The fused products and
// sums of real weights, which the processor lacks, are made of float64 ones.
package ssse3

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

// Set returns the kernels, "ssse3".
func Set() kern.Set {
	s := generic.Set()
	s.ISA = "ssse3"
	s.Wide = &kern.Wide{
		Nibbles: true,
		Expand:  expand,
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
		PackInt8:  packInt8,
		PackInt16: packWords[int16],
	}
	s.DotBits = dotBits
	s.FloatBlock, s.FloatLanes = 8, 4
	s.FMAPixels = fmaPixels
	s.FMAEach = fmaEach
	s.Blend = blend
	s.Scale = scale
	s.ScaleFloat = scaleFloat
	s.Threshold = threshold
	s.ThresholdFloat = thresholdFloat
	s.Or = or
	s.OrPool = orPool
	s.MaxPool = maxPool
	s.MaxPoolBytes = maxPoolBytes
	s.LevelBytes, s.LevelFloats = levelBytes, levelFloats
	s.Narrow = narrow
	s.LookUpBytes = lookUpBytes
	s.Join = join
	s.ThresholdBytes = thresholdBytes
	s.MinMax = minMax
	s.Peaks = []kern.Peak{{Run: peakSSSE3, Products: 12 * 16 * 4}}
	s.Cost = kern.Cost{Bits: 0.003, Bytes: 0.02, Floats: 2.5, Value: 1}
	return s
}

// packInt8 lays out weights of 8 bits for sums in words, where those take several pairs of
// products, and for sums in 32 bits.
func packInt8(w []int8, outputs, rows, n int, most uint8) *kern.WideFilter {
	pairs := kern.PackPairs(w, outputs, rows, n, most, []kern.WideKernels{
		{Outputs: 16, Sums: convBytesSums16SSSE3},
		{Outputs: 32, Sums: convBytesSums32SSSE3},
		{Outputs: 64, Sums: convBytesSums64SSSE3},
	})
	if pairs != nil {
		pairs.Form = "sums in words"
		return pairs
	}
	return packWords(w, outputs, rows, n)
}

// packWords lays out weights for sums in 32 bits.
func packWords[W int8 | int16](w []W, outputs, rows, n int) *kern.WideFilter {
	return kern.PackWords(w, outputs, rows, n, 16, []kern.WideKernels{
		{Outputs: 16, Each: 16, Sums: convWordsSums16SSSE3},
		{Outputs: 32, Each: 16, Sums: convWordsSums16SSSE3},
		{Outputs: 64, Each: 16, Sums: convWordsSums16SSSE3},
	})
}
